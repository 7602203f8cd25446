"""Semi-synchronous replication: a commit returns when replicas have received it, or after a timeout.

After the timeout the primary replicates asynchronously until its replicas have caught up: another topology. A round
with a timeout does not count, and no round begins before semi-sync is on again.

A variant may set the option that turns semi-sync off on the primary. Then the same servers replicate asynchronously. A
claim about the cost of the acknowledgement needs no second cluster, which could differ from the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.dialects.mariadb import MARIADB
from pytest_dbcluster.clusters.dialects.mysql import MYSQL
from pytest_dbcluster.clusters.servers.data_template import plugin_directory
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topologies.async_replication import LATER, PrimaryAndReplicas
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.releases.release import Release


class SemiSync(PrimaryAndReplicas):
    """A primary and replicas that all acknowledge. Wait point, number and timeout are server options."""

    name = "semisync"

    def lacks(self, release: Release) -> str:
        """Return why this release cannot run semi-sync: a plugin is missing. Empty if it can."""
        directory = plugin_directory(release)
        plugins = dialect(release.product, release.version).semisync.plugins
        if missing := [plugin for plugin in plugins if not release.has(directory / plugin)]:
            return f"{release.name} ({release.source}) has no {' and no '.join(missing)} in {directory}"
        return ""

    def options(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """Return the options of a primary or replica. All nodes load both plugins, so they accept the same options."""
        names = node.dialect.semisync.plugins
        plugins = {"plugin_load_add": ";".join(names)} if names else {}
        return {**super().options(node, peers), **plugins}

    def role(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """Return the role's options, with semi-sync on: the primary waits, a replica acknowledges."""
        semisync = node.dialect.semisync
        return {
            **super().role(node, peers),
            semisync.primary if node is self.primary(peers) else semisync.replica: "ON",
        }

    def demands(self, node: Node, nodes: Sequence[Node]) -> Mapping[str, str]:
        """Return the options that the user's must not contradict; semi-sync may be off on the primary."""
        needed = super().demands(node, nodes)
        return {name: value for name, value in needed.items() if name != node.dialect.semisync.primary}

    def refuse_contradictions(self, nodes: Sequence[Node]) -> None:
        """Raise ConfigError also if a commit would wait for more replicas than the cluster has."""
        super().refuse_contradictions(nodes)
        wanted, replicas = nodes[0].dialect.semisync.wanted, len(nodes) - 1
        given = nodes[0].options.get(wanted, "1")
        if given.isdigit() and int(given) > replicas:
            raise ConfigError(
                f"option {wanted}={given} with {quantity(replicas, 'replica')}: commits would never get "
                f"enough acknowledgements; use nodes={int(given) + 1} or more"
            )

    def problems(self, nodes: Sequence[Node]) -> list[str]:
        """Return also that semi-sync is off, or that replicas do not acknowledge yet.

        If the option has turned semi-sync off, this checks neither. Raises the errors of the base class.
        """
        return super().problems(nodes) or _acknowledgement_problems(self.primary(nodes), len(nodes) - 1)

    def backlog(self, nodes: Sequence[Node]) -> list[str]:
        """Return also that semi-sync has fallen back and is still off. Raises the errors of the base class."""
        return super().backlog(nodes) or _acknowledgement_problems(self.primary(nodes))

    def watch(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """Return the primary's semi-sync option, state, acknowledging replicas and unacknowledged commits."""
        return _read(self.primary(nodes))

    def void(self, before: Mapping[str, str], after: Mapping[str, str]) -> str:
        """Return why a round does not count: a fallback, unacknowledged commits, a change of replicas or of the option.

        If the option has turned semi-sync off, this checks only the option.
        """
        semisync = next(known for known in _SEMISYNC if known.status in before)
        if before[semisync.primary] != after[semisync.primary]:
            return f"{semisync.primary} changed from {before[semisync.primary]} to {after[semisync.primary]}"
        if before[semisync.primary] != "ON":
            return ""
        reasons = [
            f"semi-sync fell back to asynchronous: {semisync.status} is {reading[semisync.status]} {when} the round"
            for when, reading in (("before", before), ("after", after))
            if reading[semisync.status] != "ON"
        ]
        for name, meaning in (
            (semisync.unacknowledged, "commits returned without an acknowledgement"),
            (semisync.clients, "the number of replicas that acknowledge changed"),
        ):
            if before[name] != after[name]:
                reasons.append(f"{meaning}: {name} changed from {before[name]} to {after[name]}")
        return "; ".join(reasons)

    def acknowledgement(self, variables: Mapping[str, str], nodes: int) -> str:
        """Return how many replicas have received a commit when it returns, and the wait point."""
        semisync = next(known for known in _SEMISYNC if known.wait_point in variables)
        if variables.get(semisync.primary) == "OFF":
            return LATER
        number = int(variables.get(semisync.wanted, "1"))
        return f"received by {quantity(number, 'replica')} ({variables[semisync.wait_point]})"


_SEMISYNC = (MARIADB.semisync, MYSQL.semisync)


def _read(primary: Node) -> dict[str, str]:
    """The primary's option and status variables of semi-sync, by name, in one round trip."""
    semisync = primary.dialect.semisync
    names = "', '".join((semisync.status, semisync.clients, semisync.unacknowledged))
    option, statuses = primary.batch(
        [
            f"SHOW GLOBAL VARIABLES LIKE '{semisync.primary}'",
            f"SHOW GLOBAL STATUS WHERE LOWER(variable_name) IN ('{names}')",
        ]
    )
    return {str(name).lower(): str(value) for name, value in (*option, *statuses)}


def _acknowledgement_problems(primary: Node, replicas: int | None = None) -> list[str]:
    """Why commits do not wait for replicas. replicas: how many must acknowledge; None: do not check the number."""
    semisync, read = primary.dialect.semisync, _read(primary)
    if read[semisync.primary] != "ON":
        return []
    if read[semisync.status] != "ON":
        return [f"{primary.name}: semi-sync is off, {semisync.status} is {read[semisync.status]!r}"]
    clients = read[semisync.clients]
    if replicas is None or clients == str(replicas):
        return []
    return [f"{primary.name}: {semisync.clients} is {clients}, wanted {replicas}"]


TOPOLOGY = SemiSync
