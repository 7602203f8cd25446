"""Different values of a column, by number: those of a unique index, and those to which foreign keys refer."""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections.abc import Callable

FIRST = datetime.datetime(2020, 1, 1)
WHOLE = {"tinyint": 7, "smallint": 15, "mediumint": 23, "int": 31, "bigint": 53}  # bits without a sign
MOST = 2**53
# Each is different from all others in every collation: some do not tell i from y, or v from w.
SYMBOLS = "0123456789abcdefghklmnopqrstuxz"
MOST_SECONDS = 500_000_000  # from FIRST, so that a TIMESTAMP can have them
MOST_DAYS = 2_500_000
MOST_TIME = 3_000_000  # seconds of a TIME


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of a table, as information_schema has it."""

    table: str
    """Name of its table."""

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

    nullable: bool
    """Whether it accepts NULL."""

    @property
    def members(self) -> list[str]:
        """The values of an ENUM or a SET, with quotes doubled."""
        return re.findall(r"'((?:[^']|'')*)'", self.declared) if self.kind in ("enum", "set") else []


@dataclasses.dataclass(frozen=True)
class NumberedValues:
    """Values that are all different."""

    most: int
    """How many there are."""

    literal: Callable[[int], str]
    """The value of a number from 1 to ``most``, as SQL text."""


def text_literal(value: str) -> str:
    """A text as SQL text."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"


def values_of(column: Column, count: int) -> NumberedValues | None:
    """The values of a column for numbers up to ``count``; None for a type whose values are drawn at random."""
    if found := _numbers(column) or _times(column):
        return found
    if members := column.members:
        return NumberedValues(len(members), lambda number: f"'{members[number - 1]}'")
    if column.kind == "json":
        return NumberedValues(MOST, lambda number: f"'{{\"number\": {number}}}'")
    if column.kind == "uuid":
        return NumberedValues(MOST, lambda number: f"'{number:032x}'")
    if column.kind == "inet4":
        return NumberedValues(2**24 - 1, lambda number: f"'10.{number >> 16}.{number >> 8 & 255}.{number & 255}'")
    if column.kind == "inet6":
        return NumberedValues(2**32 - 1, lambda number: f"'::{number >> 16:x}:{number & 65535:x}'")
    return _texts(column, count) if column.length else None


def _numbers(column: Column) -> NumberedValues | None:
    kind = column.kind
    if kind in WHOLE:
        return NumberedValues(2 ** (WHOLE[kind] + ("unsigned" in column.declared and kind != "bigint")) - 1, str)
    if kind in ("decimal", "numeric"):
        return NumberedValues(min(MOST, 10 ** (column.precision - column.scale) - 1), str)
    if kind in ("float", "double"):
        return NumberedValues(2**24 if kind == "float" else MOST, str)
    if kind == "bit":
        return NumberedValues(min(MOST, 2**column.precision - 1), str)
    return NumberedValues(155, lambda number: str(2000 + number)) if kind == "year" else None


def _times(column: Column) -> NumberedValues | None:
    if column.kind == "date":
        return NumberedValues(MOST_DAYS, lambda number: f"'{FIRST.date() + datetime.timedelta(days=number)}'")
    if column.kind in ("datetime", "timestamp"):
        return NumberedValues(MOST_SECONDS, lambda number: f"'{FIRST + datetime.timedelta(seconds=number)}'")
    if column.kind == "time":
        return NumberedValues(MOST_TIME, lambda number: f"'{number // 3600}:{number // 60 % 60:02}:{number % 60:02}'")
    return None


def _texts(column: Column, count: int) -> NumberedValues:
    prefix = text_prefix(column.name, column.length, count)
    most = min(MOST, len(SYMBOLS) ** column.length)
    if prefix is not None:
        return NumberedValues(most, lambda number: text_literal(f"{prefix}{number}"))
    return NumberedValues(most, lambda number: text_literal(_in_symbols(number - 1, column.length)))


def text_prefix(name: str, length: int, count: int) -> str | None:
    """What stands before the number in texts of a unique column: its name, cut so that ``count`` fits.

    None if the digits do not fit: then all ``SYMBOLS`` are digits. length: characters of the column; 0 for any number.
    """
    room = length - len(str(count))
    if not length:
        return name
    return name[:room] if room >= 0 else None


def _in_symbols(number: int, length: int) -> str:
    """A number in the base of ``SYMBOLS``."""
    text = ""
    for _ in range(length):
        number, rest = divmod(number, len(SYMBOLS))
        text = SYMBOLS[rest] + text
    return text
