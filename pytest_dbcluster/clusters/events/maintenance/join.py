"""``Join``: a node that was shut down joins its cluster again under load."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from pytest_dbcluster.clusters.events import event
from pytest_dbcluster.clusters.events.event import WITHOUT_SOURCE, Event, Happened, Stage
from pytest_dbcluster.clusters.events.maintenance import clone_plugin
from pytest_dbcluster.clusters.topology import REFUSAL
from pytest_dbcluster.errors import ConfigError

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.rounds.outages.outage import Returned
    from pytest_dbcluster.spec import ClusterSpec

# What a server logs that has cloned another one, and that no service manager starts again.
AFTER_CLONE = (
    r"Clone shutting down server as RESTART failed",
    r"Error number: 3707",
    r"Due to a critical cloning error",
    r"automatically set into read only mode after an error was detected",
)
SST, CLONE = "SST", "clone"
NOT_OFFERED = ("rebuild", REFUSAL)  # ways that nobody can ask for
MISSED_SECONDS = 2.0  # in which the node misses what the load writes


@dataclasses.dataclass(frozen=True)
class Join(Event):
    """Shut a node down while the load runs, and start it again two seconds later: that is the event."""

    errors: ClassVar[Sequence[str]] = (*WITHOUT_SOURCE, *AFTER_CLONE)

    how: str
    """How it gets what it missed: ``IST`` or ``SST`` on Galera, ``incremental`` or ``clone`` in a group, ``GTID`` on a
    replica. For ``clone`` we load MySQL's clone plugin on all nodes, and set group_replication_clone_threshold=1.
    """

    node: str = event.OTHER
    """``other`` (the last node that is not the writer), or a name such as ``node2``; not the first node."""

    def __str__(self) -> str:
        return f"join of {self.node} by {self.how}"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for an unknown way, one that the topology lacks, and for the first node."""
        name = f"Join({self.how!r}, {self.node!r})"
        event.check_node(self.node, name, spec, topology)
        known = [way for way in topology.ways_back if way not in NOT_OFFERED]
        if self.how not in known:
            raise ConfigError(f"{name}: a node of {spec.topology} joins by {' or '.join(map(repr, known))}")
        if self.node in (event.WRITER, "node1"):
            raise ConfigError(f"{name}: the load needs the first node before the event; name another one")

    def expected_seconds(self, spec: ClusterSpec, topology: Topology) -> float:
        """Return the seconds of the event: those without the node, and its return."""
        return MISSED_SECONDS + topology.busy_return_seconds

    def moves_writes(self, topology: Topology) -> bool:
        """Return False: the writer stays."""
        return False

    def equip(self, start: Stage, stages: Sequence[Stage]) -> Self:
        """Raise ConfigError for a release without the clone plugin, if the way needs it."""
        for release in start.releases if self.how == CLONE else ():
            if not clone_plugin.is_in(release):
                raise ConfigError(f"{self}: {release.name} ({release.source}) has no clone plugin")
        return self

    def prepare(self, cluster: Cluster) -> None:
        """Load the clone plugin on all nodes, if the way needs it. Raises ProvisionError."""
        for node in cluster.nodes if self.how == CLONE else ():
            clone_plugin.load(node)

    def act(self, cluster: Cluster) -> Happened:
        """Shut the node down, and start it; the event begins at the start.

        The proof is what the node logs, and for a clone also its performance_schema.clone_status.
        """
        node = event.target(self.node, cluster)
        if not node.running:
            return Happened(time.time(), node.name, void=f"{node.name} did not run before the event")
        left = time.time()
        self._leave(node, cluster)
        happened = Happened(time.time(), node.name)
        happened.seconds_before = happened.at - left
        happened.returned = event.rejoin(node, cluster, by_clone=self.how == CLONE)
        happened.mark("whole")
        if happened.returned.how != self.how:
            happened.void = f"{node.name} joined by {happened.returned.how or 'nothing that its log names'}"
        elif self.how == CLONE:
            happened.void = clone_plugin.not_cloned(node)
        return happened

    def restore(self, cluster: Cluster, happened: Happened) -> Returned | None:
        """Unload the clone plugin, if the way needed it."""
        for node in cluster.nodes if self.how == CLONE else ():
            clone_plugin.unload(node)
        return super().restore(cluster, happened)

    def _leave(self, node: Node, cluster: Cluster) -> None:
        """Shut the node down, and let it miss something; for an SST its server forgets its position."""
        node.stop()
        event.wait_uncounted(node, cluster)
        if self.how == SST:
            node.host.run(["rm", "-f", f"{node.data}/grastate.dat"])
        event.sleep(MISSED_SECONDS)
