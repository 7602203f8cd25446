"""How many rows the statements of a log found, and from that which share of a table meets each condition.

Only statements count whose conditions alone decide what they find, and that LIMIT does not cut. A condition on a key,
or on a column with many values, finds the rows of one value. The others divide these rows. A join finds the product of
the rows of its tables. Each key that joins them divides it by the number of its values.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn

from pytest_dbcluster.workloads.digest.class_layout import RunLayout, Value
from pytest_dbcluster.workloads.digest.distributions import is_now
from pytest_dbcluster.workloads.digest.links import ClassFacts, whole
from pytest_dbcluster.workloads.digest.log.log_files import Figures
from pytest_dbcluster.workloads.digest.log.statement_shapes import Literals
from pytest_dbcluster.workloads.digest.schema.conditions import BETWEEN, NO_PARAMETER, Column, ColumnCondition
from pytest_dbcluster.workloads.digest.schema.schema_tables import DATES, TEXTS, WHOLE, SchemaTable
from pytest_dbcluster.workloads.digest.schema.statement_roles import LIMIT, StatementRoles
from pytest_dbcluster.workloads.digest.value_domains import FEW, ValueDomains
from pytest_dbcluster.workloads.sql.rows.numbered_values import text_prefix

MOST_KEPT = 2000  # executions of one statement in one class
NOW = "NOW"  # in the place of a time that is close to its statement
VALUES = ("=", "LIKE")  # operators whose conditions no row meets twice


class Predicate(NamedTuple):
    """A condition that divides the rows of a table."""

    table: str
    """Its table."""

    column: str
    """In lower case."""

    operator: str
    """As in ``ColumnCondition``; LIKE without a wildcard is ``=``."""

    value: str
    """The literal, or ``NOW``; of BETWEEN both, with AND between them; empty for a test for NULL."""


class Searched(NamedTuple):
    """A column that is searched for some of its many values."""

    column: Column
    """Table and column."""

    values: int
    """How many values; 0 for a range of them."""


class Unfit(Exception):
    """Why the rows of a statement tell nothing; without words if nothing has to be told."""


Either = frozenset[Predicate]


class FoundSearch(NamedTuple):
    """What statements with equal conditions search."""

    tables: tuple[str, ...]
    """Their tables."""

    joins: tuple[tuple[Column, Column], ...]
    """The columns by which these are joined."""

    predicates: frozenset[Predicate]
    """The conditions that divide rows, and that all rows meet which they find."""

    either: frozenset[Either]
    """Groups of such conditions, of each of which these rows meet one at least."""

    searched: frozenset[Column]
    """The columns that are searched for a value."""

    @property
    def dividing(self) -> frozenset[Predicate]:
        """All conditions that divide rows."""
        return self.predicates.union(*self.either)


@dataclasses.dataclass
class FoundCounts:
    """What executions of statements with equal conditions found."""

    executions: float = 0.0
    """Their number, as often as they are in the log."""

    values: float = 0.0
    """The values that they searched for: more than one for a list."""

    rows: float = 0.0
    """The rows that they found."""

    @property
    def for_each(self) -> float:
        """The rows of each value."""
        return self.rows / self.values


@dataclasses.dataclass
class FoundStatement:
    """One statement of one class."""

    facts: ClassFacts
    """The class."""

    shape: int
    """The number of the statement's shape."""

    searches: set[FoundSearch] = dataclasses.field(default_factory=set)
    """What its executions searched."""

    reasons: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    """Why executions tell nothing."""


class FoundRows:
    """What the statements of all classes found."""

    def __init__(self, facts: Sequence[ClassFacts], domains: ValueDomains) -> None:
        self._domains = domains
        self.searches: dict[FoundSearch, FoundCounts] = {}
        """By the conditions of a statement."""

        self._statements: list[FoundStatement] = []
        for one in facts:
            for run in one.layout.runs:
                for number, shape in enumerate(run.unit):
                    roles = one.roles[shape]
                    if roles.verb in ("SELECT", "UPDATE", "DELETE") and roles.tables:
                        self._statements.append(FoundStatement(one, shape))
                        self._read(self._statements[-1], run, number, roles)

    def _read(self, statement: FoundStatement, run: RunLayout, number: int, roles: StatementRoles) -> None:
        executions = list(zip(run.owners, run.values[number], run.figures[number], strict=True))
        weight = statement.facts.weight
        for owner, literals, figures in executions[:MOST_KEPT]:
            try:
                search, values = self._search(roles, literals, statement.facts.layout.times[owner])
                rows = figures.sent if roles.verb == "SELECT" else figures.affected
                hidden = _hides(roles, literals, figures, rows)
                if search.dividing and hidden:
                    raise Unfit(hidden)
            except Unfit as unfit:
                statement.reasons[str(unfit)] += 1
                continue
            statement.searches.add(search)
            if hidden:
                continue
            counts = self.searches.setdefault(search, FoundCounts())
            counts.executions += weight
            counts.values += weight * values
            counts.rows += weight * rows

    def _search(self, roles: StatementRoles, literals: Literals, time: int) -> tuple[FoundSearch, int]:
        """What an execution searches, and for how many values. Raises Unfit."""
        found = roles.conditions
        if found.unread:
            raise Unfit(f"{found.unread} is not analysed")
        parts = [self._part(each, literals, time) for each in found.simple]
        groups = [self._group([self._part(each, literals, time) for each in group]) for group in found.either]
        groups += [part for part in parts if isinstance(part, frozenset)]
        predicates = frozenset(part for part in parts if isinstance(part, Predicate))
        searched = [part for part in parts if isinstance(part, Searched)]
        search = FoundSearch(roles.tables, found.joins, predicates, frozenset(filter(None, groups)),
                             frozenset(part.column for part in searched))  # fmt: skip
        tables = {part.table for part in search.dividing}
        if len(searched) > 1 or None in groups or any(not part.values for part in searched):
            raise Unfit("several keys or a range of keys beside other conditions" if tables else "")
        if len(tables) > 1:
            raise Unfit(f"conditions on several tables: {', '.join(sorted(tables))}")
        return search, searched[0].values if searched else 1

    def _group(self, parts: Sequence[Predicate | Searched | Either]) -> Either | None:
        """The conditions that OR joins; None if all search for a key. Raises Unfit."""
        if all(isinstance(part, Searched) for part in parts):
            return None
        found: set[Predicate] = set()
        for part in parts:
            if isinstance(part, Searched):
                raise Unfit(f"OR joins the key {part.column[1]} with another condition")
            found |= {part} if isinstance(part, Predicate) else part
        return frozenset(found)

    def _part(self, condition: ColumnCondition, literals: Literals, time: int) -> Predicate | Searched | Either:
        """Conditions that divide, or a column with the number of values that it is searched for. Raises Unfit."""
        table, column, operator = condition.table, condition.column, condition.operator
        if operator in NO_PARAMETER:
            return Predicate(table, column, operator, "")
        value = literals[condition.parameter]
        if operator == "LIKE" and isinstance(value, str) and "%" not in value:
            operator = "="
        if operator in ("=", "IN") and self._domains.is_searched(table, column):
            return Searched((table, column), len(set(value)) if isinstance(value, tuple) else 1)
        if operator not in ("=", "LIKE") and self._domains.schema.key_of(table, column):
            return Searched((table, column), 0)
        if isinstance(value, tuple):
            found = frozenset(self._predicate(table, column, "=", each, time) for each in value)
            return found if len(found) > 1 else next(iter(found))
        if operator == BETWEEN:
            ends = [self._predicate(table, column, operator, literals[condition.parameter + one], time).value
                    for one in (0, 1)]  # fmt: skip
            return Predicate(table, column, operator, " AND ".join(ends))
        return self._predicate(table, column, operator, value, time)

    def _predicate(self, table: str, column: str, operator: str, value: Value, time: int) -> Predicate:
        known = self._domains.schema.get(table)
        if not isinstance(value, str) or not known or column not in known.columns:
            raise Unfit(f"the schema has no column {table}.{column}")
        if known.columns[column].kind in DATES:
            if not is_now(value, time) or operator == BETWEEN:
                raise Unfit(f"{column} is compared with another time than that of the statement")
            return Predicate(table, column, operator, NOW)
        found = self._domains.columns.get((table, column))
        if not found or len(found.texts) + len(found.numbers) > FEW:
            raise Unfit(f"{column} is compared with more than {FEW} values")
        if value[0] not in "'\"" and whole(value) is None:
            raise Unfit(f"{column} is compared with something else than whole numbers and texts")
        return Predicate(table, column, operator, value)

    def shares(self, table: str) -> dict[Predicate, float]:
        """The share of the table's rows that meets each condition, 0 to 1.

        It is large enough for each statement. The rows of all conditions overlap as much as they can. So each
        statement finds those of its rarest condition. Of conditions that OR joins, it finds those of the most frequent.
        """
        ratios = [(search, ratio) for search, ratio in self._ratios() if any(table == one.table
                  for one in search.dividing)]  # fmt: skip
        found: dict[Predicate, float] = {}
        for predicate in {each for search, _ in ratios for each in search.predicates}:
            those = [(search.predicates, ratio) for search, ratio in ratios if predicate in search.predicates]
            beside: dict[str, dict[Predicate, float]] = {}  # column -> its conditions beside this one
            for predicates, ratio in those:
                for other in predicates - {predicate}:
                    values = beside.setdefault(other.column, {})
                    values[other] = max(ratio, values.get(other, 0.0))
            sums = [sum(values.values()) for values in beside.values() if all(each.operator == "=" for each in values)]
            found[predicate] = min(1.0, max([ratio for _, ratio in those] + sums))
        for predicate, share in _of_either(ratios, found).items():
            found.setdefault(predicate, share)
        return found

    def _ratios(self) -> Iterator[tuple[FoundSearch, float]]:
        """For each search with dividing conditions: the share of its rows that meets them."""
        for search, counts in self.searches.items():
            if search.dividing:
                with contextlib.suppress(Unfit):
                    yield search, min(1.0, counts.for_each / self._rows(search))

    def _rows(self, search: FoundSearch) -> float:
        """The rows that a search would find for a value without dividing conditions. Raises Unfit."""
        rows = 1.0
        for table in search.tables:
            rows *= self._domains.rows.get(table, 0)
        if not rows:
            raise Unfit("no row is generated" if self.searches[search].rows else "")
        for pair in search.joins:
            rows /= max(map(self._values, pair)) or _unfit(f"{pair[0][1]} and {pair[1][1]} have no key")
        for column in search.searched:
            rows /= self._values(column) or _unfit(f"{column[1]} has no key")
        return rows

    def _values(self, column: Column) -> int:
        """The number of values of a column with a key, or whose texts are numbered; 0 for another one."""
        name, domains = column[0], self._domains
        known, parent = domains.schema.get(name), domains.schema.key_of(*column)
        if not (known and known.unique_alone(column[1])):
            name = parent[0].name if parent else ""
        return domains.rows.get(name, 0) or domains.numbered.get(column, 0)

    def unfitted_statements(self, refused: Mapping[Predicate, str]) -> list[tuple[ClassFacts, int, str]]:
        """The statements that may find another number of rows than in the log: class, shape, and why.

        refused: conditions that generated rows do not meet as often as they should, with the reason.
        """
        found: dict[tuple[int, int], tuple[ClassFacts, int, str]] = {}
        for one in self._statements:
            if reason := self._why(one, refused):
                found.setdefault((id(one.facts), one.shape), (one.facts, one.shape, reason))
        return list(found.values())

    def _why(self, one: FoundStatement, refused: Mapping[Predicate, str]) -> str:
        reasons = [reason for reason, _ in one.reasons.most_common() if reason]
        dividing = [search for search in one.searches if search.dividing]
        if not dividing:
            return reasons[0] if reasons else ""
        whys = [self._why_search(search, refused) for search in dividing]
        return whys[0] if all(whys) else ""

    def _why_search(self, search: FoundSearch, refused: Mapping[Predicate, str]) -> str:
        try:
            self._rows(search)
        except Unfit as unfit:
            return str(unfit)
        return next((refused[each] for each in sorted(search.dividing) if each in refused), "")

    def number_texts(self) -> None:
        """Decide which texts without a key get numbered values, since statements search for one of many."""
        for search, counts in sorted(self.searches.items(), key=lambda item: item[1].executions):
            name = search.tables[0]
            table, rows = self._domains.schema.get(name), self._domains.rows.get(name, 0)
            key = table.columns.get(table.primary[0]) if table and len(table.primary) == 1 else None
            if len(search.tables) > 1 or not table or not rows or not key or key.kind not in WHOLE:
                continue
            for _, column in search.searched:
                if counts.rows and self._may_be_numbered(table, column):
                    self._domains.numbered[name, column] = max(1, round(rows / max(1.0, counts.for_each)))

    def _may_be_numbered(self, table: SchemaTable, column: str) -> bool:
        known = table.columns.get(column)
        unique = any(column in key for key in table.uniques) or column in table.references
        fits = known and text_prefix(known.name, known.length, self._domains.rows[table.name]) is not None
        return bool(known and known.kind in TEXTS and not known.members and not unique and fits)


def _unfit(reason: str) -> NoReturn:
    raise Unfit(reason)


def _of_either(
    ratios: Collection[tuple[FoundSearch, float]], known: Mapping[Predicate, float]
) -> dict[Predicate, float]:
    """The shares of conditions that only OR joins: together with the known ones of their group, as many as were found.

    The values of one column add up; the rows of different columns overlap.
    """
    found: dict[Predicate, float] = {}
    for search, ratio in ratios:
        for group in search.either:
            by_column: dict[tuple[str, str], list[Predicate]] = {}
            for each in sorted(group):
                by_column.setdefault((each.column, "" if each.operator in VALUES else each.operator), []).append(each)
            for those in by_column.values():
                new = [each for each in those if each not in known]
                rest = max(0.0, ratio - sum(known[each] for each in those if each in known))
                for each in new:
                    found[each] = max(found.get(each, 0.0), rest / len(new))
    return found


def _hides(roles: StatementRoles, literals: Literals, figures: Figures, rows: int) -> str:
    """Why an execution does not tell how many rows meet its conditions; empty if it does."""
    if rows < 0:
        return "the log does not tell how many rows it finds"
    if roles.counts:
        return "it returns one row, whatever it finds"
    if roles.grouped:
        return "GROUP BY or DISTINCT hides how many rows it finds"
    return "LIMIT hides how many rows it would find" if _is_cut(roles, literals, figures) else ""


def _is_cut(roles: StatementRoles, literals: Literals, figures: Figures) -> bool:
    """Whether a LIMIT may have hidden rows."""
    if not roles.limited:
        return False
    limits = [number for role, value in zip(roles.roles, literals, strict=True)
              if role.use == LIMIT and (number := whole(value)) is not None]  # fmt: skip
    return not limits or figures.sent >= max(limits)
