"""The table of a schema change: what an ALTER TABLE statement names, and how a node describes the table."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_dbcluster import formatting, wait
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.errors import ConfigError

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.node import Node

NAME = r"(?:`[^`]+`|\w+)"
ALTER = re.compile(rf"\s*ALTER\s+TABLE\s+(?:({NAME})\s*\.\s*)?({NAME})\s+(\S.*?)[\s;]*", re.IGNORECASE | re.DOTALL)
GROUPED = re.compile(r"'[^']*'|\"[^\"]*\"|\([^()]*\)")
ADD_INDEX = re.compile(rf"ADD\s+(?:UNIQUE\s+|FULLTEXT\s+)?(?:INDEX|KEY)\s+({NAME})\s*\(", re.IGNORECASE)
ADD_COLUMN = re.compile(rf"ADD\s+COLUMN\s+({NAME})\s", re.IGNORECASE)
COUNTER = re.compile(r" AUTO_INCREMENT=\d+")  # the rows of the load move it
SYSTEM = "('information_schema', 'mysql', 'performance_schema', 'sys')"
DEADLOCK = 1213  # also for a statement that a change of its table ends
STATE_SECONDS = 10.0  # for the description of a table that changes
TABLE_IDS = {"mariadb": "innodb_sys_tables", "mysql": "innodb_tables"}  # by vendor


@dataclasses.dataclass(frozen=True)
class AlterTable:
    """An ALTER TABLE statement in its parts."""

    schema: str
    """Name of the schema; empty if the statement names none."""

    table: str
    """Name of the table."""

    change: str
    """What follows the table."""

    def statement(self, table: str, more: str = "") -> str:
        """Return the statement for a table. more: text that follows the change."""
        return f"ALTER TABLE {table} {self.change}{more}"

    @property
    def inverse(self) -> str:
        """The change that undoes the addition of one index or one column; empty for other changes."""
        text = self.change
        while (shorter := GROUPED.sub("", text)) != text:
            text = shorter
        if "," in text:
            return ""
        for pattern, kind in ((ADD_INDEX, "INDEX"), (ADD_COLUMN, "COLUMN")):
            if found := pattern.match(self.change):
                return f"DROP {kind} {found[1]}"
        return ""


def parse(statement: object, name: str) -> AlterTable:
    """Return the parts of an ALTER TABLE statement. Raises ConfigError; ``name`` is the argument in its text."""
    found = ALTER.fullmatch(statement) if isinstance(statement, str) else None
    if not found:
        raise ConfigError(f"{name}={statement!r}: it accepts a statement ALTER TABLE name ...")
    schema, table, change = (part or "" for part in found.groups())
    return AlterTable(schema.strip("`"), table.strip("`"), change)


@dataclasses.dataclass(frozen=True)
class TableState:
    """A table as one node has it."""

    definition: str
    """Its CREATE TABLE statement, without the counter of AUTO_INCREMENT."""

    table_id: str
    """InnoDB's id of the table, which a copy of the table changes; empty for a table without one."""


def find_schema(node: Node, wanted: AlterTable) -> str:
    """Return the schema of a table. Raises ConfigError if no schema, or more than one, has the table."""
    condition = f"= '{wanted.schema}'" if wanted.schema else f"NOT IN {SYSTEM}"
    rows = node.query(
        f"SELECT table_schema FROM information_schema.tables WHERE table_name = '{wanted.table}' "
        f"AND table_schema {condition} ORDER BY 1"
    )
    found = [str(schema) for (schema,) in rows]
    if not found:
        known = node.query(
            f"SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables "
            f"WHERE table_schema NOT IN {SYSTEM} ORDER BY table_name = '{wanted.table}' DESC, 1"
        )
        tables = formatting.some([str(name) for (name,) in known], 12) or "none"
        raise ConfigError(f"{wanted.statement(wanted.table)}: there is no such table; the tables are {tables}")
    if len(found) > 1:
        where = f"{len(found)} schemas: {', '.join(found)}"
        raise ConfigError(
            f"{wanted.statement(wanted.table)}: the table is in {where}; write ALTER TABLE schema.table ..."
        )
    return found[0]


def quote(schema: str, table: str) -> str:
    """Return the table as SQL needs it."""
    return f"`{schema}`.`{table}`"


def state(node: Node, schema: str, table: str) -> TableState:
    """Return the table as this node has it. Raises SQLError if the node does not have it."""
    ids = TABLE_IDS[node.dialect.vendor]
    statements = [
        f"SHOW CREATE TABLE {quote(schema, table)}",
        f"SELECT table_id FROM information_schema.{ids} WHERE name = '{schema}/{table}'",
    ]
    changes = "wsrep_provider" in node.options
    [[[_, definition]], rows] = _read_while_it_changes(node, statements) if changes else node.batch(statements)
    return TableState(COUNTER.sub("", definition), str(rows[0][0]) if rows else "")


def _read_while_it_changes(node: Node, statements: Sequence[str]) -> list[list[tuple[Any, ...]]]:
    """Return the rows of each statement; run them again after a change that arrives has ended one of them."""
    limit = time.monotonic() + STATE_SECONDS
    with node.separate() as connection:
        # By default MariaDB 10.11 runs the statement again by itself, also after its first row was sent. Then the
        # answer has two results in one.
        connection.query("SET SESSION wsrep_retry_autocommit = 0")
        while True:
            try:
                return connection.batch(statements)
            except SQLError as error:
                if error.lost:
                    node.raise_if_dead()
                if error.number != DEADLOCK or time.monotonic() > limit:
                    raise
                wait.raise_if_interrupted()
                time.sleep(0.01)
