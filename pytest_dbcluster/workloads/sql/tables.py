"""The tables of a workload on a running cluster: what they held after loading, and how a reset removes new rows.

The table ``LOADED`` in the same database keeps two figures of each table. One is its number of rows. The other is the
largest whole number in the first column of its primary key. If this key is not a single whole number, the reset
``surplus`` needs another table, which keeps all primary keys. The reset ``copy`` needs copies of the tables. All of
these are part of the data set, so clusters that start from a copy have them too.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.clusters import table_rows
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.made_tables import (
    REPLICATING,
    TableCopies,
    why_unreplicated,
    without_foreign_keys,
)
from pytest_dbcluster.workloads.sql.rows.numbered_values import WHOLE, text_literal

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node

LOADED = "dbcluster_loaded"
COPY = "dbcluster_copy_"  # begins the names of copies
KEPT = "dbcluster_keys_"  # begins the names of tables with the primary keys that were loaded
LONGEST_NAME = 64
GIVEN = ""  # in the place of a table's name: the largest number that unique_id() has given
MOST_COUNTED = 1_000_000  # rows: larger tables are not counted in each round
# MariaDB reads all schemas to join tables of information_schema, unless each is asked for one schema by name.
TABLES = """\
SELECT table_name, engine FROM information_schema.tables WHERE table_schema = '{database}'
AND table_type = 'BASE TABLE' ORDER BY table_name"""
KEYS = """\
SELECT table_name, column_name FROM information_schema.statistics WHERE table_schema = '{database}'
AND index_name = 'PRIMARY' ORDER BY table_name, seq_in_index"""
TYPES = """\
SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = '{database}'"""
PRIMARY = """\
SELECT c.column_name, c.column_type, c.collation_name, s.sub_part FROM information_schema.statistics s
JOIN information_schema.columns c ON c.table_schema = '{database}' AND c.table_name = '{table}'
AND c.column_name = s.column_name
WHERE s.table_schema = '{database}' AND s.table_name = '{table}' AND s.index_name = 'PRIMARY' ORDER BY s.seq_in_index"""
UNIQUE_KEYS = """\
SELECT table_name FROM information_schema.statistics WHERE table_schema = '{database}' AND non_unique = 0
GROUP BY table_name, index_name HAVING SUM(nullable = 'YES') = 0"""


@dataclasses.dataclass(frozen=True)
class UserTable:
    """One table of a workload, as the server has it."""

    name: str
    """Name of the table, without its database."""

    engine: str
    """Storage engine, such as ``InnoDB``."""

    key: str
    """The first column of its primary key; empty without one."""

    whole: bool
    """Whether this column has whole numbers."""

    alone: bool
    """Whether this column is the whole primary key."""

    keyed: bool
    """Whether it has a primary key, or a unique key without a column that may be NULL."""


@dataclasses.dataclass(frozen=True)
class LoadedTable:
    """What a table held after loading."""

    name: str
    """Name of the table, without its database."""

    rows: int
    """Number of rows."""

    key: str
    """The first column of its primary key, if it has whole numbers; otherwise empty."""

    largest: int
    """The largest value of this column; 0 for a table without rows."""

    keys: str
    """The table with its loaded primary keys; empty if they are single whole numbers, or if no reset needs them."""


def user_tables(node: Node, database: str) -> list[UserTable]:
    """The tables in the database of a workload, without ours."""
    asked = (query.format(database=database) for query in (UNIQUE_KEYS, TABLES, KEYS, TYPES))
    unique, tables, keys, types = node.batch(list(asked))
    kinds = {(table, column): str(kind).lower() for table, column, kind in types}
    columns = {table: [column for other, column in keys if other == table] for table, _ in tables}
    return [
        UserTable(
            name=str(name),
            engine=str(engine),
            key=str(columns[name][0]) if columns[name] else "",
            whole=bool(columns[name]) and kinds[name, columns[name][0]] in WHOLE,
            alone=len(columns[name]) == 1,
            keyed=(name,) in unique,
        )
        for name, engine in tables
        if not str(name).startswith("dbcluster_")
    ]


def unfit(topology: str, name: str, engine: str, keyed: bool | None) -> str:
    """Why a topology does not replicate a table; empty if it does. keyed: as in UserTable, None if it is not known."""
    if reason := why_unreplicated(topology, name, engine):
        return f"{reason}: write ENGINE=InnoDB in the schema, or leave ENGINE out"
    if topology == "group_replication" and keyed is False:
        return (
            f"table {name} has no primary key, and group_replication refuses writes to such a table: add one to the "
            "schema"
        )
    return ""


def refuse_unfit(cluster: Cluster, database: str, names: Collection[str] | None = None) -> None:
    """Raise ConfigError for a table that the topology of the cluster does not replicate. names: None for all tables."""
    topology = cluster.spec.topology
    if topology not in REPLICATING:
        return
    strict = _refuses_keyless(cluster.writers[0]) if topology == "galera" else ""
    for table in user_tables(cluster.writers[0], database):
        reason = unfit(topology, table.name, table.engine, table.keyed)
        if strict and not table.keyed:
            reason = reason or (
                f"table {table.name} has no primary key, and servers with {strict} refuse writes to such a table: add "
                "one to the schema, or set another value"
            )
        if reason and (names is None or table.name in names):
            raise ConfigError(reason)


def _refuses_keyless(node: Node) -> str:
    """The variable, with its value, with which a server refuses writes to tables without a primary key; or empty."""
    values = node.dialect.galera.keyless if node.dialect.galera else {}
    now = {name: node.pairs(f"SHOW GLOBAL VARIABLES LIKE '{name}'").get(name, "") for name in values}
    return next((f"{name}={value}" for name, value in now.items() if value in values[name]), "")


def remarks(cluster: Cluster, database: str) -> list[str]:
    """What Galera does with tables without a primary key, a line for each of them."""
    if cluster.spec.topology != "galera":
        return []
    return [
        f"table {table.name} has no primary key: nodes of Galera may have its rows in different orders, and each "
        "changed row is searched in the whole table"
        for table in user_tables(cluster.writers[0], database)
        if not table.keyed
    ]


def keep_loaded(node: Node, database: str, *, keys: bool) -> None:
    """Write what the tables hold now into ``LOADED``. keys: whether primary keys are kept, for ``remove_surplus``."""
    place = f"`{database}`.{LOADED}"
    node.query(f"DROP TABLE IF EXISTS {place}")
    node.query(
        f"CREATE TABLE {place} (name VARCHAR(64) PRIMARY KEY, loaded BIGINT NOT NULL, "
        "first_column VARCHAR(64) NOT NULL, largest BIGINT NOT NULL, key_table VARCHAR(64) NOT NULL)"
    )
    node.query(f"INSERT INTO {place} VALUES ('{GIVEN}', 0, '', 0, '')")
    for table in user_tables(node, database):
        key = table.key if table.whole else ""
        largest = f"COALESCE(MAX(`{key}`), 0)" if key else "0"
        kept = _keep_keys(node, database, table.name) if keys and table.key and not (key and table.alone) else ""
        node.query(
            f"INSERT INTO {place} SELECT {text_literal(table.name)}, COUNT(*), {text_literal(key)}, {largest}, "
            f"{text_literal(kept)} FROM `{database}`.`{table.name}`",
            wait.SLOW_SECONDS,
        )


def _keep_keys(node: Node, database: str, table: str) -> str:
    """Make a table with the primary keys of a table, and return its name."""
    name = KEPT + table
    if len(name) > LONGEST_NAME:
        name = KEPT + hashlib.sha256(table.encode()).hexdigest()[:20]
    columns = node.query(PRIMARY.format(database=database, table=table))
    defined = [f"`{one}` {kind}{f' COLLATE {order}' if order else ''} NOT NULL" for one, kind, order, _ in columns]
    primary = ", ".join(f"`{one}`{f'({part})' if part else ''}" for one, _, _, part in columns)
    names, place = ", ".join(f"`{one}`" for one, *_ in columns), f"`{database}`.`{name}`"
    node.query(f"DROP TABLE IF EXISTS {place}")
    node.query(f"CREATE TABLE {place} ({', '.join(defined)}, PRIMARY KEY ({primary}))")
    node.query(f"INSERT INTO {place} ({names}) SELECT {names} FROM `{database}`.`{table}`", wait.SLOW_SECONDS)
    return name


def loaded_tables(node: Node, database: str) -> list[LoadedTable]:
    """What ``keep_loaded`` wrote."""
    rows = node.query(
        f"SELECT name, loaded, first_column, largest, key_table FROM `{database}`.{LOADED} WHERE name <> '{GIVEN}' "
        "ORDER BY name"
    )
    return [LoadedTable(str(name), int(count), str(key), int(most), str(keys)) for name, count, key, most, keys in rows]


def refuse_unremovable(loaded: Sequence[LoadedTable], targets: Collection[str], place: str) -> None:
    """Raise ConfigError if transactions insert into a table from which a reset cannot remove new rows."""
    for table in loaded:
        if table.name in targets and not table.key and not table.keys:
            raise ConfigError(
                f'{place}: reset = "surplus" finds new rows by their primary keys, and table {table.name} has none: '
                'add one to the schema, or use reset = "none", "copy", or a file of SQL'
            )


def remove_surplus(
    node: Node, database: str, loaded: Sequence[LoadedTable], targets: Collection[str], *, removes: bool
) -> None:
    """Delete the rows that were not loaded. It leaves updated rows as they are.

    targets: the tables into which transactions insert. Only there, rows are compared with keys that were kept.
    removes: whether transactions may remove rows. If not, a table with as many rows as were loaded has no others.
    """
    places = {table.name: f"`{database}`.`{table.name}`" for table in loaded}
    above = [f"DELETE FROM {places[one.name]} WHERE `{one.key}` > {one.largest}" for one in loaded if one.key]
    without_foreign_keys(node, above)
    kept = [table for table in loaded if table.keys and table.name in targets]
    if not removes and not _table_with_triggers(node, database):
        drift = row_drift(node, database, kept, most=None)
        kept = [table for table in kept if drift[table.name]]
    deletes = []
    for table in kept:
        place, keys = places[table.name], f"`{database}`.`{table.keys}`"
        names = table_rows.written_columns(node, keys)
        same = " AND ".join(f"{place}.`{name}` = {keys}.`{name}`" for name in names)
        deletes.append(f"DELETE {place} FROM {place} LEFT JOIN {keys} ON {same} WHERE {keys}.`{names[0]}` IS NULL")
    without_foreign_keys(node, deletes)


def copies(database: str) -> TableCopies:
    """The copies of the tables of a database, in the same one."""
    return TableCopies(database, database, COPY)


def refuse_triggers(node: Node, database: str, place: str) -> None:
    """Raise ConfigError if a table has triggers: they would fire while rows are copied back."""
    if name := _table_with_triggers(node, database):
        raise ConfigError(
            f'{place}: reset = "copy" would fire the triggers of table {name}: use reset = "surplus", or a file of SQL'
        )


def _table_with_triggers(node: Node, database: str) -> str:
    """A table with triggers; empty without one."""
    found = node.query(
        f"SELECT event_object_table FROM information_schema.triggers WHERE trigger_schema = '{database}' LIMIT 1"
    )
    return str(found[0][0]) if found else ""


def row_drift(
    node: Node, database: str, loaded: Sequence[LoadedTable], most: int | None = MOST_COUNTED
) -> dict[str, int]:
    """By table, the rows that it has more than after loading. Tables of more than ``most`` rows are left out."""
    counted = [table for table in loaded if most is None or table.rows <= most]
    if not counted:
        return {}
    counts = node.batch([f"SELECT COUNT(*) FROM `{database}`.`{table.name}`" for table in counted], wait.SLOW_SECONDS)
    return {table.name: int(rows[0][0]) - table.rows for table, rows in zip(counted, counts, strict=True)}


def largest_number(node: Node, database: str) -> int:
    """The largest whole number in primary keys, or that unique_id() has given; 0 if there is none."""
    keyed = [table for table in user_tables(node, database) if table.key and table.whole]
    given = f"SELECT largest FROM `{database}`.{LOADED} WHERE name = '{GIVEN}'"
    found = node.batch([given, *(f"SELECT MAX(`{table.key}`) FROM `{database}`.`{table.name}`" for table in keyed)])
    return max(int(rows[0][0] or 0) for rows in found)


def keep_given(node: Node, database: str, largest: int) -> None:
    """Remember the largest number that unique_id() has given, so that a later round gives larger ones."""
    node.query(f"UPDATE `{database}`.{LOADED} SET largest = GREATEST(largest, {largest}) WHERE name = '{GIVEN}'")
