"""Loans: speeds above what an instance sustains, and how much of them is left by our own count.

Each is a bucket: it is full at first, use above the sustained speed empties it, and less use fills it again. Where AWS
does not say how large the bucket is, we take the least that it promises.

Sources, read in November 2026:
- gp2 volumes, docs.aws.amazon.com/ebs/latest/userguide/general-purpose.html: below 1000 GiB 5.4 million operations
  above the baseline of 3 operations/s for each GiB (100 at least), at up to 3000 operations/s.
- Instances and EBS, docs.aws.amazon.com/ebs/latest/userguide/ebs-optimization.html: types with a baseline below their
  maximum have the maximum for at least 30 minutes in 24 hours. That it is a bucket: aws.amazon.com/blogs/compute,
  "Simulating Amazon EC2 EBS burst credits before downsizing an instance".
- The network, docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-network-bandwidth.html: bursts last 5 to 60
  minutes, by the size of the instance.
- CPUs, docs.aws.amazon.com/AWSEC2/latest/UserGuide/burstable-credits-baseline-concepts.html: a credit is a minute of a
  CPU. In the mode `unlimited` their speed is not taken back; it costs more (surplus credits), so nothing is lent.
  ``CPU_BASELINES`` is the column base_performance of the Go module github.com/cristim/ec2-instances-info of 2025-05-28.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from pytest_dbcluster.formatting import amount
from pytest_dbcluster.hosts.provisioners.ec2.hardware.counts import Counts
from pytest_dbcluster.hosts.provisioners.ec2.hardware.instance_type import GIGABIT, MEGA, InstanceType, Speed

GP2_CREDITS, GP2_BURST, GP2_FULL_GIB = 5_400_000, 3000, 1000
GP2_PER_GIB, GP2_LEAST = 3, 100
EBS_SECONDS = 30 * 60
NETWORK_SECONDS = 5 * 60
DAY = 86400
# Who is held to the sustained speed uses just that, so that what is left stays near nothing and seems to come back.
REGAINED = 0.1
UNLIMITED = "unlimited"
# Of all CPUs together: t3.medium earns 0.4 of the time of one CPU, 24 credits an hour. Equal in t3, t3a and t4g.
_T3 = {"nano": 0.1, "micro": 0.2, "small": 0.4, "medium": 0.4, "large": 0.6, "xlarge": 1.6, "2xlarge": 3.2}
_T2 = {"nano": 0.05, "micro": 0.1, "small": 0.2, "medium": 0.4, "large": 0.6, "xlarge": 0.9, "2xlarge": 1.36}
CPU_BASELINES: Mapping[str, float] = {
    f"{family}.{size}": share
    for family, shares in (("t2", _T2), ("t3", _T3), ("t3a", _T3), ("t4g", _T3))
    for size, share in shares.items()
}


@dataclasses.dataclass(frozen=True)
class Loan:
    """A speed that is lent.

    what: of what, as a clause. unit: of what is counted. lasting: of these a second, for ever. full: how many above
    that can be used before it is over. begin: how many of these are there at the boot. used: since the boot, by the
    counts of an instance.
    """

    what: str
    unit: str
    lasting: float
    full: float
    begin: float
    used: Callable[[Counts], float]


class Balance:
    """What is left of a loan, by our count."""

    def __init__(self, loan: Loan) -> None:
        self.loan = loan
        self.left = loan.begin
        self._gone = False
        self._up = self._used = 0.0

    def take(self, counts: Counts) -> None:
        """Book what was used since the last time, the first time since the boot."""
        used, seconds = self.loan.used(counts), counts.up - self._up
        left = self.left + self.loan.lasting * seconds - (used - self._used)
        self.left = min(self.loan.full, max(0.0, left))
        self._gone = self.left <= 0 or (self._gone and self.left < REGAINED * self.loan.full)
        self._up, self._used = counts.up, used

    @property
    def over(self) -> str:
        """That nothing is left, as a clause; empty while something is, and from when it counts again."""
        if not self._gone:
            return ""
        lasting = f"{amount(self.loan.lasting)} {self.loan.unit}"
        return f"{self.loan.what} is used up, by our count: what it has for long is {lasting}"


def loans_of(kind: InstanceType, *, mode: str, volume: str, gib: int) -> Sequence[Loan]:
    """What an instance is lent. mode: of its CPU credits; empty for a type without. volume, gib: of its data volume."""
    found = [*_of_cpus(kind, mode), *_of_ebs(kind), *_of_network(kind)]
    if volume == "gp2" and gib < GP2_FULL_GIB:
        lasting = max(GP2_PER_GIB * gib, GP2_LEAST)
        what = f"the speed that its gp2 volume of {gib} GiB is lent"
        found.append(Loan(what, "operations/s", lasting, GP2_CREDITS, GP2_CREDITS, _most_of_a_volume))
    return found


def _most_of_a_volume(counts: Counts) -> float:
    """Of the volume with the most operations, which is that of the data: the root's are few."""
    return max((disk.operations for disk in counts.volumes), default=0.0)


def _of_cpus(kind: InstanceType, mode: str) -> list[Loan]:
    if not kind.burstable or mode == UNLIMITED:
        return []
    share = CPU_BASELINES.get(kind.name, 0.0)  # of a type that is not known nothing is believed
    what = f"the speed that the CPUs of {kind.name} are lent (credit mode {mode or 'not known'})"
    return [Loan(what, "CPUs", share, share * DAY, 0.0, lambda counts: counts.cpu)]


def _of_ebs(kind: InstanceType) -> list[Loan]:
    counted: tuple[tuple[Speed, str, Callable[[Counts], float]], ...] = (
        (kind.ebs_operations, "operations/s", lambda counts: sum(disk.operations for disk in counts.volumes)),
        (kind.ebs_megabytes, "MB/s", lambda counts: sum(disk.size for disk in counts.volumes) / MEGA),
    )
    what = f"the speed to its volumes that {kind.name} is lent"
    return [_of_speed(what, unit, speed, EBS_SECONDS, used) for speed, unit, used in counted if speed.lent]


def _of_network(kind: InstanceType) -> list[Loan]:
    speed = Speed(kind.network.baseline * GIGABIT, kind.network.burst * GIGABIT)
    counted: tuple[tuple[str, Callable[[Counts], float]], ...] = (
        ("received", lambda counts: counts.received / MEGA),
        ("sent", lambda counts: counts.sent / MEGA),
    )
    what = f"the speed of the network that {kind.name} is lent"
    return [_of_speed(f"{what} ({way})", "MB/s", speed, NETWORK_SECONDS, used) for way, used in counted if speed.lent]


def _of_speed(what: str, unit: str, speed: Speed, seconds: float, used: Callable[[Counts], float]) -> Loan:
    """A loan of the difference between two speeds for so many seconds."""
    full = (speed.burst - speed.baseline) * seconds
    return Loan(what, unit, speed.baseline, full, full, used)
