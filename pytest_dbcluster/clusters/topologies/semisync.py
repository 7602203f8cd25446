"""Semi-synchronous replication: a commit returns when replicas have received it, or when they took too long.

Too long means that the primary goes on asynchronously until its replicas have caught up. What is measured then is
another topology, so a round in which that happens does not count, and none begins before it is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.dialects.mariadb import MARIADB
from pytest_dbcluster.clusters.dialects.mysql import MYSQL
from pytest_dbcluster.clusters.servers.data_template import plugin_directory
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topologies.async_replication import PrimaryAndReplicas
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.releases.release import Release


class SemiSync(PrimaryAndReplicas):
    """A primary and its replicas, all of which acknowledge; wait point, number and time-out are server options."""

    name = "semisync"

    def lacks(self, release: Release) -> str:
        """Why a release cannot do it: a plugin is missing."""
        directory = plugin_directory(release)
        plugins = dialect(release.product, release.version).semisync.plugins
        if missing := [plugin for plugin in plugins if not release.has(directory / plugin)]:
            return f"{release.name} ({release.source}) has no {' and no '.join(missing)} in {directory}"
        return ""

    def options(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """Both plugins on every node, so that all know the same options."""
        words = node.dialect.semisync
        plugins = {"plugin_load_add": ";".join(words.plugins)} if words.plugins else {}
        return {**super().options(node, peers), **plugins}

    def role(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """Also what makes the primary wait, and a replica acknowledge."""
        words = node.dialect.semisync
        return {**super().role(node, peers), words.primary if node is peers[0] else words.replica: "ON"}

    def refuse_contradictions(self, nodes: Sequence[Node]) -> None:
        """Also refuse to wait for more replicas than there are."""
        super().refuse_contradictions(nodes)
        wanted, replicas = nodes[0].dialect.semisync.wanted, len(nodes) - 1
        asked = nodes[0].options.get(wanted, "1")
        if asked.isdigit() and int(asked) > replicas:
            raise ConfigError(
                f"option {wanted}={asked} with {replicas} replica{'s' * (replicas > 1)}: no commit would ever be "
                f"acknowledged; ask for nodes={int(asked) + 1} or more"
            )

    def problems(self, nodes: Sequence[Node]) -> list[str]:
        """Also semi-sync that is off, and replicas that do not acknowledge yet. Raises as without it."""
        return super().problems(nodes) or _off(nodes[0]) + _silent(nodes)

    def backlog(self, nodes: Sequence[Node]) -> list[str]:
        """Also semi-sync that has fallen back and is not on again. Raises as without it."""
        return super().backlog(nodes) or _off(nodes[0])

    def watch(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """Whether semi-sync is on, how many replicas acknowledge, and commits that none has acknowledged."""
        words = nodes[0].dialect.semisync
        names = "', '".join((words.status, words.clients, words.unacknowledged))
        return nodes[0].pairs(f"SHOW GLOBAL STATUS WHERE LOWER(variable_name) IN ('{names}')")

    def void(self, before: Mapping[str, str], after: Mapping[str, str]) -> str:
        """Semi-sync that was off at either end, commits that nobody acknowledged, a replica that went or came."""
        words = next(known for known in _WORDS if known.status in before)
        found = [
            f"semi-sync fell back to asynchronous: {words.status} is {reading[words.status]} {when} the round"
            for when, reading in (("before", before), ("after", after))
            if reading[words.status] != "ON"
        ]
        for name, meaning in (
            (words.unacknowledged, "commits returned that no replica had acknowledged"),
            (words.clients, "the number of replicas that acknowledge changed"),
        ):
            if before[name] != after[name]:
                found.append(f"{meaning}: {name} went from {before[name]} to {after[name]}")
        return "; ".join(found)

    def acknowledged(self, variables: Mapping[str, str], nodes: int) -> str:
        """How many replicas have received a commit, and when it waits for them."""
        words = next(known for known in _WORDS if known.wait_point in variables)
        number = int(variables.get(words.wanted, "1"))
        return f"received by {number} replica{'s' * (number > 1)} ({variables[words.wait_point]})"


_WORDS = (MARIADB.semisync, MYSQL.semisync)


def _off(primary: Node) -> list[str]:
    name = primary.dialect.semisync.status
    value = primary.status(name)[name]
    return [] if value == "ON" else [f"{primary.name}: semi-sync is off, {name} is {value!r}"]


def _silent(nodes: Sequence[Node]) -> list[str]:
    name = nodes[0].dialect.semisync.clients
    value = nodes[0].status(name)[name]
    return [] if value == str(len(nodes) - 1) else [f"{nodes[0].name}: {name} is {value}, wanted {len(nodes) - 1}"]


TOPOLOGY = SemiSync
