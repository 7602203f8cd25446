"""Galera: every node takes writes, each commit is certified on all of them.

All nodes start from one template together with a gvwstate.dat that names them all, so that the primary
component is restored at once, without a bootstrap and without a state transfer. The file serves only the
first start of all: a node that comes back later finds its peers through the cluster address.
"""

from __future__ import annotations

import re
import secrets
import uuid
from collections.abc import Mapping, Sequence

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.health import Health
from pytest_dbcluster.clusters.servers.node import ADMIN, Node
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import NodeDied
from pytest_dbcluster.releases.release import Release

STATE_OPTIONS = "wsrep_provider_options"
EVICTED_SECONDS = 60.0
USUAL_PORTS = (4567, 4568, 4444)  # of the group, of incremental transfers, of snapshots
# A server that accepts connections may still be a donor, a joiner or outside of the primary component.
SYNCED: Mapping[str, str] = {
    "wsrep_ready": "ON",
    "wsrep_cluster_status": "Primary",
    "wsrep_local_state_comment": "Synced",
}


class Galera(Topology):
    """N nodes of one primary component."""

    def __init__(self) -> None:
        self._name = f"dbcluster_{secrets.token_hex(6)}"
        self._ports: dict[str, tuple[int, int, int]] = {}

    def lacks(self, release: Release) -> str:
        """Why a release cannot do it: the Galera library is missing."""
        if release.wsrep_provider is None:
            return f"{release.name} ({release.source}) has no Galera library (libgalera_smm.so)"
        return ""

    def acknowledged(self, variables: Mapping[str, str], nodes: int) -> str:
        """A commit returns when it is certified; the others have received it and may still apply it."""
        return "certified on all nodes" if nodes > 1 else "one server"

    def consistency(self, variables: Mapping[str, str]) -> str:
        """Which statements wait until the node has applied what was committed before them."""
        return f"wsrep_sync_wait={variables.get('wsrep_sync_wait', '?')}"

    def options(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """The node's name, addresses and ports in the group."""
        group, transfer, snapshot = self._ports_of(node)
        members = ",".join(f"{peer.host.address}:{self._ports_of(peer)[0]}" for peer in peers)
        address = node.host.address
        return {
            "wsrep_on": "ON",
            "wsrep_provider": str(node.release.wsrep_provider),
            "wsrep_cluster_name": self._name,
            "wsrep_cluster_address": f"gcomm://{members}",
            "wsrep_node_name": node.name,
            "wsrep_node_address": address,
            STATE_OPTIONS: f"base_port={group};gmcast.listen_addr=tcp://{address}:{group};"
            f"ist.recv_addr={address}:{transfer}",
            # rsync, the default, cannot read a private directory when the server was started by root
            "wsrep_sst_method": "mariabackup",
            "wsrep_sst_auth": f"{ADMIN}:{node.password}",
            "wsrep_sst_receive_address": f"{address}:{snapshot}",
        }

    def _ports_of(self, node: Node) -> tuple[int, int, int]:
        if node.name not in self._ports:
            group, transfer, snapshot = USUAL_PORTS
            host = node.host
            self._ports[node.name] = (host.port(group), host.port(transfer), host.port(snapshot))
        return self._ports[node.name]

    def form(self, nodes: Sequence[Node]) -> None:
        """Start all nodes as members of one primary component that is restored, not bootstrapped."""
        if len(nodes) == 1:  # a primary component of one cannot be restored from a file: the server aborts
            nodes[0].start("--wsrep-new-cluster")
            return
        members = {
            node.name: uuid.uuid1(node=secrets.randbits(48) | 1 << 40, clock_seq=n) for n, node in enumerate(nodes)
        }
        for node in nodes:
            text = component_state(members[node.name], list(members.values()))
            node.host.push(text.encode(), f"{node.data}/gvwstate.dat")
        for node in nodes:
            node.start()

    def rejoin(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start one node again from where its data ends; one without data is sent all of it.

        Waits until the others have seen it go. When they are no majority without it, they are told to be the
        primary component, because the one who calls this knows that the node is dead and not cut off.
        """
        node.host.run(["rm", "-f", f"{node.data}/gvwstate.dat"])
        living = [peer for peer in nodes if peer is not node and peer.running]
        position = recovered_position(node)
        if not living:
            _mark_bootstrap(node)
            node.start("--wsrep-new-cluster", *position)
            return
        wait.until(lambda: _not_noticed(living), f"the others' view without {node.name}", seconds=EVICTED_SECONDS)
        if all(peer.status("wsrep_cluster_status")["wsrep_cluster_status"] != "Primary" for peer in living):
            _become_primary(living[0])
        node.start(*position)

    def problems(self, nodes: Sequence[Node]) -> list[str]:
        """What each node lacks of: wsrep_ready, Synced, Primary, and seeing every other node."""
        found: list[str] = []
        for node in nodes:
            try:
                unanswered = node.problems()
            except NodeDied as died:
                raise died from None
            found += unanswered or self._unsettled(node, len(nodes))
        return found

    def _unsettled(self, node: Node, size: int) -> list[str]:
        status = node.status("wsrep%")
        wanted = {**SYNCED, "wsrep_cluster_size": str(size)}
        return [
            f"{node.name}: {name} is {status.get(name)!r}, wanted {value!r}"
            for name, value in wanted.items()
            if status.get(name) != value
        ]

    def health(self, node: Node, nodes: Sequence[Node]) -> Health:
        """The same for reads and writes: ready, Primary and Synced."""
        names = ", ".join(f"'{name}'" for name in SYNCED)
        return Health(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})", reader=SYNCED, writer=SYNCED)

    def backlog(self, nodes: Sequence[Node]) -> list[str]:
        """Receive queues that are not empty, and nodes that have not committed what others have."""
        statuses = {node.name: node.status("wsrep_l%") for node in nodes}
        queues = [
            f"{name}: wsrep_local_recv_queue is {status['wsrep_local_recv_queue']}"
            for name, status in statuses.items()
            if status["wsrep_local_recv_queue"] != "0"
        ]
        committed = {name: status["wsrep_last_committed"] for name, status in statuses.items()}
        return queues + ([f"wsrep_last_committed differs: {committed}"] if len(set(committed.values())) > 1 else [])


def component_state(mine: uuid.UUID, members: Sequence[uuid.UUID]) -> str:
    """A gvwstate.dat: this node's id and the view of which it was a member (Galera's pc.recovery)."""
    lines = [f"my_uuid: {mine}", "#vwbeg", f"view_id: 3 {min(members, key=str)} 1", "bootstrap: 0"]
    lines += [f"member: {member} 0" for member in sorted(members, key=str)]
    return "\n".join([*lines, "#vwend", ""])


def recovered_position(node: Node) -> list[str]:
    """The argument that says where the node's data ends, read by a server that only recovers; [] without data.

    grastate.dat has no position after a crash, and a joiner without one is sent everything (SST).
    """
    try:
        node.host.pull(f"{node.data}/grastate.dat")
    except FileNotFoundError:
        return []
    log = f"{node.host.directory}/recover.log"
    node.host.run(["rm", "-f", log])
    node.host.run([*node.command, "--wsrep-recover", f"--log-error={log}"])
    found = re.findall(r"WSREP: Recovered position: *(\S+:-?\d+)", node.host.pull(log).decode("utf-8", "replace"))
    return [f"--wsrep-start-position={found[-1]}"] if found else []


def _mark_bootstrap(node: Node) -> None:
    """Say in grastate.dat that this node may begin the group: without it a crashed one refuses."""
    path = f"{node.data}/grastate.dat"
    state = node.host.pull(path).decode()
    node.host.push(state.replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1").encode(), path)


def _become_primary(node: Node) -> None:
    """Where each provider option is a variable of its own, as in MariaDB 11.8, the list of all is read-only."""
    own = "wsrep_provider_pc_bootstrap"
    separate = node.pairs(f"SHOW GLOBAL VARIABLES LIKE '{own}'")
    node.query(f"SET GLOBAL {own} = ON" if separate else f"SET GLOBAL {STATE_OPTIONS} = 'pc.bootstrap=YES'")


def _not_noticed(living: Sequence[Node]) -> list[str]:
    sizes = {peer.name: peer.status("wsrep_cluster_size")["wsrep_cluster_size"] for peer in living}
    return [f"{name} still sees {size} nodes" for name, size in sizes.items() if int(size) > len(living)]


TOPOLOGY = Galera
