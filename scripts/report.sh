#!/usr/bin/env bash
# Makes the page of the results in a directory, and Allure's report where Allure is installed: report.sh reports/latest
set -euo pipefail
cd "$(dirname "$0")/.."
results=$1/allure-results
report=$1/allure-report

.venv/bin/dbcluster report "$1"
if [[ ! -d $results ]]; then
    echo "report: no Allure report: $results does not exist, because allure-pytest was not installed in that run"
    exit
fi
if ! command -v allure >/dev/null; then
    echo "report: no Allure report: the command allure was not found. To install it with Node.js 22 or newer:  npm install --global allure@3"
    echo "report: to run it without installing:  npx allure@3 generate --config reports/allurerc.mjs $results"
    exit
fi
rm -rf "$report"
if [[ $(allure --version) == 2.* ]]; then
    allure generate "$results" --output "$report"
else
    allure generate --config reports/allurerc.mjs "$results" --output "$report"
fi
echo "report: $report/index.html"
