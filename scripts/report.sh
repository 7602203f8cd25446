#!/usr/bin/env bash
# Makes the Allure report of the results in a directory: report.sh reports/latest
set -euo pipefail
cd "$(dirname "$0")/.."
results=$1/allure-results
report=$1/allure-report

if [[ ! -d $results ]]; then
    echo "report: $results does not exist; a run makes it:  make bench" >&2
    exit 1
fi
if ! command -v allure >/dev/null; then
    echo "report: the results are in $results; to make a report of them install the command allure (it needs Node.js):" \
        " npm install --global allure" >&2
    exit 1
fi
rm -rf "$report"
allure generate "$results" --output "$report"
echo "report: $report/index.html"
