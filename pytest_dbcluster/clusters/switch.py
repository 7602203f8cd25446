"""``Switch``: turns one running cluster from variant to variant, and verifies all global variables."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pytest_dbcluster import formatting, wait
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.servers import path_options
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.node import Node, of_each
from pytest_dbcluster.clusters.servers.options import differences
from pytest_dbcluster.clusters.servers.variables import IDENTITY, IDENTITY_PREFIX, is_identity
from pytest_dbcluster.errors import NotReady, ProvisionError

SHOW = "SHOW GLOBAL VARIABLES"
WRITES_TABLE = "dbcluster_control.writes"
RESTART = ("STOP REPLICA SQL_THREAD", "START REPLICA SQL_THREAD")  # each is a note if there is nothing to do
# Of other nodes, that each node applies in a switch of the number of appliers; more if they do not suffice.
WRITESETS = 4
APPLY_SECONDS, POLL = 0.02, 0.002  # until appliers must have applied them, and between two looks
# The version of MariaDB ends with -log if a log was on at the start. This changes nothing but the name.
NAMED_AT_START = "version"


class Switch:
    """Turns one running cluster from variant to variant, and verifies all global variables after each switch.

    It sends the same statements in any state of the cluster. Otherwise rounds after another variant would begin with a
    switch, and rounds after the same variant without one. Appliers of replicas restart if they read one
    of those variables only at their start.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        cold = of_each(cluster.nodes, Node.variables)
        self._cold = {node.name: variables for node, variables in zip(cluster.nodes, cold, strict=True)}
        self._now: dict[str, str] = {}
        self._digests: dict[tuple[str, frozenset[tuple[str, str]]], object] = {}  # of nodes that had the right values
        self._has_table = False

    def _cold_start(self, node: Node) -> dict[str, str]:
        """The variables of a node's server after its start. A failover may start a server after the last switch."""
        if node.name not in self._cold:
            self._cold[node.name] = node.variables()
        return self._cold[node.name]

    def to(self, changes: Mapping[str, str], among: Iterable[str] = ()) -> None:
        """Set every variable of ``changes`` to its value, and every other variable to its cold-start value.

        among: the variables that the compared variants set. A switch sets each of them, even if it has its value
        already. Raises ProvisionError with the variables that have another value afterwards. Raises NotReady if the
        number of Galera appliers does not follow in 20 s. Raises ConfigError for a value that names a file outside its
        node.
        """
        names = {*changes, *among, *self._now}
        if not names:
            return
        path_options.require_inside(changes)  # SET GLOBAL can move a log, as an option can
        self._now.update(changes)  # so that the next switch also sets what a failed one may have left
        of_each(self.cluster.nodes, lambda node: self._set(node, changes, names))
        self._match_appliers(changes, names)
        self._now = dict(changes)

    def _set(self, node: Node, changes: Mapping[str, str], names: Collection[str]) -> None:
        wanted = {**self._cold_start(node), **changes}
        key = node.name, frozenset(changes.items())
        begin, end = self._restart(node, names)
        if self._has_digest(node, [*begin, *_statements(wanted, names).values(), *end], self._digests.get(key)):
            return
        for _ in range(3):  # setting one variable may change another: the next pass sets that one back
            settings = _statements(wanted, names)
            try:
                rows = node.batch([*begin, *settings.values(), *end, SHOW])[-1]
            except SQLError:
                each = {f"{name}={wanted[name]}": statement for name, statement in settings.items()}
                rows = self._set_singly(node, each, begin, end)
            names = wrong = _deviations(
                wanted, {name.lower(): "" if value is None else str(value) for name, value in rows}
            )
            if not wrong:
                with contextlib.suppress(SQLError):  # without a digest, all variables are read each time
                    self._digests[key] = node.query(_digest(node))
                return
        left = {name: f"{now} instead of {wanted[name]}" for name, now in wrong.items()}
        raise ProvisionError(f"after a switch of {node.name}, these variables differ from a cold start: {left}")

    def _restart(self, node: Node, names: Collection[str]) -> tuple[Sequence[str], Sequence[str]]:
        """The statements before and after the settings of a replica, if its appliers read one of these variables."""
        topology, read = self.cluster.topology, node.dialect.replication.read_by_appliers
        if not topology.restarts_appliers or read.isdisjoint(names) or node in self.cluster.writers:
            return (), ()
        return RESTART[:1], RESTART[1:]

    @staticmethod
    def _set_singly(
        node: Node, settings: Mapping[str, str], begin: Sequence[str], end: Sequence[str]
    ) -> list[tuple[Any, ...]]:
        """Run the statements one by one, to name the one that the server refuses; return all variables.

        settings: each statement by ``NAME=VALUE``.
        """
        try:
            for statement in begin:
                node.query(statement)
            for setting, statement in settings.items():
                try:
                    node.query(statement)
                except SQLError as error:
                    raise ProvisionError(f"could not switch {node.name} to {setting}: {error}") from error
        finally:
            for statement in end:  # also after a refused one
                node.query(statement)
        return node.query(SHOW)

    @staticmethod
    def _has_digest(node: Node, settings: Sequence[str], wanted: object) -> bool:
        """Whether all variables have, after these settings, the values of an earlier switch. wanted: their digest.

        The server makes the digest, because reading and comparing 600 variables here takes three times as long.
        """
        if wanted is None:
            return False
        try:
            return node.batch([*settings, _digest(node)])[-1] == wanted
        except SQLError:  # the statements one by one say why
            return False

    def _match_appliers(self, changes: Mapping[str, str], names: Iterable[str], seconds: float = 20.0) -> None:
        """Write until every node has the right number of appliers: a surplus applier ends only at a writeset.

        If variants differ in that number, each switch writes at least once.
        """
        nodes, cold = self.cluster.nodes, self._cold_start(self.cluster.nodes[0])
        words = nodes[0].dialect.galera
        # Servers outside a Galera cluster may have the variable too, but no applier.
        if words is None or cold.get("wsrep_provider", "none") in ("", "none"):
            return
        wanted = int({**cold, **changes}[words.appliers[0]])
        limit = time.monotonic() + seconds
        if not set(words.appliers).isdisjoint(names):
            self._write(WRITESETS)
        while wrong := _wrong_appliers(nodes, wanted):
            if time.monotonic() > limit:
                counts = [f"{name} has {count}" for name, count in wrong.items()]
                raise NotReady(f"{formatting.quantity(wanted, 'applier')} on each node", seconds, counts)
            self._write(max(1, max(wrong.values()) - wanted))

    def _write(self, writesets: int) -> None:
        """Let each node apply so many writesets of others."""
        nodes = self.cluster.nodes
        if not self._has_table:
            nodes[0].query(f"CREATE DATABASE IF NOT EXISTS {WRITES_TABLE.split('.')[0]}")
            nodes[0].query(f"CREATE TABLE IF NOT EXISTS {WRITES_TABLE} (node INT PRIMARY KEY, times BIGINT)")
            rows = ", ".join(f"({number}, 0)" for number in range(len(nodes)))
            nodes[0].query(f"INSERT IGNORE INTO {WRITES_TABLE} VALUES {rows}")
            # Galera gives them to the other nodes after the statements have returned on this one.
            wait.until(
                lambda: [node.name for node in nodes if not _has_rows(node, len(nodes))], WRITES_TABLE, seconds=20
            )
            self._has_table = True
        # Every node writes, since a node applies only the writes of others. It writes a row of its own: a write that
        # meets another node's, which is still being applied, ends with a deadlock (1213).
        times = math.ceil(writesets / max(1, len(nodes) - 1))
        with wait.threads(len(nodes)) as threads:
            list(threads.map(lambda number: _write_row(nodes[number], number, times), range(len(nodes))))


def _write_row(node: Node, number: int, times: int) -> None:
    node.batch([f"UPDATE {WRITES_TABLE} SET times = times + 1 WHERE node = {number}"] * times)


def _wrong_appliers(nodes: Sequence[Node], wanted: int) -> dict[str, int]:
    """The numbers of appliers of the nodes that still have another one after APPLY_SECONDS, in which they may apply."""
    limit = time.monotonic() + APPLY_SECONDS
    while True:
        found = zip(nodes, of_each(nodes, _appliers), strict=True)
        wrong = {node.name: count for node, count in found if count is not None and count != wanted}
        if not wrong or time.monotonic() > limit:
            return wrong
        time.sleep(POLL)


def _has_rows(node: Node, count: int) -> bool:
    try:
        return int(node.query(f"SELECT COUNT(*) FROM {WRITES_TABLE}")[0][0]) >= count
    except SQLError:  # the table is not there yet
        return False


def _appliers(node: Node) -> int | None:
    """The number of Galera appliers of a node; None if the release does not report it."""
    count = node.status("wsrep_applier_thread_count").get("wsrep_applier_thread_count")
    return None if count is None else int(count)


def is_switched(name: str) -> bool:
    """Whether a switch sets and compares a variable."""
    return not is_identity(name) and name != NAMED_AT_START


def _deviations(wanted: Mapping[str, str], running: Mapping[str, str]) -> dict[str, str]:
    """The running values of variables that differ from ``wanted``, without those of the server's identity."""
    return {name: now for name, (_, now) in differences(wanted, running).items() if is_switched(name)}


def _statements(wanted: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """By name of a variable, the statement that gives it its value."""
    return {name: f"SET GLOBAL {name} = {_literal(wanted[name])}" for name in sorted(names)}


def _digest(node: Node) -> str:
    """The statement for the number of variables that a switch compares, and for a digest of their values."""
    ours = ", ".join(f"'{name}'" for name in sorted({*IDENTITY, NAMED_AT_START}))
    value = "CONCAT(LOWER(variable_name), '=', COALESCE(variable_value, ''))"
    return (
        f"SELECT COUNT(*), BIT_XOR(CAST(CONV(LEFT(SHA2({value}, 256), 16), 16, 10) AS UNSIGNED)) "
        f"FROM {node.dialect.variables_table} WHERE LOWER(variable_name) NOT IN ({ours}) "
        f"AND LEFT(LOWER(variable_name), {len(IDENTITY_PREFIX)}) <> '{IDENTITY_PREFIX}'"
    )


def _literal(value: str) -> str:
    """A value as an SQL literal: numbers as they are, anything else in quotes."""
    if value.lstrip("-").replace(".", "", 1).isdigit():
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
