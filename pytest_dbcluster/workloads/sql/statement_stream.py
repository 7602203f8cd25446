"""The statements of a large file of SQL, as bytes and in constant memory: one statement is in memory at a time.

The rules are those of the clients ``mysql`` and ``mariadb``: ``DELIMITER`` lines are obeyed, and the content of a
comment such as ``/*!40101 ... */`` is text of the statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, NamedTuple

from pytest_dbcluster.workloads.sql.language.lexer import FilePlace

# Text without a delimiter, a comment, or quotes that go on in the next line: at most 500 parts of it, since the memory
# of a match grows with their number. It needs the first character of the delimiter, and the delimiter. No possessive
# repeat has a choice in it: Python 3.11.0 to 3.11.4 match such repeats wrongly.
PLAIN = rb"""(?:[^%s'"`\#\-/]+
    |'[^'\\]*+(?:\\.[^'\\]*+)*+'
    |"[^"\\]*+(?:\\.[^"\\]*+)*+"
    |`[^`]*+`
    |(?!%s)(?:-(?!-(?:\s|\Z))|/(?!\*)|/\*(?=M?!|\+))
    ){0,500}"""
REST = {  # what stands in quotes, up to their end
    b"'": re.compile(rb"[^'\\]*+(?:\\.[^'\\]*+)*+", re.DOTALL),
    b'"': re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL),
    b"`": re.compile(rb"[^`]*+"),
}
COMMENT = b"/*"
DELIMITER = re.compile(rb"delimiter(?:[ \t]+([^\r\n]*))?(?=\s|\Z)", re.IGNORECASE)
# The first line of newer dumps tells the client to run nothing but SQL. It is not a statement.
SANDBOX = re.compile(rb"\s*/\*M?!999999\\[^\n]*?\*/")
SPACE = re.compile(rb"\s*")


class FileStatement(NamedTuple):
    """One statement of a file."""

    place: FilePlace
    """Where it begins, after spaces and comments."""

    text: bytes
    """Its text, without the delimiter."""


class StatementStream:
    """Reads the statements of a file one after the other.

    - name: the file in messages.
    - most: the largest number of bytes of a statement.
    - comment: the last line that began with two dashes, outside of statements.
    """

    def __init__(self, file: IO[bytes], name: str, most: int) -> None:
        self.comment = b""
        self._file, self._name, self._most = file, name, most
        self._number = 0
        self._parts: list[bytes] = []
        self._size = 0
        self._begun = self._opened = FilePlace(name, 1, 1)  # of the statement; of quotes or a comment
        self._inside = b""  # the quotes, or COMMENT, in which the next line begins
        self._set_delimiter(b";")

    def __iter__(self) -> Iterator[FileStatement]:
        """The statements. Raises ConfigError for one that is too long, and for quotes or a comment without an end."""
        while line := self._file.readline(self._most + 1):
            self._number += 1
            if len(line) > self._most:
                self._refuse_long()
            yield from self._line(line)
        if self._inside:
            what = "this comment has" if self._inside == COMMENT else "these quotes have"
            raise self._opened.error(f"{what} no end in this file")
        if found := self._statement():
            yield found

    @property
    def place(self) -> FilePlace:
        """The begin of the line that was read last."""
        return FilePlace(self._name, max(self._number, 1), 1)

    def _refuse_long(self) -> None:
        place = self._begun if self._parts else self.place
        raise place.error(
            f"this statement has more than {self._most} bytes, so it does not fit max_allowed_packet of the server: "
            "dump with a smaller --net-buffer-length"
        )

    def _set_delimiter(self, delimiter: bytes) -> None:
        self._end = delimiter
        escaped = re.escape(delimiter[:1]), re.escape(delimiter)
        self._plain = re.compile(PLAIN % escaped, re.DOTALL | re.VERBOSE)

    def _line(self, line: bytes) -> Iterator[FileStatement]:
        """The statements that end in a line."""
        at = self._leave_quotes(line, 0) if self._inside else 0
        while at < len(line):
            if not self._parts:
                at = self._begin(line, at)
            found = self._plain.match(line, at)
            assert found, "it matches the empty text"
            end = found.end()
            self._add(line[at:end])
            if line.startswith(self._end, end):
                end += len(self._end)
                if statement := self._statement():
                    yield statement
            elif end == at and at < len(line):
                end = self._special(line, at)
            at = end

    def _begin(self, line: bytes, at: int) -> int:
        """The offset at which a statement begins in a line; its end if none does."""
        if sandbox := SANDBOX.match(line, at):
            at = sandbox.end()
        space = SPACE.match(line, at)
        at = space.end() if space else at
        if at == 0 and line.startswith(b"--"):
            self.comment = line.rstrip()
        self._begun = FilePlace(self._name, self._number, at + 1)
        if found := DELIMITER.match(line, at):
            words = (found[1] or b"").split()
            if not words:
                raise self._begun.error("DELIMITER needs a text after it, such as DELIMITER //")
            self._set_delimiter(words[0])
            return len(line)
        return at

    def _special(self, line: bytes, at: int) -> int:
        """The offset after a comment, after quotes that go on in the next line, or after one character."""
        opening = COMMENT if line.startswith(COMMENT, at) else line[at : at + 1]
        if opening == b"#" or line.startswith(b"--", at):
            if self._parts:
                self._add(line[at:])
            return len(line)
        if opening in (COMMENT, *REST):
            self._inside, self._opened = opening, FilePlace(self._name, self._number, at + 1)
            if self._parts or opening != COMMENT:
                self._add(opening)
            return self._leave_quotes(line, at + len(opening))
        self._add(opening)  # the begin of the delimiter, but not all of it
        return at + len(opening)

    def _leave_quotes(self, line: bytes, at: int) -> int:
        """The offset after the end of quotes, or of a comment; the end of the line if they go on."""
        if self._inside == COMMENT:
            found = line.find(b"*/", at)
            end, ends = (found + 2, True) if found >= 0 else (len(line), False)
        else:
            quoted = REST[self._inside].match(line, at)
            end = quoted.end() if quoted else at
            ends = line.startswith(self._inside, end)
            end += ends
        if ends:
            self._inside = b""
        if self._parts:
            self._add(line[at:end])
        return end

    def _add(self, text: bytes) -> None:
        if text:
            self._parts.append(text)
            self._size += len(text)
            if self._size > self._most:
                self._refuse_long()

    def _statement(self) -> FileStatement | None:
        """The statement that ends here; None if there is nothing but space."""
        text = b"".join(self._parts).strip()
        self._parts, self._size = [], 0
        return FileStatement(self._begun, text) if text else None
