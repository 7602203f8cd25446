"""How many rows the statements of a log found, and from that which share of a table meets each condition.

Only statements count whose conditions alone decide what they find: of one table, without OR, and not cut by LIMIT.
A condition on a key, or on a column with many values, finds the rows of one value. The others divide these rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytest_dbcluster.workloads.digest.class_layout import RunLayout, Value
from pytest_dbcluster.workloads.digest.distributions import is_now
from pytest_dbcluster.workloads.digest.links import whole
from pytest_dbcluster.workloads.digest.log.log_files import Figures
from pytest_dbcluster.workloads.digest.log.statement_shapes import Literals
from pytest_dbcluster.workloads.digest.schema.schema_tables import DATES, TEXTS, WHOLE, SchemaTable
from pytest_dbcluster.workloads.digest.schema.statement_roles import (
    LIMIT,
    NO_PARAMETER,
    ColumnCondition,
    StatementRoles,
)
from pytest_dbcluster.workloads.digest.value_domains import FEW, ClassFacts, ValueDomains
from pytest_dbcluster.workloads.sql.rows.numbered_values import text_prefix

MOST_KEPT = 2000  # executions of one statement in one class
NOW = "NOW"  # in the place of a time that is close to its statement


class Predicate(NamedTuple):
    """A condition that divides the rows of a table."""

    column: str
    """In lower case."""

    operator: str
    """As in ``ColumnCondition``; LIKE without a wildcard is ``=``."""

    value: str
    """The literal, or ``NOW``; empty for a test for NULL."""


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


Group = tuple[frozenset[Predicate], frozenset[str]]  # dividing conditions, and columns that are searched for a value


class FoundRows:
    """What the statements of all classes found, by table."""

    def __init__(self, facts: Sequence[ClassFacts], domains: ValueDomains) -> None:
        self._domains = domains
        self.groups: dict[str, dict[Group, FoundCounts]] = {}
        """By table, and by the conditions of a statement."""

        for one in facts:
            for run in one.layout.runs:
                for number, shape in enumerate(run.unit):
                    if one.roles[shape].understood and not one.roles[shape].counts:
                        self._read(one, run, number, one.roles[shape])

    def _read(self, one: ClassFacts, run: RunLayout, number: int, roles: StatementRoles) -> None:
        groups = self.groups.setdefault(roles.tables[0], {})
        for owner, literals, figures in list(zip(run.owners, run.values[number], run.figures[number], strict=True))[
            :MOST_KEPT
        ]:
            rows = figures.sent if roles.verb == "SELECT" else figures.affected
            parts = [self._part(each, literals, one.layout.times[owner]) for each in roles.conditions]
            if rows < 0 or None in parts or _is_cut(roles, literals, figures):
                continue
            predicates = frozenset(each for each in parts if isinstance(each, Predicate))
            searched = [each for each in parts if isinstance(each, tuple) and not isinstance(each, Predicate)]
            if len(searched) > 1:
                continue
            counts = groups.setdefault((predicates, frozenset(column for column, _ in searched)), FoundCounts())
            counts.executions += one.weight
            counts.values += one.weight * (searched[0][1] if searched else 1)
            counts.rows += one.weight * rows

    def _part(self, condition: ColumnCondition, literals: Literals, time: int) -> Predicate | tuple[str, int] | None:
        """A dividing condition, or a column with the number of values that it is searched for; None if neither."""
        column, operator = condition.column, condition.operator
        if operator in NO_PARAMETER:
            return Predicate(column, operator, "")
        value = literals[condition.parameter]
        if operator == "LIKE":
            if not isinstance(value, str) or "%" in value:
                return None
            operator = "="
        if operator in ("=", "IN") and self._domains.is_searched(condition.table, column):
            return column, len(set(value)) if isinstance(value, tuple) else 1
        return self._predicate(condition.table, column, operator, value, time)

    def _predicate(self, table: str, column: str, operator: str, value: Value, time: int) -> Predicate | None:
        known = self._domains.schema.get(table)
        if not isinstance(value, str) or not known or column not in known.columns:
            return None
        if known.columns[column].kind in DATES:
            return Predicate(column, operator, NOW) if is_now(value, time) else None
        found = self._domains.columns.get((table, column))
        if not found or len(found.texts) + len(found.numbers) > FEW or (value[0] not in "'\"" and whole(value) is None):
            return None
        return Predicate(column, operator, value)

    def shares(self, table: str) -> dict[Predicate, float]:
        """The share of the table's rows that meets each condition, 0 to 1.

        It is large enough for each statement. The rows of all conditions overlap as much as they can. So each
        statement finds those of its rarest condition.
        """
        ratios = list(self._ratios(table))
        found: dict[Predicate, float] = {}
        for predicate in {each for predicates, _ in ratios for each in predicates}:
            those = [(predicates, ratio) for predicates, ratio in ratios if predicate in predicates]
            beside: dict[str, dict[Predicate, float]] = {}  # column -> its conditions beside this one
            for predicates, ratio in those:
                for other in predicates - {predicate}:
                    values = beside.setdefault(other.column, {})
                    values[other] = max(ratio, values.get(other, 0.0))
            sums = [sum(values.values()) for values in beside.values() if all(each.operator == "=" for each in values)]
            found[predicate] = min(1.0, max([ratio for _, ratio in those] + sums))
        return found

    def _ratios(self, table: str) -> Iterator[tuple[frozenset[Predicate], float]]:
        """For each statement: its dividing conditions, and the share of the rows of a value that meets all of them."""
        known, rows = self._domains.schema.get(table), self._domains.rows.get(table, 0)
        if not known or not rows:
            return
        for (predicates, searched), counts in self.groups.get(table, {}).items():
            if not predicates:
                continue
            if not searched:
                yield predicates, min(1.0, counts.for_each / rows)
                continue
            (column,) = searched
            parent = self._domains.schema.key_of(table, column)
            if known.unique_alone(column):
                yield predicates, min(1.0, counts.for_each)
            elif parent and self._domains.rows.get(parent[0].name, 0):
                yield predicates, min(1.0, counts.for_each * self._domains.rows[parent[0].name] / rows)

    def number_texts(self) -> None:
        """Decide which texts without a key get numbered values, since statements search for one of many."""
        for name, groups in self.groups.items():
            table, rows = self._domains.schema.get(name), self._domains.rows.get(name, 0)
            key = table.columns.get(table.primary[0]) if table and len(table.primary) == 1 else None
            if not table or not rows or not key or key.kind not in WHOLE:
                continue
            for (_, searched), counts in sorted(groups.items(), key=lambda item: item[1].executions):
                for column in searched:
                    if counts.rows and self._may_be_numbered(table, column):
                        self._domains.numbered[name, column] = max(1, round(rows / max(1.0, counts.for_each)))

    def _may_be_numbered(self, table: SchemaTable, column: str) -> bool:
        known = table.columns.get(column)
        unique = any(column in key for key in table.uniques) or column in table.references
        fits = known and text_prefix(known.name, known.length, self._domains.rows[table.name]) is not None
        return bool(known and known.kind in TEXTS and not known.members and not unique and fits)


def _is_cut(roles: StatementRoles, literals: Literals, figures: Figures) -> bool:
    """Whether a LIMIT may have hidden rows."""
    if not roles.limited:
        return False
    limits = [number for role, value in zip(roles.roles, literals, strict=True)
              if role.use == LIMIT and (number := whole(value)) is not None]  # fmt: skip
    return not limits or figures.sent >= max(limits)
