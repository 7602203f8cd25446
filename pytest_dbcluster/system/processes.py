"""Whether a process still runs, by its process id and its start time.

The kernel reuses the ids of ended processes. Id and start time together identify a process.
"""

from __future__ import annotations

import pwd
from pathlib import Path

import psutil

# Tolerance for start times: a mark contains whole seconds, and the kernel corrects the clock now and then.
BIRTH_SECONDS = 2.0


def is_running(pid: int, born: float) -> bool:
    """Whether the process with this id and this start time (seconds since the epoch) still exists.

    A process that we may not inspect counts as running, so that nobody removes its files by mistake.
    """
    try:
        return abs(psutil.Process(pid).create_time() - born) <= BIRTH_SECONDS
    except (psutil.NoSuchProcess, ValueError, OverflowError):  # also for numbers that are no process id or time
        return False
    except psutil.Error:
        return True


def user_of(pid: int, born: float | None = None) -> int | None:
    """The effective user id of the process with this id, and this start time where it is known.

    None if we see no such process running.
    """
    try:
        process = psutil.Process(pid)
        same = born is None or abs(process.create_time() - born) <= BIRTH_SECONDS
        return process.uids().effective if same and process.status() != psutil.STATUS_ZOMBIE else None
    except (psutil.Error, ValueError, OverflowError):
        return None


def user_name(uid: int) -> str:
    """The name of a user, or the number of a user without a name, as in a container."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)


def mark() -> str:
    """The id and start time of this process, as the end of a file name: "4711-1700000000". ``orphaned`` reads it."""
    owner = psutil.Process()
    return f"{owner.pid}-{owner.create_time():.0f}"


def orphaned(path: Path) -> bool:
    """Whether a path's name ends with the ``mark`` of a process that has ended; False for a name without a mark."""
    try:
        pid, born = map(int, path.name.split("-")[-2:])
    except ValueError:
        return False
    return not is_running(pid, born)
