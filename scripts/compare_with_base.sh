#!/usr/bin/env bash
# Compares a my.cnf of this checkout with the same file of another commit, both in one run, and writes the result.
#   scripts/compare_with_base.sh COMMIT FILE OUTPUT [OPTION...]
# OPTIONs go to `dbcluster compare`. The exit status is 0 for no worse and for could not tell, 3 for worse, 2 without such
# a commit, else that of the command: .venv/bin/dbcluster, so that the checkout needs a .venv with pytest-dbcluster. In GitHub Actions the result is also the step summary, and "could not tell" a warning.
set -euo pipefail
cd "$(dirname "$0")/.."

UNKNOWN=4
[[ $# -ge 3 ]] || {
    echo "usage: scripts/compare_with_base.sh COMMIT FILE OUTPUT [OPTION...]" >&2
    exit 2
}
commit=$1 file=$2 output=$3
shift 3
git rev-parse --git-dir >/dev/null || {
    echo "git cannot read this checkout, for the reason above, so there is no base to compare $file with" | tee "$output" >&2
    exit 2
}
if [[ -z $commit ]] || ! git rev-parse --verify --quiet "$commit^{commit}" >/dev/null; then
    echo "there is no base to compare $file with: this checkout has no commit '$commit'; run it for a pull request, and" \
        "check out the whole history (fetch-depth: 0)" | tee "$output" >&2
    exit 2
fi
place=$(mktemp -d)
base=$place/base head=$place/head # the names of both sides in the result
trap 'git worktree remove --force "$base"; rm "$head"; rmdir "$place"' EXIT
ln -s "$PWD" "$head"
git worktree add --quiet --detach "$base" "$commit"
if [[ ! -e $base/$file ]]; then
    echo "$file is new: commit $commit does not have it, so there is nothing to compare" | tee "$output"
    exit 0
fi
if cmp -s "$base/$file" "$file" && ! grep -q '^[[:space:]]*!include' "$file"; then
    echo "$file is the same as in commit $commit, so there is nothing to compare" | tee "$output"
    exit 0
fi
status=0
.venv/bin/dbcluster compare --cnf "$base/$file" --cnf "$head/$file" "$@" >"$output" || status=$?
cat "$output"
if [[ -n ${GITHUB_STEP_SUMMARY:-} ]]; then
    { echo '```'; cat "$output"; echo '```'; } >>"$GITHUB_STEP_SUMMARY"
fi
if ((status == UNKNOWN)); then
    [[ ${GITHUB_ACTIONS:-} != true ]] || echo "::warning file=$file::$(tail -n 1 "$output")"
    exit 0
fi
exit "$status"
