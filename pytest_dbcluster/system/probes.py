"""What a measurement asks of this machine: how fast a flush is, and how many cores there are."""

from __future__ import annotations

import functools
import os
import statistics
import tempfile
import time
from pathlib import Path

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.system import cgroups

BLIND_FSYNC = 50e-6  # faster than any disk writes: nothing was written
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")
FSYNCS, FSYNC_SECONDS = 200, 2.0
CGROUP = Path("/sys/fs/cgroup")


@functools.cache
def fsync_seconds(directory: str | Path) -> float:
    """The median time of appending 4 KiB to a file there and making them durable; measured once per process.

    Raises ConfigError for a directory that cannot be written.
    """
    block = bytes(4096)
    seen: list[float] = []
    try:
        with tempfile.TemporaryFile(dir=directory, prefix=".fsync-", buffering=0) as file:
            limit = time.monotonic() + FSYNC_SECONDS
            while len(seen) < FSYNCS and (not seen or time.monotonic() < limit):
                start = time.perf_counter()
                file.write(block)
                os.fdatasync(file.fileno())
                seen.append(time.perf_counter() - start)
    except OSError as error:
        raise ConfigError(f"cannot measure an fsync in {directory}: {error.strerror}") from None
    return statistics.median(seen)


def usable_cores(count: int | None = None) -> float:
    """The CPUs that we may use, which need not be a whole number where a quota of our cgroup limits them."""
    usable = count or len(os.sched_getaffinity(0))
    quota, _, period = cgroups.read(CGROUP / "cpu.max").partition(" ")
    limit = float(quota) / float(period) if quota.isdigit() and period.strip().isdigit() else float(usable)
    return min(limit, float(usable))


def shared_cores(usable: float) -> str:
    """What is ruled out where all nodes run on these cores."""
    return f"nodes share {usable:g} cores: a claim about node scaling means nothing here"
