"""Dumps of ``mysqldump`` and ``mariadb-dump``: which files are one, the tables that they make, and what is left out.

Statements about databases, replication and locks are left out, and so are the definers of triggers, views and routines.
The tables go to the workload's database, on servers that lack those databases and accounts.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.sql import compression, schema
from pytest_dbcluster.workloads.sql.language.lexer import FilePlace, SQLText
from pytest_dbcluster.workloads.sql.schema import CreatedTable
from pytest_dbcluster.workloads.sql.statement_stream import FileStatement, StatementStream

HEAD = 4096  # bytes that show whether a file is a dump
TITLE = re.compile(rb"^-- (?:MySQL|MariaDB) dump ", re.MULTILINE)  # absent with --skip-comments
MARKS = re.compile(
    rb"\s*(?:-- (?:MySQL|MariaDB) dump |/\*M?!999999\\|/\*!\d+ SET @(?:OLD|saved)_|SET @MYSQLDUMP_TEMP_LOG_BIN )"
)
COMPLETED = b"-- Dump completed"
CUT = f"this dump is not complete: its last line is not `{COMPLETED.decode()}`; dump the database again"
PIECE = 2**20  # bytes of a line that are read at once
LONGEST = 2**20  # bytes of CREATE TABLE
NAME = rb"(?:`((?:[^`]|``)+)`|(\w+))"
CREATE = re.compile(rb"\s*CREATE\s+TABLE\s", re.IGNORECASE)
ALTER = re.compile(rb"\s*ALTER\s+TABLE\s+(?:ONLY\s+)?" + NAME, re.IGNORECASE)
USE = re.compile(rb"\s*USE\s+" + NAME, re.IGNORECASE)
ROWS = re.compile(rb"(?:INSERT|REPLACE)\s", re.IGNORECASE)
COMMENTED = rb"(?:/\*M?!\d*\s*)?"  # a statement may be in a comment for some versions
LEFT_OUT = re.compile(
    COMMENTED
    + rb"""(?:(?:UN)?LOCK\s+TABLES?\b
    |ALTER\s+TABLE\s+(?:`[^`]+`|\S+)\s+(?:DIS|EN)ABLE\s+KEYS\b
    |(?:CREATE|ALTER|DROP)\s+(?:DATABASE|SCHEMA)\b
    |SET\s+(?:@@)?(?:SESSION|GLOBAL)[.\s]\s*(?:SQL_LOG_BIN|GTID_PURGED|GTID_SLAVE_POS)\b
    |CHANGE\s+(?:MASTER|REPLICATION)\b
    |(?:START|STOP)\s+(?:SLAVE|REPLICA|GROUP_REPLICATION)\b)""",
    re.IGNORECASE | re.VERBOSE,
)
ACCOUNT = rb"(?:`(?:[^`]|``)*`|'[^']*'|\w+)"
DEFINER = re.compile(
    rb"(" + COMMENTED + rb"CREATE\b(?!\s+TABLE).{0,200}?)DEFINER\s*=\s*" + ACCOUNT + rb"(?:@" + ACCOUNT + rb")?",
    re.IGNORECASE | re.DOTALL,
)


def is_dump(path: Path, shown: str) -> bool:
    """Whether ``mysqldump`` or ``mariadb-dump`` wrote a file. Raises ConfigError for a damaged file, or a cut dump."""
    found = path.stat()
    return bool(MARKS.match(_head(path, shown, found.st_mtime_ns, found.st_size)))


@functools.lru_cache(256)
def _head(path: Path, shown: str, changed: int, size: int) -> bytes:
    """The begin of a file. Raises ConfigError for a dump whose end shows that it was cut."""
    with compression.open_bytes(path, shown) as file:
        head = file.read(HEAD)
        if TITLE.search(head) and compression.plain_name(path.name) == path.name:
            file.seek(max(0, size - HEAD))
            if COMPLETED not in file.read():
                raise ConfigError(f"{shown}: {CUT}")
    return head


def created_tables(path: Path, shown: str) -> list[CreatedTable]:
    """The tables that a file of SQL makes: only lines that begin with CREATE TABLE count. It is read once, to its end.

    Raises ConfigError for a damaged file, for a dump of several databases, and for one that was cut.
    """
    found = path.stat()
    return list(_created_tables(path, shown, found.st_mtime_ns, found.st_size))


@functools.lru_cache(64)
def _created_tables(path: Path, shown: str, changed: int, size: int) -> tuple[CreatedTable, ...]:
    tables: dict[str, CreatedTable] = {}
    last, used = b"", ""
    titled = TITLE.search(_head(path, shown, changed, size))
    with compression.open_bytes(path, shown) as file:
        lines = _lines(file)
        for number, line in lines:
            if line.startswith(b"-- "):
                last = line
            elif CREATE.match(line):
                tables |= {table.name: table for table in _read_table(shown, number, line, lines)}
            elif (altered := ALTER.match(line)) and (table := tables.get(_name(altered))):
                tables[table.name] = CreatedTable(table.place, table.name, "", None)
            elif use := USE.match(line):
                used = _same_database(FilePlace(shown, number, 1), used, _name(use))
    if titled and not last.startswith(COMPLETED):
        raise ConfigError(f"{shown}: {CUT}")
    return tuple(tables.values())


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """The begins of all lines, each with its number."""
    number, whole = 0, True
    while piece := file.readline(PIECE):
        if whole:
            number += 1
            yield number, piece
        whole = piece.endswith(b"\n")


def _read_table(shown: str, number: int, line: bytes, lines: Iterator[tuple[int, bytes]]) -> list[CreatedTable]:
    """The table of the statement that begins in this line."""
    text = line
    while b";" not in line.rstrip()[-1:] and len(text) < LONGEST:
        _, line = next(lines, (0, b";"))
        text += line
    source = SQLText(shown, text.decode("utf-8", "replace"), (number, 1))
    whole = source.text.strip() if len(text) < LONGEST else ""
    return [dataclasses.replace(table, statement=whole.rstrip(";")) for table in schema.created_tables(source)]


def _name(found: re.Match[bytes]) -> str:
    name = found[1].replace(b"``", b"`") if found[1] else found[2]
    return name.decode("utf-8", "replace")


def _same_database(place: FilePlace, used: str, name: str) -> str:
    """The database of a dump. Raises ConfigError if it is not the one that the dump has used before."""
    if used and name != used:
        raise place.error(
            f"USE {name}: this dump has another database, {used}, before it, and the tables of a workload are in one "
            f"database: dump {used} alone"
        )
    return name


def statements(path: Path, shown: str, most: int) -> Iterator[FileStatement]:
    """The statements of a dump that a workload needs. most: the largest number of bytes of one.

    Raises ConfigError for a dump of several databases, for one that was cut, and what StatementStream raises.
    """
    found, used = path.stat(), ""
    titled = TITLE.search(_head(path, shown, found.st_mtime_ns, found.st_size))
    with compression.open_bytes(path, shown) as file:
        stream = StatementStream(file, shown, most)
        for place, text in stream:
            if use := USE.match(text):
                used = _same_database(place, used, _name(use))
            elif not LEFT_OUT.match(text):
                definer = DEFINER.match(text)
                yield FileStatement(place, definer[1] + text[definer.end() :] if definer else text)
    if titled and not stream.comment.startswith(COMPLETED):
        raise stream.place.error(CUT)
