"""Group Replication: every member certifies each commit; one primary accepts writes, or all members do.

All servers start read-only from one template without transactions, and nobody writes before the group exists. So no
member can have errant transactions. The first node bootstraps the group, then the others join one after another. If two
try to join at once, the group refuses one, which tries again only after 5 s.

``GroupReplication.options`` returns options for a my.cnf, ``before_start`` the statements that precede joining.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.dialects import release_mixes
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.dialects.release_mixes import NodeVersion
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.data_template import plugin_directory
from pytest_dbcluster.clusters.servers.health import Health
from pytest_dbcluster.clusters.servers.node import ADMIN, Node, of_each
from pytest_dbcluster.clusters.servers.variables import same
from pytest_dbcluster.clusters.topologies.group_replication import members
from pytest_dbcluster.clusters.topology import Pulse, Step, Topology
from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.system.tracing.recorder import span

PULSE = {
    "receive_queue": ("receive_queue", 1.0),
    "certification_queue": ("certification_queue", 1.0),
    "flow_control_held": ("throttled_microseconds", 1e-6),
}
PLUGIN = "group_replication.so"
SINGLE = "group_replication_single_primary_mode"
CONSISTENCY = "group_replication_consistency"
EVERYWHERE = "group_replication_enforce_update_everywhere_checks"
APPLIED = ("AFTER", "BEFORE_AND_AFTER")
GROUP_PORT = 33061
TAKEN = "Port already in use"  # XCom's message for "Address already in use"
MAJORITY_NODES = 3  # the smallest group that has a majority without one member
CLONE_THRESHOLD = "group_replication_clone_threshold"  # a member that lacks more transactions clones
JOIN_SECONDS, EVICTED_SECONDS, CLONED_SECONDS = 60.0, 60.0, 300.0
RECOVERY_SECONDS = 300.0  # until a server answers, with the recovery of InnoDB after a crash
POLL = 0.01


class GroupReplication(Topology):
    """The members of one group: single-primary unless the spec sets group_replication_single_primary_mode=OFF."""

    elects_writers = True
    minority_evicts = False
    ways_back = ("incremental", "clone")
    eviction_seconds, return_seconds, busy_return_seconds = 21.0, 12.0, 15.0
    adoption: Mapping[str, object] = {"adoptFromGR": True}

    def __init__(self) -> None:
        self._name = str(uuid.uuid4())
        self._ports: dict[str, int] = {}
        self._starts: dict[str, members.Start] = {}

    def lacks(self, release: Release) -> str:
        """Return why this release cannot run it: the vendor has no Group Replication, or the plugin is missing."""
        if PLUGIN not in dialect(release.product, release.version).plugins:
            return f"{release.name} ({release.source}): {release.product} servers have no Group Replication"
        if not release.has(plugin_directory(release) / PLUGIN):
            return f"{release.name} ({release.source}) has no {PLUGIN} in {plugin_directory(release)}"
        return ""

    def refuses_mix(self, nodes: Sequence[NodeVersion], options: Mapping[str, str]) -> str:
        """Return why these members cannot join one group: one is older than the first, or newer and asked to write."""
        return release_mixes.group(nodes, multi_primary=not self.has_primary(options))

    def has_primary(self, options: Mapping[str, str]) -> bool:
        """Return whether the group is single-primary."""
        return same(options.get(SINGLE, "ON"), "ON")

    def pulse(self, node: Node, nodes: Sequence[Node]) -> Pulse | None:
        """Return the query for this member's queues, and for the time that flow control held its transactions.

        The queues are transactions of other members that it has to apply, and those that it has to certify. The time is
        the sum over all sessions.
        """
        return Pulse(members.PULSE, PULSE)

    def acknowledgement(self, variables: Mapping[str, str], nodes: int) -> str:
        """Return who has a commit when it returns: a majority received it, or with consistency AFTER all applied it."""
        if nodes == 1:
            return "one server"
        applied = variables.get(CONSISTENCY, "") in APPLIED
        return "applied by all members" if applied else "received by a majority of the group"

    def consistency(self, variables: Mapping[str, str]) -> str:
        """Return the consistency level: which statements wait until earlier commits are applied."""
        return f"{CONSISTENCY}={variables.get(CONSISTENCY, '?')}"

    def options(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """Return the options for this node's my.cnf: the plugin, and the server options that the plugin requires."""
        return {
            **node.dialect.replication.every,
            "server_id": str(1 + peers.index(node)),
            "super_read_only": "ON",
            "report_host": node.host.address,
            "report_port": str(node.port),
            "plugin_load_add": PLUGIN,
            "group_replication_group_name": self._name,
            # XCom, which connects the members, listens on every address. This admits only the group's members.
            "group_replication_ip_allowlist": ",".join(dict.fromkeys(peer.host.address for peer in peers)),
            "group_replication_start_on_boot": "OFF",
            "group_replication_recovery_get_public_key": "ON",
        }

    def health(self, node: Node, nodes: Sequence[Node]) -> Health:
        """Return the conditions: online, in the majority, and with the role for reads or for writes."""
        healthy = {"member_state": "ONLINE", "majority": "YES"}
        roles = len(nodes) > 1 and not members.multi_primary(node)
        reader = {**healthy, "member_role": "SECONDARY"} if roles else healthy
        return Health(members.HEALTH, reader, {**healthy, "member_role": "PRIMARY"})

    def form(self, nodes: Sequence[Node]) -> None:
        """Start all servers at once, bootstrap the group on the first node, and let the others join one by one.

        Raises ConfigError, before any server starts, for a user's option that contradicts the topology.
        """
        self._refuse_contradictions(nodes)
        for node in nodes:
            node.start()
        first, *others = nodes
        self._prepare(first, nodes, bootstrap=True).begin()
        joining = [self._prepare(node, nodes) for node in others]
        with span("bootstrap", node=first.name):
            self._wait_for_bootstrap(first)
        for node, start in zip(others, joining, strict=True):
            with span("join", node=node.name):
                start.begin()
                if node is not others[-1]:
                    self._wait_for_member(node, first)

    def _refuse_contradictions(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            for option, needed in self.options(node, nodes).items():
                given = node.options.get(option, needed)
                if not same(needed, given):
                    raise ConfigError(
                        f"option {option}={given} contradicts group_replication: it needs {option}={needed} on every "
                        f"node; remove it from options and my.cnf"
                    )

    def _prepare(
        self, node: Node, nodes: Sequence[Node], *, bootstrap: bool = False, left: bool = False
    ) -> members.Start:
        node.wait_answering(RECOVERY_SECONDS)
        if node.release.has(plugin_directory(node.release) / f"{members.THROTTLING}.so"):
            members.count_throttling(node)
        start = members.Start(node, self.before_start(node, nodes, bootstrap=bootstrap, left=left))
        self._starts[node.name] = start
        return start

    def before_start(self, node: Node, nodes: Sequence[Node], *, bootstrap: bool, left: bool = False) -> list[str]:
        """Return the statements that a server runs before it joins; the binlog gets no trace of them.

        bootstrap: this node bootstraps the group. left: the server still runs, and was a member.
        """
        settings = {
            "group_replication_local_address": self._address(node),
            "group_replication_group_seeds": self._seeds(nodes),
            "group_replication_bootstrap_group": "ON" if bootstrap else "OFF",
        }
        if members.multi_primary(node) and not members.group_option(node, EVERYWHERE):
            settings[EVERYWHERE] = "ON"
        return [
            # An expelled member is in offline mode: it accepts only administrators.
            *(["STOP GROUP_REPLICATION", "SET GLOBAL offline_mode = OFF"] if left else []),
            *(f"SET GLOBAL {name} = '{value}'" for name, value in settings.items()),
            f"CHANGE REPLICATION SOURCE TO SOURCE_USER = '{ADMIN}', SOURCE_PASSWORD = '{node.password}' "
            "FOR CHANNEL 'group_replication_recovery'",
        ]

    def _seeds(self, nodes: Sequence[Node]) -> str:
        return ",".join(map(self._address, nodes))

    def _address(self, node: Node) -> str:
        """Return a member's group address: a separate port, or the server's port for communication stack MYSQL."""
        if members.group_option(node, "group_replication_communication_stack").upper() == "MYSQL":
            return f"{node.host.address}:{node.port}"
        if node.name not in self._ports:
            self._ports[node.name] = node.host.port(GROUP_PORT)
        return f"{node.host.address}:{self._ports[node.name]}"

    def _wait_for_bootstrap(self, node: Node) -> None:
        self._wait_for_member(node, node, ("ONLINE",))
        node.query("SET GLOBAL group_replication_bootstrap_group = OFF")

    def _wait_for_member(self, node: Node, seed: Node, states: Sequence[str] = members.ALIVE) -> None:
        """Wait until ``seed`` sees the node in one of ``states``; then the next can join. Raises ProvisionError."""

        def problems() -> list[str]:
            node.alive()
            self._check_joining(node)
            state = members.view(seed, [node]).states.get(node.name, "no member")
            return [] if state in states else [f"{node.name} is {state}, as {seed.name} sees it"]

        limit = JOIN_SECONDS * node.host.patience
        wait.until(problems, f"member {node.name} of the group", seconds=limit, poll=POLL)

    def _check_joining(self, node: Node) -> None:
        """Raise ProvisionError if a node could not join, or keeps retrying on a port that another program has."""
        start = self._starts.get(node.name)
        if start is None or not (start.error or start.overdue):
            return
        lines = node.last_lines()
        taken = " (Address already in use)" if any(TAKEN in line for line in lines) else ""
        if start.error or taken:
            log = "\n    ".join(lines)
            raise ProvisionError(
                f"node {node.name} could not join its group{taken}: {start.error or 'it keeps retrying'}; the last "
                f"lines of its error log ({node.log}):\n    {log}"
            )

    def how_joined(self, log: str) -> str:
        """Return ``clone`` for a copy of a member, ``incremental`` for the missing transactions from a binlog."""
        incremental, clone = self.ways_back
        if members.CLONED.search(log):
            return clone
        return incremental if members.INCREMENTAL in log else ""

    def counting(self, node: Node, living: Sequence[Node]) -> list[str]:
        """Return the living members whose view still has the lost node; none if they have no majority to expel it."""
        views = {peer.name: members.view(peer, [*living, node]) for peer in living}
        return [
            f"{name} still sees {node.name} as {view.states[node.name]}"
            for name, view in views.items()
            if node.name in view.states and view.has_majority
        ]

    def suspects(self, node: Node, living: Sequence[Node]) -> bool:
        """Whether a living member sees another one as unreachable, which takes 5 s without its messages."""
        views = [members.view(peer, [*living, node]) for peer in living]
        return any(view.states.get(node.name) == members.UNREACHABLE for view in views)

    def rejoin(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start one node again, or let a running node that left the group join again.

        We let the other members expel the node as soon as they suspect it; suspicion takes 5 s. If they have no
        majority without the node, we force them to be the whole group. That is safe because the caller knows that the
        node is dead, not partitioned. If no other node runs, the most advanced one bootstraps the group first.
        """
        living = [peer for peer in nodes if peer is not node and peer.running]
        left = node.running
        if not left:
            self._start(node)
        if not living:
            first = self._most_advanced(node, nodes)
            self._prepare(first, nodes, bootstrap=True, left=left and first is node).begin()
            self._wait_for_bootstrap(first)
            if first is node:
                return
            living = [first]
        self._remove_from_group(node, living, nodes)
        if not left:
            node.wait_answering(RECOVERY_SECONDS)
            members.forget_received(node)
        self._prepare(node, nodes, left=left).begin()

    def refuses_at_once(self, nodes: int) -> str:
        """Return that the living members need a majority to expel the dead one, which then joins again."""
        if nodes >= MAJORITY_NODES:
            return ""
        return f"a group of {quantity(nodes, 'member')} has no majority without it, so it never expels it"

    def restart_at_once(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start the server of a dead member, and let it join.

        The group refuses a member that it still counts. The server tries again until the others have expelled its
        former self. It keeps its port, as a service manager would start it.
        """
        node.start()
        self._prepare(node, nodes).begin()

    def join_by_clone(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start a stopped node, let it clone a member when it joins, and start it again with the copy.

        The server ends after a clone, because no service manager restarts it. A server that joins in another way stays.
        """
        living = [peer for peer in nodes if peer is not node and peer.running]
        self._start(node)
        self._remove_from_group(node, living, nodes)
        node.wait_answering(RECOVERY_SECONDS)
        node.query(f"SET GLOBAL {CLONE_THRESHOLD} = 1")
        self._prepare(node, nodes).begin()

        def problems() -> list[str]:
            online = node.running and members.view(living[0], nodes).states.get(node.name) == "ONLINE"
            return [f"{node.name} is still cloning"] if node.running and not online else []

        wait.until(problems, f"the clone on {node.name}", seconds=CLONED_SECONDS)
        if not node.running:
            node.start()
            self._prepare(node, nodes).begin()

    def _start(self, node: Node) -> None:
        node.start()
        self._use_new_port(node)

    def _most_advanced(self, node: Node, nodes: Sequence[Node]) -> Node:
        """Return a node that has executed all transactions of the others, and let it run; among equal ones ``node``.

        ``node`` runs, the others do not. They start too, because only a running server says what it has executed.
        """
        ended = [peer for peer in nodes if not peer.running and not peer.host.why_lost()]
        for peer in ended:
            self._start(peer)
        for peer in (node, *ended):
            peer.wait_answering(RECOVERY_SECONDS)
        executed = {peer: str(peer.query("SELECT @@global.gtid_executed")[0][0]) for peer in (node, *ended)}
        missing = members.missing_gtids(executed)
        first = next((peer for peer in executed if peer not in missing), node)
        for peer in ended:
            if peer is not first:
                peer.stop()
        return first

    def refuses_roles(self, options: Mapping[str, str]) -> str:
        """Return that all members of a multi-primary group are writers; empty for a group with one primary."""
        return "" if self.has_primary(options) else f"all members write with {SINGLE}={options[SINGLE]}"

    def switch_over(self, new: Node, nodes: Sequence[Node], step: Step, timeout: int | None = None) -> None:
        """Make a member the primary. Raises ProvisionError if the group does not elect it.

        timeout: seconds until the group disconnects clients whose transactions still run; None: it waits for them.
        """
        try:
            members.elect(new, nodes, step, timeout)
        except SQLError as error:
            raise ProvisionError(f"the group did not elect {new.name}: {error}") from error

    def _use_new_port(self, node: Node) -> None:
        # Peers retry the old port of a dead member at growing intervals of seconds, so use a new port.
        if node.name in self._ports:
            self._ports[node.name] = node.host.port(self._ports[node.name] + 1)

    def _remove_from_group(self, node: Node, living: Sequence[Node], nodes: Sequence[Node]) -> None:
        views: dict[str, members.View] = {}

        def problems() -> list[str]:
            views.update({peer.name: members.view(peer, nodes) for peer in living})
            return [
                f"{node.name} is still {view.states[node.name]}, as {name} sees it"
                for name, view in views.items()
                if view.states.get(node.name, "ERROR") not in ("ERROR", "OFFLINE") and view.has_majority
            ]

        members.execute(living, f"SET GLOBAL group_replication_group_seeds = '{self._seeds(nodes)}'")
        if problems():
            with members.expel_at_once(living):
                wait.until(problems, f"the others' view without {node.name}", seconds=EVICTED_SECONDS)
        if not any(view.has_majority for view in views.values()):
            living[0].query(f"SET GLOBAL group_replication_force_members = '{self._seeds(living)}'", wait.SLOW_SECONDS)
            living[0].query("SET GLOBAL group_replication_force_members = ''")

    def problems(self, nodes: Sequence[Node]) -> list[str]:
        """Return nodes that do not answer, members that some member does not see online, and wrong roles.

        Raises NodeDied; ProvisionError if a node could not join or an error has stopped it.
        """
        unanswered = [problem for found in of_each(nodes, Node.problems) for problem in found]
        if unanswered:
            return unanswered
        for node in nodes:
            self._check_joining(node)
        found = of_each(nodes, lambda node: members.member_problems(node, nodes))
        return [problem for problems in found for problem in problems]

    def writers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return the primary, or all online members of a multi-primary group. Raises ProvisionError without one."""
        view = members.common_view(nodes)
        primaries = [node for node in nodes if node.name in view.primaries and node.running]
        if not primaries:
            raise ProvisionError(
                f"no node accepts writes: the group has elected no primary; its members: {view.states}"
            )
        return primaries

    def readers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return the secondaries; without any, the writers. Raises ProvisionError without a group."""
        secondaries = members.common_view(nodes).secondaries
        return [node for node in nodes if node.name in secondaries and node.running] or self.writers(nodes)

    def backlog(self, nodes: Sequence[Node]) -> list[str]:
        """Return members with transactions to certify or apply, and members that lack transactions of others.

        Raises ProvisionError if an error has stopped a member, because it never catches up.
        """
        executed, lines = {}, []
        for node, rows in zip(nodes, of_each(nodes, lambda node: node.query(members.QUEUES)), strict=True):
            if not rows:
                lines.append(f"{node.name} {members.NO_STATISTICS}")
                continue
            state, gtids, certifying, applying = rows[0]
            members.check_applier(node, state)
            executed[node] = members.split_gtids(gtids, self._names(node))[0]
            if int(certifying) + int(applying):
                lines.append(f"{node.name}: {quantity(int(certifying), 'transaction')} to certify, {applying} to apply")
        missing = members.missing_gtids(executed)
        return lines + [f"{node.name} must still apply {gtids}" for node, gtids in missing.items()]

    def violations(self, nodes: Sequence[Node]) -> list[str]:
        """Return errant transactions (from outside the group), and transactions that only some members have."""
        executed = {node: node.query("SELECT @@global.gtid_executed")[0][0] for node in nodes}
        foreign = {node: members.split_gtids(gtids, self._names(node))[1] for node, gtids in executed.items()}
        missing = members.missing_gtids(executed)
        return [
            f"{node.name} has errant transactions, which did not come through the group: {gtids}"
            for node, gtids in foreign.items()
            if gtids
        ] + [f"{node.name} lacks {gtids}, which other members have" for node, gtids in missing.items()]

    def _names(self, node: Node) -> list[str]:
        """Return the UUIDs of the group's own GTIDs."""
        return [self._name, members.group_option(node, "group_replication_view_change_uuid").lower()]

    def watch(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """Return each member's state, the primary and the view id, as a member in the majority sees them.

        Without a majority this has no members, and ``members.VIEW_ID`` has the reason.
        """
        try:
            view = members.common_view(nodes)
            number = members.number(view)
        except (ProvisionError, SQLError) as error:
            return {members.PRIMARY: "", members.VIEW_ID: str(error)}
        ended = {node.name: "not running" for node in nodes if not node.running}
        return {members.PRIMARY: members.MANY.join(view.primaries), members.VIEW_ID: number, **view.states, **ended}

    def void(self, before: Mapping[str, str], after: Mapping[str, str]) -> str:
        """Return why a round does not count: the primary changed, or a member left, rejoined or is not online."""
        return members.void_reason(before, after)
