"""``SQLFiles``: a directory with a schema, data and transactions in SQL, run by sysbench with retries and a ledger.

Each transaction file is one type of transaction. A file may have several units, each of which is tried again alone
after a conflict: transactions from BEGIN to COMMIT, and statements that commit by themselves (``language.flow``).
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_dbcluster import calls
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import near
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.workloads.driver_workload import DriverWorkload
from pytest_dbcluster.workloads.schema_mark import SchemaMark
from pytest_dbcluster.workloads.workload import Setting

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.workloads.sql.directory import SQLDirectory
    from pytest_dbcluster.workloads.sql.language.lua_code import Program
    from pytest_dbcluster.workloads.sql.language.statements import Statement
    from pytest_dbcluster.workloads.sql.tables import UserTable
    from pytest_dbcluster.workloads.sysbench_driver import Call

DRIFT = "row_drift"  # the figure with the rows that the tables have more than after loading


def _quoted_name(table: str) -> str:
    """The name of a table as SQL needs it after its database."""
    return table if re.fullmatch(r"\w+", table) else "`" + table.replace("`", "``") + "`"


@calls.check_arguments('SQLFiles("shop", threads=16)', instead={"concurrency": "threads", "retries": "attempts"})
@dataclasses.dataclass(frozen=True)
class SQLFiles(DriverWorkload):
    """The transactions of a directory, drawn by their weights. ``workload.toml`` in it names its files."""

    directory: str | os.PathLike[str]
    """The directory, relative to the working directory."""

    threads: int = 16
    seconds: float | None = None
    rate: float | str | None = None
    transactions: Sequence[str] | None = None
    """Files with weights, such as ``["browse.sql@9", "history.sql"]``; None for those of ``workload.toml``."""

    variables: Mapping[str, int | float | str | bool] | Sequence[tuple[str, int | float | str | bool]] | None = None
    """Values of variables, which replace those of ``workload.toml``."""

    to: str | None = None
    """``writer``, ``reader`` or ``all``. None is the proxy if the cluster has one, otherwise every node that can run
    the transactions.
    """

    isolation: str | None = None
    prepared: bool = True
    """Whether the server prepares the statements. Those with a list or RETURNING, or whose row is read, go as text."""

    attempts: int | None = None
    """Maximum number of attempts of one transaction, which then counts as failed; None for that of ``workload.toml``,
    usually 100.
    """

    seed: int = 1

    content: str = dataclasses.field(init=False)
    """A digest of the files, and of the given transactions and variables."""

    read: SQLDirectory = dataclasses.field(init=False, repr=False, compare=False)
    """What is in the directory."""

    program: Program = dataclasses.field(init=False, repr=False, compare=False)
    """The transactions as a program."""

    def _check_fields(self) -> None:
        self._check("sql", {"attempts": 1}, ("prepared",))

    def __post_init__(self) -> None:
        from pytest_dbcluster.workloads.sql import directory as directories
        from pytest_dbcluster.workloads.sql.language import lua_code

        super().__post_init__()
        variables = dict(self.variables) if self.variables else None
        found = directories.read(self.directory, self.transactions, variables)
        program = lua_code.compile_scripts(found.scripts, found.manifest.variables, prepared=self.prepared)
        fixed = {
            "directory": os.fspath(self.directory),
            "transactions": self.transactions and tuple(self.transactions),
            "variables": variables and tuple(variables.items()),
            "content": found.content,
            "read": found,
            "program": program,
        }
        self._fix(fixed)

    def __str__(self) -> str:
        parts = [f"sql {self.read.name} t{self.threads}"]
        if self.transactions:
            parts.append(" of " + ",".join(each.removesuffix("@1").replace(".sql", "") for each in self.transactions))
        parts += [f" {name}={value}" for name, value in dict(self.variables or {}).items()]
        return self._name("".join(parts), self.to, "" if self.prepared else " as text")

    @property
    def writes(self) -> bool:
        """Whether a transaction changes tables."""
        return any(statement.writes for statement in self._statements)

    @property
    def tables(self) -> Sequence[str]:
        """The tables that must be equal on all nodes afterwards."""
        return tuple(f"{self.database}.{_quoted_name(table)}" for table in self.read.tables)

    @property
    def files(self) -> Mapping[str, str]:
        """The SHA-256 of each file, such as ``shop/order.sql``, when it was read; of large files the size."""
        return {f"{self.read.name}/{name}": digest for name, digest in self.read.digests.items()}

    @property
    def own_name(self) -> str:
        """The name of the directory, with the given transactions."""
        return self.read.name + self._given_transactions

    @property
    def option(self) -> str:
        """The directory with a slash, relative to the working directory if it is below it, and its transactions."""
        return f"{near(self.read.path, Path.cwd())}/{self._given_transactions}"

    @property
    def _given_transactions(self) -> str:
        return f":{','.join(self.transactions)}" if self.transactions else ""

    @property
    def parts(self) -> Sequence[str]:
        """The names of the transactions, then those of their statements."""
        return (*(script.name for script, _ in self.read.scripts), *self.program.statements)

    def names_in(self, field: str) -> Sequence[str] | None:
        """The variables that the workload has."""
        return tuple(self.read.manifest.variables) if field == "variables" else None

    @property
    def database(self) -> str:
        """The database of the tables."""
        return self.read.manifest.database

    @property
    def data_set(self) -> str:
        """The name of the data set: a digest of the schema, the data and what else decides what the tables hold."""
        return f"sql {self.read.name} {self.read.data_digest}"

    @property
    def data_set_bytes(self) -> int:
        """Approximate bytes of the tables on disk, from the files of data and the numbers of rows; 0 if unknown."""
        return self.read.data_bytes

    @property
    def _mark(self) -> SchemaMark:
        from pytest_dbcluster.workloads.sql import directory as directories

        return SchemaMark(self.database, directories.VERSION, self.data_set)

    def populate(self, setting: Setting) -> None:
        """Make the database, load schema and data, run what follows them, and analyze the tables on each node.

        Raises ConfigError with file and line.
        """
        from pytest_dbcluster.workloads.sql import table_statistics, tables

        setting.progress(f"{self}: loading {self.read.path}")
        self.read.require_unchanged()
        self.clean(setting)
        node = setting.cluster.writers[0]
        node.query(f"CREATE DATABASE `{self.database}`")
        with table_statistics.without_recalculation(setting.cluster.nodes):
            self._load(setting, node)
            self._refuse_unread(tables.user_tables(node, self.database))
            tables.keep_loaded(node, self.database, keys=self.read.manifest.reset == "surplus")
            made = [table.name for table in tables.user_tables(node, self.database)]
            if self.read.manifest.reset == "copy":
                tables.copies(self.database).keep(node, made)
            table_statistics.analyze(setting.cluster, self.database, made)
        self._mark.write(node)

    def _load(self, setting: Setting, node: Node) -> None:
        """Run the schema and the data on one node."""
        from pytest_dbcluster.clusters.servers.connection import Connection
        from pytest_dbcluster.workloads.sql import loading, statement_check, tables

        connection = Connection(node.name, node.endpoint, look=node.look)
        try:
            loading.Loader(self.read, connection).load(
                lambda names: tables.refuse_unfit(setting.cluster, self.database, names),
                lambda: self._check_statements(setting, node),
                lambda: self._check_statements(setting, node, statement_check.LASTING),
            )
        finally:
            connection.close()

    def _check_statements(self, setting: Setting, node: Node, numbers: Sequence[int] = ()) -> None:
        """Let the server check each statement before rows are loaded. Raises ConfigError.

        If files of SQL follow, they may make what a statement needs. Then the error is only shown, except with
        ``numbers``, which are those of errors that last.
        """
        from pytest_dbcluster.workloads.sql import statement_check

        try:
            statement_check.check(node, self.database, self.read.scripts, self.read.manifest.variables, numbers)
        except ConfigError as error:
            if numbers or not self.read.later_sql:
                raise
            later = " and ".join(self.read.later_sql)
            setting.progress(f"{self}: {error}; after {later} the server checks it again")

    def _refuse_unread(self, made: Sequence[UserTable]) -> None:
        """Raise ConfigError for a table that no CREATE TABLE shows: it would not be compared between nodes."""
        if names := [table.name for table in made if table.name not in self.read.tables]:
            raise ConfigError(
                f"{self.read.name}/{self.read.manifest.data}: it makes table {names[0]}, and the schema has no CREATE "
                "TABLE of it: add it there, or leave `schema` out if a dump makes all tables"
            )

    def unfit(self, topology: str) -> str:
        """Why a topology does not replicate a table, as far as the files show it; empty if it does."""
        from pytest_dbcluster.workloads.sql import tables

        found = ((each, tables.unfit(topology, each.name, each.engine, each.keyed)) for each in self.read.created)
        return next((f"{table.place}: {reason}" for table, reason in found if reason), "")

    def prepare(self, setting: Setting) -> None:
        """Load the tables unless the cluster has them, and let the server check each statement.

        Raises ConfigError for tables that the topology does not replicate, and for a statement that the server refuses.
        It raises it too if an endpoint accepts no writes. Raises Unsupported for an old sysbench.
        """
        from pytest_dbcluster.workloads.sql import statement_check, tables

        self._require_tools(setting)
        node = setting.cluster.writers[0]
        if not self._mark.stands(node):
            self.populate(setting)
        tables.refuse_unfit(setting.cluster, self.database)
        for line in tables.remarks(setting.cluster, self.database):
            setting.progress(f"{self}: {line}")
        if self.read.manifest.reset == "surplus":
            tables.refuse_unremovable(tables.loaded_tables(node, self.database), self._targets, self.read.name)
        if self.read.manifest.reset == "copy":
            tables.refuse_triggers(node, self.database, self.read.name)
        statement_check.check(node, self.database, self.read.scripts, self.read.manifest.variables)

    @property
    def _targets(self) -> set[str]:
        """The tables into which transactions insert."""
        return {statement.target for statement in self._statements if statement.target}

    @property
    def _removes(self) -> bool:
        """Whether a transaction may remove rows."""
        return any(statement.verb in ("CALL", "DELETE", "REPLACE") for statement in self._statements)

    @property
    def _statements(self) -> Iterator[Statement]:
        """The statements of all transactions."""
        from pytest_dbcluster.workloads.sql.language.scripts import all_statements

        return (each for script, _ in self.read.scripts for each in all_statements(script.block))

    def reset(self, setting: Setting) -> None:
        """Restore the tables as ``reset`` of workload.toml says."""
        from pytest_dbcluster.clusters.servers.connection import Connection
        from pytest_dbcluster.workloads.sql import loading, table_statistics, tables

        node, reset = setting.cluster.writers[0], self.read.manifest.reset
        if reset == "surplus":
            loaded = tables.loaded_tables(node, self.database)
            tables.remove_surplus(node, self.database, loaded, self._targets, removes=self._removes)
        elif reset == "copy":
            names = [table.name for table in tables.loaded_tables(node, self.database)]
            changed = tables.copies(self.database).restore(node, names)
            table_statistics.analyze(setting.cluster, self.database, changed)
        elif reset != "none":
            connection = Connection(node.name, node.endpoint, look=node.look)
            try:
                loading.Loader(self.read, connection).run_file(reset)
            finally:
                connection.close()

    def observe(self, setting: Setting) -> tuple[RunResult, list[dict[str, Any]]]:
        """Run one round, and return its result and the report of each thread. Raises what ``run`` raises."""
        from pytest_dbcluster.workloads.sql import tables

        self.read.require_unchanged()
        node = setting.cluster.writers[0]
        figures = {DRIFT: self._drift(node)} if self.writes else {}
        above = tables.largest_number(node, self.database) if self.program.unique else 0
        result, reports = self._drive(self._call(setting, above), setting)
        if self.program.unique and self.read.manifest.reset not in ("surplus", "copy"):
            tables.keep_given(node, self.database, max(int(report["given"]) for report in reports))
        commits = sum(report["commits"] for report in reports) if self.writes else None
        found = {name: result.statements[name] for name in self.program.statements}
        return dataclasses.replace(result, commits=commits, figures=figures, statements=found), reports

    def _drift(self, node: Node) -> float:
        """The rows that all tables have more at the begin of this round than after loading."""
        from pytest_dbcluster.workloads.sql import tables

        return float(sum(tables.row_drift(node, self.database, tables.loaded_tables(node, self.database)).values()))

    def _call(self, setting: Setting, unique_from: int) -> Call:
        from pytest_dbcluster.workloads import sysbench_driver

        own = {"attempts": self.attempts or self.read.manifest.attempts, "unique_from": unique_from}
        to, files = self._endpoints(setting), {"program": self.program.text}
        return sysbench_driver.Call(
            str(self), "sql_files.lua", self.threads, self.database, to, own, self.prepared, files
        )
