"""Asynchronous replication: a commit returns when the primary has it; replicas receive it later.

A node has the options ``preset`` and ``every`` of its ``ReplicationDialect``, its server_id and its read-only setting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.dialects import release_mixes
from pytest_dbcluster.clusters.dialects.release_mixes import NodeVersion
from pytest_dbcluster.clusters.servers.health import Health
from pytest_dbcluster.clusters.servers.node import ADMIN, Node, of_each
from pytest_dbcluster.clusters.servers.variables import same
from pytest_dbcluster.clusters.topology import Pulse, Topology
from pytest_dbcluster.errors import ConfigError, ProvisionError

LATER = "one server, replicas later"  # which nodes have a commit that does not wait for replicas
RECONNECT = ("STOP REPLICA IO_THREAD", "START REPLICA IO_THREAD")


class PrimaryAndReplicas(Topology):
    """A primary and its replicas: the base class of such topologies. The first node is always the primary."""

    name = ""
    minimum_nodes = 2

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
        return dict.fromkeys(node.dialect.replication.read_only, "OFF" if node is peers[0] else "ON")

    def form(self, nodes: Sequence[Node]) -> None:
        """Start all servers at once, then point the replicas at the primary.

        Raises ConfigError, before any server starts, for a user's option that contradicts the topology.
        """
        self.refuse_contradictions(nodes)
        for node in nodes:
            node.start()
        with wait.threads(len(nodes)) as starting:
            list(starting.map(Node.wait_answering, nodes))
            list(starting.map(lambda replica: follow(replica, nodes[0]), nodes[1:]))

    def demands(self, node: Node, nodes: Sequence[Node]) -> Mapping[str, str]:
        """Return the options that the user's must not contradict: those of replication and of the role."""
        return {**node.dialect.replication.every, **self.role(node, nodes)}

    def refuse_contradictions(self, nodes: Sequence[Node]) -> None:
        """Raise ConfigError for a user's option that contradicts the topology."""
        for node in nodes:
            for option, needed in self.demands(node, nodes).items():
                given = node.options.get(option, needed)
                if not same(needed, given):
                    role = "primary" if node is nodes[0] else "replica"
                    raise ConfigError(
                        f"option {option}={given} contradicts {self.name}: its {role} {node.name} needs "
                        f"{option}={needed}; remove it from options and my.cnf"
                    )

    def rejoin(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start the node again. A replica continues at its last position; the replicas of a primary reconnect.

        If the primary's host lost its power, its connections stayed open. Without this, replicas would wait for it up
        to slave_net_timeout, 60 s. They reconnect before anyone writes. If the primary has lost transactions that they
        have (sync_binlog=0), they stop with an error now. Later, other transactions would have the same GTIDs.
        """
        node.start()
        if node is nodes[0]:
            node.wait_answering()
            for replica in nodes[1:]:
                if replica.running:
                    for statement in RECONNECT:
                        replica.query(statement, wait.SLOW_SECONDS)

    def has_primary(self, options: Mapping[str, str]) -> bool:
        """Return True: replicas are read-only."""
        return True

    def writers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return the primary, which is always the first node."""
        return nodes[:1]

    def readers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return the replicas."""
        return nodes[1:]

    def health(self, node: Node, nodes: Sequence[Node]) -> Health:
        """Reads need running replication, so the primary accepts no reads; writes need read_only=OFF."""
        return Health(node.dialect.replication.health, reader={"replicating": "ON"}, writer={"read_only": "OFF"})

    def pulse(self, node: Node, nodes: Sequence[Node]) -> Pulse | None:
        """Return the query for a replica's lag behind its primary, in whole seconds; None for the primary."""
        if node is nodes[0]:
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
        primary, *replicas = nodes
        wrong = of_each(nodes, lambda node: _wrong_role(node, "OFF" if node is primary else "ON"))
        apart = of_each(replicas, lambda replica: connection_problems(replica, primary))
        return [problem for found in (*wrong, *apart) for problem in found]

    def backlog(self, nodes: Sequence[Node]) -> list[str]:
        """Return the primary's transactions that replicas have not committed, one line for each such replica.

        Raises ProvisionError if an error has stopped a replica, because it never catches up.
        """
        primary, *replicas = nodes
        executed = position(primary)

        def behind(replica: Node) -> list[str]:
            replication = replica.dialect.replication
            lacking = _value(replica, replication.lacking, executed=executed)
            if not lacking:
                return []
            seconds = status(replica, primary).get(replication.seconds_behind)
            late = "; ".join(connection_problems(replica, primary)) or f"{seconds or '?'} s behind"
            return [f"{replica.name} must still apply {lacking} ({late})"]

        return [line for found in of_each(replicas, behind) for line in found]

    def violations(self, nodes: Sequence[Node]) -> list[str]:
        """Return the primary's transactions that a replica lacks, and errant transactions of replicas."""
        primary, *replicas = nodes
        known = {"executed": position(primary), "primary": primary.options["server_id"]}
        lines = []
        for replica in replicas:
            replication = replica.dialect.replication
            if lacking := _value(replica, replication.lacking, **known):
                lines.append(f"{replica.name} lacks {lacking} of its primary {primary.name}")
            if errant := _value(replica, replication.errant, **known):
                lines.append(
                    f"{replica.name} has errant transactions, which its primary {primary.name} lacks: {errant}"
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


def _wrong_role(node: Node, wanted: str) -> list[str]:
    names = node.dialect.replication.read_only
    running = node.query("SELECT " + ", ".join(f"IF(@@global.{name}, 'ON', 'OFF')" for name in names))[0]
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
