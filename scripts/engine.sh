#!/usr/bin/env bash
# Sees to a container engine that answers, and to mmdebstrap, which makes images. As root or with a sudo that asks for no
# password it installs what is missing and starts Docker's daemon, by the service manager where there is one. Where it
# may not, it says what is missing and which command brings it, and ends with 1: what needs no container can go on.
#   engine.sh       DBCLUSTER_ENGINE_PID=FILE gets the process number of a daemon that this call has started itself
#   engine.sh end   ends the daemon of that file
set -euo pipefail
cd "$(dirname "$0")/.."

PATH=$PATH:/usr/sbin:/sbin
SOCKET=${DOCKER_HOST:-unix:///var/run/docker.sock}
SYSTEMD=${DBCLUSTER_SYSTEMD:-/run/systemd/system} # it runs where this directory is
SECONDS_TO_ANSWER=60
WITHOUT_ROOT="and that needs root. For tests in containers run:"
source scripts/root.sh

say() {
    echo "engine: $*"
}

stop() {
    echo "engine: $*" >&2
    exit 1
}

# Why no engine answers; nothing and 0 where one does.
why_not() {
    local words
    words=$(.venv/bin/dbcluster image list 2>&1 >/dev/null) && return
    echo "${words#dbcluster: }"
    return 1
}

install_packages() {
    local command
    command -v apt-get >/dev/null || stop "$* not found; install them for tests in containers"
    command="DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends $*"
    # A fresh Debian has no package lists yet.
    apt-get --simulate install "$@" >/dev/null 2>&1 || command="apt-get update && $command"
    as_root "$* missing" "$command" >&2
}

remember() {
    [[ -z ${DBCLUSTER_ENGINE_PID:-} ]] || echo "$1" >"$DBCLUSTER_ENGINE_PID"
}

start_daemon() {
    local log pid words
    if [[ -d $SYSTEMD ]]; then
        as_root "no container engine answers" "systemctl start docker"
        return
    fi
    # Root makes the log too: fs.protected_regular keeps it from adding to another user's file in /tmp.
    # The daemon outlives this script, whose input and output it must not hold open.
    words=$(as_root "no container engine answers" \
        "log=\$(mktemp -t dbcluster-dockerd.XXXXXX) && chmod 644 \$log &&
        { setsid nohup dockerd --host $SOCKET >>\$log 2>&1 </dev/null & echo \$! \$log; }") || exit 1
    read -r pid log <<<"${words##*$'\n'}"
    remember "$pid"
    say "started dockerd (process $pid, log $log)"
    wait_for_answer "$pid" "$log"
}

wait_for_answer() {
    local pid=$1 log=$2 why="" limit=$((SECONDS + SECONDS_TO_ANSWER))
    while ((SECONDS < limit)); do
        why=$(why_not) && return
        [[ -d /proc/$pid ]] || stop "dockerd ended: $(tail -n 1 "$log") (log: $log)"
        sleep 0.2
    done
    stop "dockerd runs and does not answer: $why (log: $log)"
}

end_daemon() {
    local pid limit=$((SECONDS + SECONDS_TO_ANSWER))
    pid=$(cat "${DBCLUSTER_ENGINE_PID:?names the file with the process number}" 2>/dev/null || true)
    rm -f "$DBCLUSTER_ENGINE_PID"
    [[ -n $pid && $(cat "/proc/$pid/comm" 2>/dev/null) == dockerd ]] || return 0
    as_root "ending dockerd (process $pid)" "kill $pid"
    while [[ -d /proc/$pid ]] && ((SECONDS < limit)); do sleep 0.2; done
}

if [[ ${1:-} == end ]]; then
    end_daemon
    exit
fi
packages=()
if ! why=$(why_not); then
    # Another machine's, or one that this user may not ask: a daemon more would not help.
    [[ $SOCKET == unix://* && (! -S ${SOCKET#unix://} || -w ${SOCKET#unix://}) ]] || stop "$why"
    command -v dockerd >/dev/null || packages+=(docker.io)
fi
command -v mmdebstrap >/dev/null || packages+=(mmdebstrap)
[[ ${#packages[@]} == 0 ]] || install_packages "${packages[@]}"
if [[ ${packages[*]} == *docker.io* && ! -d $SYSTEMD ]] && pid=$(pgrep -xo dockerd); then
    remember "$pid" # the package's init script has started it
    wait_for_answer "$pid" /var/log/docker.log
elif [[ -n $why ]]; then
    start_daemon
fi
why=$(why_not) || stop "$why"
