"""Output and locking that several commands share: progress lines, sizes, the turn on this machine."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager

from pytest_dbcluster import formatting


def tell(line: str) -> None:
    """Print a line of progress on standard error, so that standard output has only results."""
    print(formatting.printable(line, lines=True), file=sys.stderr, flush=True)


def known_size(size: int) -> str:
    """Bytes as ``142 MB``; empty for 0, which means unknown."""
    return formatting.size(size) if size else ""


def turn() -> AbstractContextManager[None]:
    """Hold this machine's lock for work that uses cores and disk, so that no run measures meanwhile."""
    from pytest_dbcluster.system import machine_lock

    return machine_lock.this().turn(machine_lock.BUILDING, run="dbcluster", progress=tell)
