#!/usr/bin/env bash
# Provides a program that some tests need: scripts/program.sh PROGRAM PACKAGE TESTS. As root, or with sudo without a
# password, it installs Debian's package; otherwise it prints the command that installs it. Without the program these
# tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1 package=$2 tests=$3

WITHOUT_ROOT="and installing it needs root. For $tests run:"
source scripts/root.sh

say() {
    echo "program: $*"
}

stop() {
    echo "program: $*" >&2
    exit 1
}

! command -v "$program" >/dev/null || exit 0
command -v apt-get >/dev/null || stop "$program not found; install it for $tests"
command="DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends $package"
# A fresh Debian has no package lists yet.
apt-get --simulate install --no-install-recommends "$package" >/dev/null 2>&1 || command="apt-get update && $command"
as_root "$program missing" "$command"
