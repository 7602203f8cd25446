"""Spending: the launches of one process, from their plan to the end of their instances, in the ledger of the run."""

from __future__ import annotations

import math
import time
from pathlib import Path

from pytest_dbcluster.hosts.provisioners.ec2.money.cost import MICRO, Cost, InstanceGroup, usd
from pytest_dbcluster.hosts.provisioners.ec2.money.ledger import LaunchLedger
from pytest_dbcluster.hosts.provisioners.ec2.money.prices import Prices
from pytest_dbcluster.hosts.provisioners.ec2.plan import LOAD, ROOT_KIND, SERVER, Part, Plan
from pytest_dbcluster.hosts.provisioners.ec2.settings import GP3_IOPS, GP3_MIB, EC2Settings, Volume

ROLES = {SERVER: "servers", LOAD: "load"}
MINUTE = 60  # messages round the time to live up to minutes
FILE = "ec2-cost.json"  # of the ledger


def cost_of(plan: Plan, settings: EC2Settings, region: str, prices: Prices) -> Cost:
    """The maximum cost of a launch until its instances end themselves. Raises ConfigError for an unknown price."""

    def group(part: Part) -> InstanceGroup:
        volumes = [root(gib) for gib in plan.image.devices.values()]
        cpus = plan.types[part.type].get("VCpuInfo", {}).get("DefaultVCpus")
        own = [settings.volume] if part.role == SERVER else []
        return InstanceGroup(ROLES[part.role], part.type, part.count, part.subnet.public, (*volumes, *own), cpus)

    ttl = math.ceil(plan.seconds / MINUTE) * MINUTE
    zones = list(dict.fromkeys(part.subnet.zone for part in plan.parts))
    groups = [group(part) for part in plan.parts]
    return Cost.of(groups, region=region, prices=prices, ttl=ttl, zones=zones, spot=settings.spot)


def root(gib: int) -> Volume:
    """A root volume, with the limits that are included in its price."""
    return Volume(ROOT_KIND, gib, GP3_IOPS, GP3_MIB)


class Spending:
    """The cost of this process's launches.

    settings: with the cap, the prices and the file of the ledger. directory: of the run's files, for a ledger that no
    other worker shares.
    """

    def __init__(self, settings: EC2Settings, directory: Path) -> None:
        self._settings = settings
        self._path = settings.ledger or directory / FILE
        self._launches: dict[
            str, tuple[Cost, float]
        ] = {}  # reservation -> cost and start, of launches that have not ended

    @property
    def line(self) -> str:
        """The line with the spent sum. Raises ProvisionError."""
        return self._ledger().line

    def reserve(self, cost: Cost) -> str:
        """Reserve the cost of a launch that starts now. Returns the reservation. Raises as ``LaunchLedger``."""
        name = self._ledger().reserve(cost)
        self._launches[name] = cost, time.time()
        return name

    def record_end(self, *names: str, launched: bool = True) -> None:
        """Record that all instances of these launches have ended; without names, of all launches.

        launched: whether there were instances. Raises ProvisionError; then the reservations stay.
        """
        for name in names or tuple(self._launches):
            cost, began = self._launches[name]
            self._ledger().settle(name, cost.amount(time.time() - began) if launched else 0)
            del self._launches[name]

    def kept_line(self, until: str) -> str:
        """The line with the spent sum and the further cost of kept instances. until: when they end themselves.

        Raises ProvisionError.
        """
        now = time.time()
        running = [(cost.most, cost.amount(now - began)) for cost, began in self._launches.values()]
        spent = self._ledger().settled_total + sum(so_far for _, so_far in running)
        more = sum(max(0, most - so_far) for most, so_far in running)
        return (
            f"about {spent / MICRO:.2f} USD spent so far; the kept instances will cost at most "
            f"{usd(more)} USD more until they end themselves {until}"
        )

    def _ledger(self) -> LaunchLedger:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return LaunchLedger(self._path, self._settings.max_cost)
