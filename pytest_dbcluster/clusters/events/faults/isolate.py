"""``Isolate``: a host is cut off from its peers, or from peers and clients, for some seconds."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.events import event, powers
from pytest_dbcluster.clusters.events.event import Event, Happened
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.host import Partitions
from pytest_dbcluster.network import NODE, pair_of

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.hosts.provisioner import Provisioner
    from pytest_dbcluster.rounds.outages.outage import Returned
    from pytest_dbcluster.spec import ClusterSpec

REACHED_SECONDS = 20.0  # until connections reach a host again
WhyNot = Callable[[], str]  # returns why the host is not cut off, empty if it is


@dataclasses.dataclass(frozen=True)
class Isolate(Event):
    """Cut the host of a server off for some seconds. Its packets are lost, and no connection is closed."""

    node: str
    """``writer``, ``other`` (the last node that is not the writer), or a name such as ``node2``."""

    seconds: float
    """How long the host is cut off."""

    clients: bool = False
    """Whether it is also cut off from clients and the proxy. False: only the packets of other nodes are lost."""

    def __str__(self) -> str:
        return f"isolate {self.node} {self.seconds:g} s from peers{' and clients' if self.clients else ''}"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a node that the cluster does not have, a cluster of one node, and wrong seconds."""
        name = f"Isolate({self.node!r})"
        event.check_node(self.node, name, spec, topology)
        event.check_seconds("Isolate(seconds)", self.seconds)
        if self.clients not in (True, False):
            raise ConfigError(f"Isolate(clients={self.clients!r}): it accepts True or False")
        if spec.nodes < 2 and not self.clients:
            raise ConfigError(f"{name}: cluster {spec} has 1 node, and so no peers; use clients=True")

    def check_hosts(self, spec: ClusterSpec, provisioner: Provisioner) -> None:
        """Raise ConfigError for hosts whose network cannot be cut."""
        if self.clients:
            powers.require(Partitions, f"Isolate({self.node!r}, clients=True)", spec, provisioner)
        else:
            powers.require_path(f"Isolate({self.node!r})", spec, provisioner)

    def expected_seconds(self, spec: ClusterSpec, topology: Topology) -> float:
        """Return the seconds of the event: those that the test sets."""
        return self.seconds

    def act(self, cluster: Cluster) -> Happened:
        """Cut the host off and connect it again. The proof is what the kernel drops, or that nothing reaches it.

        Afterwards the server must answer. Between nodes, the kernel must not drop all packets in any direction.
        """
        node = event.target(self.node, cluster)
        if not powers.answers(node):
            return Happened(time.time(), node.name, void=f"{node.name} did not answer before the event")
        node.sql.close()
        happened, log = Happened(time.time(), node.name), node.log_size()
        with _without_network(node) if self.clients else _without_peers(node, cluster) as why_not:
            happened.mark("cut")
            happened.void = why_not()
            event.sleep(self.seconds)
            happened.void, left = happened.void or why_not(), event.has_left(node, cluster)
        happened.mark("connected")
        if (
            cluster.path
            and not self.clients
            and (shut := [pair for pair, way in cluster.path.settings().items() if way.loss == 1])
        ):
            happened.void = happened.void or f"the kernel still drops all packets of {shut}"
        if node.running and not happened.void:  # a server may have given up
            wait.until(
                lambda: [] if powers.answers(node) else ["it does not answer"], node.name, seconds=REACHED_SECONDS
            )
        if left and node.running:
            event.notice_return(node, cluster, happened, log)
        return happened

    def restore(self, cluster: Cluster, happened: Happened) -> Returned | None:
        """Wait until the node is back by itself; otherwise start it again."""
        return happened.returned or event.come_back(event.target(happened.node, cluster), cluster, happened.waited)


@contextlib.contextmanager
def _without_peers(node: Node, cluster: Cluster) -> Iterator[WhyNot]:
    path = cluster.path
    assert path, "``require_path`` refuses others"
    pairs = [pair_of(node.name, end) for end in path.ends if NODE.fullmatch(end) and end != node.name]

    def why_not() -> str:
        ways = path.settings()
        losses = [ways[way].loss for pair in pairs for way in (pair, pair[::-1]) if way in ways]
        return "" if losses and min(losses) == 1 else f"the kernel drops not all packets of {node.name}: {losses}"

    before = path.needs
    path.shape(dataclasses.replace(before, blocked=tuple(pairs)))
    try:
        yield why_not
    finally:
        path.shape(before)


@contextlib.contextmanager
def _without_network(node: Node) -> Iterator[WhyNot]:
    host = node.host
    assert isinstance(host, Partitions), "``powers.require`` refuses others"
    host.partition()
    try:
        yield lambda: f"{node.name} answers while it is cut off" if powers.answers(node) else ""
    finally:
        host.heal()
