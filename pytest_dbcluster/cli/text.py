"""Output and locking that several commands share: progress lines, sizes, the turn on this machine."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Collection
from contextlib import AbstractContextManager

from pytest_dbcluster import formatting
from pytest_dbcluster.hosts.given import LOCK_WAIT, add_common

OF_TEST_RUN = re.compile(r"(?:pytest )?--db-(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)")


def own_options(text: str, options: Collection[str]) -> str:
    """The text with the options of a command in place of those of a test run: ``--release`` for ``--db-release``.

    The texts of the package name the options of a test run. ``options`` are the names of the command's options in
    argparse, such as ``cnf_root``. Options with the same name in both, such as ``db_host``, stay. For an option that
    the command does not have, the text names pytest.
    """

    def own(found: re.Match[str]) -> str:
        name = found["name"]
        if f"db_{name.replace('-', '_')}" in options:
            return f"--db-{name}"
        return f"--{name}" if name.replace("-", "_") in options else f"pytest --db-{name}"

    return OF_TEST_RUN.sub(own, text)


def tell(line: str) -> None:
    """Print a line of progress on standard error, so that standard output has only results."""
    print(formatting.printable(line, lines=True), file=sys.stderr, flush=True)


def size_text(size: int) -> str:
    """Bytes as ``142 MB``; empty for 0, which means unknown."""
    return formatting.size(size) if size else ""


def add_wait(command: argparse.ArgumentParser) -> None:
    """Add the option of a command that waits for the lock of another process."""
    add_common(command.add_argument, "--wait", default=LOCK_WAIT)


def turn() -> AbstractContextManager[None]:
    """Hold this machine's lock for work that uses cores and disk, so that no run measures meanwhile."""
    from pytest_dbcluster.system import machine_lock

    return machine_lock.this().turn(machine_lock.BUILDING, run="dbcluster", progress=tell)
