"""A failover under TPC-C: the seconds without a server, and what became of the acknowledged orders."""

from __future__ import annotations

import concurrent.futures
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.topology import FailedOver, FailsOver, Rejoins, Topology
from pytest_dbcluster.errors import ConfigError, WorkloadError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads.tpcc import books, conditions, orders
from pytest_dbcluster.workloads.tpcc.books import OrderBook
from pytest_dbcluster.workloads.tpcc.conditions import SCHEMA
from pytest_dbcluster.workloads.tpcc.orders import WrongOrder
from pytest_dbcluster.workloads.tpcc.workload import TPCC
from pytest_dbcluster.workloads.workload import Setting

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster

SECONDS = 10.0  # length of a round if the workload does not set it
ORDERS = 20  # before we kill the server
READY_SECONDS = 600.0


@dataclasses.dataclass(frozen=True)
class LoadedFailover:
    """The result of a failover under TPC-C."""

    failover: FailedOver
    """The old and the new node, with the seconds of each step."""

    acknowledged: int
    """Number of New-Orders whose COMMIT returned."""

    lost: Sequence[WrongOrder]
    """Acknowledged orders that the new server does not have, or has with another customer or other lines."""

    invented: Sequence[WrongOrder]
    """Orders of the new server that no terminal reported."""

    unknown_there: int
    """Number of orders on the new server whose COMMIT did not return."""

    unknown_gone: int
    """Number of orders whose COMMIT did not return and that are not on the new server."""

    violations: Sequence[str]
    """The conditions of TPC-C that do not hold on the new server."""

    rejoined: float
    """Seconds until the old host was a standby again, with all data."""

    @property
    def unknown(self) -> int:
        """Number of orders whose COMMIT did not return."""
        return self.unknown_there + self.unknown_gone

    @property
    def seconds(self) -> float:
        """Seconds from the loss of the old server until the new one answered."""
        return self.failover.seconds

    def __str__(self) -> str:
        lost = f"{len(self.lost)} of them lost" + (f" ({orders.some(self.lost)})" if self.lost else "")
        invented = f", {len(self.invented)} invented" + (f" ({orders.some(self.invented)})" if self.invented else "")
        wrong = f"; {'; '.join(self.violations)}" if self.violations else ""
        there = f"({self.unknown_there} of them there)"
        return (
            f"{self.failover}; {self.acknowledged} orders were acknowledged, {lost}{invented}, and {self.unknown} more "
            f"got no answer to their COMMIT {there}{wrong}; the old host was a standby again after "
            f"{self.rejoined:.1f} s"
        )


@runtime_checkable
class StandsBy(FailsOver, Rejoins, Protocol):
    """A topology with a standby for its server, whose old host can become the standby."""


def with_standby(spec: ClusterSpec, topology: Topology) -> StandsBy:
    """The topology of a spec, if it has a standby. Raises ConfigError otherwise."""
    if not isinstance(topology, StandsBy):
        raise ConfigError(f"cluster {spec} has no standby for its server: use topology drbd")
    return topology


def fail_over(load: TPCC, setting: Setting) -> LoadedFailover:
    """Run a prepared workload, kill its server in the middle, and compare the acknowledged orders afterwards.

    Raises ConfigError for a topology without a standby, WorkloadError if the workload ended before the server, and
    what ``FailsOver.fail_over`` raises. When it returns, the cluster is complete again.
    """
    cluster = setting.cluster
    topology = with_standby(cluster.spec, cluster.topology)
    load = dataclasses.replace(load, seconds=load.round_seconds if load.seconds else SECONDS)
    (old,) = cluster.nodes
    own = OrderBook.start(old)
    with wait.threads(1) as threads:
        running = threads.submit(load.observe, setting, outlive=True)
        _wait_for_orders(load, cluster, running)
        done = topology.fail_over(cluster.members)
        reports = running.result()[1]
    (new,) = cluster.nodes
    with own.round() as heard:
        heard(reports)
    found = own.balance(new)
    books.book_of(cluster).discard(found.lost)  # reported here, and not again by the checks of later rounds
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
    """Wait until the workload has made ORDERS orders. Raises its error, and WorkloadError if it ended before that."""
    (node,) = cluster.nodes

    def count() -> int:
        return int(node.query(f"SELECT SUM(d_next_o_id) FROM {SCHEMA}.district", wait.SLOW_SECONDS)[0][0])

    before = count()

    def problems() -> list[str]:
        there = count() - before
        if there < ORDERS and running.done():
            running.result()
            raise WorkloadError(
                f"{load} made {quantity(there, 'order')} in {load.round_seconds:g} s, and needs {ORDERS} before we "
                "kill a server: use more seconds= or threads="
            )
        return [] if there >= ORDERS else [quantity(there, "order")]

    wait.until(problems, f"the first orders of {load}", seconds=READY_SECONDS)
