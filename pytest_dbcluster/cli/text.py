"""What several commands print: sizes, progress."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager

from pytest_dbcluster import formatting


def tell(line: str) -> None:
    """Print a line of progress on standard error, so that standard output holds results alone."""
    print(line, file=sys.stderr, flush=True)


def known_size(size: int) -> str:
    """Bytes as ``142 MB``; nothing where the size is not known, which is 0."""
    return formatting.size(size) if size else ""


def turn() -> AbstractContextManager[None]:
    """The machine's, for what takes cores and the disk: nobody measures meanwhile."""
    from pytest_dbcluster.system import machine_lock

    return machine_lock.this().turn(machine_lock.BUILDING, run="dbcluster", progress=tell)
