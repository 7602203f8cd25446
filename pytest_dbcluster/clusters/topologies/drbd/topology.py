"""DRBD: one server on a disk that DRBD replicates, block by block, to the disk of a standby host.

The standby host has no server until it takes over. Both disks begin as copies of one disk, so DRBD copies nothing at
the start. The topology has two options that can change while the server runs: ``drbd_protocol`` and ``drbd_connected``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topologies.drbd.resource import DEVICE, Resource, block_device
from pytest_dbcluster.clusters.topology import Step, Topology
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.host import Falls, Pauses

PROTOCOL, IS_CONNECTED, VERSION = "drbd_protocol", "drbd_connected", "drbd_version"
# Which hosts have a commit when it returns, by protocol.
COMMIT_HOLDERS = {
    "A": "one host, sent towards the standby",
    "B": "one host, received by the standby",
    "C": "on the disks of both hosts",
}
RECOVERY_SECONDS = 300.0


class Drbd(Topology):
    """One server, and a standby host with a copy of its disk."""

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
        """Return why this number of nodes is wrong: DRBD needs two hosts, and one has the server."""
        if nodes == 2:
            return ""
        return f"drbd needs 2 nodes, a server and a standby host with a copy of its disk, not {nodes}: use nodes=2"

    def servers(self, nodes: int) -> int:
        """Return 1: the other host only has the disk."""
        return 1

    def options(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """Return no options: the server does not see the layers below its file system."""
        return {}

    def place(self, source: str, nodes: Sequence[Node], *, durable: bool = False) -> None:
        """Copy the data to the first disk, and that disk, bit by bit, to the second. Raises ProvisionError."""
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
        """Start the server again, also after a restart of its host; attach a standby host again."""
        state = self._resource.state(node.host)
        if state is None:
            self._resource.attach(node.host)
        if self._connected:
            self._resource.connect()  # the other host may have given up the connection
        if node.name != self._serving:
            return
        if state and state.role == "Primary":
            node.start()
        else:
            self._serve(node)

    def problems(self, nodes: Sequence[Node]) -> list[str]:
        """Return why the server does not answer, or why the disks are not as wanted.

        Raises NodeDied, and ProvisionError for a split brain.
        """
        unanswered = [problem for node in nodes for problem in node.problems()]
        return unanswered or self._resource.problems(connected=self._connected)

    @property
    def _connected(self) -> bool:
        return self._now[IS_CONNECTED] == "ON"

    def apply(self, settings: Mapping[str, str], nodes: Sequence[Node]) -> None:
        """Connect or disconnect the disks, and set the protocol; wait for the end of a resync."""
        wanted = {name: settings.get(name, values[0]) for name, values in self.settings.items()}
        self._now = wanted
        if self._connected:
            self._resource.wait_for_resync()
            self._resource.use_protocol(wanted[PROTOCOL])
        else:
            self._resource.disconnect(nodes[0].host)

    def facts(self) -> Mapping[str, str]:
        """Return the current settings, and the version of DRBD."""
        return {**self._now, VERSION: self._resource.version}

    def backlog(self, nodes: Sequence[Node]) -> list[str]:
        """Return what the standby still has to write; nothing while the disks are disconnected."""
        return self._resource.backlog() if self._connected else []

    def watch(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """Return connection, roles and disks as each host sees them, and the number of their changes."""
        return self._resource.readings()

    def void(self, before: Mapping[str, str], after: Mapping[str, str]) -> str:
        """Return why a round does not count: connection or disks changed, even for a short time."""
        return "; ".join(
            f"{name} changed from {before.get(name, 'unknown')!r} to {after.get(name, 'unknown')!r}"
            for name in sorted(before.keys() | after.keys())
            if before.get(name) != after.get(name)
        )

    def acknowledgement(self, variables: Mapping[str, str], nodes: int) -> str:
        """Return which hosts have a commit when it returns, and the version of DRBD if it runs."""
        drbd = " ".join(filter(None, ["DRBD", variables.get(VERSION, "")]))
        if variables.get(IS_CONNECTED, "ON") != "ON":
            return f"one host, {drbd} disconnected"
        protocol = variables.get(PROTOCOL, "C")
        return f"{COMMIT_HOLDERS[protocol]}, {drbd} protocol {protocol}"

    def refuses_failover(self, options: Mapping[str, str]) -> str:
        """Return that the standby of disconnected disks is out of date."""
        if options.get(IS_CONNECTED, "ON").upper() not in ("OFF", "0"):
            return ""
        return f"with {IS_CONNECTED}=OFF the standby is out of date, and may not take over"

    def fail_over(self, nodes: Sequence[Node], step: Step = lambda name: None) -> None:
        """End the host of the server, and start the server on the other host. nodes: all nodes of the cluster.

        We fence the old host, then let the standby write. We freeze it at once and cut its power later; ``rejoin``
        brings it back. Raises ProvisionError if the standby's data is out of date, also with the old host fenced.
        """
        (old,) = self.serving(nodes)
        (new,) = [node for node in nodes if node is not old]
        if frozen := isinstance(old.host, Pauses):
            old.host.pause()
        else:
            _cut(old)
        step("fenced")
        try:
            with contextlib.suppress(ProvisionError):  # the standby may have disconnected already
                self._resource.leave_peer(new.host)
            self._resource.promote(new.host)
            step("promoted")
            block_device(new.host).mount(DEVICE)
            step("mounted")
            self._serving = new.name
            new.start()
            new.wait_answering(RECOVERY_SECONDS)
            step("answers")
        finally:
            if frozen:
                _cut(old)


def _cut(node: Node) -> None:
    """Cut the power of a node's host. Raises ProvisionError."""
    node.sql.close()
    node.process = None
    if not isinstance(node.host, Falls):
        raise ProvisionError(f"cannot fence the host of {node.name}: its provisioner cannot cut its power")
    node.host.kill()


TOPOLOGY = Drbd
