"""The rows of a file of data: CSV, or values with tabs between them, as ``mysqldump --tab`` writes them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.workloads.sql.rows.numbered_values import text_literal

NULL = r"\N"
SEPARATOR = "\x1f"  # between the values of a row while all of them get quotes
ESCAPED = {"b": "\b", "n": "\n", "r": "\r", "t": "\t", "0": "\0", "Z": "\x1a"}
LONGEST = 2**30  # characters of a value of CSV: that of LONGTEXT fits into one packet of the server

Row = tuple[int, list[str]]  # the number of its first line, and its values


def read(text: TextIO, shown: str, *, tabs: bool) -> Iterator[Row]:
    """The rows of a file. shown: its name in messages. tabs: whether tabs separate its values.

    Raises ConfigError with the line for what is not CSV or not UTF-8.
    """
    line = 1
    reader = _with_tabs(text) if tabs else _with_commas(text)
    while True:
        try:
            found = next(reader, None)
        except (csv.Error, UnicodeDecodeError) as error:
            raise ConfigError(f"{shown}:{line}: {error}") from None
        if found is None:
            return
        last, row = found
        if row:
            yield line, row
        line = last + 1


def _with_commas(text: TextIO) -> Iterator[Row]:
    """The rows of CSV, each with its last line."""
    csv.field_size_limit(max(LONGEST, csv.field_size_limit()))  # the usual limit is 128 KiB
    reader = csv.reader(text, strict=True)
    for row in reader:
        yield reader.line_num, row


def _with_tabs(text: TextIO) -> Iterator[Row]:
    """The rows between tabs, each with its last line. After a backslash a tab or an end of line is part of a value."""
    begun = ""
    for number, line in enumerate(text, 1):
        begun += line
        row = begun.removesuffix("\n")
        if row != begun and _ends_with_escape(row):
            continue
        begun = ""
        row = row.removesuffix("\r")
        yield number, _values(row) if row else []
    if begun:
        yield number, _values(begun)


def _ends_with_escape(text: str) -> bool:
    return text.endswith("\\") and (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _values(row: str) -> list[str]:
    """The values of a row, with their escapes."""
    parts = row.split("\t")
    if "\\\t" not in row:
        return parts
    values: list[str] = []
    for part in parts:
        if values and _ends_with_escape(values[-1]):
            values[-1] += f"\t{part}"
        else:
            values.append(part)
    return values


def literals(rows: Iterable[Row], columns: Sequence[str], shown: str, *, escaped: bool) -> Iterator[tuple[int, str]]:
    """The rows as SQL text, each with its line.

    escaped: whether a backslash begins an escape, as between tabs. Raises ConfigError for a row with another number of
    values.
    """
    commas = len(columns) - 1
    for line, row in rows:
        if len(row) != len(columns):
            raise ConfigError(
                f"{shown}:{line}: {quantity(len(row), 'value')}, and {quantity(len(columns), 'column')} "
                f"({', '.join(columns)})"
            )
        joined = SEPARATOR.join(row)
        if joined.count(SEPARATOR) == commas and "\\" not in joined and "\0" not in joined:
            # As _literal writes it, for all values at once.
            yield line, "'" + joined.replace("'", "''").replace(SEPARATOR, "','") + "'"
        else:
            yield line, ",".join([_literal(value, escaped) for value in row])


def _literal(value: str, escaped: bool) -> str:
    if value == NULL:
        return "NULL"
    if escaped and "\\" in value:
        value = re.sub(r"\\(.)", lambda match: ESCAPED.get(match[1], match[1]), value, flags=re.DOTALL)
    return text_literal(value)
