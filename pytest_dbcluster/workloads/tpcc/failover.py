"""A failover under TPC-C: the seconds without a server, and the orders that were acknowledged before it."""

from __future__ import annotations

import concurrent.futures
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.topology import FailedOver, FailsOver, Rejoins, Topology
from pytest_dbcluster.errors import ConfigError, WorkloadError
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads.tpcc import books, conditions, orders
from pytest_dbcluster.workloads.tpcc.books import OrderBook
from pytest_dbcluster.workloads.tpcc.conditions import SCHEMA
from pytest_dbcluster.workloads.tpcc.orders import WrongOrder
from pytest_dbcluster.workloads.tpcc.workload import TPCC
from pytest_dbcluster.workloads.workload import Setting

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster

SECONDS = 10.0  # in which a load without a length of its own starts transactions
ORDERS = 20  # before the server is lost
READY_SECONDS = 600.0


@dataclasses.dataclass(frozen=True)
class LoadedFailover:
    """What became of a failover under load.

    unknown_there, unknown_gone: how many more had no answer to their COMMIT, and are on the new server or not.
    """

    failover: FailedOver
    """From which node to which, with the seconds of its steps."""

    acknowledged: int
    """The New-Orders whose commit had returned."""

    lost: Sequence[WrongOrder]
    """Those of them that the new server does not have, or has with another customer or other lines."""

    invented: Sequence[WrongOrder]
    """Orders that it has and no terminal reported."""

    unknown_there: int
    unknown_gone: int
    violations: Sequence[str]
    """The conditions of TPC-C that do not hold there."""

    rejoined: float
    """Seconds until the old host was a standby again, with all data."""

    @property
    def unknown(self) -> int:
        """How many orders had no answer to their COMMIT."""
        return self.unknown_there + self.unknown_gone

    @property
    def seconds(self) -> float:
        """From the loss of the old server until the new one answered."""
        return self.failover.seconds

    def __str__(self) -> str:
        lost = f"{len(self.lost)} of them lost" + (f" ({orders.shown(self.lost)})" if self.lost else "")
        invented = f", {len(self.invented)} invented" + (f" ({orders.shown(self.invented)})" if self.invented else "")
        wrong = f"; {'; '.join(self.violations)}" if self.violations else ""
        there = f"({self.unknown_there} of them there)"
        return (
            f"{self.failover}; {self.acknowledged} orders were acknowledged, {lost}{invented}, and {self.unknown} more "
            f"had no answer to their COMMIT {there}{wrong}; the old host was a standby again after "
            f"{self.rejoined:.1f} s"
        )


@runtime_checkable
class StandsBy(FailsOver, Rejoins, Protocol):
    """A topology with a node that stands by for its server, and whose old host can stand by afterwards."""


def standing_by(spec: ClusterSpec, topology: Topology) -> StandsBy:
    """The topology of a spec as one with a standby. Raises ConfigError for one without."""
    if not isinstance(topology, StandsBy):
        raise ConfigError(f"cluster {spec} has no node that stands by for its server: take topology drbd")
    return topology


def fail_over(load: TPCC, setting: Setting) -> LoadedFailover:
    """Let a prepared load write, take its server away in the middle, and compare what was acknowledged afterwards.

    Raises ConfigError for a topology without a standby, WorkloadError for a load that ended before the server did, and
    what ``FailsOver.fail_over`` raises. The cluster is whole again when this returns.
    """
    cluster = setting.cluster
    topology = standing_by(cluster.spec, cluster.topology)
    load = dataclasses.replace(load, seconds=load.round_seconds if load.seconds else SECONDS)
    (old,) = cluster.nodes
    own = OrderBook.begun(old)
    with wait.threads(1) as threads:
        running = threads.submit(load.observe, setting, outlive=True)
        _wait_for_orders(load, cluster, running)
        done = topology.fail_over(cluster.members)
        reports = running.result()[1]
    (new,) = cluster.nodes
    with own.round() as heard:
        heard(reports)
    found = own.balance(new)
    books.kept(cluster).discard(found.lost)  # told here, and not again by the checks of later rounds
    violations = conditions.violations([new])
    topology.rejoin(old, cluster.members)
    rejoined = wait.until(cluster.problems, f"cluster {cluster.spec} with its old host", seconds=READY_SECONDS)
    return LoadedFailover(
        done,
        found.acknowledged,
        found.lost,
        found.invented,
        found.unknown_there,
        found.unknown_gone,
        violations,
        rejoined,
    )


def _wait_for_orders(load: TPCC, cluster: Cluster, running: concurrent.futures.Future[Any]) -> None:
    """Wait until the load has made some orders. Raises what ended it, and WorkloadError where it ended before."""
    (node,) = cluster.nodes

    def made() -> int:
        return int(node.query(f"SELECT SUM(d_next_o_id) FROM {SCHEMA}.district", wait.SLOW_SECONDS)[0][0])

    before = made()

    def problems() -> list[str]:
        there = made() - before
        if there < ORDERS and running.done():
            running.result()
            raise WorkloadError(
                f"{load} made {there} orders in {load.round_seconds:g} s, and {ORDERS} are needed before its server is "
                "taken away: give it more seconds= or threads="
            )
        return [] if there >= ORDERS else [f"{there} orders"]

    wait.until(problems, f"the first orders of {load}", seconds=READY_SECONDS)
