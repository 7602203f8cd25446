"""The role of each parameter in a statement: which column of which table it is compared with, or written to."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_dbcluster.workloads.digest.schema.conditions import ColumnCondition, StatementConditions, read_conditions
from pytest_dbcluster.workloads.digest.schema.schema_tables import SchemaTables
from pytest_dbcluster.workloads.sql.language.lexer import SQLText, Token

EQUAL, RANGE, COMPARED, LIST, LIKE = "equal", "range", "compared", "list", "like"
INSERTED, ASSIGNED, LIMIT, DELTA, OTHER = "inserted", "assigned", "limit", "delta", "other"
SEARCHING = (EQUAL, RANGE, COMPARED, LIST, LIKE)
NOT_ALIASES = ("SET", "WHERE", "ON", "USING", "JOIN", "LEFT", "RIGHT", "INNER", "CROSS", "STRAIGHT_JOIN", "NATURAL",
               "GROUP", "ORDER", "LIMIT", "HAVING", "FOR", "VALUES", "VALUE", "SELECT", "UNION", "FORCE", "USE",
               "IGNORE", "PARTITION", "LOCK", "OUTER", "FULL", "WINDOW")  # fmt: skip
OPERATORS = ("=", "<", ">", "!", "<=>", "LIKE", "<>")
AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG")
FEATURE_WORDS = ("IGNORE", "REPLACE", "DUPLICATE")


@dataclasses.dataclass(frozen=True)
class Role:
    """What one parameter is for."""

    use: str
    """One of the constants of this module."""

    table: str = ""
    """The name of the table in the schema; empty if it is not known."""

    column: str = ""
    """In lower case; empty if it is not known."""

    row: int = 0
    """Of an INSERT of several rows: 0-based."""


@dataclasses.dataclass(frozen=True)
class StatementRoles:
    """What a digest knows of one statement."""

    verb: str
    """Its first word, in upper case."""

    tables: tuple[str, ...]
    """The tables that it names, as the schema or the statement writes them."""

    unknown: tuple[str, ...]
    """Those that the schema does not have."""

    roles: tuple[Role, ...]
    """One for each parameter."""

    target: str
    """The table that it inserts into; empty for another statement."""

    written: tuple[str, ...]
    """The columns that an INSERT names, in lower case."""

    forgiving: bool
    """Whether an INSERT accepts an existing key: IGNORE, REPLACE or ON DUPLICATE KEY UPDATE."""

    selected: tuple[tuple[str, str], ...]
    """Table and column of each plain column that it returns, if it returns plain columns of one table only."""

    several: bool
    """Whether it is more than one statement."""

    conditions: StatementConditions
    """Its conditions; none of an INSERT."""

    counts: bool
    """Whether it returns one row, whatever it finds: COUNT(*), or another aggregate without GROUP BY."""

    limited: bool
    """Whether it has a LIMIT."""

    grouped: bool
    """Whether GROUP BY or DISTINCT leaves fewer rows than it finds."""

    @property
    def searches_by(self) -> ColumnCondition | None:
        """The only condition of a statement of one table; None for another statement."""
        found = self.conditions
        whole = len(self.tables) == 1 and not (found.unread or found.either or self.target)
        return found.simple[0] if whole and len(found.simple) == 1 else None


def roles_of(text: str, schema: SchemaTables) -> StatementRoles:
    """The roles in the text of a shape."""
    tokens = [token for token in SQLText("", text).tokens() if not token.silent]
    return _Statement(tokens, schema).roles()


class _Statement:
    """One statement that is read."""

    def __init__(self, tokens: Sequence[Token], schema: SchemaTables) -> None:
        self._tokens, self._schema = tokens, schema
        self._words = [token.word or token.text for token in tokens]
        self._aliases: dict[str, str] = {}
        self._tables: list[str] = []
        self._read_tables()

    def roles(self) -> StatementRoles:
        """All that is known."""
        words = self._words
        verb = next((word for word in words if word != "("), "")
        target, written = self._insert() if verb in ("INSERT", "REPLACE") else ("", ())
        places = [number for number, token in enumerate(self._tokens) if token.text == "?"]
        inserted = self._insert_roles(target, written) if target else {}
        return StatementRoles(
            verb,
            tuple(dict.fromkeys(self._tables)),
            tuple(dict.fromkeys(name for name in self._tables if not self._schema.get(name))),
            tuple(inserted.get(place) or self._role(place) for place in places),
            target,
            written,
            any(word in FEATURE_WORDS for word in words[:2]) or "DUPLICATE" in words,
            self._plain_columns() if verb == "SELECT" else (),
            ";" in words[:-1],
            StatementConditions() if target else read_conditions(self._tokens, self._tables, self._column_before),
            verb == "SELECT" and "GROUP" not in words and any(
                word in AGGREGATES and words[at + 1 : at + 2] == ["("] for at, word in enumerate(self._select_list())
            ),
            "LIMIT" in words,
            "GROUP" in words or "DISTINCT" in words,
        )  # fmt: skip

    def _select_list(self) -> list[str]:
        return self._words[: self._words.index("FROM")] if "FROM" in self._words else self._words

    def _read_tables(self) -> None:
        """Find tables and aliases after FROM, JOIN, INTO and UPDATE."""
        words = self._words
        at = 0
        ctes = {
            words[number - 1].lower()
            for number, word in enumerate(words)
            if word == "AS" and number and words[0] == "WITH"
        }
        while at < len(words):
            word = words[at]
            begins = word in ("JOIN", "INTO", "STRAIGHT_JOIN") or (word == "FROM" and not self._in_function(at))
            begins = begins or (word == "UPDATE" and words[at - 1 : at] != ["KEY"] and words[at - 1 : at] != ["FOR"])
            at += 1
            if not begins:
                continue
            while at < len(words):
                while at < len(words) and words[at] in ("(", "LOW_PRIORITY", "IGNORE", "LATERAL"):
                    at += 1
                if at >= len(words) or not self._tokens[at].name or words[at] == "SELECT":
                    break
                at = self._read_table(at, ctes)
                if at < len(words) and words[at] == "," and word in ("FROM", "UPDATE"):
                    at += 1
                    continue
                break
        if words[:1] in (["INSERT"], ["REPLACE"]) and not self._tables:
            skipped = ("INSERT", "REPLACE", "IGNORE", "LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED")
            self._read_table(next((n for n, each in enumerate(words) if each not in skipped), 0), set())

    def _in_function(self, at: int) -> bool:
        """Whether a FROM is that of EXTRACT, TRIM or SUBSTRING."""
        for place in range(at - 1, max(-1, at - 6), -1):
            if self._words[place] == "(":
                return self._words[place - 1 : place] in (["EXTRACT"], ["TRIM"], ["SUBSTRING"], ["SUBSTR"])
            if self._words[place] == ")":
                return False
        return False

    def _read_table(self, at: int, without: set[str]) -> int:
        name = self._tokens[at].name
        at += 1
        if self._words[at : at + 1] == ["."]:
            name = self._tokens[at + 1].name
            at += 2
        found = self._schema.get(name)
        name = found.name if found else name
        if name.lower() not in without:
            self._tables.append(name)
        self._aliases[name.lower()] = name
        if self._words[at : at + 1] == ["AS"]:
            at += 1
        if at < len(self._tokens) and self._tokens[at].name and self._words[at] not in NOT_ALIASES:
            self._aliases[self._tokens[at].name.lower()] = name
            at += 1
        return at

    def _column_before(self, at: int) -> tuple[str, str]:
        """Table and column of the name that ends at a place; empty texts if there is none."""
        if at < 0 or not self._tokens[at].name:
            return "", ""
        column = self._tokens[at].name.lower()
        if at > 1 and self._words[at - 1] == ".":
            qualifier = self._tokens[at - 2].name.lower()
            table = self._aliases.get(qualifier, "")
            return (table, column) if table else ("", column)
        for name in self._tables:
            found = self._schema.get(name)
            if found and column in found.columns:
                return found.name, column
        return "", column

    def _role(self, place: int) -> Role:
        words = self._words
        before = words[place - 1] if place else ""
        if before in ("LIMIT", "OFFSET", "INTERVAL") or words[place - 3 : place - 1] == ["LIMIT", "?"]:
            return Role(LIMIT)
        if before == "(" and place > 1 and words[place - 2] == "IN":
            at = place - 4 if words[place - 3] == "NOT" else place - 3
            return Role(LIST, *self._column_before(at))
        if before == "BETWEEN" or (before == "AND" and words[place - 3 : place - 1] == ["BETWEEN", "?"]):
            at = place - 2 if before == "BETWEEN" else place - 4
            return Role(RANGE, *self._column_before(at))
        if before in ("+", "-", "*", "/", "%"):
            return Role(DELTA)
        if before in OPERATORS or before == "BINARY":
            at = place - 1
            while at >= 0 and words[at] in (*OPERATORS, "BINARY", "NOT"):
                at -= 1
            table, column = self._column_before(at)
            if not column:
                return Role(OTHER)
            if before == "=" and words[place - 2] not in OPERATORS:
                use = ASSIGNED if self._assigning(place) else EQUAL
            else:
                use = LIKE if "LIKE" in words[at + 1 : place] else EQUAL if before == "BINARY" else COMPARED
            return Role(use, table, column)
        return Role(OTHER)

    def _assigning(self, place: int) -> bool:
        """Whether the = before a place assigns: it is in SET or ON DUPLICATE KEY UPDATE."""
        depth = 0
        for at in range(place - 1, -1, -1):
            word = self._words[at]
            depth += {")": 1, "(": -1}.get(word, 0)
            if depth < 0:
                return False
            if depth == 0 and word in ("WHERE", "ON", "HAVING", "AND", "OR", "SELECT", "FROM"):
                return False
            if depth == 0 and (word == "SET" or (word == "UPDATE" and self._words[at - 1] == "KEY")):
                return True
        return False

    def _insert(self) -> tuple[str, tuple[str, ...]]:
        """The table of an INSERT and its columns."""
        if not self._tables:
            return "", ()
        target = self._tables[0]
        words = self._words
        names = [token.name.lower() for token in self._tokens]
        at = next((number for number, name in enumerate(names) if number and name == target.lower()), 0) + 1
        if words[at : at + 1] == ["("]:
            end = words.index(")", at) if ")" in words[at:] else len(words)
            return target, tuple(name for name in names[at + 1 : end] if name)
        if words[at : at + 1] == ["SET"]:
            return target, tuple(
                names[number - 1] for number in range(at + 2, len(words)) if words[number] == "=" and names[number - 1]
            )
        found = self._schema.get(target)
        return target, tuple(found.columns) if found else ()

    def _insert_roles(self, target: str, written: Sequence[str]) -> dict[int, Role]:
        """The roles of the parameters that are a whole value in VALUES."""
        words, found = self._words, dict[int, Role]()
        at = next((number for number, word in enumerate(words) if word in ("VALUES", "VALUE")), len(words)) + 1
        row = 0
        while words[at : at + 1] == ["("]:
            depth, number, begin = 1, 0, at + 1
            at += 1
            while at < len(words) and depth:
                depth += {"(": 1, ")": -1}.get(words[at], 0)
                if (depth == 1 and words[at] == ",") or depth == 0:
                    if at - begin == 1 and words[begin] == "?" and number < len(written):
                        found[begin] = Role(INSERTED, target, written[number], row)
                    number, begin = number + 1, at + 1
                at += 1
            row += 1
            at += words[at : at + 1] == [","]
        return found

    def _plain_columns(self) -> tuple[tuple[str, str], ...]:
        """The plain columns that a SELECT of one table returns."""
        if "FROM" not in self._words or len(self._tables) != 1 or "SELECT" in self._words[1:]:
            return ()
        found, at = [], 1
        end = self._words.index("FROM")
        while at < end:
            stop = next((place for place in range(at, end) if self._words[place] == ","), end)
            table, column = self._column_before(stop - 1)
            width = stop - at
            plain = width == 1 or (width == 3 and self._words[at + 1] == ".")
            known = self._schema.get(table)
            if not plain or not known or column not in known.columns:
                return ()
            found.append((table, column))
            at = stop + 1
        return tuple(found)
