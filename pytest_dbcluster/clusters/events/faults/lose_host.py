"""``LoseHost``: the host of a server is gone, from one moment to the next, until the load has ended."""

from __future__ import annotations

import dataclasses
import signal
import time
from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.events import event, powers
from pytest_dbcluster.clusters.events.event import ENDED_SECONDS, Happened
from pytest_dbcluster.clusters.events.roles.loss import Loss
from pytest_dbcluster.clusters.events.roles.promote import Promote
from pytest_dbcluster.errors import NotReady
from pytest_dbcluster.hosts.host import Falls, Partitions

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.hosts.provisioner import Provisioner
    from pytest_dbcluster.rounds.outages.outage import Returned
    from pytest_dbcluster.spec import ClusterSpec


@dataclasses.dataclass(frozen=True)
class LoseHost(Loss):
    """Cut the host of a server off from all others, then kill its programs. It is back after the load has ended.

    So nothing leaves the host any more: neither what its kernel has in its sockets, nor the end of its connections.
    In guests it is a power cut.
    """

    node: str = event.WRITER
    """``writer``, ``other`` (the last node that is not the writer), or a name such as ``node2``."""

    then: Promote | None = None
    """What a failover manager does then: ``Promote()`` makes a replica the primary."""

    def __str__(self) -> str:
        return f"lose host of {self.node}{f', {self.then}' if self.then else ''}"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a node that the cluster does not have."""
        self.check_loss(f"LoseHost({self.node!r})", spec, topology)

    def check_hosts(self, spec: ClusterSpec, provisioner: Provisioner) -> None:
        """Raise ConfigError for hosts that cannot be cut off."""
        powers.require(Partitions, f"LoseHost({self.node!r})", spec, provisioner)

    def expected_seconds(self, spec: ClusterSpec, topology: Topology) -> float:
        """Return the seconds of the event: the eviction and the return of the node."""
        return topology.eviction_seconds + topology.return_seconds

    def prepare(self, cluster: Cluster) -> None:
        """Flush what nodes got when they joined. Raises ProvisionError."""
        powers.flush_disks(cluster)

    def act(self, cluster: Cluster) -> Happened:
        """Lose the host. The proof is that nothing reaches it, that its server has ended, and its peers' view."""
        node = event.target(self.node, cluster)
        if not powers.answers(node):
            return Happened(time.time(), node.name, void=f"{node.name} did not answer before the event")
        if self.then:
            self.then.prepare(cluster)
        node.sql.close()
        happened, host = Happened(time.time(), node.name), node.host
        assert isinstance(host, Partitions), "``powers.require`` refuses others"
        host.partition()
        cut = time.monotonic()
        happened.mark("cut")
        try:
            if self.then:
                self.then.act(node, cluster, happened, since=cut)
            if powers.answers(node):
                happened.void = f"{node.name} answers while it is cut off"
        finally:
            self._end(node, cluster, happened)
        return happened

    def restore(self, cluster: Cluster, happened: Happened) -> Returned | None:
        """Connect the host, and start the server again. A former primary becomes the primary again."""
        node = event.target(happened.node, cluster)
        if isinstance(node.host, Partitions) and not node.running:
            node.host.heal()
        returned = event.come_back(node, cluster)
        self.give_back(node, cluster, happened)
        return returned

    def _end(self, node: Node, cluster: Cluster, happened: Happened) -> None:
        try:
            _kill_programs(node)
            happened.mark("ended")
        except NotReady as error:
            happened.void = f"loss of the host of {node.name}: {error}"
        if happened.void:
            return
        event.wait_uncounted(node, cluster, happened)  # an error here is an outcome of the event


def _kill_programs(node: Node) -> None:
    """Kill the programs of a host, or its server if they share a kernel with us. Raises NotReady."""
    process = node.process
    assert process
    if isinstance(node.host, Falls):
        node.host.kill()
    else:
        process.signal(signal.SIGKILL)
    wait.until(lambda: ["it still runs"] if process.status() is None else [], node.name, seconds=ENDED_SECONDS)
