"""Whether a process is still the one that it was.

The kernel gives the number of a process that has ended to another one. Number and birth together name one for good.
"""

from __future__ import annotations

from pathlib import Path

import psutil

# A name holds whole seconds, and the clock that births are counted from is corrected now and then.
BIRTH_SECONDS = 2.0


def is_running(pid: int, born: float) -> bool:
    """Whether the process of this number that was born at this time (seconds of the epoch) still exists.

    One that may not be looked at counts as running: nothing of it is removed by mistake.
    """
    try:
        return abs(psutil.Process(pid).create_time() - born) <= BIRTH_SECONDS
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def mark() -> str:
    """Number and birth of this process, as a name of something of its own ends: "4711-1700000000".

    ``orphaned`` reads it.
    """
    owner = psutil.Process()
    return f"{owner.pid}-{owner.create_time():.0f}"


def orphaned(path: Path) -> bool:
    """Whether the process in whose ``mark`` a name ends is gone; False for a name that ends in none."""
    try:
        pid, born = map(int, path.name.split("-")[-2:])
    except ValueError:
        return False
    return not is_running(pid, born)
