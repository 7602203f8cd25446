"""Tokens of SQL text, with their places in the file.

A ``:name`` is a token of its own only outside of quotes and comments. ``:=`` and ``::`` are operators.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pytest_dbcluster.errors import ConfigError

# MySQL's rules: a comment of two dashes needs a space after them, a backslash escapes a character in quotes. The most
# frequent kinds come first.
TOKEN = re.compile(
    r"""
    (?P<space>\s+)
    |(?P<word>@*[^\W\d][\w$]*)
    |(?P<line_comment>--(?=\s|\Z)[^\n]*|\#[^\n]*)
    |(?P<comment>/\*.*?(?:\*/|\Z))
    |(?P<string>'(?:[^'\\]|\\.|'')*(?:'|\\?\Z)|"(?:[^"\\]|\\.|"")*(?:"|\\?\Z))
    |(?P<quoted>`(?:[^`]|``)*(?:`|\Z))
    |(?P<operator>:=|::)
    |(?P<variable>:[A-Za-z_]\w*)
    |(?P<meta>\\\w*)
    |(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<end>;)
    |(?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
# The first line of newer dumps: their client then runs nothing but SQL. No server runs what is in it.
SANDBOX = re.compile(r"/\*M?!999999\\")
WHOLE = {  # by the first character: what quotes or a comment with an end look like
    "'": re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL),
    '"': re.compile(r'"(?:[^"\\]|\\.|"")*"', re.DOTALL),
    "`": re.compile(r"`(?:[^`]|``)*`"),
    "/": re.compile(r"/\*.*?\*/", re.DOTALL),
}
SILENT, WITH_END = ("space", "line_comment"), ("comment", "string", "quoted")
LINE = re.compile(r"(?:\\\r?\n|[^\n])*")
CONTINUED = re.compile(r"\\(\r?)\n")


class FilePlace(NamedTuple):
    """A place in a file of SQL, as messages show it: ``shop/order.sql:3:8``."""

    file: str
    """The name of the file in messages."""

    line: int
    """1-based."""

    column: int
    """1-based."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def error(self, words: str) -> ConfigError:
        """A ConfigError that begins with this place."""
        return ConfigError(f"{self}: {words}")


class Token(NamedTuple):
    """One token."""

    kind: str
    """The name of its group in ``TOKEN``."""

    text: str
    """Its characters, as the file has them."""

    start: int
    """Offset of its first character."""

    word: str
    """The word in upper case; empty for any other token."""

    @property
    def name(self) -> str:
        """The name that it writes: a word, or text in backquotes; empty for any other token."""
        if self.kind == "quoted":
            return self.text[1:-1].replace("``", "`")
        return self.text if self.kind == "word" else ""

    @property
    def end(self) -> int:
        """Offset after its last character."""
        return self.start + len(self.text)

    @property
    def silent(self) -> bool:
        """Whether the server ignores it: space, and comments other than ``/*!`` and ``/*+``."""
        if self.kind != "comment":
            return self.kind in SILENT
        return not self.text.startswith(("/*!", "/*M!", "/*+")) or bool(SANDBOX.match(self.text))


class SQLText:
    """The text of one file, or a part of it. begin: line and column of its first character."""

    def __init__(self, file: str, text: str, begin: tuple[int, int] = (1, 1)) -> None:
        self.file = file
        self.text = text
        self.begin = begin
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, offset: int) -> FilePlace:
        """The place of a character."""
        line = bisect.bisect_right(self._lines, offset)
        column = offset - self._lines[line - 1] + (self.begin[1] if line == 1 else 1)
        return FilePlace(self.file, self.begin[0] + line - 1, column)

    def token(self, offset: int) -> Token:
        """The token that begins at this offset. Raises ConfigError for quotes or a comment without an end."""
        match = TOKEN.match(self.text, offset)
        assert match, "every character begins a token"
        kind, text = match.lastgroup, match[0]
        assert kind
        if kind in WITH_END and not WHOLE[text[0]].fullmatch(text):
            if kind == "comment":
                raise self.place(offset).error("this comment has no end: write */ after it")
            raise self.place(offset).error(f"these quotes have no end: write {text[0]} after them")
        return Token(kind, text, offset, text.upper() if kind == "word" else "")

    def tokens(self, offset: int = 0) -> Iterator[Token]:
        """All tokens from this offset on."""
        while offset < len(self.text):
            token = self.token(offset)
            yield token
            offset = token.end

    def rest_of_line(self, offset: int) -> tuple[str, int]:
        """The text from this offset to the end of its line, and the offset after it.

        A backslash at the end of a line continues it; the backslash and the line break become spaces.
        """
        match = LINE.match(self.text, offset)
        assert match
        rest = match[0]
        return CONTINUED.sub(lambda found: " " * len(found[0]), rest) if "\n" in rest else rest, match.end()


def replace_variables(source: SQLText, value: Callable[[Token], str]) -> str:
    """The text of a source with every ``:name`` outside of quotes and comments replaced by ``value(token)``."""
    return "".join(value(token) if token.kind == "variable" else token.text for token in source.tokens())
