"""``Promote``: what a failover manager does after the loss of a primary. It is the ``then=`` of a fault."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.events import event
from pytest_dbcluster.clusters.events.roles.hand_over import check_roles, hand_over, wait_routed
from pytest_dbcluster.clusters.servers.connection import Connection, SQLError
from pytest_dbcluster.clusters.topology import Promotes, Topology
from pytest_dbcluster.errors import ConfigError, ProvisionError

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.events.event import Happened
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.spec import ClusterSpec

MOST_ADVANCED = "most_advanced"
REBUILD, REFUSE = "rebuild", "refuse"
CHECK_SECONDS, CONNECT_SECONDS = 0.1, 1.0  # between two checks of the lost server, and the limit of one check
DETECTED_SECONDS = 60.0


@dataclasses.dataclass(frozen=True)
class Promote:
    """Make a replica the primary after the loss of the primary. After the load has ended, the roles go back."""

    to: str = MOST_ADVANCED
    """``most_advanced``, the first replica that lacks no transaction of another one, or a name such as ``node2``."""

    after: float = 1.0
    """For how many seconds the primary must not answer before the promotion begins."""

    errant: str = REBUILD
    """What becomes of an old primary with errant transactions, which the new one lacks. ``rebuild``: it gets a copy of
    the new primary's data. ``refuse``: it stays out, as failover managers leave it. We rebuild it after the result.
    """

    def __str__(self) -> str:
        refuses = " and refuse errant" if self.errant == REFUSE else ""
        return f"promote {self.to} after {self.after:g} s{refuses}"

    def check(self, fault: str, node: str, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a cluster without replicas to promote, and for wrong fields.

        fault: the event as text. node: the node that the fault takes away.
        """
        if not isinstance(topology, Promotes):
            raise ConfigError(
                f"{fault}, then=Promote: the topology {spec.topology} has no replica to promote; use async_replication "
                "or semisync"
            )
        if node not in (event.WRITER, "node1"):
            raise ConfigError(f'{fault}, then=Promote: only the loss of the primary needs it: use "{event.WRITER}"')
        if self.to != MOST_ADVANCED:
            event.check_node(self.to, f"Promote({self.to!r})", spec, topology)
            if self.to in (event.WRITER, event.OTHER, "node1"):
                raise ConfigError(f'Promote({self.to!r}): it accepts "{MOST_ADVANCED}" or the name of a replica')
        event.check_seconds("Promote(after)", self.after)
        if self.errant not in (REBUILD, REFUSE):
            raise ConfigError(f'Promote(errant={self.errant!r}): it accepts "{REBUILD}" or "{REFUSE}"')
        check_roles(f"{fault}, then=Promote", spec, topology)

    def prepare(self, cluster: Cluster) -> None:
        """Read what the running primary has, before a fault takes it away."""
        if isinstance(cluster.topology, Promotes):
            cluster.topology.remember_roles(cluster.members)

    def act(self, lost: Node, cluster: Cluster, happened: Happened, since: float | None = None) -> None:
        """Notice the loss, choose a replica, let it apply what it has, make it the primary, and prove it.

        since: when the primary was lost, by time.monotonic; None is now. Raises ProvisionError.
        """
        topology = cluster.topology
        assert isinstance(topology, Promotes), "``check`` refuses others"
        self._wait_detected(lost, time.monotonic() if since is None else since)
        happened.mark("detected")
        try:
            new = topology.most_advanced(lost, cluster.members)
            if self.to != MOST_ADVANCED:
                new = event.target(self.to, cluster)
            happened.mark("applied")
            topology.take_over(new, cluster.members, refuses=self.errant == REFUSE)
        except SQLError as error:
            raise ProvisionError(f"no replica took over from {lost.name}: {error}") from error
        happened.mark("promoted")
        wait_routed(new, cluster)
        happened.mark("routed")

    def restore(self, old: Node, cluster: Cluster) -> None:
        """Make the old primary the primary again. It must be a replica that has returned."""
        if cluster.writers[0] is not old:
            hand_over(old, cluster)

    def _wait_detected(self, lost: Node, answered: float) -> None:
        def problems() -> list[str]:
            nonlocal answered
            left = answered + self.after - time.monotonic()
            if _answers(lost, max(CHECK_SECONDS, min(CONNECT_SECONDS, left))):
                answered = time.monotonic()
            silent = time.monotonic() - answered
            return [] if silent >= self.after else [f"{lost.name} answered {silent:.1f} s ago"]

        wait.until(problems, f"the loss of {lost.name}", seconds=DETECTED_SECONDS + self.after, poll=CHECK_SECONDS)


def check_then(then: object, fault: str, node: str, spec: ClusterSpec, topology: Topology) -> None:
    """Raise ConfigError for a ``then=`` that is no promotion, or one that this cluster cannot have."""
    if not isinstance(then, Promote):
        raise ConfigError(f"{fault}, then={then!r}: it accepts Promote() or None")
    then.check(fault, node, spec, topology)


def _answers(node: Node, seconds: float) -> bool:
    connection = Connection(node.name, node.endpoint, seconds=seconds)
    try:
        connection.query("SELECT 1", seconds)
    except (SQLError, ProvisionError):
        return False
    finally:
        connection.close()
    return True
