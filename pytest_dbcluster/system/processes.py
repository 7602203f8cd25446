"""Whether a process still runs, by its process id and its start time.

The kernel reuses the ids of ended processes. Id and start time together identify a process. The start time in clock
ticks since boot never changes. The one in seconds since the epoch moves with every change of the clock. So it counts
only in a record of an earlier version, which has no ticks.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shlex
import time
from pathlib import Path

import psutil

from pytest_dbcluster import formatting

# Tolerance for start times: a mark contains whole seconds, and the kernel corrects the clock now and then.
BIRTH_SECONDS = 2.0
COMMAND_LETTERS = 200
RUNNING, ENDED = slice(11, 13), slice(11, 15)  # fields of /proc/PID/stat: without and with ended children
STARTED = 19  # the field of /proc/PID/stat with the start, in ticks since boot (proc_pid_stat(5))
MARK = re.compile(r"(?:t(?P<ticks>[0-9]{1,19})-)?(?P<pid>[0-9]{1,10})-(?P<born>[0-9]{1,12})")
TICKS = os.sysconf("SC_CLK_TCK")  # per second, in the CPU times of /proc
PAGE = 4096  # bytes that one read of /proc returns at most


def start_ticks(pid: int) -> int:
    """The start of a process, in clock ticks since boot. Raises OSError if there is no such process."""
    return int(_fields(pid)[STARTED])


def _is_same(process: psutil.Process, born: float, ticks: int | None) -> bool:
    if ticks is not None:
        return start_ticks(process.pid) == ticks
    return abs(process.create_time() - born) <= BIRTH_SECONDS


def is_running(pid: int, born: float, ticks: int | None = None) -> bool:
    """Whether the process with this id and this start time still exists.

    born: in seconds since the epoch; it counts only without ``ticks``. ticks: as ``start_ticks``. A process that we may
    not inspect counts as running, so that nobody removes its files by mistake.
    """
    try:
        return _is_same(psutil.Process(pid), born, ticks)
    except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
        return False
    except (ValueError, OverflowError):  # numbers that are not a process id or a time
        return False
    except (psutil.Error, OSError):
        return True


def user_of(pid: int, born: float | None = None, ticks: int | None = None) -> int | None:
    """The effective user id of the process with this id and, if given, this start time, as in ``is_running``.

    None if we see no such process running.
    """
    try:
        process = psutil.Process(pid)
        same = born is None or _is_same(process, born, ticks)
        return process.uids().effective if same and process.status() != psutil.STATUS_ZOMBIE else None
    except (psutil.Error, OSError, ValueError, OverflowError):
        return None


def command_of(pid: int) -> str:
    """The command of a process and when it began: ``make bench, since 14:03:25``; empty for one that we cannot see.

    The command is cut to COMMAND_LETTERS.
    """
    try:
        process = psutil.Process(pid)
        command, began = shlex.join(process.cmdline()), time.localtime(process.create_time())
    except (psutil.Error, ValueError, OverflowError):
        return ""
    return f"{formatting.printable(command[:COMMAND_LETTERS])}, since {time.strftime('%H:%M:%S', began)}"


def user_name(uid: int) -> str:
    """The name of a user, or the number of a user without a name, as in a container."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)


def cpu_seconds(pid: int) -> float | None:
    """The CPU seconds of a process and of its ended children so far; None if there is no such process."""
    try:
        return float(sum(psutil.Process(pid).cpu_times()[:4])) if pid > 0 else None
    except (psutil.Error, OverflowError):
        return None


def running_below(directory: Path) -> list[str]:
    """The processes whose program lies below a directory, as ``mariadbd (pid 7)``, as far as we may look."""
    found, below = [], directory.resolve()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if Path(f"/proc/{process.pid}/exe").readlink().is_relative_to(below):
                found.append(f"{process.name()} (pid {process.pid})")
    return found


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped the process with this id; False if there is no such process."""
    try:
        return pid > 0 and psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except (psutil.Error, OverflowError):
        return False


def running_children_seconds(without: int = 0) -> float:
    """The CPU time of the running child processes of this process and their children, in seconds.

    ``without``: the id of a child that is left out with its own children. It costs a few reads of files, unlike a
    search in all processes: each thread of each child is one. 0.0 where the kernel lists no children.
    """
    return _children_seconds(os.getpid(), without=without)


def run_seconds() -> float:
    """The CPU time so far of this run and of everything that it has started, in seconds.

    Ended programs count once their parent has waited for them. In a worker of pytest-xdist the run is all workers.
    """
    root = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    return _own_seconds(root, ENDED) + _children_seconds(root, ENDED)


def _own_seconds(pid: int, fields: slice) -> float:
    """The CPU time of a process. fields: the fields of /proc/PID/stat that count, from its state on."""
    try:
        return sum(map(int, _fields(pid)[fields])) / TICKS
    except OSError:
        return 0.0


def _fields(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on. Raises OSError if there is no such process."""
    # The name of the program is in parentheses, and may have any characters.
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _children_seconds(pid: int, fields: slice = RUNNING, without: int = 0) -> float:
    seconds, tasks = 0.0, f"/proc/{pid}/task"
    try:
        threads = os.listdir(tasks)  # noqa: PTH208 (a round does this for each of its processes)
    except OSError:  # the process has just ended
        return 0.0
    for thread in threads:
        try:
            children = _read(f"{tasks}/{thread}/children").split()
        except OSError:  # the thread has ended, or the kernel was built without these files
            continue
        for child in map(int, children):
            if child != without:
                seconds += _own_seconds(child, fields) + _children_seconds(child, fields)
    return seconds


def _read(path: str) -> bytes:
    """A file of /proc. A round reads one for each thread of its servers, and ``Path`` takes three times as long."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(descriptor, PAGE), b""))
    finally:
        os.close(descriptor)


def mark() -> str:
    """The start and the id of this process, as the end of a file name: "t812345-4711-1700000000".

    ``process_of`` reads it. Its last two parts are the mark of earlier versions.
    """
    owner = psutil.Process()
    return f"t{start_ticks(owner.pid)}-{owner.pid}-{owner.create_time():.0f}"


def process_of(name: re.Match[str]) -> tuple[int, float, int | None]:
    """Process id and start time of a match of ``MARK``, as ``is_running`` takes them."""
    return int(name["pid"]), float(name["born"]), int(name["ticks"]) if name["ticks"] else None


def is_orphaned(path: Path) -> bool:
    """Whether a path's name ends with the ``mark`` of an ended process; False for a name without a mark."""
    found = re.search(rf"-{MARK.pattern}$", path.name)
    return found is not None and not is_running(*process_of(found))
