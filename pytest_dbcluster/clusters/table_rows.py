"""Whether tables have equal rows: one table on several nodes, or a table and its copy on one node. And their indexes.

MariaDB's CHECKSUM TABLE may differ for equal rows if the table has virtual columns. Then the stored columns decide.
Tables are named as SQL needs them, with their database.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.node import of_each

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.servers.node import Node

CHECKSUM = "CHECKSUM TABLE {}"
COLUMNS = """\
SELECT column_name, extra FROM information_schema.columns WHERE table_schema = {} AND table_name = {}
ORDER BY ordinal_position"""
INDEXES = """\
SELECT DISTINCT index_name FROM information_schema.statistics WHERE table_schema = {} AND table_name = {}
AND index_type = 'BTREE'"""
COMPUTED = re.compile(r"\bGENERATED\b")  # MySQL's DEFAULT_GENERATED is a default


def rows_digest(node: Node, table: str) -> Any:
    """A digest of the rows of a table, which is equal for equal rows. None if the node does not have the table."""
    return node.query(_stored_digest(node, table) or CHECKSUM.format(table), wait.SLOW_SECONDS)[0][1]


def digests_by_node(nodes: Sequence[Node], table: str) -> dict[str, Any]:
    """By node, a digest of the rows of a table; None if the node does not have it."""
    found = _of_each(nodes, CHECKSUM.format(table))
    if len(set(found)) > 1 and None not in found and (statement := _stored_digest(nodes[0], table)):
        found = _of_each(nodes, statement)
    return {node.name: one for node, one in zip(nodes, found, strict=True)}


def changed_tables(node: Node, copies: Mapping[str, str]) -> list[str]:
    """The tables whose rows differ from those of their copies. copies: table -> copy."""
    if not copies:
        return []
    names = ", ".join(name for pair in copies.items() for name in pair)
    sums = [one for _, one in node.query(CHECKSUM.format(names), wait.SLOW_SECONDS)]
    apart = [pair for pair, now, kept in zip(copies.items(), sums[::2], sums[1::2], strict=True) if now != kept]
    return [
        table
        for table, copy in apart
        if not _stored_digest(node, table) or rows_digest(node, table) != rows_digest(node, copy)
    ]


def written_columns(node: Node, table: str) -> list[str]:
    """The columns of a table to which an INSERT gives values, in their order: those that are not computed."""
    return [name for name, extra in _columns(node, table) if not COMPUTED.search(extra)]


def copy_statement(node: Node, source: str, target: str) -> str:
    """The INSERT that copies the rows of a table into another one with the same columns."""
    names = ", ".join(_quote(name, "`") for name in written_columns(node, source))
    return f"INSERT INTO {target} ({names}) SELECT {names} FROM {source}"


def indexes(node: Node, table: str) -> list[str]:
    """The names of the B-tree indexes of a table, as SQL needs them."""
    return [_quote(str(name), "`") for (name,) in node.query(INDEXES.format(*_literals(table)))]


def _of_each(nodes: Sequence[Node], statement: str) -> list[Any]:
    rows = of_each(nodes, lambda node: node.query(statement, wait.SLOW_SECONDS))
    return [found[0][1] for found in rows]


def _stored_digest(node: Node, table: str) -> str:
    """The query for the digest of the stored columns of a table; empty if it has no virtual column."""
    columns = _columns(node, table)
    stored = [_quote(name, "`") for name, extra in columns if "VIRTUAL" not in extra]
    if len(stored) == len(columns):
        return ""
    values = ", ".join(f"ISNULL({name}), CAST({name} AS BINARY)" for name in stored)
    return f"SELECT '', CONCAT(COUNT(*), ' ', SUM(CRC32(CONCAT_WS('\\0', {values})))) FROM {table}"


def _columns(node: Node, table: str) -> list[tuple[str, str]]:
    """Name and ``extra`` of each column of a table, in upper case."""
    rows = node.query(COLUMNS.format(*_literals(table)))
    return [(str(column), str(extra).upper()) for column, extra in rows]


def _literals(table: str) -> list[str]:
    """Schema and name of a table, as SQL texts."""
    schema, _, name = table.partition(".")
    return [_quote(_plain(one).replace("\\", "\\\\"), "'") for one in (schema, name)]


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _quote(name: str, quote: str) -> str:
    return quote + name.replace(quote, quote * 2) + quote
