#!/usr/bin/env bash
# Provides a container engine that answers, and mmdebstrap, which builds images. As root, or with sudo without a password,
# it installs missing packages and starts Docker's daemon, through the service manager if there is one. Otherwise it
# prints what is missing and the command that installs it, and exits with 1: everything without containers still works.
#   engine.sh       writes the process id of a daemon that it starts itself to the file DBCLUSTER_ENGINE_PID
#   engine.sh end   stops the daemon of that file
set -euo pipefail
cd "$(dirname "$0")/.."

PATH=$PATH:/usr/sbin:/sbin
SOCKET=${DOCKER_HOST:-unix:///var/run/docker.sock}
SYSTEMD=${DBCLUSTER_SYSTEMD:-/run/systemd/system} # exists if systemd is running
SECONDS_TO_ANSWER=60
WITHOUT_ROOT="and fixing it needs root. For tests in containers run:"
source scripts/root.sh

say() {
    echo "engine: $*"
}

stop() {
    echo "engine: $*" >&2
    exit 1
}

# Prints why no engine answers and returns 1; returns 0 without output if an engine answers.
why_not() {
    local message
    message=$(.venv/bin/dbcluster image list 2>&1 >/dev/null) && return
    echo "${message#dbcluster: }"
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
    local log pid output
    if [[ -d $SYSTEMD ]]; then
        as_root "no container engine answers" "systemctl start docker"
        return
    fi
    # Root also creates the log: fs.protected_regular forbids root to write to another user's file in /tmp.
    # The daemon outlives this script and must not keep the script's input and output open.
    output=$(as_root "no container engine answers" \
        "log=\$(mktemp -t dbcluster-dockerd.XXXXXX) && chmod 644 \$log &&
        { setsid nohup dockerd --host $SOCKET >>\$log 2>&1 </dev/null & echo \$! \$log; }") || exit 1
    read -r pid log <<<"${output##*$'\n'}"
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
    stop "dockerd runs but did not answer within $SECONDS_TO_ANSWER s: $why (log: $log)"
}

end_daemon() {
    local pid limit=$((SECONDS + SECONDS_TO_ANSWER))
    pid=$(cat "${DBCLUSTER_ENGINE_PID:?must name the file with the process id}" 2>/dev/null || true)
    rm -f "$DBCLUSTER_ENGINE_PID"
    [[ -n $pid && $(cat "/proc/$pid/comm" 2>/dev/null) == dockerd ]] || return 0
    as_root "dockerd (process $pid) was started for this check and ends with it" "kill $pid"
    while [[ -d /proc/$pid ]] && ((SECONDS < limit)); do sleep 0.2; done
}

if [[ ${1:-} == end ]]; then
    end_daemon
    exit
fi
packages=()
if ! why=$(why_not); then
    # The engine is on another machine, or this user may not use its socket: another daemon would not help.
    [[ $SOCKET == unix://* && (! -S ${SOCKET#unix://} || -w ${SOCKET#unix://}) ]] || stop "$why"
    command -v dockerd >/dev/null || packages+=(docker.io)
fi
command -v mmdebstrap >/dev/null || packages+=(mmdebstrap)
[[ ${#packages[@]} == 0 ]] || install_packages "${packages[@]}"
if [[ ${packages[*]} == *docker.io* && ! -d $SYSTEMD ]] && pid=$(pgrep -xo dockerd); then
    remember "$pid" # the package's init script started it
    wait_for_answer "$pid" /var/log/docker.log
elif [[ -n $why ]]; then
    start_daemon
fi
why=$(why_not) || stop "$why"
