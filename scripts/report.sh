#!/usr/bin/env bash
# Makes the Allure report of the results in a directory: report.sh reports/latest
set -euo pipefail
cd "$(dirname "$0")/.."
results=$1/allure-results
report=$1/allure-report

if [[ ! -d $results ]]; then
    echo "report: there is no $results; a run makes it:  make bench" >&2
    exit 1
fi
if ! command -v allure >/dev/null; then
    echo "report: the command allure is not there. It comes with Node.js:  npm install --global allure@3" >&2
    echo "report: without installing it:  npx allure@3 generate --config reports/allurerc.mjs $results" >&2
    exit 1
fi
rm -rf "$report"
if [[ $(allure --version) == 2.* ]]; then
    allure generate "$results" --output "$report"
else
    allure generate --config reports/allurerc.mjs "$results" --output "$report"
fi
echo "report: $report/index.html"
