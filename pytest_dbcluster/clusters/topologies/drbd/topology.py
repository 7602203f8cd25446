"""DRBD: one server on a disk that is replicated, block by block, to the disk of a standby host.

The standby host has no server until it takes over. Both disks begin as copies of one disk, so nothing is copied at the
start. Two options are the topology's own, and change while the server runs: ``drbd_protocol`` and ``drbd_connected``.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence

from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topologies.drbd.resource import DEVICE, Resource, block_device
from pytest_dbcluster.clusters.topology import FailedOver, Topology
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.host import Falls, Pauses

PROTOCOL, IS_CONNECTED, VERSION = "drbd_protocol", "drbd_connected", "drbd_version"
# Who has a commit when it returns, by protocol.
HAVE_IT = {
    "A": "one host, sent towards the standby",
    "B": "one host, received by the standby",
    "C": "on the disks of both hosts",
}
RECOVERY_SECONDS = 300.0


class Drbd(Topology):
    """One server, and a standby host that has its disk."""

    needs = frozenset({"block-devices"})
    minimum_nodes = 2
    replication_link = True
    alike = "standalone"
    settings: Mapping[str, Sequence[str]] = {PROTOCOL: ("C", "B", "A"), IS_CONNECTED: ("ON", "OFF")}

    def __init__(self) -> None:
        self._resource = Resource([])
        self._serving = ""
        self._now = {name: values[0] for name, values in self.settings.items()}

    def wrong_size(self, nodes: int) -> str:
        """Return why this number of nodes is wrong: there are two hosts, of which one has the server."""
        if nodes == 2:
            return ""
        return f"drbd is 2 nodes, a server and a standby host for its disk, not {nodes}: give it nodes=2"

    def servers(self, nodes: int) -> int:
        """Return 1: the other host only has the disk."""
        return 1

    def options(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """Return no options: the server knows nothing of what is below its file system."""
        return {}

    def place(self, source: str, nodes: Sequence[Node], *, durable: bool = False) -> None:
        """Copy the data to the first disk, and that disk, bit by bit, to the second one. Raises ProvisionError."""
        first, second = (block_device(node.host) for node in nodes)
        first.place(source, durable=durable)
        second.copy_disk(nodes[0].host, durable=durable)

    def serving(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return the node that has the server."""
        return [node for node in nodes if node.name == (self._serving or nodes[0].name)]

    def writers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return the node that has the server."""
        return self.serving(nodes)

    def readers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return the node that has the server."""
        return self.serving(nodes)

    def form(self, nodes: Sequence[Node]) -> None:
        """Replicate the disk of the first node, mount it there, and start the server."""
        self._resource = Resource([node.host for node in nodes])
        self._resource.make()
        self._serve(nodes[0])

    def _serve(self, node: Node) -> None:
        self._resource.promote(node.host)
        block_device(node.host).mount(DEVICE)
        self._serving = node.name
        node.start()

    def rejoin(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start the server again, on a host that was started again or not; a standby host is attached again."""
        state = self._resource.state(node.host)
        if state is None:
            self._resource.attach(node.host)
        if self._connected:
            self._resource.connect()  # the other host may have given this one up
        if node.name != self._serving:
            return
        if state and state.role == "Primary":
            node.start()
        else:
            self._serve(node)

    def problems(self, nodes: Sequence[Node]) -> list[str]:
        """Return why the server does not answer, and what keeps the disks from being as wanted.

        Raises NodeDied, and ProvisionError for a split brain.
        """
        unanswered = [problem for node in nodes for problem in node.problems()]
        return unanswered or self._resource.problems(connected=self._connected)

    @property
    def _connected(self) -> bool:
        return self._now[IS_CONNECTED] == "ON"

    def apply(self, settings: Mapping[str, str], nodes: Sequence[Node]) -> None:
        """Connect or disconnect the disks, and set the protocol. A resync has ended when this returns."""
        wanted = {name: settings.get(name, values[0]) for name, values in self.settings.items()}
        self._now = wanted
        if self._connected:
            self._resource.wait_equal()
            self._resource.use_protocol(wanted[PROTOCOL])
        else:
            self._resource.disconnect(nodes[0].host)

    def facts(self) -> Mapping[str, str]:
        """Return the settings as they are now, and the version of DRBD."""
        return {**self._now, VERSION: self._resource.version}

    def backlog(self, nodes: Sequence[Node]) -> list[str]:
        """Return what the standby has still to write; nothing while the disks are disconnected."""
        return self._resource.backlog() if self._connected else []

    def watch(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """Return connection, roles and disks as each host has them, and how often they have changed."""
        return self._resource.readings()

    def void(self, before: Mapping[str, str], after: Mapping[str, str]) -> str:
        """Return why a round does not count: connection or disks changed, for however short a time."""
        return "; ".join(
            f"{name} went from {before.get(name, 'unknown')!r} to {after.get(name, 'unknown')!r}"
            for name in sorted(before.keys() | after.keys())
            if before.get(name) != after.get(name)
        )

    def acknowledged(self, variables: Mapping[str, str], nodes: int) -> str:
        """Return which hosts have a commit when it returns, and the version of DRBD once it runs."""
        drbd = " ".join(filter(None, ["DRBD", variables.get(VERSION, "")]))
        if variables.get(IS_CONNECTED, "ON") != "ON":
            return f"one host, {drbd} disconnected"
        protocol = variables.get(PROTOCOL, "C")
        return f"{HAVE_IT[protocol]}, {drbd} protocol {protocol}"

    def fail_over(self, nodes: Sequence[Node]) -> FailedOver:
        """End the host of the server, and start the server on the other one. ``nodes``: all nodes of the cluster.

        The old host is fenced before the standby may write: frozen at once, and its power cut afterwards. It comes back
        with ``rejoin``. Raises ProvisionError where the standby's data is out of date; the old host is fenced then too.
        """
        (old,) = self.serving(nodes)
        (new,) = [node for node in nodes if node is not old]
        steps = _Steps()
        if frozen := isinstance(old.host, Pauses):
            old.host.pause()
        else:
            _cut(old)
        steps.end("fenced")
        try:
            with contextlib.suppress(ProvisionError):  # the standby has noticed it already
                self._resource.leave_peer(new.host)
            self._resource.promote(new.host)
            steps.end("promoted")
            block_device(new.host).mount(DEVICE)
            steps.end("mounted")
            self._serving = new.name
            new.start()
            new.wait_answering(RECOVERY_SECONDS)
            steps.end("server answers")
        finally:
            if frozen:
                _cut(old)
        return FailedOver(old.name, new.name, steps.seconds)


class _Steps:
    """Seconds of steps that follow each other."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = time.monotonic()

    def end(self, name: str) -> None:
        """A step has ended, and the next one begins."""
        now = time.monotonic()
        self.seconds[name] = now - self._began
        self._began = now


def _cut(node: Node) -> None:
    """Cut the power of a node's host. Raises ProvisionError."""
    node.sql.close()
    node.process = None
    if not isinstance(node.host, Falls):
        raise ProvisionError(f"the host of {node.name} cannot be fenced: nothing here cuts its power")
    node.host.kill()


TOPOLOGY = Drbd
