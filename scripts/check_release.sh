#!/usr/bin/env bash
# Checks before a release: check_release.sh TAG. The tag must be `v` and the version of the package, and CHANGELOG.md and
# CITATION.cff must be about this version. It prints every problem, and ends with 1 if there is one.
set -euo pipefail
cd "$(dirname "$0")/.."

tag=$1
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' pytest_dbcluster/version.py)
heading=$(grep -m 1 '^## ' CHANGELOG.md)
cited=$(sed -n 's/^version: //p' CITATION.cff)
problems=0

problem() {
    echo "release: $*" >&2
    problems=1
}

[[ $tag == "v$version" ]] || problem "the tag is $tag, and pytest_dbcluster/version.py has $version: use the tag v$version"
[[ $heading =~ ^"## $version ("[0-9]{4}-[0-9]{2}-[0-9]{2}")"$ ]] ||
    problem "the first entry of CHANGELOG.md is '$heading': write '## $version (YEAR-MONTH-DAY)'"
[[ $cited == "$version" ]] || problem "CITATION.cff has version $cited: write $version"
exit $problems
