"""``PowerCut``: hosts lose their power, and with it what their kernels had not flushed."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.events import event, powers
from pytest_dbcluster.clusters.events.event import Event, Happened
from pytest_dbcluster.hosts.host import Falls

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.hosts.provisioner import Provisioner
    from pytest_dbcluster.spec import ClusterSpec

ALL = "all"
BOOT_SECONDS = 5.0  # about what a host needs


@dataclasses.dataclass(frozen=True)
class PowerCut(Event):
    """Cut the power of the hosts of all servers at once, or of one. The hosts boot, and the servers start again.

    What a server had written and not flushed is lost.
    """

    node: str = ALL
    """``all``, ``writer``, ``other`` (the last node that is not the writer), or a name such as ``node2``."""

    def __str__(self) -> str:
        return f"power cut of {self.node}"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a node that the cluster does not have."""
        name = f"PowerCut({self.node!r})"
        if self.node == ALL:
            event.check_restarts(name, spec, topology)
        else:
            event.check_node(self.node, name, spec, topology)

    def check_hosts(self, spec: ClusterSpec, provisioner: Provisioner) -> None:
        """Raise ConfigError for hosts without a separate kernel and disk, which would lose nothing."""
        name = f"PowerCut({self.node!r})"
        powers.require(Falls, name, spec, provisioner)
        powers.require_offer("block-devices", name, spec, provisioner)

    def expected_seconds(self, spec: ClusterSpec, topology: Topology) -> float:
        """Return the seconds of the event: the boot of the hosts, and the returns of the nodes."""
        return BOOT_SECONDS + event.restart_seconds(spec, topology)

    def prepare(self, cluster: Cluster) -> None:
        """Flush what nodes got when they joined. Raises ProvisionError."""
        powers.flush_disks(cluster)

    def act(self, cluster: Cluster) -> Happened:
        """Cut the power and start the servers again. The proof is the boot of each kernel."""
        nodes = cluster.nodes if self.node == ALL else [event.target(self.node, cluster)]
        name = "" if self.node == ALL else nodes[0].name
        if ended := [node.name for node in nodes if not node.running]:
            return Happened(time.time(), name, void=f"{', '.join(ended)} did not run before the event")
        before = [powers.boot(node) for node in nodes]
        for node in nodes:
            node.sql.close()
        happened = Happened(time.time(), name)
        with wait.threads(len(nodes)) as cutting:
            list(cutting.map(_cut, nodes))
        happened.mark("booted")
        if same := [node.name for node, boot in zip(nodes, before, strict=True) if powers.boot(node) == boot]:
            happened.void = f"{', '.join(same)} did not boot"
        happened.returned = event.restart(cluster) if self.node == ALL else event.rejoin(nodes[0], cluster)
        happened.mark("whole")
        return happened


def _cut(node: Node) -> None:
    assert isinstance(node.host, Falls), "``powers.require`` refuses others"
    node.host.kill()
    node.process = None
