"""Whether a process still runs, by its process id and its start time.

The kernel reuses the ids of ended processes. Id and start time together identify a process.
"""

from __future__ import annotations

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
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


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
