#!/usr/bin/env bash
# A test reads what ping prints, which instances of EC2 have. Where there is none, this puts that of Debian's package into
# .venv/bin, which needs no root.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ -d .venv/bin && ! -x .venv/bin/ping ]] && ! command -v ping >/dev/null || exit 0
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
(cd "$made" && apt-get download iputils-ping >/dev/null 2>&1 && dpkg-deb -x iputils-ping_*.deb .) &&
    install -m 755 "$(find "$made" -name ping -type f -path '*bin/*')" .venv/bin/ping ||
    echo "ping: not found, its test is skipped (apt-get install iputils-ping)"
