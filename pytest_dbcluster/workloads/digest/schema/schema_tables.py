"""The tables of a schema file: their columns, keys and references, as far as a digest needs them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.workloads.sql.language.lexer import SQLText, Token

KEYS = ("PRIMARY", "UNIQUE", "KEY", "INDEX", "CONSTRAINT", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "PERIOD")
WHOLE = ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "BIGINT", "SERIAL", "YEAR", "BIT", "BOOL", "BOOLEAN")
TEXTS = ("CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "ENUM", "SET", "BINARY", "VARBINARY", "BLOB")
FRACTIONS = ("DECIMAL", "NUMERIC", "FLOAT", "DOUBLE", "REAL")
DATES = ("DATE", "DATETIME", "TIMESTAMP")
LEFT_OUT = re.compile(r"\s*(?:CREATE|DROP|ALTER)\s+(?:DATABASE|SCHEMA)\b|\s*USE\b", re.I)


@dataclasses.dataclass(frozen=True)
class TableColumn:
    """One column."""

    name: str
    """As the schema writes it."""

    kind: str
    """Its type in upper case, such as ``VARCHAR``."""

    length: int
    """The number in parentheses after the type; 0 without one."""

    members: tuple[str, ...]
    """The values of an ENUM."""

    auto_increment: bool
    """Whether the server makes its values."""

    nullable: bool = True
    """Whether its own definition accepts NULL."""


@dataclasses.dataclass
class SchemaTable:
    """One table. Names of columns in keys are in lower case."""

    name: str
    """As the schema writes it."""

    columns: dict[str, TableColumn] = dataclasses.field(default_factory=dict)
    """By name in lower case, in the order of the table."""

    primary: tuple[str, ...] = ()
    """The columns of the primary key; empty without one."""

    uniques: list[tuple[str, ...]] = dataclasses.field(default_factory=list)
    """The columns of each unique key, the primary key too."""

    indexed: set[str] = dataclasses.field(default_factory=set)
    """The first column of each index that is not unique."""

    references: dict[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    """Column -> table and column that it refers to."""

    next_id: int = 0
    """``AUTO_INCREMENT=`` of the table; 0 without it."""

    @property
    def auto_increment(self) -> str:
        """The column with AUTO_INCREMENT; empty without one."""
        return next((name for name, column in self.columns.items() if column.auto_increment), "")

    def unique_alone(self, column: str) -> bool:
        """Whether a column is a unique key by itself."""
        return (column,) in self.uniques


class SchemaTables:
    """All tables of a schema file."""

    def __init__(self, tables: Mapping[str, SchemaTable]) -> None:
        self.tables = dict(tables)
        self._by_name = {name.lower(): table for name, table in tables.items()}

    def get(self, name: str) -> SchemaTable | None:
        """A table by its name, in any case."""
        return self._by_name.get(name.lower())

    def has_index(self, table: str, column: str) -> bool:
        """Whether an index begins with a column."""
        found = self.get(table)
        if not found:
            return False
        return column in found.indexed or column in found.references or any(key[0] == column for key in found.uniques)

    def key_of(self, table: str, column: str) -> tuple[SchemaTable, str] | None:
        """The table whose rows a column counts: that of its own unique key, or the one that it refers to."""
        seen: set[tuple[str, str]] = set()
        found = self.get(table)
        while found and (found.name, column) not in seen:
            seen.add((found.name, column))
            if column in found.references:
                parent, column = found.references[column]
                found = self.get(parent)
            elif found.unique_alone(column):
                return found, column
            else:
                return None
        return None


def read_schema(path: Path) -> tuple[SchemaTables, str]:
    """The tables of a schema file, and its text without statements about databases.

    Raises ConfigError for a file that cannot be read, or has no CREATE TABLE.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the schema {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: this file is not UTF-8: {error}") from None
    source = SQLText(path.name, text)
    tables: dict[str, SchemaTable] = {}
    kept: list[str] = []
    for statement, tokens in _statements(source):
        if LEFT_OUT.match("".join(token.text for token in tokens if not token.silent or token.kind == "space")):
            continue
        kept.append(statement)
        _read(tables, [token for token in tokens if not token.silent and token.kind != "comment"])
    if not tables:
        raise ConfigError(
            f"{path} has no CREATE TABLE: write the schema of the log's database with "
            "mysqldump --no-data DATABASE > schema.sql"
        )
    return SchemaTables(tables), "".join(kept)


def _statements(source: SQLText) -> Iterator[tuple[str, list[Token]]]:
    tokens: list[Token] = []
    for token in source.tokens():
        tokens.append(token)
        if token.kind == "end":
            yield "".join(each.text for each in tokens), tokens[:-1]
            tokens = []
    if tokens:
        yield "".join(each.text for each in tokens), tokens


def _read(tables: dict[str, SchemaTable], tokens: Sequence[Token]) -> None:
    words = [token.word for token in tokens]
    if words[:1] == ["CREATE"] and "TABLE" in words[1:4]:
        at = words.index("TABLE") + 1
        while at < len(words) and words[at] in ("IF", "NOT", "EXISTS"):
            at += 1
        name, at = _table_name(tokens, at)
        table = tables[name] = SchemaTable(name)
        items, after = _items(tokens, at)
        for item in items:
            _item(table, item)
        texts = [token.text.upper() for token in tokens[after:]]
        if "AUTO_INCREMENT" in texts:
            number = next((text for text in texts[texts.index("AUTO_INCREMENT") :] if text.isdigit()), "0")
            table.next_id = int(number)
    elif words[:2] == ["ALTER", "TABLE"]:
        name, at = _table_name(tokens, 2)
        if name in tables:
            for item in _split(tokens[at:]):
                _alteration(tables[name], item)
    elif words[:2] == ["CREATE", "UNIQUE"] and "ON" in words:
        name, at = _table_name(tokens, words.index("ON") + 1)
        if name in tables:
            tables[name].uniques.append(_names(tokens[at:]))


def _table_name(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """The name of a table without its database, and the place after it."""
    if len(tokens) > at + 2 and tokens[at + 1].text == ".":
        at += 2
    return (tokens[at].name, at + 1) if at < len(tokens) else ("", at)


def _items(tokens: Sequence[Token], at: int) -> tuple[list[list[Token]], int]:
    """What stands between the parentheses that begin at or after a place, and the place after them."""
    texts = [token.text for token in tokens]
    at = texts.index("(", at) if "(" in texts[at:] else len(texts)
    end = closing(texts, at)
    return _split(tokens[at + 1 : end]), end + 1


def closing(words: Sequence[str], at: int) -> int:
    """The place of the parenthesis that closes the one at a place; that after the last word if none does."""
    depth = 0
    for place in range(at, len(words)):
        depth += {"(": 1, ")": -1}.get(words[place], 0)
        if depth == 0:
            return place
    return len(words)


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    """The parts between commas that are outside of parentheses."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            found.append([])
        else:
            found[-1].append(token)
    return [each for each in found if each]


def _names(tokens: Sequence[Token]) -> tuple[str, ...]:
    """The names in the first parentheses, in lower case."""
    items, _ = _items(tokens, 0)
    return tuple(item[0].name.lower() for item in items if item)


def _item(table: SchemaTable, item: Sequence[Token]) -> None:
    if item[0].word in KEYS and item[0].kind == "word":
        _key(table, item)
    elif item[0].name and len(item) > 1:
        _column(table, item)


def _key(table: SchemaTable, item: Sequence[Token]) -> None:
    words = [token.word for token in item]
    if "PRIMARY" in words[:3]:
        table.primary = _names(item)
        table.uniques.append(table.primary)
    elif "FOREIGN" in words[:3] and "REFERENCES" in words:
        place = words.index("REFERENCES")
        name, _ = _table_name(item, place + 1)
        for own, other in zip(_names(item[words.index("FOREIGN") : place]), _names(item[place:]), strict=False):
            table.references[own] = (name, other)
    elif "UNIQUE" in words[:3]:
        table.uniques.append(_names(item))
    elif words[0] in ("KEY", "INDEX") and (names := _names(item)):
        table.indexed.add(names[0])


def _column(table: SchemaTable, item: Sequence[Token]) -> None:
    name, kind = item[0].name, item[1].word
    words = [token.word for token in item]
    arguments, _ = _items(item, 2) if len(item) > 2 and item[2].text == "(" else ([], 0)
    texts = [argument[0].text for argument in arguments if argument]
    members = tuple(text[1:-1].replace("''", "'") for text in texts if text[:1] == "'")
    length = int(texts[0]) if texts and texts[0].isdigit() else 0
    auto = "AUTO_INCREMENT" in words or kind == "SERIAL"
    nullable = "NULL" not in words[max(0, words.index("NOT")) :] if "NOT" in words else "PRIMARY" not in words
    table.columns[name.lower()] = TableColumn(name, kind, length, members, auto, nullable)
    if "PRIMARY" in words:
        table.primary = (name.lower(),)
    if "PRIMARY" in words or "UNIQUE" in words or kind == "SERIAL":
        table.uniques.append((name.lower(),))
    if "REFERENCES" in words:
        parent, at = _table_name(item, words.index("REFERENCES") + 1)
        table.references[name.lower()] = (parent, (_names(item[at:]) or ("",))[0])


def _alteration(table: SchemaTable, item: Sequence[Token]) -> None:
    words = [token.word for token in item]
    if words[0] == "ADD":
        rest = item[2:] if len(words) > 1 and words[1] == "COLUMN" else item[1:]
        if rest:
            _item(table, rest)
    elif words[0] in ("MODIFY", "CHANGE"):
        at = 2 if len(words) > 1 and words[1] == "COLUMN" else 1
        at += words[0] == "CHANGE"
        if at < len(item):
            _column(table, item[at:])
