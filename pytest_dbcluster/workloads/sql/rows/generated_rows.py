"""Generated rows: values by the type of each column, for tables of which only the number of rows is given.

Equal schemas and numbers give equal rows. A foreign key has a value of the table that it refers to. Columns of a unique
index have no value twice (``numbered_values``).
"""

from __future__ import annotations

import datetime
import math
import random
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence

from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.sql.rows import numbered_values
from pytest_dbcluster.workloads.sql.rows.numbered_values import FIRST, WHOLE, Column, NumberedValues, text_literal

SEED = 35
LONGEST = 32  # characters of a text that the schema allows to be longer
DAYS = 4 * 365  # dates lie within these days from FIRST
SPREAD = 1000  # a number without an index has so many values at most
MOST_READ = 100_000  # values of a column that are read, for references to it
COLUMNS = """\
SELECT column_name, data_type, column_type, character_maximum_length, numeric_precision, numeric_scale, is_nullable
FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '{table}'
AND extra NOT LIKE '%GENERATED%' ORDER BY ordinal_position"""
UNIQUE = """\
SELECT index_name, column_name FROM information_schema.statistics WHERE table_schema = DATABASE()
AND table_name = '{table}' AND non_unique = 0 ORDER BY index_name, seq_in_index"""
REFERENCES = """\
SELECT table_name, column_name, referenced_table_name, referenced_column_name
FROM information_schema.key_column_usage
WHERE table_schema = DATABASE() AND referenced_table_schema = DATABASE() AND referenced_table_name IS NOT NULL"""


def parents_first(connection: Connection, tables: Mapping[str, int]) -> list[str]:
    """The tables, those that others refer to first."""
    parents: dict[str, set[str]] = {table: set() for table in tables}
    for table, _, parent, _ in connection.query(REFERENCES):
        if table in parents and parent in tables and parent != table:
            parents[table].add(parent)
    found: list[str] = []
    while len(found) < len(tables):
        ready = [table for table in tables if table not in found and parents[table] <= set(found)]
        found += ready or [table for table in tables if table not in found][:1]
    return found


def rows_of(connection: Connection, table: str, counts: Mapping[str, int]) -> tuple[list[str], Iterator[Sequence[str]]]:
    """The columns of a table, and its generated rows with values as SQL text.

    Raises ConfigError for an unknown column type, and for a unique index with too little room.
    """
    made = _Makers(_Tables(connection, counts), table)
    makers = [made.maker(column) for column in made.columns.values()]
    return list(made.columns), ([make(number) for make in makers] for number in range(counts[table]))


def _json_columns(connection: Connection, table: str) -> set[str]:
    """The columns of type JSON on MariaDB, where they are texts with a check."""
    checks = connection.records(
        "SELECT * FROM information_schema.check_constraints WHERE constraint_schema = DATABASE()"
    )
    clauses = [check["check_clause"] for check in checks if check.get("table_name") == table]
    return {name for clause in clauses for name in re.findall(r"^json_valid\(`([^`]+)`\)$", clause)}


class _Tables:
    """The columns, unique indexes and references of all tables."""

    def __init__(self, connection: Connection, counts: Mapping[str, int]) -> None:
        self._connection, self.counts = connection, counts
        self._columns: dict[str, dict[str, Column]] = {}
        self._uniques: dict[str, list[list[str]]] = {}
        self._references: dict[str, dict[str, tuple[str, str]]] = {}
        for owner, column, parent, key in connection.query(REFERENCES):
            self._references.setdefault(str(owner), {})[str(column)] = (str(parent), str(key))

    def columns(self, table: str) -> dict[str, Column]:
        """The columns of a table that rows give a value, by name."""
        if table not in self._columns:
            texts = _json_columns(self._connection, table)
            rows = self._connection.query(COLUMNS.format(table=table))
            self._columns[table] = {
                str(name): Column(
                    table, str(name), "json" if name in texts else str(kind).lower(), str(declared), int(length or 0),
                    int(precision or 0), int(scale or 0), str(nullable) == "YES"
                )
                for name, kind, declared, length, precision, scale, nullable in rows
            }  # fmt: skip
        return self._columns[table]

    def uniques(self, table: str) -> list[list[str]]:
        """The columns of each unique index."""
        if table not in self._uniques:
            found: dict[str, list[str]] = {}
            for index, column in self._connection.query(UNIQUE.format(table=table)):
                found.setdefault(str(index), []).append(str(column))
            self._uniques[table] = list(found.values())
        return self._uniques[table]

    def refers(self, table: str, column: str) -> bool:
        """Whether a column is a foreign key."""
        return column in self._references.get(table, {})

    def reference(self, table: str, column: str) -> NumberedValues | None:
        """The values that a foreign key may have; None for another column."""
        if not self.refers(table, column):
            return None
        return self._keys(*self._references[table][column], {(table, column)})

    def _keys(self, table: str, column: str, seen: set[tuple[str, str]]) -> NumberedValues | None:
        """The values of a column to which others refer; None if they are not known before its table has rows."""
        if (table, column) in seen:
            return None
        if table in self.counts and [column] in self.uniques(table):
            count = self.counts[table]
            if self.refers(table, column):
                values = self._keys(*self._references[table][column], {*seen, (table, column)})
                return values and NumberedValues(min(values.most, count), values.literal)
            known = numbered_values.values_of(self.columns(table)[column], count)
            return known and NumberedValues(min(known.most, count), known.literal)
        if any(table == one for one, _ in seen):  # its rows refer to each other
            return None
        rows = self._connection.query(
            f"SELECT DISTINCT `{column}` FROM `{table}` WHERE `{column}` IS NOT NULL ORDER BY 1 LIMIT {MOST_READ}"
        )
        texts = [str(value) if isinstance(value, int) else text_literal(str(value)) for (value,) in rows]
        return NumberedValues(len(texts), lambda number: texts[number - 1])


class _Makers:
    """The functions that give the values of the columns of one table."""

    def __init__(self, tables: _Tables, table: str) -> None:
        self._tables, self._table, self._count = tables, table, tables.counts[table]
        self._drawn = random.Random(f"{SEED} {table}")
        self.columns = tables.columns(table)
        self._referred = {name: tables.reference(table, name) for name in self.columns}
        self._single = {names[0] for names in tables.uniques(table) if len(names) == 1}
        self._places: dict[str, tuple[Callable[[int], int], int]] = {}
        """By column of a unique index of several: the number of a row's value, and the largest one."""

        for names in tables.uniques(table):
            if len(names) > 1 and not self._single & set(names) and set(names) <= set(self.columns):
                self._places |= self._places_of(names)

    def _values(self, column: Column, count: int) -> NumberedValues | None:
        return self._referred[column.name] or numbered_values.values_of(column, count)

    def _places_of(self, names: Sequence[str]) -> dict[str, tuple[Callable[[int], int], int]]:
        """For the columns of a unique index, numbers from 1. Any two rows differ in one column at least.

        The values of the first column have equally many rows, as nearly as possible. Columns that are not needed are
        left out.
        """
        count = self._count
        values = {name: self._values(self.columns[name], count) for name in names}
        rooms = {name: each.most if each else count for name, each in values.items()}
        if math.prod(rooms.values()) < count:
            raise ConfigError(
                f"rows: {self._table} has a unique index on ({', '.join(names)}) with room for "
                f"{math.prod(rooms.values())} rows, and {count} are needed: ask for fewer, or write "
                f"data/{self._table}.csv"
            )
        first, *others = names
        wide = min(rooms[first], count)
        found: dict[str, tuple[Callable[[int], int], int]] = {first: ((lambda row: row * wide // count + 1), wide)}

        def within(row: int) -> int:
            """The number of a row among those with its value of the first column."""
            return row + -(row * wide // count) * count // wide

        divisor, ways = 1, math.ceil(count / wide)
        for name in reversed(others):
            size = max(1, min(rooms[name], math.ceil(ways / divisor)))
            if size > 1:
                found[name] = (lambda row, divisor=divisor, size=size: within(row) // divisor % size + 1), size  # type: ignore[misc]
                divisor *= size
        return found

    def maker(self, column: Column) -> Callable[[int], str]:
        """The function that gives the value of a column in row ``number``, 0-based. Raises ConfigError."""
        referred = self._referred[column.name]
        if column.name in self._single:
            return self._different(column, lambda row: row + 1, self._count)
        if column.name in self._places:
            return self._different(column, *self._places[column.name])
        if referred and (most := referred.most):
            literal = referred.literal
            return lambda _: literal(self._drawn.randint(1, most))
        if column.nullable and self._tables.refers(self._table, column.name):
            return lambda _: "NULL"  # no row is there to refer to
        return _by_type(column, self._drawn, self._count)

    def _different(self, column: Column, number: Callable[[int], int], count: int) -> Callable[[int], str]:
        """The values of a column that has a unique index. count: the largest number."""
        values = self._values(column, count)
        if not values:
            return _by_type(column, self._drawn, self._count)
        literal, most = values.literal, values.most
        if most >= count:
            return lambda row: literal(number(row))
        if column.nullable and self._referred[column.name]:
            return lambda row: literal(number(row)) if number(row) <= most else "NULL"
        room = "the table that it refers to has" if self._referred[column.name] else "there are"
        raise ConfigError(
            f"rows: {column.table}.{column.name} ({column.declared}) needs {count} different values, and {room} "
            f"{most}: ask for fewer rows, or write data/{column.table}.csv"
        )


def _by_type(column: Column, drawn: random.Random, count: int) -> Callable[[int], str]:
    kind = column.kind
    if column.declared == "tinyint(1)":
        return lambda _: str(drawn.randint(0, 1))
    if kind in WHOLE:
        most = min(SPREAD, count, 2 ** WHOLE[kind] - 1)
        return lambda _: str(drawn.randint(1, most))
    if kind in ("decimal", "numeric"):
        digits = min(column.precision, 5 + column.scale) if column.precision else 5
        return lambda _: f"{drawn.randrange(10**digits) / 10**column.scale:.{column.scale}f}"
    if kind in ("float", "double"):
        return lambda _: f"{drawn.uniform(0, SPREAD):.3f}"
    if kind in ("enum", "set"):
        return lambda _: f"'{drawn.choice(column.members)}'"
    if kind in ("date", "datetime", "timestamp"):
        size = 10 if kind == "date" else 19
        # From 6 o'clock on: some time zones have no hour 2 on one day of the year.
        return lambda _: f"'{_moment(drawn)}'"[: size + 1] + "'"
    others = _others(drawn, kind)
    if others:
        return others
    if column.length:
        longest = min(column.length, LONGEST)
        return lambda _: text_literal("".join(drawn.choices(string.ascii_lowercase, k=drawn.randint(1, longest))))
    raise ConfigError(
        f"rows: no values are generated for {column.table}.{column.name} of type {column.declared}: write "
        f"data/{column.table}.csv, or generate.sql"
    )


def _moment(drawn: random.Random) -> datetime.datetime:
    return FIRST + datetime.timedelta(days=drawn.randrange(DAYS), hours=6, seconds=drawn.randrange(18 * 3600))


def _others(drawn: random.Random, kind: str) -> Callable[[int], str] | None:
    """Values of the rarer types; None for an unknown one."""
    if kind == "time":
        return lambda _: f"'{datetime.timedelta(seconds=drawn.randrange(86400))}'"
    if kind == "year":
        return lambda _: str(drawn.randint(2000, 2024))
    if kind == "json":
        return lambda _: f"'{{\"number\": {drawn.randint(1, SPREAD)}}}'"
    if kind == "bit":
        return lambda _: str(drawn.randint(0, 1))
    if kind == "uuid":
        return lambda _: f"'{drawn.getrandbits(128):032x}'"
    if kind in ("inet4", "inet6"):
        return lambda _: f"'10.0.{drawn.randint(0, 255)}.{drawn.randint(0, 255)}'" if kind == "inet4" else "'::1'"
    return None
