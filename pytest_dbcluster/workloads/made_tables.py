"""Tables that a user's schema or script makes: the engines that a topology replicates, and copies for a reset."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_dbcluster import wait

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.node import Node

TRANSACTIONAL = ("INNODB", "ROCKSDB")
REPLICATING = ("galera", "group_replication")  # topologies that replicate rows of such engines only


def why_unreplicated(topology: str, name: str, engine: str) -> str:
    """Why a topology does not replicate the rows of a table with this engine; empty if it does."""
    if topology not in REPLICATING or engine.upper() in ("", *TRANSACTIONAL):
        return ""
    return f"table {name} has engine {engine}, and {topology} replicates InnoDB tables only"


def stored_columns(node: Node, database: str, table: str) -> list[str]:
    """The columns of a table that are not computed."""
    rows = node.query(
        f"SELECT column_name FROM information_schema.columns WHERE table_schema = '{database}' AND "
        f"table_name = '{table}' AND extra NOT LIKE '%GENERATED%' ORDER BY ordinal_position"
    )
    return [str(name) for (name,) in rows]


def without_foreign_keys(node: Node, statements: Sequence[str]) -> None:
    """Run statements that change parents and children in any order."""
    try:
        node.batch(["SET SESSION foreign_key_checks = 0", *statements], wait.SLOW_SECONDS)
    finally:
        node.query("SET SESSION foreign_key_checks = 1")


@dataclasses.dataclass(frozen=True)
class TableCopies:
    """Copies of the tables of a database."""

    database: str
    """The database of the tables."""

    copies: str
    """The database of the copies."""

    prefix: str = ""
    """Begins the names of the copies."""

    def _places(self, name: str) -> tuple[str, str]:
        """A table and its copy, in SQL."""
        return f"`{self.database}`.`{name}`", f"`{self.copies}`.`{self.prefix}{name}`"

    def _insert(self, node: Node, name: str, source: str, target: str) -> str:
        columns = ", ".join(f"`{column}`" for column in stored_columns(node, self.database, name))
        return f"INSERT INTO {target} ({columns}) SELECT {columns} FROM {source}"

    def keep(self, node: Node, names: Sequence[str]) -> None:
        """Copy these tables."""
        for name in names:
            table, copy = self._places(name)
            node.query(f"DROP TABLE IF EXISTS {copy}")
            node.query(f"CREATE TABLE {copy} LIKE {table}")
            node.query(self._insert(node, name, table, copy), wait.SLOW_SECONDS)

    def restore(self, node: Node, names: Sequence[str]) -> list[str]:
        """Give the tables that differ from their copies the rows of these, and return the names of these tables."""
        if not names:
            return []
        places = ", ".join(place for name in names for place in self._places(name))
        sums = [checksum for _, checksum in node.query(f"CHECKSUM TABLE {places}", wait.SLOW_SECONDS)]
        changed = [name for name, now, kept in zip(names, sums[::2], sums[1::2], strict=True) if now != kept]
        statements = []
        for name in changed:
            table, copy = self._places(name)
            statements += [f"TRUNCATE TABLE {table}", self._insert(node, name, copy, table)]
        if statements:
            without_foreign_keys(node, statements)
        return changed
