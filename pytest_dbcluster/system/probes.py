"""Properties of this machine that matter for measurements: the time of an fsync, and the usable cores."""

from __future__ import annotations

import dataclasses
import functools
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.system import cgroups, processes

BLIND_FSYNC = 50e-6  # seconds; no disk is faster, so a shorter fsync did not reach a disk
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")
FSYNCS, FSYNC_SECONDS = 200, 2.0
CGROUP = Path("/sys/fs/cgroup")


@functools.cache
def fsync_seconds(directory: str | Path) -> float:
    """The median time to append 4 KiB to a file in a directory and flush them (fdatasync), in seconds.

    Measured once per process and directory: FSYNCS times, at most FSYNC_SECONDS.
    Raises ConfigError for a directory that cannot be written.
    """
    block = bytes(4096)
    times: list[float] = []
    try:
        with tempfile.TemporaryFile(dir=directory, prefix=".fsync-", buffering=0) as file:
            limit = time.monotonic() + FSYNC_SECONDS
            while len(times) < FSYNCS and (not times or time.monotonic() < limit):
                start = time.perf_counter()
                file.write(block)
                os.fdatasync(file.fileno())
                times.append(time.perf_counter() - start)
    except OSError as error:
        raise ConfigError(f"cannot measure an fsync in {directory}: {error.strerror}") from None
    return statistics.median(times)


def usable_cores(count: int | None = None) -> float:
    """The number of CPUs that we may use. It can be a fraction, because of the CPU quota of our cgroup."""
    usable = count or len(os.sched_getaffinity(0))
    quota, _, period = cgroups.read(CGROUP / "cpu.max").partition(" ")
    limit = float(quota) / float(period) if quota.isdigit() and period.strip().isdigit() else float(usable)
    return min(limit, float(usable))


@dataclasses.dataclass(frozen=True)
class CpuReading:
    """CPU time used so far, on the CPUs that this process may use.

    In a container with few CPUs of a large machine, programs on the other CPUs do not disturb us.
    """

    at: float
    """When it was read, by ``time.monotonic``."""
    busy: float
    """Seconds of all programs, and seconds that the hypervisor gave to other machines (steal)."""
    own: float
    """Seconds of this run: its servers, load generators, proxies, and itself."""

    @classmethod
    def now(cls) -> CpuReading:
        """Read it now; it takes less than a millisecond for each process of the run."""
        return cls(time.monotonic(), busy_seconds(), processes.run_seconds())

    def others_since(self, before: CpuReading) -> float:
        """Cores that other programs used since an earlier reading, on average; 0.0 if no time has passed."""
        seconds = self.at - before.at
        return max(0.0, self.busy - before.busy - (self.own - before.own)) / seconds if seconds > 0 else 0.0


def busy_seconds() -> float:
    """The busy seconds of the CPUs that we may use, summed, with stolen time (proc(5))."""
    usable, ticks = os.sched_getaffinity(0), 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in usable:
            user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
            ticks += user + nice + system + irq + softirq + steal
    return ticks / processes.TICKS


def shared_cores(usable: float) -> str:
    """A note on claims that are meaningless when all nodes share ``usable`` cores."""
    return f"nodes share {quantity(usable, 'core')}: a claim about node scaling means nothing here"


def cpu_model() -> str:
    """The first model name in /proc/cpuinfo; the architecture if there is no model name, as on ARM."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
