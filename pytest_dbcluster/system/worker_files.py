"""The directory that the workers of a run with pytest-xdist share; whose it is, stands in its name."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from pytest_dbcluster.system import processes

PREFIX = "dbcluster-workers-"


def make() -> Path:
    """A new directory of this process, which removes it at its end; those of processes that were killed are removed."""
    reap()
    return Path(tempfile.mkdtemp(prefix=PREFIX, suffix=f"-{processes.mark()}"))


def reap() -> list[Path]:
    """Remove the directories of this user whose process is gone; which they were."""
    found = []
    for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*-*"):
        with contextlib.suppress(FileNotFoundError):  # it was removed in the meantime
            if place.lstat().st_uid == os.getuid() and processes.orphaned(place):
                shutil.rmtree(place, ignore_errors=True)
                found.append(place)
    return found
