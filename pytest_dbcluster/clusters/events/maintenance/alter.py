"""``Alter``: a schema change under load, by one of the methods that people choose between."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.events import event
from pytest_dbcluster.clusters.events.event import Event, Happened, Stage
from pytest_dbcluster.clusters.events.maintenance import altered_table, schema_tool
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.errors import ConfigError, ProvisionError

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.events.maintenance.altered_table import AlterTable, TableState
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.releases.release import Release
    from pytest_dbcluster.rounds.outages.outage import Returned
    from pytest_dbcluster.spec import ClusterSpec

TOI, RSU, INSTANT, COPY, PT_OSC = "TOI", "RSU", "INSTANT", "COPY", "pt-osc"
METHODS = ("", TOI, RSU, INSTANT, COPY, PT_OSC)
GALERA_METHODS = (TOI, RSU)
REHEARSAL = "dbcluster_rehearsal"  # schema in which a change is tried before the load starts
EVERYWHERE_SECONDS = 300.0  # until each node must have the change
RSU_SECONDS = 60.0  # of one node, with all its tries
LOCK_WAIT_TIMEOUT = 1205
PAUSED = re.compile(r"provider paused", re.IGNORECASE)  # a line of the error log
ALGORITHM = re.compile(r"\bALGORITHM\b", re.IGNORECASE)
FOREIGN = re.compile(r"\b(FOREIGN|REFERENCES)\b", re.IGNORECASE)  # a copy by LIKE has no foreign keys


@dataclasses.dataclass(frozen=True)
class Alter(Event):
    """Change a table while the load runs. After the load, ``undo`` brings the table back."""

    statement: str
    """``ALTER TABLE name ...`` or ``ALTER TABLE schema.name ...``. Only one schema may have a table of a bare name."""

    method: str = ""
    """``TOI`` or ``RSU`` on Galera, ``INSTANT`` or ``COPY`` (ALGORITHM); empty for the statement as it is. ``RSU``
    changes node after node, each outside the cluster's order. ``pt-osc``: pt-online-schema-change, on MariaDB.
    """

    undo: str = ""
    """The ALTER TABLE statement that undoes the change. Empty: the inverse of one ADD INDEX or ADD COLUMN."""

    lock_wait: int = 1
    """With ``RSU``: lock_wait_timeout in seconds. A paused node and a commit can wait for each other; then the ALTER
    begins again.
    """

    _tool: Release | None = dataclasses.field(default=None, repr=False, compare=False)
    """pt-online-schema-change, set by ``equip``; None for other methods."""

    def __str__(self) -> str:
        return f"alter{f' by {self.method}' if self.method else ''}: {' '.join(str(self.statement).split())}"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for an unknown method, one that the topology lacks, and a change that nobody can undo."""
        wanted = altered_table.parse(self.statement, "Alter(statement)")
        if self.method not in METHODS:
            known = ", ".join(f'"{name}"' for name in METHODS[1:])
            raise ConfigError(f"Alter(method={self.method!r}): it accepts {known} or nothing")
        if self.method in GALERA_METHODS and spec.topology != "galera":
            raise ConfigError(f"Alter(method={self.method!r}) is a method of Galera; {spec} is {spec.topology}")
        if self.method == RSU and spec.nodes < 2:
            raise ConfigError(f'Alter(method="RSU") changes node after node; {spec} has one')
        if self.method in (INSTANT, COPY, PT_OSC) and ALGORITHM.search(wanted.change):
            raise ConfigError(f"Alter(method={self.method!r}): the statement has an ALGORITHM, too; name one")
        if not isinstance(self.lock_wait, int) or isinstance(self.lock_wait, bool) or self.lock_wait < 1:
            raise ConfigError(f"Alter(lock_wait={self.lock_wait!r}): it accepts whole seconds, from 1")
        undo = self._undo
        if (undo.schema, undo.table) != (wanted.schema, wanted.table):
            raise ConfigError(f"Alter(undo={self.undo!r}) does not change the table of the statement")

    def equip(self, start: Stage, stages: Sequence[Stage]) -> Self:
        """Return the event with its tool. Raises ConfigError for another server than MariaDB, and ProvisionError."""
        if self.method != PT_OSC:
            return self
        for release in start.releases:
            if release.upstream != "mariadb":
                raise ConfigError(f'Alter(method="{PT_OSC}"): we run it on MariaDB only, not on {release.name}')
        return dataclasses.replace(self, _tool=schema_tool.fetch())

    @property
    def _change(self) -> AlterTable:
        return altered_table.parse(self.statement, "Alter(statement)")

    @property
    def _undo(self) -> AlterTable:
        change = self._change
        if not self.undo and not change.inverse:
            raise ConfigError(f'{self}: name the statement that undoes it: Alter(..., undo="ALTER TABLE ...")')
        if self.undo:
            return altered_table.parse(self.undo, "Alter(undo)")
        return dataclasses.replace(change, change=change.inverse)

    @property
    def _algorithm(self) -> str:
        return f", ALGORITHM={self.method}" if self.method in (INSTANT, COPY) else ""

    def moves_writes(self, topology: Topology) -> bool:
        """Return False: every node stays."""
        return False

    def prepare(self, cluster: Cluster) -> None:
        """Try the change and its undoing on an empty copy of the table. Raises ConfigError for one that fails.

        pt-online-schema-change tries the change on an empty copy, too.
        """
        writer, change = cluster.writers[0], self._change
        schema = altered_table.find_schema(writer, change)
        if not FOREIGN.search(change.change):
            self._rehearse(cluster, writer, schema)
        if self._tool:
            try:
                schema_tool.run(self._tool, writer, change, schema, dry=True)
            except ProvisionError as error:
                raise ConfigError(f"{self}: {error}") from None

    def _rehearse(self, cluster: Cluster, writer: Node, schema: str) -> None:
        """Try the change and its undoing on an empty copy of the table, on one node alone. Raises ConfigError."""
        change = self._change
        copy = altered_table.quote(REHEARSAL, change.table)
        with writer.separate() as alone:
            # No other node takes part: it would log an [ERROR] line for a change that the writer refuses.
            alone.query("SET SESSION sql_log_bin = 0")
            if cluster.spec.topology == "galera":
                alone.query("SET SESSION wsrep_on = OFF")
            try:
                alone.query(f"CREATE DATABASE {REHEARSAL}")
                alone.query(f"CREATE TABLE {copy} LIKE {altered_table.quote(schema, change.table)}")
                before = altered_table.state(writer, REHEARSAL, change.table)
                alone.query(change.statement(copy, self._algorithm))
                alone.query(self._undo.statement(copy))
                after = altered_table.state(writer, REHEARSAL, change.table)
            except SQLError as error:
                if error.lost:
                    raise
                raise ConfigError(f"{self}: the server refuses it: {error.number} {error.reason}") from None
            finally:
                alone.query(f"DROP DATABASE IF EXISTS {REHEARSAL}")
        if before.definition != after.definition:
            raise ConfigError(
                f"{self}: {self._undo.change} does not bring the table back, which is then\n{after.definition}"
            )

    def act(self, cluster: Cluster) -> Happened:
        """Change the table. The proof is its definition on every node, and by method the table's id or the log."""
        schema = altered_table.find_schema(cluster.writers[0], self._change)
        before = self._states(cluster, schema)
        happened = Happened(time.time(), before=(schema, before))
        try:
            if self.method == RSU:
                for node in event.writer_last(cluster):
                    self._alter_alone(node, self._change, schema)
                    happened.mark(f"{node.name} altered")
            elif self._tool:
                schema_tool.run(self._tool, cluster.writers[0], self._change, schema)
                happened.mark("altered")
            else:
                self._alter(cluster.writers[0], self._change, schema)
                happened.mark("altered")
        except (SQLError, ProvisionError) as error:
            happened.void = f"{error}"
            return happened
        self._wait(cluster, happened, changed=True)  # an error here is an outcome of the event
        happened.mark("altered on all nodes")
        happened.void = self._wrong_algorithm(cluster, happened)
        return happened

    def restore(self, cluster: Cluster, happened: Happened) -> Returned | None:
        """Undo the change, and wait until every node has its earlier definition. Raises ProvisionError."""
        try:
            self._restore_table(cluster, *happened.before)
            self._wait(cluster, happened, changed=False)
        except SQLError as error:
            raise ProvisionError(f"{self._undo.change} does not undo {self}: {error}") from error
        return super().restore(cluster, happened)

    def _restore_table(self, cluster: Cluster, schema: str, before: Mapping[str, TableState]) -> None:
        there = self._states(cluster, schema)
        changed = [node for node in cluster.nodes if _changes(before[node.name], there[node.name], copies=False)]
        if self.method == RSU:
            for node in changed:
                self._alter_alone(node, self._undo, schema)
        elif changed:
            _run(cluster.writers[0], [], self._undo.statement(altered_table.quote(schema, self._undo.table)))

    def _alter(self, node: Node, change: AlterTable, schema: str) -> None:
        settings = ["SET SESSION wsrep_OSU_method = 'TOI'"] if self.method == TOI else []
        _run(node, settings, change.statement(altered_table.quote(schema, change.table), self._algorithm))

    def _alter_alone(self, node: Node, change: AlterTable, schema: str) -> None:
        """Change the table of one node by RSU, again after each lock wait timeout. Raises SQLError, ProvisionError."""
        seen, limit = node.log_size(), time.monotonic() + RSU_SECONDS
        settings = ["SET SESSION wsrep_OSU_method = 'RSU'", f"SET SESSION lock_wait_timeout = {self.lock_wait}"]
        while True:
            try:
                _run(node, settings, change.statement(altered_table.quote(schema, change.table)))
                break
            except SQLError as error:
                if error.number != LOCK_WAIT_TIMEOUT or time.monotonic() > limit:
                    raise
            wait.raise_if_interrupted()
        if not PAUSED.search(node.log_text(seen)):
            raise ProvisionError(f"the error log of {node.name} does not say that its provider paused")

    def _wait(self, cluster: Cluster, happened: Happened, *, changed: bool) -> None:
        """Wait until every node has the change, or does not have it. Raises NotReady."""
        schema, before = happened.before

        def problems() -> list[str]:
            now = self._states(cluster, schema)
            wrong = [name for name in now if _changes(before[name], now[name], copies=changed) != changed]
            return [f"{name}: its definition is {'' if changed else 'not '}the one before" for name in wrong]

        wait.until(problems, f"table {self._change.table}", seconds=EVERYWHERE_SECONDS)

    def _states(self, cluster: Cluster, schema: str) -> dict[str, TableState]:
        return {node.name: altered_table.state(node, schema, self._change.table) for node in cluster.nodes}

    def _wrong_algorithm(self, cluster: Cluster, happened: Happened) -> str:
        """Why the ids of the table do not show the method; empty if they do, or need not."""
        if self.method not in (INSTANT, COPY, PT_OSC):
            return ""
        schema, before = happened.before
        for name, now in self._states(cluster, schema).items():
            if not now.table_id:
                return f"{name} has no id of the table, which would show whether the table was copied"
            if (copied := now.table_id != before[name].table_id) != (self.method != INSTANT):
                return f"{name} has {'another' if copied else 'the same'} id of the table than before"
        return ""


def _changes(before: TableState, now: TableState, *, copies: bool) -> bool:
    """Whether the definition of a table changed. copies: a copy of the table is a change, too."""
    return now.definition != before.definition or (copies and now.table_id != before.table_id)


def _run(node: Node, settings: list[str], statement: str) -> None:
    """Run a statement on a separate connection, so that it keeps no other statement of ours waiting."""
    with node.separate() as connection:
        connection.run(settings)
        connection.query(statement, wait.SLOW_SECONDS)
