"""Shell programs for remote machines, because nothing of ours is installed there.

``session`` is the command of an ssh session that runs an agent. It makes the host's directory and starts the agent, in
its own PID namespace if the machine permits one. A watchdog checks our heartbeats. When the session ends for any
reason, it kills every program of the host and removes the directory. A host that stays has no watchdog and does not
end.
"""

from __future__ import annotations

import base64
import getpass
import platform
import shlex
import time
from collections.abc import Mapping

from pytest_dbcluster.hosts import agent
from pytest_dbcluster.hosts.supervisor import RUN_VARIABLE

BEAT_SECONDS = 5  # between two heartbeats, and between two checks of the watchdog
MISSED = 8  # heartbeats: the programs end 40 to 45 s after the connection breaks
HOST_VARIABLE = "DBCLUSTER_HOST"  # the mark of a host's programs, if they have no PID namespace
OWNER = "owner"  # file in a host's directory with its owner, for `dbcluster ps`
BUSY = "dbcluster: busy"
REFUSED = "dbcluster: "  # prefix of the last line of a session that gives up

# The shell reads the script from its command line, because its input is only for the agent.
_SESSION = r"""
umask 077
export LC_ALL=C
root=$base/pytest-dbcluster-$(id -u)
directory=$root/$name
lock=${exclusive:+$base/pytest-dbcluster.lock}
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
give_up() { echo "dbcluster: $*" >&2; exit 1; }
mkdir -p "$root" 2>/dev/null && cd "$root" 2>/dev/null ||
    give_up "cannot make the directory $root: $(mkdir -p "$root" 2>&1)"
[ -O "$root" ] && [ ! -L "$root" ] || give_up "$root belongs to another user"
chmod 700 "$root"
try=$root/try-$name  # others of ours may begin at this moment
printf '#!/bin/sh\n' >"$try" && chmod 700 "$try" || {
    rm -f "$try"
    give_up "cannot write to $root: $(df -P "$root" | tail -n 1)"
}
"$try" 2>/dev/null || {
    rm -f "$try"
    give_up "$root lies on a file system that is mounted noexec"
}
rm -f "$try"
mkdir -p "$directory" && echo "$owner" >"$directory/owner" && [ -s "$directory/owner" ] ||
    give_up "cannot write to $directory: $(df -P "$root" | tail -n 1)"
echo "$$ $(cut -d ' ' -f 22 /proc/$$/stat)" >"$directory/session"
beat=$directory/beat
echo 0 >"$beat"
if [ -n "$lock" ] && command -v flock >/dev/null; then
    [ -e "$lock" ] || (umask 0 && : >>"$lock") 2>/dev/null
    exec 9<"$lock" && flock -n 9 || {
        rm -rf -- "$directory"
        give_up "busy"
    }
fi
end_marked() {
    tries=0
    while found=$(grep -lszxF -e "DBCLUSTER_HOST=$mark" /proc/[0-9]*/environ 2>/dev/null); [ -n "$found" ]; do
        for file in $found; do
            process=${file#/proc/}
            kill -s KILL "${process%/environ}" 2>/dev/null
        done
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || break
        sleep 0.05
    done
}
as_user=
[ "$(id -u)" = 0 ] || as_user="--user --map-current-user"
inside="unshare $as_user --fork --pid --kill-child --mount-proc"
fall=
if ! $inside true >/dev/null 2>&1; then
    inside=
    fall=end_marked
fi
cd "$directory" || exit
exec 3<&0
export program="$(printf %s "$agent" | base64 -d)" mark beat fall
shell="bash --posix -p"  # reads a file as a whole, and no file of the user when it begins
$shell -c 'mapfile -t lines' </dev/null >/dev/null 2>&1 || shell=sh
$inside $shell -c 'text=$program; unset program; eval "$text"' dbcluster-agent <&3 3<&- 9<&- &
unset program
agent=$!
exec 3<&- </dev/null
(
    last= missed=0
    trap 'kill -s KILL "$nap"; wait "$nap"; exit' TERM
    while sleep "$every" & nap=$!; wait "$nap"; do
        [ -e "$beat" ] || exit
        now=
        read -r now <"$beat"
        if [ "$now" = "$last" ]; then missed=$((missed + 1)); else missed=0 last=$now; fi
        [ "$missed" -lt "$most" ] || break
    done
    kill -s KILL "$agent"
) >/dev/null 2>&1 9<&- &
watchdog=$!
wait "$agent"
kill -s TERM "$watchdog" 2>/dev/null
wait "$watchdog"
end_marked
cd / && rm -rf -- "$directory"
"""

_END_MARKED = r"""
end_marked() {
    for file in $(grep -lszxF -e "DBCLUSTER_HOST=$mark" /proc/[0-9]*/environ 2>/dev/null); do
        process=${file#/proc/}
        kill -s KILL "${process%/environ}" 2>/dev/null
    done
}
"""

# The kernel's counters, as text of its files. The shell reads them itself, because each program start takes some
# milliseconds, before and after every round. It sends many lines with one write, because each write is a packet, and
# less than 4096 bytes, which a pipe accepts atomically. Most shells read a file byte by byte; bash can read it as a
# whole, which takes less than half of the time. $1: the number of the request.
USE = r"""
say() {
    said="${said}used $1
"
    [ "${#said}" -lt 3000 ] || { printf %s "$said"; said=; }
}
if [ -n "$BASH_VERSION" ] && command -v mapfile >/dev/null; then
    eval 'say_file() {
        mapfile -t lines <"$2" && for words in "${lines[@]}"; do say "$1 $words"; done
    }'
else
    say_file() {
        while IFS= read -r words; do say "$1 $words"; done <"$2"
    }
fi
use() {
    said=
    {
        read -r words </proc/stat && say "$1 $words"
        for disk in /sys/block/*; do
            case ${disk##*/} in
            '*') say_file "$1 disk" /proc/diskstats ;;
            loop*|ram*|zram*) ;;
            *) say_file "$1 disk 0 0 ${disk##*/}" "$disk/stat" ;;
            esac
        done
        say_file "$1 net" /proc/net/dev
        for resource in cpu io memory; do
            read -r words <"/proc/pressure/$resource" && say "$1 pressure $resource ${words##*total=}"
        done
        if [ -n "$fall" ]; then
            marked=$(grep -lszxF -e "DBCLUSTER_HOST=$mark" /proc/[0-9]*/environ)
            set -- "$1" $marked "/proc/$$/environ"
        else
            set -- "$1" /proc/[0-9]*/environ
        fi
        request=$1
        shift
        for file in "$@"; do say_file "$request process" "${file%environ}stat"; done
        set -- "$request"
    } 2>/dev/null
    printf '%sused %s\n' "$said" "$1"
}
"""

# Without the file of the heartbeats the watchdog ends. At the end of its input the shell stays, as the first process of
# the host's programs.
_STAY = r"""
stays=
stay() {
    rm -f "$beat"
    beat=/dev/null stays=yes
}
"""
_STAYS = r"""
while [ -n "$stays" ]; do sleep 3600; done
"""

# The properties of a machine, one line each.
FACTS = r"""
echo "user $(id -u)"
echo "architecture $(uname -m)"
echo "system $(uname -s)"
echo "kernel $(uname -r)"
echo "name $(uname -n)"
echo "cpus $(getconf _NPROCESSORS_ONLN 2>/dev/null || nproc)"
echo "cpu $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
echo "memory $(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)"
echo "ephemeral $(cat /proc/sys/net/ipv4/ip_local_port_range)"
echo "clock $(date +%s.%N)"
echo "clocksource $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource 2>/dev/null)"
echo "disk $(stat -f -c %T .) on $(df -P . | tail -n 1 | cut -d ' ' -f 1)"
echo "root ${PWD%/*}"
echo "zstd $(command -v zstd)"
echo "tar $(tar --version 2>/dev/null | head -n 1)"
echo "address ${SSH_CONNECTION:-}"
"""

# The common part of `dbcluster ps`, `down` and `reap`. $base, $token; the rest as in ``_END``. Everything is below one
# directory of this user, and paths are relative to it, so that no link leads out of it.
_LOOK = r"""
umask 077
export LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
root=$base/pytest-dbcluster-$(id -u)
say() { printf '\n%s %s\n' "$token" "$*"; }
own() { [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ]; }
if [ ! -e "$root" ] && [ ! -L "$root" ]; then
    say end
    exit
fi
own "$root" && cd "$root" 2>/dev/null && [ -O . ] || {
    say refused "$root belongs to another user, or is not a directory: nothing in it was touched"
    say end
    exit
}
is_name() {
    case $1 in
    *[!0-9a-z-]*) return 1 ;;
    [0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]-[0-9]*-[a-z]*) return 0 ;;
    esac
    return 1
}
is_session() {
    is_name "$1" && own "./$1" || return 1
    if [ -s "./$1/owner" ] && [ ! -L "./$1/owner" ]; then
        recorded= user= since=
        read -r recorded user since 2>/dev/null <"./$1/owner"
        [ "$recorded" = "${1%%-*}" ]
        return
    fi
    user=- since=-
    [ -z "$(ls -A "./$1" 2>/dev/null | grep -vx -e owner)" ]  # it was made on a full disk, or just now
}
is_alive() {
    pid= born=
    read -r pid born 2>/dev/null <"./$1/session"
    case $pid,$born in
    ,* | *, | *[!0-9,]*)
        made=$(stat -c %Y "./$1" 2>/dev/null) || return 1
        [ $(($(date +%s) - made)) -lt 60 ]  # it begins
        return
        ;;
    esac
    now=$(cat "/proc/$pid/stat" 2>/dev/null) || return 1
    set -- ${now##*) }
    [ "$1" != Z ] && [ "${20}" = "$born" ]
}
run_is_alive() {
    for one in "$1"-*; do
        is_session "$one" && is_alive "$one" && return 0
    done
    return 1
}
processes() {
    for file in $(grep -lszxF -e "DBCLUSTER_HOST=$1" -e "mark=$1" /proc/[0-9]*/environ 2>/dev/null); do
        process=${file#/proc/}
        process=${process%/environ}
        [ -O "/proc/$process" ] && echo "$process"
    done
}
kib() {
    found=$(du -s -k "$1" 2>/dev/null | cut -f 1)
    echo "${found:-0}"  # it may go meanwhile
}
"""
_LIST = r"""
for name in *; do
    is_session "$name" || continue
    state=dead
    is_alive "$name" && state=alive
    say session "$name" "$state" "$(kib "./$name")" "$(processes "$name" | wc -l)" "${user:--}" "${since:--}"
done
own ./programs && say programs "$(kib ./programs)"
say end
"""
# $run: only its sessions, also live ones if $who is their user; empty for all dead ones. $programs: also remove these.
_END = r"""
end() {
    killed=0
    tries=0
    while found=$(processes "$1"); [ -n "$found" ]; do
        for process in $found; do
            kill -s KILL "$process" 2>/dev/null && [ "$tries" = 0 ] && killed=$((killed + 1))
        done
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || break
        sleep 0.05
    done
    echo "$killed"
}
for name in *; do
    is_session "$name" || continue
    [ -z "$run" ] || [ "$run" = "${name%%-*}" ] || continue
    if is_alive "$name"; then
        [ -n "$run" ] || continue
        [ "$user" = "$who" ] || { say left "$name" "$user"; continue; }
        size=$(kib "./$name") killed=$(end "$name") tries=0
        while [ -e "./$name" ] && is_alive "$name" && [ "$tries" -lt 150 ]; do  # its shell removes what is left
            tries=$((tries + 1))
            sleep 0.1
        done
        is_session "$name" || { say ended "$name" "$size" "$killed"; continue; }
        is_alive "$name" && { say stays "$name" "its shell (process $pid) does not end"; continue; }
    elif [ -z "$run" ] && run_is_alive "${name%%-*}"; then
        continue
    else
        size=$(kib "./$name") killed=$(end "$name")
    fi
    is_session "$name" || continue
    if why=$(rm -rf -- "./$name" 2>&1); then
        say ended "$name" "$size" "$killed"
    else
        say stays "$name" "$(echo "$why" | head -n 1)"
    fi
done
if own ./programs; then
    for part in ./programs/*.part-*; do
        maker=${part##*.part-}
        maker=${maker%.tree}
        is_name "$maker" && [ -O "$part" ] && [ ! -L "$part" ] || continue
        [ -z "$run" ] || [ "$run" = "${maker%%-*}" ] || continue
        run_is_alive "${maker%%-*}" && continue
        size=$(kib "$part")
        rm -rf -- "$part" && say part "$maker" "$size"
    done
fi
if [ -n "$programs" ] && own ./programs; then
    used=
    for name in *; do
        is_session "$name" && is_alive "$name" && used=${name%%-*}
    done
    lock=$base/pytest-dbcluster.lock
    if [ -z "$used" ] && [ -e "$lock" ] && command -v flock >/dev/null; then
        { exec 9<"$lock" && flock -n 9; } || used=-
    fi
    if [ -n "$used" ]; then
        say used "$used"
    else
        size=$(kib ./programs)
        rm -rf -- ./programs && say removed "$size"
        cd / && rmdir "$root" 2>/dev/null
    fi
fi
say end
"""


def session(*, base: str, name: str, owner: str, mark: str, exclusive: bool) -> str:
    """The command of an ssh session that runs an agent, for any login shell of the user.

    base: the parent of the users' directories. name: of the host's directory in its user's directory. owner: a line
    that names its owner. mark: of the host's programs. exclusive: whether only one such session of all users may use
    the machine; a second one gives up with ``BUSY``.
    """
    values = {
        "base": base,
        "name": name,
        "owner": owner,
        "mark": mark,
        "exclusive": "yes" if exclusive else "",
        "every": str(BEAT_SECONDS),
        "most": str(MISSED),
        "agent": base64.b64encode((_END_MARKED + USE + _STAY + agent.PROGRAM + _STAYS).encode()).decode(),
    }
    return any_shell(f"{_values(**values)}\n{_SESSION}")


def user() -> str:
    """The user of this process, as hosts' directories record it: ``USER@CONTROLLER``."""
    return f"{getpass.getuser()}@{platform.node()}"


def owner(run_id: str) -> str:
    """The line in a host's directory with its owner and start time."""
    return f"{run_id} {user()} {time.strftime('%Y-%m-%dT%H:%M:%S%z')}"


def list_command(*, base: str, token: str) -> str:
    """A command that lists the sessions of the user on a machine. token: begins each line that is an answer.

    Answers: ``session NAME alive|dead KIB PROCESSES USER SINCE``, ``programs KIB``, ``refused TEXT``, at last ``end``.
    """
    return any_shell(f"{_values(base=base, token=token)}\n{_LOOK}{_LIST}")


def end_command(*, base: str, token: str, run: str = "", who: str = "", programs: bool = False) -> str:
    """A command that ends sessions of the user on a machine, and removes their directories and unfinished transfers.

    run: end all sessions of this run; live ones must belong to ``who``. Empty: end those of all dead runs. programs:
    also remove the programs that were sent, unless a run is alive. Answers: ``ended NAME KIB PROCESSES``, ``stays NAME
    TEXT``, ``left NAME USER``, ``part NAME KIB``, ``removed KIB``, ``used RUN``, and those of ``list_command``.
    """
    values = _values(base=base, token=token, run=run, who=who, programs="yes" if programs else "")
    return any_shell(f"{values}\n{_LOOK}{_END}")


def _values(**values: str) -> str:
    return "\n".join(f"{name}={shlex.quote(value)}" for name, value in values.items())


def any_shell(script: str) -> str:
    """A command line that runs a script with /bin/sh, from any shell; some shells change quoted text."""
    encoded = base64.b64encode(script.encode()).decode()
    return f"exec /bin/sh -c 'eval \"$(printf %s {encoded} | base64 -d)\"'"


def environment(run_id: str, mark: str) -> Mapping[str, str]:
    """The environment variables that mark the programs of a host."""
    return {RUN_VARIABLE: run_id, HOST_VARIABLE: mark, "LC_ALL": "C"}
