"""Storage profiles: the write limits of the disks of published measurements, to limit a faster local disk.

A volume of Amazon EBS limits operations (docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html):

- gp2: 3 operations/s for each GiB, at least 100/s and at most 16 000/s. A volume under 1000 GiB bursts to 3000/s from a
  bucket of 5.4 million credits. The bucket is full at the start and lasts for half an hour at full rate. So a fresh
  volume of 33 GiB or less is ``gp2-3000`` for that time, and ``gp2-100`` after it.
- gp3: 3000 operations/s for any size; more for a higher price.

A profile limits only the rate of writes. Reads, bytes/s and latency are those of the local disk. The kernel counts the
flush of a disk cache (``write back`` in queue/write_cache) as a write. An fsync of a growing file writes more than its
data. On such a disk an fsync took 2.2 to 3.4 operations, so 3000 operations/s were 800 to 1300 fsyncs/s.
"""

from __future__ import annotations

import dataclasses
from types import MappingProxyType

from pytest_dbcluster import registry


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """A kind of volume."""

    name: str
    """Name for ``--db-storage``."""

    iops: int | None
    """Maximum write operations/s of a node's device; None for no limit."""

    what: str
    """The volume that it stands for."""


PROFILES = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            Profile("gp2-100", 100, "gp2 of 33 GiB or less whose burst credits are used up"),
            Profile("gp2-3000", 3000, "gp2 under 1000 GiB that still bursts, or gp2 of 1000 GiB"),
            Profile("gp3", 3000, "gp3 with its default limit"),
            Profile("nvme", None, "this machine's own disk, without a limit"),
        )
    }
)


def profile(name: str) -> Profile:
    """The profile of this name. Raises ConfigError that lists the known names."""
    if name not in PROFILES:
        raise registry.unknown("storage profile", name, list(PROFILES))
    return PROFILES[name]
