#!/usr/bin/env bash
# Provides the ssh client, with which hosts elsewhere are reached. As root, or with sudo without a password, it installs
# Debian's package; otherwise it prints the command that installs it. Without it tests of such hosts are skipped.
# A test reads what ping prints, which instances of EC2 have: where there is none, that of Debian's package is put into
# .venv/bin, which needs no root.
set -euo pipefail
cd "$(dirname "$0")/.."

WITHOUT_ROOT="and installing it needs root. For tests on hosts with ssh run:"
source scripts/root.sh

say() {
    echo "ssh_client: $*"
}

stop() {
    echo "ssh_client: $*" >&2
    exit 1
}

fetch_ping() {
    local made
    made=$(mktemp -d)
    (cd "$made" && apt-get download iputils-ping >/dev/null 2>&1 && dpkg-deb -x iputils-ping_*.deb . &&
        install -m 755 "$(find . -name ping -type f -path '*bin/*')" "$OLDPWD/.venv/bin/ping") ||
        say "no ping: its test is skipped (apt-get install iputils-ping)"
    rm -rf "$made"
}

if [[ -d .venv/bin && ! -x .venv/bin/ping ]] && ! command -v ping >/dev/null; then
    fetch_ping
fi
! command -v ssh >/dev/null || exit 0
command -v apt-get >/dev/null || stop "ssh not found; install it for tests on hosts with ssh"
command="DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends openssh-client"
# A fresh Debian has no package lists yet.
apt-get --simulate install --no-install-recommends openssh-client >/dev/null 2>&1 || command="apt-get update && $command"
as_root "ssh missing" "$command"
