"""Asynchronous replication: a commit returns when the primary has it, and the replicas get it afterwards."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Mapping, Sequence

from pytest_dbcluster.clusters.servers.health import Health
from pytest_dbcluster.clusters.servers.node import ADMIN, Node
from pytest_dbcluster.clusters.servers.options import same
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import ConfigError, ProvisionError


class PrimaryAndReplicas(Topology):
    """The first node takes writes for as long as the cluster lives; the others follow it."""

    name = ""
    minimum_nodes = 2

    def wrong_size(self, nodes: int) -> str:
        """A primary alone has no replicas."""
        if nodes >= self.minimum_nodes:
            return ""
        return (
            f"{self.name} is a primary and its replicas, and {nodes} node has none; ask for nodes=2 or more, or take "
            "standalone"
        )

    def options(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """Binlog, GTID, and who may write."""
        words = node.dialect.replication
        own = {"server_id": str(1 + peers.index(node))}
        return {**words.preset, **words.every, **own, **self.role(node, peers)}

    def role(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """The options that make a node the primary, or a replica."""
        return dict.fromkeys(node.dialect.replication.read_only, "OFF" if node is peers[0] else "ON")

    def form(self, nodes: Sequence[Node]) -> None:
        """Start all servers at once and point the replicas at the primary.

        Raises ConfigError for a user's option that contradicts the topology, before anything is started.
        """
        self.refuse_contradictions(nodes)
        for node in nodes:
            node.start()
        with concurrent.futures.ThreadPoolExecutor(len(nodes)) as starting:
            list(starting.map(Node.wait_answering, nodes))
            list(starting.map(lambda replica: follow(replica, nodes[0]), nodes[1:]))

    def refuse_contradictions(self, nodes: Sequence[Node]) -> None:
        """Raise ConfigError for an option of the user that says the opposite of what the topology needs."""
        for node in nodes:
            needs = {**node.dialect.replication.every, **self.role(node, nodes)}
            for option, needed in needs.items():
                given = node.options.get(option, needed)
                if not same(needed, given):
                    role = "primary" if node is nodes[0] else "replica"
                    raise ConfigError(
                        f"option {option}={given} contradicts {self.name}: its {role} {node.name} needs "
                        f"{option}={needed}; leave it out of options and my.cnf"
                    )

    def rejoin(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start it again: a replica goes on where it ended, and the replicas of a primary come back to it."""
        node.start()

    def writers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """The primary, which is always the first node."""
        return nodes[:1]

    def readers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """The replicas."""
        return nodes[1:]

    def health(self, node: Node, nodes: Sequence[Node]) -> Health:
        """A replica that is connected and applies takes reads, the primary follows nobody; it takes writes."""
        return Health(node.dialect.replication.health, reader={"replicating": "ON"}, writer={"read_only": "OFF"})

    def problems(self, nodes: Sequence[Node]) -> list[str]:
        """Nodes that do not answer or may write what they should not, replicas that are not connected.

        Raises NodeDied, and ProvisionError for a replica that an error has stopped.
        """
        unanswered = [problem for node in nodes for problem in node.problems()]
        if unanswered:
            return unanswered
        primary, *replicas = nodes
        found = _wrong_role(primary, "OFF") + [problem for node in replicas for problem in _wrong_role(node, "ON")]
        return found + [problem for replica in replicas for problem in unconnected(replica, primary)]

    def backlog(self, nodes: Sequence[Node]) -> list[str]:
        """The transactions of the primary that a replica has not committed.

        Raises ProvisionError for a replica that an error has stopped: it will never catch up.
        """
        primary, *replicas = nodes
        executed = position(primary)
        found = []
        for replica in replicas:
            if lacking := _asked(replica, replica.dialect.replication.lacking, executed=executed):
                behind = status(replica, primary).get(replica.dialect.replication.seconds_behind)
                late = "; ".join(unconnected(replica, primary)) or f"{behind or '?'} s behind"
                found.append(f"{replica.name} has still to apply {lacking} ({late})")
        return found

    def violations(self, nodes: Sequence[Node]) -> list[str]:
        """Transactions of the primary that a replica lacks, and those of a replica that no primary wrote."""
        primary, *replicas = nodes
        known = {"executed": position(primary), "primary": primary.options["server_id"]}
        found = []
        for replica in replicas:
            words = replica.dialect.replication
            if lacking := _asked(replica, words.lacking, **known):
                found.append(f"{replica.name} lacks {lacking} of its primary {primary.name}")
            if errant := _asked(replica, words.errant, **known):
                found.append(
                    f"{replica.name} has errant transactions, which its primary {primary.name} lacks: {errant}"
                )
        return found


class AsyncReplication(PrimaryAndReplicas):
    """A primary and its replicas; how far they are behind is the backlog."""

    name = "async_replication"

    def acknowledged(self, variables: Mapping[str, str], nodes: int) -> str:
        """Nobody but the primary has been asked."""
        return "one server, replicas later"


def follow(replica: Node, primary: Node) -> None:
    """Point a replica at its primary and start it. Both answer. Raises SQLError."""
    words, host = replica.dialect.replication, primary.host
    known = {"host": host.address, "port": primary.port, "user": ADMIN, "password": primary.password}
    replica.query(words.follow.format(**known))
    replica.query(words.start)


def position(primary: Node) -> str:
    """The GTID position up to which a primary has committed."""
    return _asked(primary, primary.dialect.replication.executed)


def status(replica: Node, primary: Node) -> Mapping[str, str]:
    """A replica's own report, empty when it follows nobody. Raises ProvisionError when an error has stopped it."""
    words = replica.dialect.replication
    rows = replica.records(words.status)
    report = rows[0] if rows else {}
    for thread, doing, (number, text) in (
        (words.applying, "applying", words.applying_error),
        (words.reading, f"reading from {primary.name}", words.reading_error),
    ):
        if report.get(thread) == "No" and report.get(number, "0") != "0":
            causes = [report[text]]
            if thread == words.applying and words.worker_errors:
                causes += [cause for (cause,) in replica.query(words.worker_errors) if cause not in report[text]]
            raise ProvisionError(
                f"replica {replica.name} has stopped {doing}: error {report[number]}: {' / '.join(causes)} -- it no "
                f"longer follows {primary.name}, so nothing measured on this cluster counts. Look for who else wrote "
                f"on {replica.name}, or for an option that only one of the two has; error log: {replica.log}"
            )
    return report


def unconnected(replica: Node, primary: Node) -> list[str]:
    """What keeps a replica from reading and applying. Raises ProvisionError when an error has stopped it."""
    words = replica.dialect.replication
    report = status(replica, primary)
    if not report:
        return [f"{replica.name} follows no primary"]
    found = []
    for thread, (_, text) in ((words.reading, words.reading_error), (words.applying, words.applying_error)):
        if report[thread] != "Yes":
            cause = f" ({report[text]})" if report[text] else ""
            found.append(f"{replica.name}: {thread} is {report[thread]!r}, wanted 'Yes'{cause}")
    return found


def _wrong_role(node: Node, wanted: str) -> list[str]:
    names = node.dialect.replication.read_only
    running = node.query("SELECT " + ", ".join(f"IF(@@global.{name}, 'ON', 'OFF')" for name in names))[0]
    return [
        f"{node.name}: {name} is {value!r}, wanted {wanted!r}"
        for name, value in zip(names, running, strict=True)
        if value != wanted
    ]


def _asked(node: Node, statement: str, **known: str) -> str:
    """The one text that a statement answers with, on one line."""
    answer: str = node.query(statement.format(**known))[0][0] or ""
    return answer.replace("\n", "")


TOPOLOGY = AsyncReplication
