#!/usr/bin/env bash
# Keeps a history of claims on a branch of its own, which has no file of the project and no common commit with it.
#   scripts/history_branch.sh get FILE [BRANCH [REMOTE]]   writes the branch's history into FILE; nothing without such a branch
#   scripts/history_branch.sh put FILE [BRANCH [REMOTE]]   adds the lines of FILE that the branch lacks, and pushes it
# Several jobs may put at once: each adds to what the others have pushed. The work tree and the checked-out branch stay as
# they are. Without the right to push, as in a job of a fork, `put` says so and ends with 0: FILE has all lines.
set -euo pipefail

NAME=history.jsonl
[[ $# -ge 2 && ($1 == get || $1 == put) ]] || {
    echo "usage: scripts/history_branch.sh get|put FILE [BRANCH [REMOTE]]" >&2
    exit 2
}
what=$1 file=$2 branch=${3:-history} remote=${4:-origin}

# The commit of the branch on the remote; nothing without such a branch.
newest() {
    local found
    found=$(git ls-remote --heads "$remote" "refs/heads/$branch") || return # a remote that cannot be read has no answer
    if [[ -n $found ]]; then
        git fetch --quiet --no-tags --depth=1 "$remote" "refs/heads/$branch" || return
        git rev-parse FETCH_HEAD
    fi
}

# How many lines the standard input has, as `1 line` or `3 lines`.
count_lines() {
    local number
    number=$(wc -l)
    echo "$number line$([[ $number -eq 1 ]] || echo s)"
}

if [[ $what == get ]]; then
    commit=$(newest)
    if [[ -z $commit ]]; then
        echo "$remote has no branch $branch yet: the history begins with this run"
        exit 0
    fi
    mkdir -p "$(dirname "$file")"
    git show "$commit:$NAME" >"$file"
    echo "$file: $(count_lines <"$file") of branch $branch"
    exit 0
fi

[[ -s $file ]] || {
    echo "$file has no lines: no claim was measured, so branch $branch stays as it is"
    exit 0
}
export GIT_AUTHOR_NAME=pytest-dbcluster GIT_AUTHOR_EMAIL=pytest-dbcluster@localhost
export GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL
for _ in {1..10}; do
    commit=$(newest)
    # A torn last line ends here, so that the next one begins a line of its own.
    blob=$({ [[ -z $commit ]] || git show "$commit:$NAME"; awk 1 "$file"; } | awk 'NF && !seen[$0]++' | git hash-object -w --stdin)
    tree=$(printf '100644 blob %s\t%s\n' "$blob" "$NAME" | git mktree)
    added=$(git commit-tree "$tree" ${commit:+-p "$commit"} -m "history: $(git rev-parse --short HEAD)")
    why=$(git push --quiet "$remote" "$added:refs/heads/$branch" 2>&1) && {
        echo "branch $branch: $(git cat-file blob "$blob" | count_lines)"
        exit 0
    }
    [[ $(newest) != "$commit" ]] || break # nobody else has pushed, so it is not a race
done
why=$(grep -m 1 -E 'rejected|denied|fatal' <<<"$why" || tail -n 1 <<<"$why")
said="the history was not pushed to branch $branch: ${why## }; $file has all lines"
[[ ${GITHUB_ACTIONS:-} != true ]] || echo "::warning::$said"
echo "$said" >&2
