"""What several commands print: sizes, ages, progress."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager


def duration(seconds: float) -> str:
    """Seconds in the one unit that fits: ``42 s``, ``7 min``, ``5 h``, ``3 d``."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def tell(line: str) -> None:
    """Print a line of progress on standard error, so that standard output holds results alone."""
    print(line, file=sys.stderr, flush=True)


def megabytes(size: int) -> str:
    """Bytes as ``142 MB``; nothing where the size is not known."""
    return f"{size / 1e6:.0f} MB" if size else ""


def turn() -> AbstractContextManager[None]:
    """The machine's, for what takes cores and the disk: nobody measures meanwhile."""
    from pytest_dbcluster.system import machine_lock

    return machine_lock.this().turn(machine_lock.BUILDING, run="dbcluster", progress=tell)
