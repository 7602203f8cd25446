"""Galera: every node accepts writes, and all nodes certify each commit.

``Galera.options`` returns the options that Galera adds to a node's my.cnf; ``servers.node.Node.configure`` writes it.

All nodes start from one template and a gvwstate.dat that lists all nodes. With this file Galera restores the primary
component at once, without a bootstrap and without a state transfer. Only the first start uses the file. At a later
start, a node finds its peers through ``wsrep_cluster_address``. Two timers of the group communication are shorter until
the cluster is ready (``FORMING``).
"""

from __future__ import annotations

import re
import secrets
import uuid
from collections.abc import Mapping, Sequence

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.dialects import release_mixes
from pytest_dbcluster.clusters.dialects.dialect import GaleraDialect
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.dialects.release_mixes import NodeVersion
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.galera_options import variable_of
from pytest_dbcluster.clusters.servers.health import Health
from pytest_dbcluster.clusters.servers.node import ADMIN, Node, of_each
from pytest_dbcluster.clusters.servers.path_options import provider_pairs
from pytest_dbcluster.clusters.topology import Pulse, Topology
from pytest_dbcluster.releases import catalogue
from pytest_dbcluster.releases.release import Release

PULSE = {
    "flow_control_paused": ("wsrep_flow_control_paused_ns", 1e-9),
    "receive_queue": ("wsrep_local_recv_queue", 1.0),
}
STATE_OPTIONS = "wsrep_provider_options"
VIEW = "wsrep_cluster_conf_id"
RECOVERY_SECONDS = 300.0  # for the recovery of InnoDB after a crash, which may have GiB to read
EVICTED_SECONDS, BOOTSTRAP_SECONDS = 60.0, 120.0
# Nodes that start together wait for messages of the group communication, which repeats them after these times. Three
# nodes were ready after 3.9 s with the usual values, and after 1.8 s with these (medians of 7, alternating).
# https://galeracluster.com/library/documentation/galera-parameters.html
KEEPALIVE, FOLLOWS = "evs.keepalive_period", "evs.causal_keepalive_period"  # the default of the second is the first
FORMING: Mapping[str, str] = {"evs.join_retrans_period": "PT0.2S", KEEPALIVE: "PT0.2S"}
# Galera accepts a keepalive below a third of it. With a short one during the start alone, a my.cnf
# that the server refuses would be noticed only when a node starts again.
SUSPECT = "evs.suspect_timeout"
USUAL_PERIOD, USUAL_SECONDS = "PT1S", "1"  # the usual value of both
USUAL_PORTS = (4567, 4568, 4444)  # group communication, incremental state transfer (IST), full state transfer (SST)
# A node is ready with these values. A server that accepts connections may still be a donor, a joiner, or outside the
# primary component.
SYNCED: Mapping[str, str] = {
    "wsrep_ready": "ON",
    "wsrep_cluster_status": "Primary",
    "wsrep_local_state_comment": "Synced",
}


class Galera(Topology):
    """Nodes of one primary component; any number of nodes."""

    elects_writers = True
    donor: Mapping[str, str] = {"wsrep_local_state_comment": "Donor/Desynced"}
    ways_back = ("IST", "SST")
    eviction_seconds, return_seconds, busy_return_seconds = 6.0, 8.0, 20.0

    def __init__(self) -> None:
        self._name = f"dbcluster_{secrets.token_hex(6)}"
        self._ports: dict[str, tuple[int, int, int]] = {}

    def lacks(self, release: Release) -> str:
        """Return why this release cannot run Galera: its library or programs of its state transfers are missing."""
        if release.wsrep_provider is None:
            return f"{release.name} ({release.source}) has no Galera library (libgalera_smm.so)"
        if dialect(release.product, release.version).galera is None:
            return f"{release.name} ({release.source}): we cannot set up the state transfers of {release.product}"
        if (lacking := release.lacks_for_transfers) and not release.transfer_tools:
            return (
                f"{release.name} ({release.source}) lacks {', '.join(lacking)} for full state transfers (SST); "
                f"`dbcluster fetch {release.product}:{release.series}` gets them into the cache, which containers mount"
            )
        return ""

    def remark(self, release: Release, options: Mapping[str, str]) -> str:
        """Return the vendor's options that we set and the user does not, such as that traffic is not encrypted."""
        words = dialect(release.product, release.version).galera
        ours = [f"{name}={value}" for name, value in words.preset.items() if name not in options] if words else []
        untried = " is untried, and its" if release.product in catalogue.UNTRIED else ":"
        return f"galera on {release.name}{untried} nodes start with {', '.join(ours)}" if ours else ""

    def refuses_mix(self, nodes: Sequence[NodeVersion], options: Mapping[str, str]) -> str:
        """Return why these versions cannot be one cluster: they are of different products."""
        return release_mixes.galera(nodes)

    def mix_remark(self, nodes: Sequence[NodeVersion]) -> str:
        """Return that the vendor does not validate these versions together, if a series lies between them."""
        return release_mixes.galera_remark(nodes)

    def acknowledgement(self, variables: Mapping[str, str], nodes: int) -> str:
        """Return that all nodes have certified a commit when it returns; other nodes may still apply it."""
        return "certified on all nodes" if nodes > 1 else "one server"

    def consistency(self, variables: Mapping[str, str]) -> str:
        """Return wsrep_sync_wait: which statements wait until the node has applied all earlier commits."""
        return f"wsrep_sync_wait={variables.get('wsrep_sync_wait', '?')}"

    def options(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """Return the options that Galera adds to this node's my.cnf: provider, group, addresses, ports, SST account.

        The final my.cnf also has the options of ``Node.configure``, and the user's options over these.
        """
        group, transfer, snapshot = self._ports_of(node)
        members = ",".join(f"{peer.host.address}:{self._ports_of(peer)[0]}" for peer in peers)
        address, words = node.host.address, _words(node)
        return {
            **words.every,
            **words.preset,
            "wsrep_provider": str(node.release.wsrep_provider),
            "wsrep_cluster_name": self._name,
            "wsrep_cluster_address": f"gcomm://{members}",
            "wsrep_node_name": node.name,
            "wsrep_node_address": address,
            STATE_OPTIONS: f"base_port={group};gmcast.listen_addr=tcp://{address}:{group};"
            f"ist.recv_addr={address}:{transfer}",
            "wsrep_sst_method": words.transfer,
            **({"wsrep_sst_auth": f"{ADMIN}:{node.password}"} if words.has_account else {}),
            "wsrep_sst_receive_address": f"{address}:{snapshot}",
        }

    def _ports_of(self, node: Node) -> tuple[int, int, int]:
        if node.name not in self._ports:
            group, transfer, snapshot = USUAL_PORTS
            host = node.host
            self._ports[node.name] = (host.port(group), host.port(transfer), host.port(snapshot))
        return self._ports[node.name]

    def form(self, nodes: Sequence[Node]) -> None:
        """Start all nodes with a gvwstate.dat, so that they restore one primary component; bootstrap a single node."""
        if len(nodes) == 1:  # the server aborts if gvwstate.dat lists only one node
            nodes[0].start("--wsrep-new-cluster")
            return
        members = {
            node.name: uuid.uuid1(node=secrets.randbits(48) | 1 << 40, clock_seq=n) for n, node in enumerate(nodes)
        }
        for node in nodes:
            text = component_state(members[node.name], list(members.values()))
            node.host.push(text.encode(), f"{node.data}/gvwstate.dat")
        for node in nodes:
            periods = "".join(f";{name}={FORMING[name]}" for name in _forming_options(node))
            given = f"--wsrep-provider-options={node.options.get(STATE_OPTIONS, '')}{periods}"
            node.start(*([given] if periods else []))

    def after_forming(self, nodes: Sequence[Node]) -> None:
        """Set the timers of ``FORMING`` to their usual values."""
        if len(nodes) > 1:
            of_each(nodes, _restore_periods)

    def rejoin(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start one node again from the position of its data; a node without data gets a full state transfer.

        This waits until the other nodes no longer see this node. If they have no majority without it, this makes them
        the primary component. That is safe because the caller knows that the node is dead, not partitioned. If no node
        runs, the most advanced one bootstraps the group first. A node that runs by then stays as it is.

        Raises NotReady if the others still see the node after ``EVICTED_SECONDS``.
        """
        if node.running:
            return
        living = [peer for peer in nodes if peer is not node and peer.running]
        if not living:
            first = _bootstrap([node, *(peer for peer in nodes if peer is not node and not peer.host.why_lost())])
            if first is node:
                return
            wait.until(lambda: self.problems([first]), f"{first.name} as a group of one", seconds=BOOTSTRAP_SECONDS)
            living = [first]
        _forget_view(node)
        position = recover_position(node)
        wait.until(lambda: _view_problems(living), f"the others' view without {node.name}", seconds=EVICTED_SECONDS)
        if all(peer.status("wsrep_cluster_status")["wsrep_cluster_status"] != "Primary" for peer in living):
            _become_primary(living[0])
        node.start(*position)

    def refuses_at_once(self, nodes: int) -> str:
        """Return nothing: a component of any size can have it back."""
        return ""

    def restart_at_once(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start one node again while the others may still count it.

        It keeps its gvwstate.dat, as after a crash. Without this file, a pair would not become a component.
        """
        node.start(*recover_position(node))

    def counting(self, node: Node, living: Sequence[Node]) -> list[str]:
        """Return the living nodes whose component still has the lost node."""
        return _view_problems(living)

    def how_joined(self, log: str) -> str:
        """Return ``SST`` for a full state transfer, ``IST`` for an incremental one, empty if nothing was missing.

        MariaDB logs that an SST was received for an IST too, so its other lines count.
        """
        ist, sst = self.ways_back
        if "Proceeding with SST" in log:
            return sst
        return ist if re.search(r"Receiving IST: *[1-9]", log) else ""

    def problems(self, nodes: Sequence[Node]) -> list[str]:
        """Return the wrong status variables of each node: not as in ``SYNCED``, or another cluster size."""
        found = of_each(nodes, lambda node: self._node_problems(node, len(nodes)))
        return [problem for problems in found for problem in problems]

    def _node_problems(self, node: Node, size: int) -> list[str]:
        node.alive()
        wanted = {**SYNCED, "wsrep_cluster_size": str(size)}
        names = ", ".join(f"'{name}'" for name in wanted)
        try:
            status = node.sql.pairs(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})")
        except SQLError as error:
            return [f"{node.name}: {error}"]
        return [
            f"{node.name}: {name} is {status.get(name)!r}, wanted {value!r}"
            for name, value in wanted.items()
            if status.get(name) != value
        ]

    def pulse(self, node: Node, nodes: Sequence[Node]) -> Pulse | None:
        """Return the query for the time that flow control paused the node, and for its receive queue's length."""
        names = ", ".join(f"'{name}'" for name, _ in PULSE.values())
        return Pulse(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})", PULSE)

    def health(self, node: Node, nodes: Sequence[Node]) -> Health:
        """Return the same conditions for reads and writes: wsrep_ready, Primary and Synced."""
        names = ", ".join(f"'{name}'" for name in SYNCED)
        return Health(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({names})", reader=SYNCED, writer=SYNCED)

    def backlog(self, nodes: Sequence[Node]) -> list[str]:
        """Return the nodes whose receive queue is not empty, and differences in wsrep_last_committed."""
        found = of_each(nodes, lambda node: node.status("wsrep_l%"))
        statuses = dict(zip((node.name for node in nodes), found, strict=True))
        queues = [
            f"{name}: wsrep_local_recv_queue is {status['wsrep_local_recv_queue']}"
            for name, status in statuses.items()
            if status["wsrep_local_recv_queue"] != "0"
        ]
        committed = {name: status["wsrep_last_committed"] for name, status in statuses.items()}
        return queues + ([f"wsrep_last_committed differs: {committed}"] if len(set(committed.values())) > 1 else [])

    def watch(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """Return the number of the view, which all members have in common."""
        return {VIEW: nodes[0].status(VIEW).get(VIEW, "")}

    def void(self, before: Mapping[str, str], after: Mapping[str, str]) -> str:
        """Return why a round does not count: a node left or joined, so the view changed."""
        if before[VIEW] == after[VIEW]:
            return ""
        return f"a member left the group and rejoined: the view changed from {before[VIEW]} to {after[VIEW]}"


def component_state(mine: uuid.UUID, members: Sequence[uuid.UUID]) -> str:
    """Return the text of a gvwstate.dat (Galera's pc.recovery): ``mine``, this node's id, and its last view."""
    lines = [f"my_uuid: {mine}", "#vwbeg", f"view_id: 3 {min(members, key=str)} 1", "bootstrap: 0"]
    lines += [f"member: {member} 0" for member in sorted(members, key=str)]
    return "\n".join([*lines, "#vwend", ""])


def recover_position(node: Node) -> list[str]:
    """Return ``--wsrep-start-position=...`` for the node's data; [] without data or without a position.

    The server finds the position with --wsrep-recover. After a crash grastate.dat has no position, and a joiner without
    a position gets a full state transfer (SST).
    """
    try:
        node.host.pull(f"{node.data}/grastate.dat")
    except FileNotFoundError:
        return []
    log = f"{node.host.directory}/recover.log"
    node.host.run(["rm", "-f", log])
    recover = [*node.command, "--wsrep-recover", f"--log-error={log}", *_words(node).position]
    node.host.run(recover, seconds=RECOVERY_SECONDS * node.host.patience)
    positions = re.findall(r"Recovered position: *(\S+:-?\d+)", node.host.pull(log).decode("utf-8", "replace"))
    return [f"--wsrep-start-position={positions[-1]}"] if positions else []


def _words(node: Node) -> GaleraDialect:
    words = node.dialect.galera
    assert words, "`lacks` refuses other servers"
    return words


def _bootstrap(nodes: Sequence[Node]) -> Node:
    """Start a new group on the node with the most transactions, and return the node; among equal ones the first.

    No node runs. Starting another one would lose the transactions that only the most advanced one has.
    """
    with wait.threads(len(nodes)) as recovering:
        positions = list(recovering.map(recover_position, nodes))
    first, position = max(zip(nodes, positions, strict=True), key=lambda found: _sequence_number(found[1]))
    _forget_view(first)
    _mark_bootstrap(first)
    first.start("--wsrep-new-cluster", *position)
    return first


def _sequence_number(position: Sequence[str]) -> int:
    """The number of the last transaction in the answer of ``recover_position``; -1 without one."""
    return int(position[0].rpartition(":")[2]) if position else -1


def _forget_view(node: Node) -> None:
    """Remove the last view of the group: with it, a node waits for the members of that view."""
    node.host.run(["rm", "-f", f"{node.data}/gvwstate.dat"])


def _mark_bootstrap(node: Node) -> None:
    """Set safe_to_bootstrap in grastate.dat: without it a node refuses to bootstrap the group after a crash."""
    path = f"{node.data}/grastate.dat"
    state = node.host.pull(path).decode()
    node.host.push(state.replace("safe_to_bootstrap: 0", "safe_to_bootstrap: 1").encode(), path)


def _forming_options(node: Node) -> list[str]:
    """The options of FORMING that the node's my.cnf neither sets nor bounds."""
    return [name for name in FORMING if _is_unset(node, name) and (name != KEEPALIVE or _is_unset(node, SUSPECT))]


def _is_unset(node: Node, option: str) -> bool:
    """Whether the node's my.cnf does not set a provider option, in the list or as a separate variable."""
    listed = provider_pairs(node.options.get(STATE_OPTIONS, ""))
    return option not in listed and variable_of(option) not in node.options


def _set(node: Node, option: str, value: str, *, separate: str) -> None:
    """Set a provider option of a running node. separate: the value in SQL of a separate variable.

    If each provider option is a separate variable, as in MariaDB 11.8, wsrep_provider_options is read-only.
    """
    variable = variable_of(option)
    if node.pairs(f"SHOW GLOBAL VARIABLES LIKE '{variable}'"):
        node.query(f"SET GLOBAL {variable} = {separate}")
    else:
        node.query(f"SET GLOBAL {STATE_OPTIONS} = '{option}={value}'")


def _restore_periods(node: Node) -> None:
    short = _forming_options(node)
    also = [FOLLOWS] if KEEPALIVE in short and _is_unset(node, FOLLOWS) else []
    for option in (*short, *also):
        _set(node, option, USUAL_PERIOD, separate=USUAL_SECONDS)


def _become_primary(node: Node) -> None:
    """Set pc.bootstrap, which makes the living nodes the primary component."""
    _set(node, "pc.bootstrap", "YES", separate="ON")


def _view_problems(living: Sequence[Node]) -> list[str]:
    sizes = {peer.name: peer.status("wsrep_cluster_size")["wsrep_cluster_size"] for peer in living}
    return [f"{name} still sees {size} nodes" for name, size in sizes.items() if int(size) > len(living)]


TOPOLOGY = Galera
