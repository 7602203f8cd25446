"""A replication group as its members see it: who is in, who takes writes, what each has executed."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import Connection, SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.servers.options import same
from pytest_dbcluster.errors import NodeDied, ProvisionError

OVERDUE_SECONDS, STARTING_SECONDS = 3.0, 60.0
STARTING = 3724  # "This option cannot be set while START or STOP GROUP_REPLICATION is ongoing."
PRIMARY, VIEW_ID = "primary", "view_id"  # what a watch holds beside the members
MANY = ", "
EXPEL = "group_replication_member_expel_timeout"
ALIVE = ("ONLINE", "RECOVERING")
MEMBERS = "performance_schema.replication_group_members"
STATISTICS = "performance_schema.replication_group_member_stats"
HEALTH = f"""\
SELECT 'member_state', member_state FROM {MEMBERS} WHERE member_id = @@server_uuid UNION ALL
SELECT 'member_role', member_role FROM {MEMBERS} WHERE member_id = @@server_uuid UNION ALL
SELECT 'majority', IF(2 * SUM(member_state IN {ALIVE}) > COUNT(*), 'YES', 'NO') FROM {MEMBERS}"""
VIEW = f"""\
SELECT CONCAT(member_host, ':', member_port), member_state, member_role FROM {MEMBERS}
WHERE member_id <> ''"""
# The statistics answer only after START GROUP_REPLICATION has returned, a second after the member is online.
NUMBER = f"SELECT MAX(view_id) FROM {STATISTICS}"
QUEUES = f"""\
SELECT member_state, @@global.gtid_executed, count_transactions_in_queue, count_transactions_remote_in_applier_queue
FROM {STATISTICS} JOIN {MEMBERS} USING (member_id) WHERE member_id = @@server_uuid"""
NO_STATISTICS = f"has no row in {STATISTICS}: it is in no group since it was started"


@dataclasses.dataclass(frozen=True)
class Member:
    """One member as another one sees it; ``name`` is its node's, its address for a stranger."""

    name: str
    state: str
    role: str


@dataclasses.dataclass(frozen=True)
class View:
    """The group as one member, ``seen_by``, sees it."""

    seen_by: Node
    members: tuple[Member, ...]

    @property
    def states(self) -> dict[str, str]:
        """The state of each member."""
        return {member.name: member.state for member in self.members}

    @property
    def primaries(self) -> list[str]:
        """Those that take writes."""
        return [member.name for member in self.members if (member.state, member.role) == ("ONLINE", "PRIMARY")]

    @property
    def secondaries(self) -> list[str]:
        """Those that take reads only."""
        return [member.name for member in self.members if (member.state, member.role) == ("ONLINE", "SECONDARY")]

    @property
    def has_majority(self) -> bool:
        """Whether so many members are alive that the group can go on."""
        return 2 * sum(member.state in ALIVE for member in self.members) > len(self.members)


def view(node: Node, nodes: Sequence[Node]) -> View:
    """The group as this node sees it; without members where it has not joined. Raises SQLError, NodeDied."""
    names = {f"{peer.host.address}:{peer.port}": peer.name for peer in nodes}
    rows = node.query(VIEW)
    members = [Member(names.get(address, address), state, role) for address, state, role in rows]
    return View(node, tuple(sorted(members, key=lambda member: member.name)))


def number(seen: View) -> str:
    """The number of a view, another one whenever somebody has joined or left. Raises SQLError, NodeDied."""
    return str(seen.seen_by.query(NUMBER)[0][0])


def common_view(nodes: Sequence[Node]) -> View:
    """The group as the first node sees it that lives in its majority. Raises ProvisionError when none does."""
    seen = []
    for node in nodes:
        if not node.running:
            seen.append(f"{node.name} does not run")
            continue
        try:
            found = view(node, nodes)
        except (SQLError, NodeDied) as error:
            seen.append(str(error))
            continue
        if found.states.get(node.name) == "ONLINE" and found.has_majority:
            return found
        seen.append(f"{node.name} sees {found.states or 'no group'}")
    raise ProvisionError(f"no node is in the majority of its group: {'; '.join(seen)}")


class Start:
    """START GROUP_REPLICATION on one node, while the caller goes on.

    The member is online a second before the statement returns: the server then only waits for a thread to end.
    """

    def __init__(self, node: Node, before: Sequence[str]) -> None:
        self.error: SQLError | None = None
        self._began = math.inf
        # A connection of its own: the node's is needed to see how far it is.
        self._connection = Connection(node.name, node.endpoint)
        self._run(before)

    def begin(self) -> None:
        """Let the node join. What goes wrong is ``error`` afterwards."""
        self._began = time.monotonic()
        threading.Thread(target=self._join, daemon=True).start()

    @property
    def overdue(self) -> bool:
        """Whether it takes so long that the server's log should be asked: it tries in vain for a minute."""
        return time.monotonic() - self._began > OVERDUE_SECONDS

    def _join(self) -> None:
        self._run(["START GROUP_REPLICATION"])
        self._began = math.inf

    def _run(self, statements: Sequence[str]) -> None:
        try:
            if not self.error:
                self._connection.run(statements)
        except SQLError as error:
            self.error = error


def tell(members: Sequence[Node], statement: str) -> None:
    """Have each member execute what it refuses until its START GROUP_REPLICATION has returned. Raises SQLError."""
    waiting = list(members)

    def problems() -> list[str]:
        for member in list(waiting):
            try:
                member.query(statement)
            except SQLError as error:
                if error.number != STARTING:
                    raise
                continue
            waiting.remove(member)
        return [f"{member.name} is still at START GROUP_REPLICATION" for member in waiting]

    wait.until(problems, f"members that execute {statement!r}", seconds=STARTING_SECONDS)


@contextlib.contextmanager
def expelling_at_once(members: Sequence[Node]) -> Iterator[None]:
    """Let these members expel whom they suspect; by default they wait 5 s, and look only every 15 s whether it is over.

    https://dev.mysql.com/doc/refman/9.7/en/group-replication-responses-failure-expel.html
    """
    given = {member: member.query(f"SELECT @@global.{EXPEL}")[0][0] for member in members}
    tell(members, f"SET GLOBAL {EXPEL} = 0")
    try:
        yield
    finally:
        for member, seconds in given.items():
            tell([member], f"SET GLOBAL {EXPEL} = {seconds}")


def driven_out(node: Node, state: str) -> None:
    """Raise ProvisionError for a member in this state when an error of its applier is the cause, with that error."""
    if state != "ERROR":
        return
    causes = [cause for (cause,) in node.query(node.dialect.replication.worker_errors)]
    if causes:
        raise ProvisionError(
            f"member {node.name} has stopped applying and left its group: {' / '.join(causes)} -- it no longer takes "
            f"part, so nothing measured on this cluster counts. Look for who else wrote on {node.name}; error log: "
            f"{node.log}"
        )


def divided(executed: str, names: Sequence[str]) -> tuple[str, str]:
    """An executed GTID set as the part that carries one of these UUIDs, and the rest."""
    parts = [part.strip() for part in executed.split(",") if part.strip()]
    ours = [part for part in parts if part.partition(":")[0].lower() in names]
    return ",".join(ours), ",".join(part for part in parts if part not in ours)


def lacking(executed: Mapping[Node, str]) -> dict[Node, str]:
    """What each node has not of the GTID sets of the others; only nodes that lack something. Raises SQLError."""
    if len(set(executed.values())) < 2:
        return {}
    everything = ",".join(filter(None, executed.values()))
    missing = {
        node: node.query(f"SELECT GTID_SUBTRACT('{everything}', '{own}')")[0][0].replace("\n", "")
        for node, own in executed.items()
    }
    return {node: gtids for node, gtids in missing.items() if gtids}


def asked(node: Node, option: str, default: str = "") -> str:
    """What a node's my.cnf says of an option of the group, also where it was written as loose_..."""
    return node.options.get(option, node.options.get(f"loose_{option}", default))


def multi_primary(node: Node) -> bool:
    """Whether the node's options ask for a group in which all members take writes."""
    return same("OFF", asked(node, "group_replication_single_primary_mode", "ON"))


def unsettled(node: Node, nodes: Sequence[Node]) -> list[str]:
    """What is missing from the group as this node sees it, and from its own role in it. Raises ProvisionError."""
    seen = view(node, nodes)
    driven_out(node, seen.states.get(node.name, ""))
    found = [
        f"{node.name} sees {peer.name} as {seen.states.get(peer.name, 'no member')}, wanted ONLINE"
        for peer in nodes
        if seen.states.get(peer.name) != "ONLINE"
    ]
    wanted = [peer.name for peer in nodes] if multi_primary(node) else seen.primaries[:1] or ["one"]
    if not found and sorted(seen.primaries) != sorted(wanted):
        found.append(f"{node.name} sees the primaries {seen.primaries}, wanted {wanted}")
    read_only = "OFF" if node.name in seen.primaries else "ON"
    running = node.query("SELECT IF(@@global.super_read_only, 'ON', 'OFF')")[0][0]
    if not found and running != read_only:
        found.append(f"{node.name}: super_read_only is {running!r}, wanted {read_only!r}")
    return found


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """What is different between two readings of a watch, as a reason why a round does not count; empty for nothing."""
    primaries, states = [reading[PRIMARY] for reading in (before, after)], [_states(before), _states(after)]
    if not states[1]:
        return f"the group is gone: {after[VIEW_ID]}"
    found = []
    if primaries[0] != primaries[1] and MANY not in primaries[0]:
        found.append(f"the primary changed from {primaries[0] or 'none'} to {primaries[1] or 'none'}")
    for name in sorted(states[0].keys() | states[1].keys()):
        was, now = (reading.get(name, "no member") for reading in states)
        if (was, now) != ("ONLINE", "ONLINE"):
            found.append(f"member {name} was {was} before the round and is {now} after it")
    if not found and before[VIEW_ID] != after[VIEW_ID]:
        found.append(f"a member left the group and came back: view {before[VIEW_ID]} became {after[VIEW_ID]}")
    return "; ".join(found)


def _states(reading: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in reading.items() if name not in (PRIMARY, VIEW_ID)}
