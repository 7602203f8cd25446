"""Entries of a slow log or a general log, of MariaDB or MySQL, as a stream in constant memory.

A statement keeps its lines as they are. Files that gzip has compressed are decompressed while they are read. A log can
be a pipe, which is read once.
"""

from __future__ import annotations

import calendar
import contextlib
import dataclasses
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from pytest_dbcluster.errors import ConfigError

CHUNK = 1 << 20  # characters that are read at once
LONGEST = 1 << 20  # characters of an entry; the rest of a longer one is left out
SLOW, GENERAL = "slow log", "general log"
MARK = "\n# User@Host: "
# What stands between "# User@Host: " and the statement.
HEAD = re.compile(
    r"[^\n]*?(?:Id:[ ]*(?P<id>\d+))?[ ]*\n"
    r"(?:\#[ ]Thread_id:[ ]*(?P<thread>\d+)[ ]+Schema:[ ](?P<schema>\S*)[^\n]*\n)?"
    r"(?:\#[ ](?!Query_time)[^\n]*\n)*"
    r"\#[ ]Query_time:[ ]*(?P<seconds>[\d.]+)[^\n]*?Rows_sent:[ ]*(?P<sent>\d+)[ ]+Rows_examined:[ ]*(?P<examined>\d+)"
    r"[^\n]*\n"
    r"(?:\#[ ]Rows_affected:[ ]*(?P<affected>\d+)[^\n]*\n)?"
    r"(?:\#(?![ ]administrator)[^\n]*\n)*"
    r"(?:use[ ](?P<use>[^\n;]*);\n)?"
    r"(?:SET[ ][^\n]*?timestamp=(?P<time>\d+)[^\n]*;\n)?",
    re.VERBOSE,
)
# The lines that a server writes between two entries.
BETWEEN = re.compile(r"(?:\n\# Time: [^\n;']*|\n[^\n]*started with:\nTcp port:[^\n]*\nTime [^\n]*)+\n?\Z")
COMMAND = "# administrator command: "
LINE = re.compile(
    r"(?:(?P<short>\d{6}[ ]+\d?\d:\d\d:\d\d)|(?P<iso>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[\d.]*(?:Z|[+-]\d\d:\d\d))?"
    r"\t[\t ]*(?P<id>\d+)[ ](?P<command>[A-Z][A-Za-z_]*(?:[ ][A-Za-z]+)?)(?:\t|[ ]*\Z)",
    re.ASCII,
)
NO_STATEMENT = (
    "{path} has no statement: set slow_query_log = ON and long_query_time = 0 for new connections, let the application "
    "run, and take the log again"
)
NO_LOG = (
    "{path} is neither a slow log nor a general log of MariaDB or MySQL: it has no line '# User@Host:' and no column "
    "'Id Command Argument'; name the file of slow_query_log_file or general_log_file"
)


class Figures(NamedTuple):
    """What a log tells of one statement."""

    seconds: float
    """Time of the statement; 0 in a general log."""

    sent: int
    """Rows that the client got; -1 if unknown."""

    examined: int
    """Rows that the server read; -1 if unknown."""

    affected: int
    """Rows that it changed; -1 if unknown."""


class LogEntry(NamedTuple):
    """One entry of a log."""

    thread: int
    """Id of the connection."""

    command: str
    """``Query`` for a statement; otherwise what the client asked, such as ``Quit``."""

    text: str
    """The statement, without the ``;`` at its end; for ``Init DB`` the database."""

    schema: str | None
    """The database of the connection; None if the entry does not tell it."""

    figures: Figures
    """Its time and rows."""

    time: int
    """Seconds since 1970, on the clock of the log; 0 if unknown."""


UNKNOWN = Figures(0.0, -1, -1, -1)


@dataclasses.dataclass
class LogFile:
    """One log that is open."""

    path: Path
    """The file, or a pipe."""

    kind: str
    """``SLOW`` or ``GENERAL``."""

    bytes: int
    """Size of the file; of a pipe the characters that were read."""

    chunks: Iterator[str] = dataclasses.field(repr=False)
    """Its text, which can be read once."""

    unread: int = 0
    """Number of entries whose head has no known form."""

    def entries(self) -> Iterator[LogEntry]:
        """The entries, from the first to the last."""
        chunks = self._count_characters()
        return self._slow(chunks) if self.kind == SLOW else self._general(chunks)

    def _count_characters(self) -> Iterator[str]:
        counts = not self.path.is_file()
        for chunk in self.chunks:
            self.bytes += counts * len(chunk)
            yield chunk

    def _slow(self, chunks: Iterable[str]) -> Iterator[LogEntry]:
        current: str | None = None
        for block in blocks(chunks):
            found = HEAD.match(block)
            if not found:
                self.unread += 1
                continue
            id_, thread, schema, seconds, sent, examined, affected, use, time = found.groups()
            if use is not None:
                current = _name(use)
            text = block[found.end() :]
            if text[-1:] != ";":
                text = BETWEEN.sub("", text).rstrip()
            command = "Query"
            if text.startswith(COMMAND):
                command, text = text[len(COMMAND) :].rstrip("; \n"), ""
            yield LogEntry(
                int(thread or id_ or 0), command, text.removesuffix(";"), schema or current,
                Figures(float(seconds), int(sent), int(examined), int(affected or -1)), int(time or 0)
            )  # fmt: skip

    def _general(self, chunks: Iterable[str]) -> Iterator[LogEntry]:
        entry: list[str] = []
        thread, command, time, size = 0, "", 0, 0
        for line in lines(chunks):
            found = LINE.match(line)
            if not found:
                if entry and size < LONGEST:
                    entry.append(line[:LONGEST])
                    size += len(line)
                continue
            if entry:
                yield _general_entry(thread, command, "".join(entry), time)
            thread, command = int(found["id"]), found["command"]
            if found["iso"] or found["short"]:
                time = _seconds(found["iso"] or found["short"])
            entry, size = [line[found.end() : found.end() + LONGEST]], 0
        if entry:
            yield _general_entry(thread, command, "".join(entry), time)


def _general_entry(thread: int, command: str, text: str, time: int) -> LogEntry:
    text = text.rstrip("\n")
    schema = None
    if command == "Execute":
        command = "Query"
    elif command == "Init DB":
        schema = _name(text)
    elif command == "Connect":
        found = re.search(r" on (\S*) using ", text)
        schema = found[1] if found else ""
    return LogEntry(thread, command, text.removesuffix(";"), schema, UNKNOWN, time)


def _name(text: str) -> str:
    return text.strip().strip("`")


def _seconds(text: str) -> int:
    """Seconds since 1970 of a time of a general log, as if it were UTC; 0 for an impossible one."""
    year, month, day, hour, minute, second = (
        (2000 + int(text[:2]), int(text[2:4]), int(text[4:6]), *map(int, text[7:].split(":")))
        if text[:6].isdigit()
        else (int(text[:4]), int(text[5:7]), int(text[8:10]), *map(int, text[11:19].split(":")))
    )
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return 0
    return calendar.timegm((year, month, day, hour, minute, second))


def blocks(chunks: Iterable[str]) -> Iterator[str]:
    """The texts after each ``# User@Host: ``, without the line break before the next one."""
    rest, begun = "\n", False
    for chunk in chunks:
        rest += chunk
        *whole, rest = rest.split(MARK)
        if whole and not begun:
            begun = True
            whole = whole[1:]
        yield from whole
        if len(rest) > LONGEST + len(MARK) + CHUNK:  # the end may be the begin of a mark
            rest = rest[:LONGEST] + rest[-len(MARK) :]
    if begun or MARK in rest:
        yield rest.rpartition(MARK)[2] if not begun else rest


def lines(chunks: Iterable[str]) -> Iterator[str]:
    """The lines, each with its line break; of one that is too long the begin."""
    rest = ""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split("\n")
        for line in whole:
            yield f"{line}\n"
        rest = rest[: LONGEST + CHUNK]
    if rest:
        yield rest


@contextlib.contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """The text of a log. Bytes that are not UTF-8 become lone surrogates. Raises ConfigError, also while it is read."""
    with contextlib.ExitStack() as stack:
        try:
            binary = stack.enter_context(path.open("rb"))
        except OSError as error:
            raise ConfigError(f"cannot read the log {path}: {error.strerror}") from error
        source: IO[bytes] = binary
        if binary.peek(2)[:2] == b"\x1f\x8b":
            source = stack.enter_context(gzip.GzipFile(fileobj=binary))  # type: ignore[arg-type]
        with io.TextIOWrapper(source, encoding="utf-8", errors="surrogateescape", newline="\n") as text:
            try:
                yield text
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise ConfigError(f"{path} is a damaged gzip file: {error}; copy the log again") from error


@contextlib.contextmanager
def open_log(path: Path) -> Iterator[LogFile]:
    """The log in a file or a pipe, with its kind.

    Raises ConfigError for a file that is no log, or has no entry. It raises it too if the context cannot read the whole
    file.
    """
    if path.is_dir():
        raise ConfigError(f"{path} is a directory: name the file of the log")
    with open_text(path) as file:
        begin = file.read(CHUNK)
        size = path.stat().st_size if path.is_file() else 0
        yield LogFile(path, _kind(path, begin), size, itertools.chain([begin], iter(lambda: file.read(CHUNK), "")))


def _kind(path: Path, begin: str) -> str:
    """The kind of a log that begins with a text. Raises ConfigError for another text."""
    if MARK in "\n" + begin:
        return SLOW
    first = begin.splitlines()
    if any(LINE.match(line) for line in first):
        return GENERAL
    if not begin.strip() or any(line.split() == ["Time", "Id", "Command", "Argument"] for line in first):
        raise ConfigError(NO_STATEMENT.format(path=path))
    raise ConfigError(NO_LOG.format(path=path))
