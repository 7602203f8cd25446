"""Storage profiles: what a published measurement's disk allowed, as data, so that a fast one can be held to it.

A volume of Amazon EBS allows a rate of operations (docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html):

- gp2: 3 a second for each GiB, at least 100 and at most 16 000. A volume under 1000 GiB bursts to 3000 from a bucket of
  5.4 million credits, which is full at the start and lasts for half an hour at full rate. So a fresh volume of 33 GiB
  or less is ``gp2-3000`` for that long, and ``gp2-100`` when the bucket is empty.
- gp3: 3000 whatever its size, more when paid for.

A profile limits the rate of writes alone: reads, bytes a second and latency are the local disk's. The kernel counts the
flush of a disk's own cache (``write back`` in queue/write_cache) as a write, and an fsync of a file that grows writes
more than its data: on such a disk an fsync took 2.2 to 3.4 operations, so 3000 a second were 800 to 1300 fsyncs.
"""

from __future__ import annotations

import dataclasses
from types import MappingProxyType

from pytest_dbcluster import registry


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """A kind of volume. ``iops``: write operations a second of each node's device; None for no limit."""

    name: str
    iops: int | None
    what: str


PROFILES = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            Profile("gp2-100", 100, "gp2 of 33 GiB or less whose burst credits are used up"),
            Profile("gp2-3000", 3000, "gp2 under 1000 GiB that still bursts, or one of 1000 GiB"),
            Profile("gp3", 3000, "gp3 as it comes"),
            Profile("nvme", None, "this machine's own disk, without a limit"),
        )
    }
)


def profile(name: str) -> Profile:
    """The profile of this name. Raises ConfigError that lists the known ones."""
    if name not in PROFILES:
        raise registry.unknown("storage profile", name, list(PROFILES))
    return PROFILES[name]
