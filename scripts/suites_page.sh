#!/usr/bin/env bash
# Downloads the page of the newest night of the suites: suites_page.sh DIRECTORY. It is the artifact `suites-page` of a
# run on the branch main of this repository. Runs of forks may have artifacts of the same name, and do not count. Without
# such an artifact it says so, and ends with 0.
set -euo pipefail

directory=$1
newest='[.artifacts[] | select(.expired | not) | .workflow_run
    | select(.head_branch == "main" and .head_repository_id == .repository_id) | .id] | max // empty'
run=$(gh api "repos/$GH_REPO/actions/artifacts?name=suites-page&per_page=100" --jq "$newest")
if [[ -z $run ]]; then
    echo "no run of the suites has a page yet"
    exit 0
fi
gh run download "$run" --name suites-page --dir "$directory"
echo "the page of run $run is in $directory"
