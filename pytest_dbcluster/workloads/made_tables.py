"""Tables that a user's schema or script makes: the engines that a topology replicates, and copies for a reset."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.clusters import table_rows

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.node import Node

TRANSACTIONAL = ("INNODB", "ROCKSDB")
REPLICATING = ("galera", "group_replication")  # topologies that replicate rows of such engines only


def why_unreplicated(topology: str, name: str, engine: str) -> str:
    """Why a topology does not replicate the rows of a table with this engine; empty if it does."""
    if topology not in REPLICATING or engine.upper() in ("", *TRANSACTIONAL):
        return ""
    return f"table {name} has engine {engine}, and {topology} replicates InnoDB tables only"


def without_foreign_keys(node: Node, statements: Sequence[str]) -> None:
    """Run statements that change parents and children in any order."""
    if not statements:
        return
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

    def keep(self, node: Node, names: Sequence[str]) -> None:
        """Copy these tables."""
        for name in names:
            table, copy = self._places(name)
            node.query(f"DROP TABLE IF EXISTS {copy}")
            node.query(f"CREATE TABLE {copy} LIKE {table}")
            node.query(table_rows.copy_statement(node, table, copy), wait.SLOW_SECONDS)

    def restore(self, node: Node, names: Sequence[str]) -> list[str]:
        """Give the tables that differ from their copies the rows of these, and return the names of these tables."""
        places = dict(map(self._places, names))
        changed = table_rows.changed_tables(node, places)
        statements = []
        for table in changed:
            statements += [f"TRUNCATE TABLE {table}", table_rows.copy_statement(node, places[table], table)]
        without_foreign_keys(node, statements)
        return [name for name in names if self._places(name)[0] in changed]
