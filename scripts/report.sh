#!/usr/bin/env bash
# Creates the Allure report from the results in a directory: report.sh reports/latest
set -euo pipefail
cd "$(dirname "$0")/.."
results=$1/allure-results
report=$1/allure-report

if [[ ! -d $results ]]; then
    echo "report: $results does not exist; a measuring run creates it:  make bench" >&2
    exit 1
fi
if ! command -v allure >/dev/null; then
    echo "report: the command allure was not found. To install it with Node.js:  npm install --global allure@3" >&2
    echo "report: to run it without installing:  npx allure@3 generate --config reports/allurerc.mjs $results" >&2
    exit 1
fi
rm -rf "$report"
if [[ $(allure --version) == 2.* ]]; then
    allure generate "$results" --output "$report"
else
    allure generate --config reports/allurerc.mjs "$results" --output "$report"
fi
echo "report: $report/index.html"
