"""The conditions of a statement, in WHERE and in ON: which columns are compared with parameters, or with each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from pytest_dbcluster.workloads.digest.schema.schema_tables import closing
from pytest_dbcluster.workloads.sql.language.lexer import Token

NO_PARAMETER = ("IS NULL", "IS NOT NULL")
COMPARISONS = {"!=": "<>", **{each: each for each in ("=", "<", "<=", ">", ">=", "<>", "LIKE", "IN")}}
BETWEEN = "BETWEEN"
OUTER = ("LEFT", "RIGHT", "FULL", "NATURAL")
JOINS = ("JOIN", "INNER", "CROSS", "STRAIGHT_JOIN", *OUTER)
AFTER_WHERE = ("GROUP", "ORDER", "LIMIT", "HAVING", "FOR", "LOCK", "RETURNING", "UNION", "WINDOW")
OTHER_ROWS = ("UNION", "SELECT", "HAVING")  # what a statement finds is not the rows of its tables
OR = ("OR", "||")
Column = tuple[str, str]  # table and column


@dataclasses.dataclass(frozen=True)
class ColumnCondition:
    """One condition on a column."""

    table: str
    """The name of the table in the schema."""

    column: str
    """In lower case."""

    operator: str
    """``=``, ``<``, ``<=``, ``>``, ``>=``, ``<>``, ``LIKE``, ``IN``, ``BETWEEN``, ``IS NULL`` or ``IS NOT NULL``."""

    parameter: int
    """The 0-based parameter on its right side, of BETWEEN the first one; -1 if it has none."""


@dataclasses.dataclass(frozen=True)
class StatementConditions:
    """All conditions of a statement, which AND joins."""

    simple: tuple[ColumnCondition, ...] = ()
    """The conditions on one column each."""

    either: tuple[tuple[ColumnCondition, ...], ...] = ()
    """The conditions on one column each that OR joins."""

    joins: tuple[tuple[Column, Column], ...] = ()
    """The pairs of columns of different tables that are equal."""

    unread: str = ""
    """Why these do not decide alone which rows it finds: a condition of another form, or a word. Empty if they do."""


def read_conditions(
    tokens: Sequence[Token], tables: Sequence[str], column_before: Callable[[int], Column]
) -> StatementConditions:
    """The conditions of a statement that inserts nothing.

    tables: those that it names. column_before: table and column of the name that ends at a token.
    """
    return _Conditions(tokens, tables, column_before).read()


class _Conditions:
    """The conditions of one statement."""

    def __init__(self, tokens: Sequence[Token], tables: Sequence[str], column_before: Callable[[int], Column]) -> None:
        self._tokens, self._tables, self._column_before = tokens, tables, column_before
        self._words = [token.word or token.text for token in tokens]
        self._unread: list[str] = []

    def read(self) -> StatementConditions:
        """All of them."""
        words = self._words
        if other := next((word for word in words[1:] if word in OTHER_ROWS), ""):
            return StatementConditions(unread="a subquery" if other == "SELECT" else other)
        if len(self._tables) > 1:
            self._refuse_tables()
        simple: list[ColumnCondition] = []
        either: list[tuple[ColumnCondition, ...]] = []
        joins: list[tuple[Column, Column]] = []
        for begin, end in self._spans():
            for first, after in self._parts(begin, end, ("AND",)):
                if condition := self._condition(first, after):
                    simple.append(condition)
                elif join := self._join(first, after):
                    joins.append(join)
                elif some := self._either(first, after):
                    either.append(some)
                else:
                    self._unread.append(" ".join(token.text for token in self._tokens[first:after]))
        return StatementConditions(tuple(simple), tuple(either), tuple(joins), next(iter(self._unread), ""))

    def _refuse_tables(self) -> None:
        words = self._words
        if words[0] != "SELECT":
            self._unread.append(f"{words[0]} of several tables")
        elif len(set(self._tables)) < len(self._tables):
            self._unread.append("a table that is joined with itself")
        elif any(word in OUTER and not self._calls(at) for at, word in enumerate(words)):
            self._unread.append("an outer join")
        elif "USING" in words:
            self._unread.append("USING")

    def _spans(self) -> Iterator[tuple[int, int]]:
        """The begin and the end of each ON, and of WHERE."""
        words = self._words
        for at, word in enumerate(words):
            if word == "ON":
                yield at + 1, self._end(at + 1, (*JOINS, "ON", "WHERE", ",", *AFTER_WHERE))
            elif word == "WHERE":
                end = self._end(at + 1, AFTER_WHERE)
                yield at + 1, end - (words[end - 1] == ";")
                return

    def _end(self, begin: int, stops: Sequence[str]) -> int:
        """The place of the first of some words outside of parentheses, or of the parenthesis that closes all."""
        depth = 0
        for at in range(begin, len(self._words)):
            word = self._words[at]
            depth += {"(": 1, ")": -1}.get(word, 0)
            if depth < 0 or (depth == 0 and word in stops and not self._calls(at)):
                return at
        return len(self._words)

    def _calls(self, at: int) -> bool:
        """Whether a word is the name of a function that is called, such as LEFT."""
        return self._words[at] in OUTER and self._words[at + 1 : at + 2] == ["("]

    def _bare(self, begin: int, end: int) -> tuple[int, int]:
        """The same place without the parentheses around it."""
        while end - begin > 1 and self._words[begin] == "(" and closing(self._words, begin) == end - 1:
            begin, end = begin + 1, end - 1
        return begin, end

    def _parts(self, begin: int, end: int, by: Sequence[str]) -> list[tuple[int, int]]:
        """The begin and the end of each part that some words join, without the parentheses around it."""
        words = self._words
        begin, end = self._bare(begin, end)
        depth, first, parts, between = 0, begin, [], False
        for at in range(begin, end):
            word = words[at]
            depth += {"(": 1, ")": -1}.get(word, 0)
            if depth:
                continue
            if "AND" in by and word in (*OR, "XOR"):
                return [(begin, end)]
            between = between or word == BETWEEN
            if word == "AND" and between:
                between = False
            elif word in by:
                parts.append((first, at))
                first = at + 1
        if not parts:
            return [(begin, end)]
        return [one for part in [*parts, (first, end)] for one in self._parts(*part, by)]

    def _column(self, begin: int, end: int) -> tuple[Column | None, int]:
        """The column whose name begins at a place, and the place after it. None if its table is not known."""
        width = 3 if self._words[begin + 1 : begin + 2] == ["."] else 1
        column = self._column_before(begin + width - 1) if begin + width <= end else ("", "")
        return (column if all(column) else None), begin + width

    def _condition(self, begin: int, end: int) -> ColumnCondition | None:
        """The condition between two places; None if it has another form than a column, an operator and parameters."""
        column, after = self._column(begin, end)
        rest = self._words[after:end]
        joined = " ".join(rest)
        if not column:
            return None
        if joined in NO_PARAMETER:
            return ColumnCondition(*column, joined, -1)
        number = self._words[:end].count("?") - 1
        if joined == "BETWEEN ? AND ?":
            return ColumnCondition(*column, BETWEEN, number - 1)
        if rest[-1:] == ["?"] or rest[-3:] == ["(", "?", ")"]:
            operator = "".join(word for word in rest if word not in ("?", "(", ")", "BINARY"))
            if operator in COMPARISONS and (operator == "IN") == (rest[-1] == ")"):
                return ColumnCondition(*column, COMPARISONS[operator], number)
        return None

    def _join(self, begin: int, end: int) -> tuple[Column, Column] | None:
        """The equal columns of two tables."""
        first, after = self._column(begin, end)
        if not first or self._words[after : after + 1] != ["="]:
            return None
        second, after = self._column(after + 1, end)
        return (first, second) if second and after == end and first[0] != second[0] else None

    def _either(self, begin: int, end: int) -> tuple[ColumnCondition, ...]:
        """The simple conditions that OR joins; empty if one of them has another form."""
        found = [self._condition(*part) for part in self._parts(begin, end, OR)]
        return tuple(one for one in found if one) if len(found) > 1 and None not in found else ()
