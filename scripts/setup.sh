#!/usr/bin/env bash
# Creates .venv with this project and its development packages; does nothing if .venv is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."

STAMP=.venv/.ready
WITHOUT_ROOT="and installing it needs root. Run this command, then start again:"
source scripts/root.sh

say() {
    echo "setup: $*"
}

stop() {
    echo "setup: $*" >&2
    exit 1
}

# The state of the installation: the scripts in .venv contain the checkout's path, pyproject.toml lists the packages.
state() {
    echo "$PWD $(cksum <pyproject.toml)"
}

recent_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

can_make_venv() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

# Prints the first Python that is recent enough and can create a .venv, otherwise the first that is recent enough.
find_python() {
    local name first=""
    for name in python3.14 python3.13 python3.12 python3.11 python3; do
        recent_enough "$name" || continue
        first=${first:-$name}
        if can_make_venv "$name"; then
            echo "$name"
            return
        fi
    done
    echo "$first"
}

# Prints Debian's package of ensurepip: python3-venv, or for example python3.12-venv for a version other than the default.
venv_package() {
    local version='import sys; print("python%d.%d" % sys.version_info[:2])'
    local wanted default
    wanted=$("$1" -c "$version")
    default=$(python3 -c "$version" 2>/dev/null || true)
    if [[ $wanted == "$default" ]]; then
        echo python3-venv
    else
        echo "$wanted-venv"
    fi
}

install_venv_package() {
    local python=$1 package command
    package=$(venv_package "$python")
    command -v apt-get >/dev/null || stop "$python lacks the modules venv and ensurepip; install them and start again"
    command="apt-get install --yes $package"
    # A fresh Debian has no package lists yet.
    apt-get --simulate install "$package" >/dev/null 2>&1 || command="apt-get update && $command"
    as_root "$python cannot make virtual environments without $package" "$command"
    can_make_venv "$python" || stop "$package is installed, but $python still lacks the modules venv and ensurepip"
}

make_venv() {
    local python
    if [[ -f $STAMP && $(cut -d' ' -f1 $STAMP) != "$PWD" ]]; then
        say ".venv was made for another directory: creating it again"
        rm -rf .venv
    fi
    if recent_enough .venv/bin/python && .venv/bin/python -c 'import pip' 2>/dev/null; then
        return
    fi
    python=$(find_python)
    [[ -n $python ]] || stop "no Python 3.11 or newer found (looked for" \
        "python3.14, python3.13, python3.12, python3.11, python3;" \
        "python3 is $(python3 --version 2>&1 || true)). Debian 12 and newer have one:  apt-get install python3 python3-venv"
    can_make_venv "$python" || install_venv_package "$python"
    say "creating .venv with $("$python" --version)"
    rm -rf .venv
    "$python" -m venv .venv
}

# Concurrent runs of make in one checkout wait for each other.
exec 9<.
flock 9
if [[ -x .venv/bin/python && -f $STAMP && $(<$STAMP) == "$(state)" ]]; then
    exit 0
fi
make_venv
rm -f $STAMP
say "installing the packages of pyproject.toml into .venv (about a minute)"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' ||
    stop "pip could not install the packages (see its messages above). To see which index it uses:  pip config list"
state >$STAMP
