"""Asynchronous replication: a commit returns when the primary has it; replicas receive it later.

A node has the options ``preset`` and ``every`` of its ``ReplicationDialect``, its server_id and its read-only setting.
The first node is the primary until the roles change: ``switch_over`` while all nodes run, ``take_over`` after a loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.dialects import gtid_sets, release_mixes
from pytest_dbcluster.clusters.dialects.gtid_sets import GtidInterval
from pytest_dbcluster.clusters.dialects.release_mixes import NodeVersion
from pytest_dbcluster.clusters.servers.data_template import OWN_FILES
from pytest_dbcluster.clusters.servers.health import Health
from pytest_dbcluster.clusters.servers.node import ADMIN, Node, of_each
from pytest_dbcluster.clusters.servers.variables import same
from pytest_dbcluster.clusters.topology import REFUSAL, Pulse, Step, Topology
from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.hosts.host import BlockDevice
from pytest_dbcluster.system.tracing.recorder import span

LATER = "one server, replicas later"  # which nodes have a commit that does not wait for replicas
RECONNECT = ("STOP REPLICA IO_THREAD", "START REPLICA IO_THREAD")
CAUGHT_UP_SECONDS = 300.0  # until a replica must have applied what it has received
RECOVERY_SECONDS = 300.0  # until a server answers, with the recovery of InnoDB after a crash
BINLOG_OPTIONS = ("log_bin", "log_slave_updates", "log_replica_updates")  # a replica needs them to become the primary


class PrimaryAndReplicas(Topology):
    """A primary and its replicas: the base class of such topologies."""

    name = ""
    minimum_nodes = 2
    restarts_appliers = True
    ways_back = ("GTID", "rebuild", REFUSAL)

    def __init__(self) -> None:
        self._primary = ""  # its name; empty for the first node
        self._running: dict[str, Mapping[str, str]] = {}  # by node, the running variables of its role
        self._joined = ""  # how the last node joined
        self._errant: Sequence[GtidInterval] = ()  # transactions that only this node had
        self._refuses = False  # whether a lost primary that has them stays out

    def primary(self, nodes: Sequence[Node]) -> Node:
        """Return the primary: the first node, until the roles change."""
        return next((node for node in nodes if node.name == self._primary), nodes[0])

    def replicas(self, nodes: Sequence[Node]) -> list[Node]:
        """Return the replicas, in order."""
        primary = self.primary(nodes)
        return [node for node in nodes if node is not primary]

    def wrong_size(self, nodes: int) -> str:
        """Return why this number of nodes is too small: a primary needs at least one replica."""
        if nodes >= self.minimum_nodes:
            return ""
        return (
            f"{self.name} needs 2 nodes or more, a primary and its replicas, not {nodes}: use nodes=2, or the topology "
            "standalone"
        )

    def refuses_mix(self, nodes: Sequence[NodeVersion], options: Mapping[str, str]) -> str:
        """Return why the primary cannot have these replicas: one of them is older, or too new."""
        return release_mixes.replicas(nodes)

    def options(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """Return the options for this node's my.cnf: binlog, GTID, server_id (1 for the primary) and the role."""
        replication = node.dialect.replication
        server_id = {"server_id": str(1 + peers.index(node))}
        return {**replication.preset, **replication.every, **server_id, **self.role(node, peers)}

    def role(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """Return the options that make a node the primary, or a replica."""
        return dict.fromkeys(node.dialect.replication.read_only, "OFF" if node is self.primary(peers) else "ON")

    def form(self, nodes: Sequence[Node]) -> None:
        """Start all servers at once, then point the replicas at the primary.

        Raises ConfigError, before any server starts, for a user's option that contradicts the topology.
        """
        self.refuse_contradictions(nodes)
        for node in nodes:
            node.start()
        with wait.threads(len(nodes)) as starting:
            with span("wait until the servers answer"):
                list(starting.map(Node.wait_answering, nodes))
            with span("join"):
                list(starting.map(lambda replica: follow(replica, self.primary(nodes)), self.replicas(nodes)))

    def demands(self, node: Node, nodes: Sequence[Node]) -> Mapping[str, str]:
        """Return the options that the user's must not contradict: those of replication and of the role."""
        return {**node.dialect.replication.every, **self.role(node, nodes)}

    def refuse_contradictions(self, nodes: Sequence[Node]) -> None:
        """Raise ConfigError for a user's option that contradicts the topology."""
        for node in nodes:
            for option, needed in self.demands(node, nodes).items():
                given = node.options.get(option, needed)
                if not same(needed, given):
                    role = "primary" if node is self.primary(nodes) else "replica"
                    raise ConfigError(
                        f"option {option}={given} contradicts {self.name}: its {role} {node.name} needs "
                        f"{option}={needed}; remove it from options and my.cnf"
                    )

    def rejoin(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start the node again. A replica continues at its last position; the replicas of a primary reconnect.

        A former primary becomes a replica by GTID. If it has errant transactions, it first gets a copy of the
        primary's data directory. The primary stops for this time. After ``take_over(..., refuses=True)`` it only runs,
        and follows nobody.

        If the primary's host lost its power, its connections stayed open. Without this, replicas would wait for it up
        to slave_net_timeout, 60 s. They reconnect before anyone writes. If the primary has lost transactions that they
        have (sync_binlog=0), they stop with an error now. Later, other transactions would have the same GTIDs.
        """
        self._joined, self._errant = "", ()
        node.write_options()
        node.start()
        node.wait_answering(RECOVERY_SECONDS)
        primary = self.primary(nodes)
        if node is primary:
            for replica in self.replicas(nodes):
                if replica.running:
                    for statement in RECONNECT:
                        replica.query(statement, wait.SLOW_SECONDS)
            return
        by_gtid, by_copy, _ = self.ways_back
        self._joined = by_gtid
        if not node.records(node.dialect.replication.status):
            self._errant = errant(node, primary)
            if not self._errant:
                _demote(node, primary)
            elif self._refuses:
                self._joined = REFUSAL
            else:
                self._joined = by_copy
                self.rebuild(node, nodes)
        elif self._primary:  # it may follow the primary of before
            node.query("STOP REPLICA", wait.SLOW_SECONDS)
            follow(node, primary)

    def rebuild(self, node: Node, nodes: Sequence[Node]) -> None:
        """Give a running node a copy of the primary's data directory, and let it follow. Both stop for this time."""
        primary = self.primary(nodes)
        _copy_data(primary, node)
        _demote(node, primary)

    def how_joined(self, log: str) -> str:
        """Return ``GTID`` or ``rebuild`` for a replica, ``refusal`` for a node that stays out, empty for a primary."""
        return self._joined

    def errant(self) -> int:
        """Return how many transactions only the node had that rejoined last. We have removed them from it."""
        return sum(interval.size for interval in self._errant)

    def refuses_roles(self, options: Mapping[str, str]) -> str:
        """Return why no replica can become the primary: it writes no binlog of what it applies."""
        off = [name for name in BINLOG_OPTIONS if same("OFF", options.get(name, "ON"))]
        off += [name for name in options if name.startswith("skip_log")]
        return f"a replica cannot become the primary with the option {off[0]}" if off else ""

    def switch_over(self, new: Node, nodes: Sequence[Node], step: Step, timeout: int | None = None) -> None:
        """Make a replica the primary: the old one accepts no more writes, the new one catches up, and takes over.

        The old primary then follows the new one. The servers have no timeout. Raises ProvisionError.
        """
        old = self.primary(nodes)
        self.remember_roles(nodes)
        for name in reversed(old.dialect.replication.read_only):
            old.query(f"SET GLOBAL {name} = ON", wait.SLOW_SECONDS)
        step("read only")
        wait.until(lambda: _behind(new, old, position(old)), f"replica {new.name}", seconds=CAUGHT_UP_SECONDS)
        step("caught up")
        self._exchange_options(old, new, nodes)
        self._promote(new, old)
        step("promoted")
        old.write_options()
        _set_variables(old, self._running[new.name])
        _demote(old, new)
        self._lead_others(new, old, nodes)

    def most_advanced(self, lost: Node, nodes: Sequence[Node]) -> Node:
        """Return the running replica that lacks no transaction of another one, after all have applied what they have.

        They receive nothing more from the lost primary. Raises ProvisionError.
        """
        replicas = [node for node in self.replicas(nodes) if node.running]
        if not replicas:
            raise ProvisionError(f"no replica of {lost.name} runs")
        of_each(replicas, lambda replica: replica.query("STOP REPLICA IO_THREAD", wait.SLOW_SECONDS))

        wait.until(
            lambda: [line for lines in of_each(replicas, _unapplied_part) for line in lines],
            f"the replicas of {lost.name}",
            seconds=CAUGHT_UP_SECONDS,
        )
        positions = [position(replica) for replica in replicas]
        for replica in replicas:
            lacking = replica.dialect.replication.lacking
            if not any(_value(replica, lacking, executed=executed) for executed in positions):
                return replica
        raise ProvisionError(f"each replica of {lost.name} lacks transactions of another one")

    def take_over(self, new: Node, nodes: Sequence[Node], *, refuses: bool = False) -> None:
        """Make this replica the primary in place of a lost one. The other running replicas follow it.

        The my.cnf of the lost primary has a replica's options from its next start on. refuses: with errant transactions
        it will stay out. Raises ProvisionError.
        """
        old, self._refuses = self.primary(nodes), refuses
        self._exchange_options(old, new, nodes)
        self._promote(new, old)
        self._lead_others(new, old, nodes)

    def remember_roles(self, nodes: Sequence[Node]) -> None:
        """Read the variables of each node's role. A variant may have changed them since the start. Raises SQLError."""
        names = "', '".join({name: "" for node in nodes for name in self.role(node, nodes)})
        statement = f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ('{names}')"
        found = of_each(nodes, lambda node: node.pairs(statement))
        self._running = {node.name: values for node, values in zip(nodes, found, strict=True)}

    def _exchange_options(self, old: Node, new: Node, nodes: Sequence[Node]) -> None:
        """Exchange the roles of two nodes, and the options of these roles."""
        names = list({**self.role(old, nodes), **self.role(new, nodes)})
        changes = {node: {name: other.options.get(name) for name in names} for node, other in ((new, old), (old, new))}
        for node, options in changes.items():
            node.change_options(options)
        self._primary = new.name

    def _promote(self, new: Node, old: Node) -> None:
        new.write_options()
        new.query("STOP REPLICA", wait.SLOW_SECONDS)
        new.query("RESET REPLICA ALL")
        _set_variables(new, self._running[old.name])

    def _lead_others(self, new: Node, old: Node, nodes: Sequence[Node]) -> None:
        for replica in self.replicas(nodes):
            if replica is not old and replica.running:
                replica.query("STOP REPLICA", wait.SLOW_SECONDS)
                follow(replica, new)

    def has_primary(self, options: Mapping[str, str]) -> bool:
        """Return True: replicas are read-only."""
        return True

    def writers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return the primary."""
        return [self.primary(nodes)]

    def readers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return the replicas."""
        return self.replicas(nodes)

    def health(self, node: Node, nodes: Sequence[Node]) -> Health:
        """Reads need running replication, so the primary accepts no reads; writes need read_only=OFF."""
        return Health(node.dialect.replication.health, reader={"replicating": "ON"}, writer={"read_only": "OFF"})

    def pulse(self, node: Node, nodes: Sequence[Node]) -> Pulse | None:
        """Return the query for a replica's lag behind its primary, in whole seconds; None for the primary."""
        if node is self.primary(nodes):
            return None
        replication = node.dialect.replication
        return Pulse(replication.status, {"replica_lag": (replication.seconds_behind, 1.0)})

    def problems(self, nodes: Sequence[Node]) -> list[str]:
        """Return nodes that do not answer, nodes with the wrong read-only setting, and unconnected replicas.

        Raises NodeDied; ProvisionError if an error has stopped a replica.
        """
        unanswered = [problem for found in of_each(nodes, Node.problems) for problem in found]
        if unanswered:
            return unanswered
        primary, replicas = self.primary(nodes), self.replicas(nodes)
        wrong = of_each(nodes, lambda node: _wrong_role(node, "OFF" if node is primary else "ON"))
        apart = of_each(replicas, lambda replica: connection_problems(replica, primary))
        return [problem for found in (*wrong, *apart) for problem in found]

    def backlog(self, nodes: Sequence[Node]) -> list[str]:
        """Return the primary's transactions that replicas have not committed, one line for each such replica.

        Raises ProvisionError if an error has stopped a replica, because it never catches up.
        """
        primary = self.primary(nodes)
        executed = position(primary)
        found = of_each(self.replicas(nodes), lambda replica: _behind(replica, primary, executed))
        return [line for lines in found for line in lines]

    def violations(self, nodes: Sequence[Node]) -> list[str]:
        """Return the primary's transactions that a replica lacks, and errant transactions of replicas."""
        primary = self.primary(nodes)
        executed = position(primary)
        lines = []
        for replica in self.replicas(nodes):
            if lacking := _value(replica, replica.dialect.replication.lacking, executed=executed):
                lines.append(f"{replica.name} lacks {lacking} of its primary {primary.name}")
            if own := errant(replica, primary):
                lines.append(
                    f"{replica.name} has errant transactions, which its primary {primary.name} lacks: "
                    f"{','.join(map(str, own))}"
                )
        return lines


class AsyncReplication(PrimaryAndReplicas):
    """A primary and its replicas, without acknowledgements."""

    name = "async_replication"

    def acknowledgement(self, variables: Mapping[str, str], nodes: int) -> str:
        """Return that only the primary has a commit when it returns."""
        return LATER


def follow(replica: Node, primary: Node) -> None:
    """Point a replica at its primary and start replication. Both servers must be up. Raises SQLError."""
    replication, host = replica.dialect.replication, primary.host
    known = {"host": host.address, "port": primary.port, "user": ADMIN, "password": primary.password}
    replica.query(replication.follow.format(**known))
    replica.query(replication.start)


def errant(node: Node, primary: Node) -> list[GtidInterval]:
    """Return the transactions of a node that its primary lacks."""
    own = _value(node, node.dialect.replication.history)
    return gtid_sets.lacking(own, _value(primary, primary.dialect.replication.history))


def position(primary: Node) -> str:
    """Return the GTID position up to which a primary has committed."""
    return _value(primary, primary.dialect.replication.executed)


def status(replica: Node, primary: Node) -> Mapping[str, str]:
    """Return a replica's SHOW REPLICA STATUS as text by column; empty for a server that is not a replica.

    Raises ProvisionError if an error has stopped the replica.
    """
    replication = replica.dialect.replication
    rows = replica.records(replication.status)
    report = rows[0] if rows else {}
    for thread, doing, (number, text) in (
        (replication.applying, "applying", replication.applying_error),
        (replication.reading, f"reading from {primary.name}", replication.reading_error),
    ):
        if report.get(thread) == "No" and report.get(number, "0") != "0":
            causes = [report[text]]
            if thread == replication.applying and replication.worker_errors:
                errors = replica.query(replication.worker_errors)
                causes += [cause for (cause,) in errors if cause not in report[text]]
            raise ProvisionError(
                f"replica {replica.name} has stopped {doing}: error {report[number]}: {' / '.join(causes)} -- it no "
                f"longer follows {primary.name}, so no round on this cluster counts. Look for another program that "
                f"wrote on {replica.name}, or for an option that only one of them has; error log: {replica.log}"
            )
    return report


def connection_problems(replica: Node, primary: Node) -> list[str]:
    """Return why a replica does not read or apply; empty if it does both.

    Raises ProvisionError if an error has stopped the replica.
    """
    replication = replica.dialect.replication
    report = status(replica, primary)
    if not report:
        return [f"{replica.name} follows no primary"]
    lines = []
    for thread, (_, text) in (
        (replication.reading, replication.reading_error),
        (replication.applying, replication.applying_error),
    ):
        if report[thread] != "Yes":
            cause = f" ({report[text]})" if report[text] else ""
            lines.append(f"{replica.name}: {thread} is {report[thread]!r}, wanted 'Yes'{cause}")
    return lines


def _behind(replica: Node, primary: Node, executed: str) -> list[str]:
    """Return that a replica must still apply a part of ``executed``; empty if it has applied everything.

    Raises ProvisionError if an error has stopped the replica.
    """
    replication = replica.dialect.replication
    lacking = _value(replica, replication.lacking, executed=executed)
    if not lacking:
        return []
    seconds = status(replica, primary).get(replication.seconds_behind)
    late = "; ".join(connection_problems(replica, primary)) or f"{seconds or '?'} s behind"
    return [f"{replica.name} must still apply {lacking} ({late})"]


def _unapplied_part(replica: Node) -> list[str]:
    """Return that a replica must still apply a part of what it has received. Raises ProvisionError if it cannot."""
    replication = replica.dialect.replication
    (report,) = replica.records(replication.status)
    lacking = _value(replica, replication.lacking, executed=report[replication.received].replace("\n", ""))
    if lacking and report[replication.applying] == "No":
        raise ProvisionError(
            f"replica {replica.name} does not apply {lacking}: {report[replication.applying_error[1]]}"
        )
    return [f"{replica.name} must still apply {lacking}"] if lacking else []


def _set_variables(node: Node, values: Mapping[str, str]) -> None:
    """Set the variables of a role, first those of semi-sync: writes begin when the read-only ones are OFF."""
    read_only = node.dialect.replication.read_only
    for name in sorted(values, key=lambda name: (name in read_only, name)):
        node.query(f"SET GLOBAL {name} = {values[name]}", wait.SLOW_SECONDS)


def _demote(node: Node, primary: Node) -> None:
    """Let a former primary follow another server from its own position."""
    if statement := node.dialect.replication.demote:
        node.query(statement)
    follow(node, primary)


def _copy_data(primary: Node, node: Node) -> None:
    """Replace the data directory of a node by a copy of that of its primary. Both stop for this time.

    Raises ProvisionError, also for a host of another machine.
    """
    if node.host.machine:
        raise ProvisionError(
            f"{node.name} has errant transactions, and we cannot copy the data of {primary.name} to another machine"
        )
    node.stop()
    primary.stop()
    if isinstance(primary.host, BlockDevice) and isinstance(node.host, BlockDevice):
        _copy_disk(primary.host, node.host)
    else:
        node.host.remove_tree(node.data)
        node.host.copy_tree(primary.data, node.data)
    node.host.run(["rm", "-f", *(f"{node.data}/{name}" for name in OWN_FILES)])
    for one in (primary, node):
        one.start()
    for one in (primary, node):
        one.wait_answering()


def _copy_disk(source: Any, target: Any) -> None:
    """Make the disk of a host equal to that of another one, on which this machine sees no directory."""
    for host in (source, target):
        host.unmount()
    target.copy_disk(source)
    for host in (source, target):
        host.mount(host.device)


def _wrong_role(node: Node, wanted: str) -> list[str]:
    names = node.dialect.replication.read_only
    # From MariaDB 12.0 on it is a text: https://jira.mariadb.org/browse/MDEV-36425
    shown = (f"IF(CAST(@@global.{name} AS CHAR) IN ('0', 'OFF'), 'OFF', 'ON')" for name in names)
    running = node.query(f"SELECT {', '.join(shown)}")[0]
    return [
        f"{node.name}: {name} is {value!r}, wanted {wanted!r}"
        for name, value in zip(names, running, strict=True)
        if value != wanted
    ]


def _value(node: Node, statement: str, **known: str) -> str:
    """Return the single value of a statement's result, as one line."""
    answer: str = node.query(statement.format(**known))[0][0] or ""
    return answer.replace("\n", "")


TOPOLOGY = AsyncReplication
