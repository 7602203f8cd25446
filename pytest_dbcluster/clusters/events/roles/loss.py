"""``Loss``: what faults have in common that take a node away, after which a replica may be promoted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_dbcluster.clusters.events import event
from pytest_dbcluster.clusters.events.event import Event, Happened
from pytest_dbcluster.clusters.events.roles.promote import Promote, check_then

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.spec import ClusterSpec


class Loss(Event):
    """A fault that takes a node away. Its dataclass has both fields."""

    node: str
    """The node, as for ``event.target``."""

    then: Promote | None
    """What a failover manager does then; None for nothing."""

    def check_loss(self, fault: str, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a node that the cluster does not have, and for a wrong ``then``. fault: as text."""
        event.check_node(self.node, fault, spec, topology)
        if self.then is not None:
            check_then(self.then, fault, self.node, spec, topology)

    def returns(self, topology: Topology) -> bool:
        """Whether the node starts again while the load runs."""
        return False

    def moves_writes(self, topology: Topology) -> bool:
        """Whether another node accepts the writes: it is elected or promoted after the loss of the writer."""
        return (topology.elects_writers and self.node in (event.WRITER, "node1")) or self.then is not None

    def leaves_load(self, spec: ClusterSpec, topology: Topology, *, only_writer: bool) -> bool:
        """Not if the only endpoint of the load is gone until the load ends. Clients follow a promoted primary.

        Where another primary is elected, a node that starts again refuses writes.
        """
        elected = topology.elects_writers and topology.has_primary(dict(spec.options))
        if self.then or self.node not in (event.WRITER, "node1") or (self.returns(topology) and not elected):
            return True
        return topology.elects_writers and not only_writer and spec.nodes > 1

    def give_back(self, node: Node, cluster: Cluster, happened: Happened) -> None:
        """Make a former primary the primary again, once it is back."""
        if self.then:
            happened.mark("whole")
            self.then.restore(node, cluster)
