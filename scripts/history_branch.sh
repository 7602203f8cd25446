#!/usr/bin/env bash
# Keeps a history of claims on a branch of its own, which has no file of the project and no common commit with it.
#   scripts/history_branch.sh get FILE [BRANCH [REMOTE]]   adds the branch's history to FILE; nothing without such a branch
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

# The lines of a commit of the branch, into $old. A branch with other files belongs to somebody else: a push would remove them.
read_branch() {
    local files
    files=$(git ls-tree --full-tree --name-only "$1")
    [[ $files == "$NAME" ]] || {
        echo "branch $branch has other files than $NAME (${files//$'\n'/, }), so it stays as it is: name another BRANCH" >&2
        exit 2
    }
    git show "$1:$NAME" >"$old"
}

# The lines of $old, then those of FILE that it lacks. A torn last line ends here, so that the next one is a line of its own.
merge() {
    { cat "$old"; [[ ! -e $file ]] || awk 1 "$file"; } | awk 'NF && !seen[$0]++'
}

old=$(mktemp)
trap 'rm -f "$old" "$file.part"' EXIT
if [[ $what == get ]]; then
    commit=$(newest)
    if [[ -z $commit ]]; then
        echo "$remote has no branch $branch yet: the history begins with this run"
        exit 0
    fi
    mkdir -p "$(dirname "$file")"
    read_branch "$commit"
    merge >"$file.part" # with lines of an earlier night that could not be pushed
    mv "$file.part" "$file"
    echo "$file: $(count_lines <"$file") with branch $branch"
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
    [[ -z $commit ]] || read_branch "$commit"
    blob=$(merge | git hash-object -w --stdin)
    tree=$(printf '100644 blob %s\t%s\n' "$blob" "$NAME" | git mktree)
    added=$(git commit-tree "$tree" ${commit:+-p "$commit"} -m "history: $(git rev-parse --short HEAD)")
    why=$(git push --quiet "$remote" "$added:refs/heads/$branch" 2>&1) && {
        echo "branch $branch: $(git cat-file blob "$blob" | count_lines)"
        exit 0
    }
    [[ $why == *"cannot lock ref"* ]] && sleep 1 && continue # somebody else is about to have pushed
    [[ $(newest) != "$commit" ]] || break # nobody else has pushed, so it is not a race
done
why=$(grep -m 1 -E 'rejected|denied|fatal' <<<"$why" || tail -n 1 <<<"$why")
said="the history was not pushed to branch $branch: ${why## }; $file has all lines"
[[ ${GITHUB_ACTIONS:-} != true ]] || echo "::warning::$said"
echo "$said" >&2
