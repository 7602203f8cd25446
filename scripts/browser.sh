#!/usr/bin/env bash
# Provides Chromium, in which the tests open the page of a run. As root, or with sudo without a password, it installs
# Debian's package; otherwise it prints the command that installs it. Without Chromium these tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

WITHOUT_ROOT="and installing it needs root. For tests of the page run:"
source scripts/root.sh

say() {
    echo "browser: $*"
}

stop() {
    echo "browser: $*" >&2
    exit 1
}

! command -v chromium >/dev/null || exit 0
command -v apt-get >/dev/null || stop "chromium not found; install it for tests of the page"
command="DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium"
# A fresh Debian has no package lists yet.
apt-get --simulate install --no-install-recommends chromium >/dev/null 2>&1 || command="apt-get update && $command"
as_root "chromium missing" "$command"
