"""The directory that the workers of a run with pytest-xdist share. Its name contains the mark of its owner."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from pytest_dbcluster.system import owned_files, processes

PREFIX = "dbcluster-workers-"


def make() -> Path:
    """Make a directory for this process, which has to remove it. Also removes directories of killed processes."""
    reap()
    return Path(tempfile.mkdtemp(prefix=PREFIX, suffix=f"-{processes.mark()}"))


def reap() -> list[Path]:
    """Remove this user's directories of ended processes. Returns the removed paths."""
    removed = []
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*-*"):
        with contextlib.suppress(FileNotFoundError):  # another process has just removed it
            if directory.lstat().st_uid == os.getuid() and processes.is_orphaned(directory):
                owned_files.remove_tree(directory, os.getuid())
                removed.append(directory)
    return removed
