"""A replication group as its members see it: membership, roles, and executed transactions."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import Connection, SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.servers.variables import same
from pytest_dbcluster.errors import NodeDied, ProvisionError

OVERDUE_SECONDS, STARTING_SECONDS = 3.0, 60.0
ELECTION_SECONDS = 120.0  # until a member must be the primary that we have asked to become it
STARTING = 3724  # error "This option cannot be set while START or STOP GROUP_REPLICATION is ongoing."
PRIMARY, VIEW_ID = "primary", "view_id"  # keys of ``watch``, beside the members' names
MANY = ", "
EXPEL = "group_replication_member_expel_timeout"
ALIVE = ("ONLINE", "RECOVERING")
UNREACHABLE = "UNREACHABLE"  # nothing came from the member for 5 s, and the group may expel it
MEMBERS = "performance_schema.replication_group_members"
STATISTICS = "performance_schema.replication_group_member_stats"
HEALTH = f"""\
SELECT 'member_state', member_state FROM {MEMBERS} WHERE member_id = @@server_uuid UNION ALL
SELECT 'member_role', member_role FROM {MEMBERS} WHERE member_id = @@server_uuid UNION ALL
SELECT 'majority', IF(2 * SUM(member_state IN {ALIVE}) > COUNT(*), 'YES', 'NO') FROM {MEMBERS}"""
VIEW = f"""\
SELECT CONCAT(member_host, ':', member_port), member_state, member_role FROM {MEMBERS}
WHERE member_id <> ''"""
# The statistics have rows only after START GROUP_REPLICATION has returned, a second after the member is online.
NUMBER = f"SELECT MAX(view_id) FROM {STATISTICS}"
QUEUES = f"""\
SELECT member_state, @@global.gtid_executed, count_transactions_in_queue, count_transactions_remote_in_applier_queue
FROM {STATISTICS} JOIN {MEMBERS} USING (member_id) WHERE member_id = @@server_uuid"""
# The last column is NULL on a server without the component.
PULSE = f"""\
SELECT count_transactions_remote_in_applier_queue AS receive_queue, count_transactions_in_queue AS certification_queue,
(SELECT variable_value FROM performance_schema.global_status
WHERE variable_name = 'Gr_flow_control_throttle_time_sum') AS throttled_microseconds
FROM {STATISTICS} WHERE member_id = @@server_uuid"""
CHANNELS = """\
SELECT channel_name FROM performance_schema.replication_applier_configuration
WHERE channel_name IN ('group_replication_applier', 'group_replication_recovery')"""
# In the error log. A server starts again after a clone that succeeded; after another one it goes on incrementally.
INCREMENTAL = "Distributed recovery will transfer data using: Incremental"
CLONED = re.compile("Distributed recovery will transfer data using: Cloning.*starting as process", re.DOTALL)
THROTTLING = "component_group_replication_flow_control_stats"  # in every edition since MySQL 9.7
NO_STATISTICS = f"has no row in {STATISTICS}: it has joined no group since its start"


@dataclasses.dataclass(frozen=True)
class Member:
    """One member as another member sees it."""

    name: str
    """The node's name, or the address of an unknown server."""

    state: str
    """Its state, such as ``ONLINE``."""

    role: str
    """``PRIMARY`` or ``SECONDARY``; empty without a role."""


@dataclasses.dataclass(frozen=True)
class View:
    """The group as one member sees it."""

    seen_by: Node
    """The member that sees this."""

    members: tuple[Member, ...]
    """The members, by name; empty if the node has not joined a group."""

    @property
    def states(self) -> dict[str, str]:
        """The state of each member, by name."""
        return {member.name: member.state for member in self.members}

    @property
    def primaries(self) -> list[str]:
        """The names of the online members that accept writes."""
        return [member.name for member in self.members if (member.state, member.role) == ("ONLINE", "PRIMARY")]

    @property
    def secondaries(self) -> list[str]:
        """The names of the online members that accept only reads."""
        return [member.name for member in self.members if (member.state, member.role) == ("ONLINE", "SECONDARY")]

    @property
    def has_majority(self) -> bool:
        """Whether more than half of the members are alive: only then the group can continue."""
        return 2 * sum(member.state in ALIVE for member in self.members) > len(self.members)


def view(node: Node, nodes: Sequence[Node]) -> View:
    """Return the group as this node sees it; no members if it has not joined. Raises SQLError, NodeDied."""
    names = {f"{peer.host.address}:{peer.port}": peer.name for peer in nodes}
    rows = node.query(VIEW)
    members = [Member(names.get(address, address), state, role) for address, state, role in rows]
    return View(node, tuple(sorted(members, key=lambda member: member.name)))


def number(seen: View) -> str:
    """Return the id of a view; it changes whenever a member joins or leaves. Raises SQLError, NodeDied."""
    return str(seen.seen_by.query(NUMBER)[0][0])


def common_view(nodes: Sequence[Node]) -> View:
    """Return the view of the first node that is online and in the majority. Raises ProvisionError without one."""
    reasons = []
    for node in nodes:
        if not node.running:
            reasons.append(f"{node.name} does not run")
            continue
        try:
            group = view(node, nodes)
        except (SQLError, NodeDied) as error:
            reasons.append(str(error))
            continue
        if group.states.get(node.name) == "ONLINE" and group.has_majority:
            return group
        reasons.append(f"{node.name} sees {group.states or 'no group'}")
    raise ProvisionError(f"no node is in the majority of its group: {'; '.join(reasons)}")


class Start:
    """START GROUP_REPLICATION on one node, in a background thread.

    The member is online a second before the statement returns: the server still waits for the end of a thread.

    - before: statements that the constructor runs first.
    - error: the first error; None without one.
    """

    def __init__(self, node: Node, before: Sequence[str]) -> None:
        self.error: SQLError | None = None
        self._began = math.inf
        # A separate connection: the node's own connection must stay free for queries about progress.
        self._connection = Connection(node.name, node.endpoint, look=node.look)
        self._run(before)

    def begin(self) -> None:
        """Start joining, in a thread; ``error`` has a failure later."""
        self._began = time.monotonic()
        threading.Thread(target=self._join, daemon=True).start()

    @property
    def overdue(self) -> bool:
        """Whether joining takes unusually long; then read the log, because the server retries for a minute."""
        return time.monotonic() - self._began > OVERDUE_SECONDS

    def _join(self) -> None:
        self._run(["START GROUP_REPLICATION"])
        self._began = math.inf

    def _run(self, statements: Sequence[str]) -> None:
        try:
            if not self.error:
                self._connection.run(statements, wait.SLOW_SECONDS)
        except SQLError as error:
            self.error = error


def count_throttling(node: Node) -> None:
    """Let a server that has not joined yet count how long flow control holds its transactions. Raises SQLError.

    The server remembers the component and loads it at each start. It does not write this to the binlog. See
    https://dev.mysql.com/doc/refman/9.7/en/group-replication-flow-control-stats-component.html
    """
    urn = f"file://{THROTTLING}"
    if node.query(f"SELECT 1 FROM mysql.component WHERE component_urn = '{urn}'"):
        return
    node.query("SET GLOBAL super_read_only = OFF")
    try:
        node.query(f"INSTALL COMPONENT '{urn}'")
    finally:
        node.query("SET GLOBAL super_read_only = ON")


def forget_received(node: Node) -> None:
    """After a restart, drop the transactions that a member received and has not applied. Raises SQLError.

    Its group sends them again. The server does not flush its relay log, so it may be unreadable after a power cut. The
    member would then leave its group (sync_relay_log in
    https://dev.mysql.com/doc/refman/9.7/en/replication-options-replica.html).
    """
    for (channel,) in node.query(CHANNELS):
        node.query(f"RESET REPLICA FOR CHANNEL '{channel}'")


def execute(members: Sequence[Node], statement: str) -> None:
    """Run a statement on each member, and retry while START GROUP_REPLICATION runs there.

    Raises SQLError for any other error; NotReady after ``STARTING_SECONDS``.
    """
    waiting = list(members)

    def problems() -> list[str]:
        for member in list(waiting):
            try:
                member.query(statement, wait.SLOW_SECONDS)
            except SQLError as error:
                if error.number != STARTING:
                    raise
                continue
            waiting.remove(member)
        return [f"{member.name} still runs START GROUP_REPLICATION" for member in waiting]

    wait.until(problems, f"members that execute {statement!r}", seconds=STARTING_SECONDS)


@contextlib.contextmanager
def expel_at_once(members: Sequence[Node]) -> Iterator[None]:
    """Let members expel a suspected member at once; by default they wait 5 s and check every 15 s.

    https://dev.mysql.com/doc/refman/9.7/en/group-replication-responses-failure-expel.html
    """
    given = {member: member.query(f"SELECT @@global.{EXPEL}")[0][0] for member in members}
    execute(members, f"SET GLOBAL {EXPEL} = 0")
    try:
        yield
    finally:
        for member, seconds in given.items():
            execute([member], f"SET GLOBAL {EXPEL} = {seconds}")


def elect(new: Node, nodes: Sequence[Node], step: Callable[[str], None], timeout: int | None = None) -> None:
    """Make a member the primary with group_replication_set_as_primary, while clients write.

    step: called once a member in the majority sees the new primary, and once the function has returned. timeout: of
    running transactions, in seconds. Raises SQLError, and NotReady after ELECTION_SECONDS.
    """
    chosen = new.query("SELECT @@server_uuid")[0][0]
    given = "" if timeout is None else f", {timeout}"
    statement = f"SELECT group_replication_set_as_primary('{chosen}'{given})"
    own = Connection(new.name, new.endpoint, look=new.look)  # the control connection stays free for the views
    with wait.threads(1, "dbcluster-election") as threads, contextlib.closing(own):
        electing = threads.submit(own.query, statement, ELECTION_SECONDS)

        def problems() -> list[str]:
            primaries = common_view(nodes).primaries
            if electing.done():
                electing.result()
            return [] if primaries == [new.name] else [f"the primary is {MANY.join(primaries) or 'not known'}"]

        wait.until(problems, f"primary {new.name}", seconds=ELECTION_SECONDS)
        step("elected")
        electing.result()
    step("returned")


def check_applier(node: Node, state: str) -> None:
    """Raise ProvisionError with the applier's error if that error put the member into state ERROR."""
    if state != "ERROR":
        return
    causes = [cause for (cause,) in node.query(node.dialect.replication.worker_errors)]
    if causes:
        raise ProvisionError(
            f"member {node.name} has stopped applying and left its group: {' / '.join(causes)} -- no round on this "
            f"cluster counts. Look for another program that wrote on {node.name}; error log: {node.log}"
        )


def split_gtids(executed: str, names: Sequence[str]) -> tuple[str, str]:
    """Split an executed GTID set into (GTIDs with one of these UUIDs, all others). names: UUIDs in lower case."""
    parts = [part.strip() for part in executed.split(",") if part.strip()]
    ours = [part for part in parts if part.partition(":")[0].lower() in names]
    return ",".join(ours), ",".join(part for part in parts if part not in ours)


def missing_gtids(executed: Mapping[Node, str]) -> dict[Node, str]:
    """Return the GTIDs that a node lacks and another has, only for nodes that lack some. Raises SQLError."""
    if len(set(executed.values())) < 2:
        return {}
    everything = ",".join(filter(None, executed.values()))
    missing = {
        node: node.query(f"SELECT GTID_SUBTRACT('{everything}', '{own}')")[0][0].replace("\n", "")
        for node, own in executed.items()
    }
    return {node: gtids for node, gtids in missing.items() if gtids}


def group_option(node: Node, option: str, default: str = "") -> str:
    """Return the value of a group option in a node's my.cnf, also with the prefix ``loose_``."""
    return node.options.get(option, node.options.get(f"loose_{option}", default))


def multi_primary(node: Node) -> bool:
    """Return whether the node's options ask for a multi-primary group, in which all members accept writes."""
    return same("OFF", group_option(node, "group_replication_single_primary_mode", "ON"))


def member_problems(node: Node, nodes: Sequence[Node]) -> list[str]:
    """Return which members this node does not see online, or which roles are wrong.

    Raises ProvisionError if an error has stopped the applier.
    """
    group = view(node, nodes)
    check_applier(node, group.states.get(node.name, ""))
    problems = [
        f"{node.name} sees {peer.name} as {group.states.get(peer.name, 'not a member')}, wanted ONLINE"
        for peer in nodes
        if group.states.get(peer.name) != "ONLINE"
    ]
    wanted = [peer.name for peer in nodes] if multi_primary(node) else group.primaries[:1] or ["one"]
    if not problems and sorted(group.primaries) != sorted(wanted):
        problems.append(f"{node.name} sees the primaries {group.primaries}, wanted {wanted}")
    read_only = "OFF" if node.name in group.primaries else "ON"
    running = node.query("SELECT IF(@@global.super_read_only, 'ON', 'OFF')")[0][0]
    if not problems and running != read_only:
        problems.append(f"{node.name}: super_read_only is {running!r}, wanted {read_only!r}")
    return problems


def void_reason(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return why a round between two readings of ``watch`` does not count; empty if nothing changed."""
    primaries, states = [reading[PRIMARY] for reading in (before, after)], [_states(before), _states(after)]
    if not states[1]:
        return f"the group no longer exists: {after[VIEW_ID]}"
    reasons = []
    if primaries[0] != primaries[1] and MANY not in primaries[0]:
        reasons.append(f"the primary changed from {primaries[0] or 'none'} to {primaries[1] or 'none'}")
    for name in sorted(states[0].keys() | states[1].keys()):
        was, now = (reading.get(name, "not a member") for reading in states)
        if (was, now) != ("ONLINE", "ONLINE"):
            reasons.append(f"member {name} was {was} before the round and is {now} after it")
    if not reasons and before[VIEW_ID] != after[VIEW_ID]:
        reasons.append(
            f"a member left the group and rejoined: the view changed from {before[VIEW_ID]} to {after[VIEW_ID]}"
        )
    return "; ".join(reasons)


def _states(reading: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in reading.items() if name not in (PRIMARY, VIEW_ID)}
