"""Generated rows: values by the type of each column, for tables of which only the number of rows is given.

Equal schemas and numbers give equal rows. A foreign key has a value of the table that it refers to. Columns of a unique
index have no value twice.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import random
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence

from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.errors import ConfigError

SEED = 35
LONGEST = 32  # characters of a text that the schema allows to be longer
FIRST = datetime.datetime(2020, 1, 1)
DAYS = 4 * 365  # dates lie within these days from FIRST
SPREAD = 1000  # a number without an index has so many values at most
WHOLE = {"tinyint": 7, "smallint": 15, "mediumint": 23, "int": 31, "bigint": 53}  # bits without a sign
COLUMNS = """\
SELECT column_name, data_type, column_type, character_maximum_length, numeric_precision, numeric_scale, extra
FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '{table}'
AND extra NOT LIKE '%GENERATED%' ORDER BY ordinal_position"""
UNIQUE = """\
SELECT index_name, column_name FROM information_schema.statistics WHERE table_schema = DATABASE()
AND table_name = '{table}' AND non_unique = 0 ORDER BY index_name, seq_in_index"""
REFERENCES = """\
SELECT table_name, column_name, referenced_table_name, referenced_column_name
FROM information_schema.key_column_usage
WHERE table_schema = DATABASE() AND referenced_table_schema = DATABASE() AND referenced_table_name IS NOT NULL"""


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of a table, as information_schema has it."""

    name: str
    """Name of the column."""

    kind: str
    """Data type in lower case, such as ``varchar``."""

    declared: str
    """The whole type, such as ``enum('a','b')``."""

    length: int
    """Characters or bytes of a text; 0 for other types."""

    precision: int
    """Digits of a number, bits of a BIT; 0 for other types."""

    scale: int
    """Digits after the decimal point; 0 if the type declares none."""


def text_literal(value: str) -> str:
    """A text as SQL text."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"


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
    """The columns of a table, and its generated rows with values as SQL text. Raises ConfigError for a column type."""
    texts = _json_columns(connection, table)
    columns = [
        Column(
            str(name),
            "json" if name in texts else str(kind).lower(),
            str(declared),
            int(length or 0),
            int(precision or 0),
            int(scale or 0),
        )
        for name, kind, declared, length, precision, scale, _ in connection.query(COLUMNS.format(table=table))
    ]
    uniques: dict[str, list[str]] = {}
    for index, column in connection.query(UNIQUE.format(table=table)):
        uniques.setdefault(str(index), []).append(str(column))
    parents = {
        str(column): counts[parent] if parent in counts else _largest(connection, str(parent), str(key))
        for owner, column, parent, key in connection.query(REFERENCES)
        if owner == table
    }
    return [column.name for column in columns], _rows(table, columns, list(uniques.values()), parents, counts[table])


def _json_columns(connection: Connection, table: str) -> set[str]:
    """The columns of type JSON on MariaDB, where they are texts with a check."""
    checks = connection.records(
        "SELECT * FROM information_schema.check_constraints WHERE constraint_schema = DATABASE()"
    )
    clauses = [check["check_clause"] for check in checks if check.get("table_name") == table]
    return {name for clause in clauses for name in re.findall(r"^json_valid\(`([^`]+)`\)$", clause)}


def _largest(connection: Connection, table: str, column: str) -> int:
    """The largest number in a column of a table that has its rows already; 0 for texts and empty tables."""
    ((largest,),) = connection.query(f"SELECT MAX(`{column}`) FROM `{table}`")
    return largest if isinstance(largest, int) else 0


def _rows(
    table: str, columns: Sequence[Column], uniques: Sequence[Sequence[str]], parents: Mapping[str, int], count: int
) -> Iterator[Sequence[str]]:
    drawn = random.Random(f"{SEED} {table}")
    single = {names[0] for names in uniques if len(names) == 1}
    counted: dict[str, Callable[[int], int]] = {}
    for names in uniques:
        if len(names) > 1 and not single & set(names):
            counted.update(_places(names, parents, count))
    makers = [
        _maker(table, column, drawn, parents.get(column.name), count, column.name in single, counted.get(column.name))
        for column in columns
    ]
    for number in range(count):
        yield [make(number) for make in makers]


def _places(names: Sequence[str], parents: Mapping[str, int], count: int) -> dict[str, Callable[[int], int]]:
    """For the columns of a unique index, numbers from 1; any two rows differ in at least one column.

    The last column counts fastest. The others have as many values as the tables that they refer to have rows.
    """
    found: dict[str, Callable[[int], int]] = {}
    first, *others = names
    ways = math.prod(parents.get(name, math.ceil(count ** (1 / len(names)))) for name in others)
    wide = min(parents.get(first, count), count)
    ways = min(ways, math.ceil(count / wide))
    divisor = 1
    for name in reversed(others):
        size = min(parents.get(name, ways), ways)
        found[name] = lambda number, divisor=divisor, size=size: number // divisor % size + 1  # type: ignore[misc]
        divisor *= size
    found[first] = lambda number, divisor=divisor: number // divisor + 1  # type: ignore[misc]
    return found


def _maker(
    table: str,
    column: Column,
    drawn: random.Random,
    parent: int | None,
    count: int,
    unique: bool,
    place: Callable[[int], int] | None,
) -> Callable[[int], str]:
    """The function that gives the value of a column in row ``number``, 0-based."""
    if column.kind in WHOLE or column.kind in ("decimal", "numeric", "float", "double"):
        if unique:
            return lambda number: str(number + 1)
        if place:
            return lambda number: str(place(number))
        if parent:
            return lambda number: str(drawn.randint(1, parent))
    make = _by_type(table, column, drawn, count)
    if not unique and not place:
        return make
    numbered: Callable[[int], int] = place or (lambda number: number + 1)
    if column.length:
        return lambda number: text_literal(f"{column.name}{numbered(number)}"[-column.length :])
    if column.kind in ("datetime", "timestamp", "date"):
        if column.kind == "date":
            return lambda number: f"'{FIRST.date() + datetime.timedelta(days=numbered(number))}'"
        return lambda number: f"'{FIRST + datetime.timedelta(seconds=numbered(number))}'"
    return make


def _by_type(table: str, column: Column, drawn: random.Random, count: int) -> Callable[[int], str]:
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
        members = re.findall(r"'((?:[^']|'')*)'", column.declared)
        return lambda _: f"'{drawn.choice(members)}'"
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
        f"rows: no values are generated for {table}.{column.name} of type {column.declared}: write "
        f"data/{table}.csv, or generate.sql"
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
