#!/usr/bin/env bash
# Measures the claims about published measurements, and stores their results for the site: published.sh [OPTION of pytest]...
# It continues what it has measured before. After an interruption it stores what there is.
# The exit code is that of pytest: 0, 1 if a claim is red, 2 after an interruption.
set -uo pipefail

results=reports/published
worst=0

# measure DIRECTORY ARGUMENT...: false if the run was interrupted, or pytest could not begin. A red claim is an answer.
measure() {
    local code=0 directory=$results/$1
    shift
    .venv/bin/pytest -m published --db-resume --db-results "$directory" "$@" || code=$?
    [[ $code -eq 5 ]] && code=0 # no claim of these suites is selected
    [[ $code -gt $worst ]] && worst=$code
    [[ $code -le 1 ]]
}

# DRBD needs guests, and a run has one kind of host.
measure servers suites --ignore=suites/drbd "$@" && measure guests suites/drbd "$@"
.venv/bin/python scripts/store_published.py "$results/servers" "$results/guests" || exit
exit "$worst"
