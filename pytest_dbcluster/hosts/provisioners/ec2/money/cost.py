"""Cost: the maximum cost of a launch until its instances end themselves, and its messages.

The cap of a run limits rate times time to live, not an estimate of the run's duration. AWS bills instances and volumes
by the second, for at least 60 seconds (docs.aws.amazon.com/AWSEC2/latest/UserGuide, concepts.html#ec2-pricing). We do
not count traffic, which is free within a zone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioners.ec2.money.prices import BURSTABLE, OLD_DAYS, Prices, PriceSource
from pytest_dbcluster.hosts.provisioners.ec2.settings import GP3_IOPS, GP3_MIB, LOCAL_DISK, Volume

LEAST_SECONDS = 60.0  # minimum that AWS bills
MICRO = 1_000_000  # sums are in millionths of a USD, so that they do not depend on the order
VOLUMES, PROVISIONED, IPV4, CREDITS = "volumes", "provisioned IOPS and throughput", "public IPv4", "surplus credits"
UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


@dataclasses.dataclass(frozen=True)
class InstanceGroup:
    """Equal instances of a launch."""

    what: str
    """The purpose of the instances, such as "servers"."""

    type: str
    """The name of the instance type."""

    count: int
    """Number of instances."""

    public: bool
    """Whether each instance has a public IPv4 address."""

    volumes: tuple[Volume, ...] = ()
    """The volumes of each instance, with the root volume."""

    cpus: int | None = None
    """CPUs of each instance from AWS; None uses our table."""

    unlimited: bool = True
    """Whether a burstable type uses CPU beyond its credits, at a price."""


@dataclasses.dataclass(frozen=True)
class CostPart:
    """A part of the cost."""

    what: str
    """The name of the part."""

    hourly: float
    """The price of the whole part, in USD per hour."""


@dataclasses.dataclass(frozen=True)
class Cost:
    """The cost of a launch."""

    groups: tuple[InstanceGroup, ...]
    """The instances of the launch."""

    parts: tuple[CostPart, ...]
    """The parts of the cost."""

    ttl: float
    """Time to live, in seconds."""

    where: str
    """The zones or the region."""

    spot: bool = False
    """Whether the instances are spot instances, which count at the on-demand price."""

    sources: tuple[tuple[PriceSource, int], ...] = ()
    """The sources of the prices that no option sets, with their age in days."""

    @classmethod
    def of(
        cls,
        groups: Iterable[InstanceGroup],
        *,
        region: str,
        prices: Prices,
        ttl: float,
        zones: Sequence[str] = (),
        spot: bool = False,
    ) -> Cost:
        """The cost of these instances. A spot instance counts at the on-demand price, which it never exceeds.

        Raises ConfigError if a price is unknown.
        """
        groups = tuple(group for group in groups if group.count)
        hourly: dict[str, float] = {}
        names: list[str] = []

        def add(what: str, count: float, name: str, *, instance: bool = False) -> None:
            if count > 0:
                price = prices.hourly(name, region) if instance else prices.other(name, region)
                hourly[what] = hourly.get(what, 0.0) + count * price
                names.append(name)

        for kind, count in _counts(groups).items():
            add(f"{count} x {kind}", count, kind, instance=True)
        for group in groups:
            for volume in group.volumes:
                for what, amount, name in _billed_parts(volume):
                    add(what, group.count * amount, name)
        add(IPV4, sum(group.count for group in groups if group.public), "ipv4")
        for group in groups:
            if group.unlimited and BURSTABLE.fullmatch(family := group.type.split(".")[0]):
                add(CREDITS, group.count * _cpus(group, prices), f"{family}-credits")
        found = (prices.source(name, region) for name in names)
        sources = tuple((source, prices.age(source)) for source in dict.fromkeys(found) if source is not None)
        parts = tuple(CostPart(what, rate) for what, rate in hourly.items())
        return cls(groups, parts, ttl, ", ".join(zones) or region, spot, sources)

    @property
    def hourly(self) -> float:
        """The price of everything, in USD per hour."""
        return math.fsum(part.hourly for part in self.parts)

    @property
    def most(self) -> int:
        """The maximum until the instances end themselves, in millionths of a USD, rounded up."""
        return self.amount(self.ttl)

    def amount(self, seconds: float) -> int:
        """The cost of this time, in millionths of a USD, rounded up. seconds: from the launch to the end."""
        return math.ceil(self.hourly * max(seconds, LEAST_SECONDS) / 3600 * MICRO - 1e-6)

    @property
    def line(self) -> str:
        """The line before the launch: instances, place, time to live, and the maximum cost."""
        what = ", ".join(f"{group.count} x {group.type} ({group.what})" for group in self.groups)
        spot = "spot instances, at most the price on demand; " if self.spot else ""
        return (
            f"ec2: {what} in {self.where}; {spot}they end themselves after {lifetime(self.ttl)}; at most "
            f"{usd(self.most)} USD ({self._parts()}){self._origin()}"
        )

    def refusal(self, cap: float | None, used: int = 0) -> str:
        """Why we refuse the launch, and what to do. cap: --db-max-cost in USD. used: from ``LaunchLedger.used``."""
        most = f"at most {usd(self.most)} USD until they end themselves after {lifetime(self.ttl)} ({self._parts()})"
        if cap is None:
            return (
                f"--db-provisioner ec2 launches nothing without --db-max-cost, the maximum cost of the run: these "
                f"instances cost {most}, so use --db-max-cost {usd(self.most)}"
            )
        others = f", and other launches of the run have used {usd(used)}" if used else ""
        return (
            f"{most}, but --db-max-cost allows {cap:.2f}{others}: use fewer or smaller instances, a shorter "
            f"--db-ec2-ttl, or --db-max-cost {usd(used + self.most)}"
        )

    def _parts(self) -> str:
        """Each part with its maximum until the end, the most expensive first."""
        dearest = sorted(self.parts, key=lambda part: -part.hourly)
        return ", ".join(f"{part.what} {_share(part.hourly * max(self.ttl, LEAST_SECONDS) / 3600)}" for part in dearest)

    def _origin(self) -> str:
        """The sources of the prices, and how to renew old ones."""
        if not self.sources:
            return ""
        names = " and ".join(str(source) for source, _ in self.sources)
        oldest = max(age for _, age in self.sources)
        old = f", {oldest} days old (`dbcluster ec2 prices` renews them)" if oldest >= OLD_DAYS else ""
        return f"; prices: {names}{old}"


def _counts(groups: Iterable[InstanceGroup]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for group in groups:
        counts[group.type] = counts.get(group.type, 0) + group.count
    return counts


def _billed_parts(volume: Volume) -> list[tuple[str, float, str]]:
    """The billed parts of a volume: part, count, name of the price."""
    if volume.kind == LOCAL_DISK:
        return []
    priced: list[tuple[str, float, str]] = [(VOLUMES, volume.gib, volume.kind)]
    if volume.kind == "gp3":
        priced.append((PROVISIONED, volume.iops - GP3_IOPS, "gp3-iops"))
        priced.append((PROVISIONED, volume.mib_per_second - GP3_MIB, "gp3-throughput"))
    elif volume.kind in ("io1", "io2"):
        priced.append((PROVISIONED, volume.iops, f"{volume.kind}-iops"))
    return priced


def _cpus(group: InstanceGroup, prices: Prices) -> int:
    """The CPUs of a burstable instance, which may all be billed all the time. Raises ConfigError if unknown."""
    cpus = group.cpus or prices.cpus(group.type)
    if cpus is None:
        raise ConfigError(
            f"the number of CPUs of {group.type} is unknown, and so is the maximum cost of its surplus credits; "
            "use another --db-ec2-type"
        )
    return cpus


def usd(micro: int) -> str:
    """Millionths of a USD as text in cents, rounded up, so that this cap allows the sum."""
    return f"{-(-micro // (MICRO // 100)) / 100:.2f}"


def _share(amount: float) -> str:
    return f"{amount:.2f}" if amount >= 0.005 else "under 0.01"


def lifetime(seconds: float) -> str:
    """A time to live, exactly: ``2 h``, ``1 h 30 min``."""
    left, words = round(seconds), []
    for length, unit in UNITS:
        number, left = divmod(left, length)
        if number:
            words.append(f"{number} {unit}")
    return " ".join(words) or "0 s"
