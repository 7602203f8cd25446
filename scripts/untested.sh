#!/usr/bin/env bash
# Says loudly, after all that was tested, that nothing was tested in containers and why: the last line of a file that is
# there only then. An engine that cannot be had here makes no test red.
set -euo pipefail

[[ -e $1 ]] || exit 0
bar=$(printf '!%.0s' {1..120})
printf '\n%s\nNOT TESTED: clusters in containers. %s\n%s\n' "$bar" "$(tail -n 1 "$1")" "$bar"
