"""Links between the parameters of a class: equal, a constant difference, a new AUTO_INCREMENT value, a value read.

A link holds in all samples. The log has no results of queries. So a link to a value that was read needs the schema's
permission, and no two samples may contradict it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

from pytest_dbcluster.workloads.digest.class_layout import ClassLayout, RunLayout, Value, ValuePlace
from pytest_dbcluster.workloads.digest.schema.schema_tables import SchemaTables
from pytest_dbcluster.workloads.digest.schema.statement_roles import EQUAL, INSERTED, SEARCHING, Role, StatementRoles

SAME, DIFFERENCE, STEP, NEW_ID, READ = "same", "difference", "step", "new id", "read"
Equal = dict[tuple[Value, ...], list[ValuePlace]]  # values -> the parameters that have them
Apart = dict[
    tuple[int, ...], list[tuple[ValuePlace, int]]
]  # differences to the first value -> parameters, first values
FEWEST = 3  # distinct values of parameters that can be linked
MOST_DIFFERENCE = 1000
DISTINCT = 0.95  # share of samples with distinct values, for a new id
ORDERED = 0.99  # share of pairs of samples in which the later one has the larger new id
PAIRS = 5  # pairs of samples that are compared at least


@dataclasses.dataclass(frozen=True)
class ValueLink:
    """How a parameter follows from something before it."""

    kind: str
    """One of the constants of this module."""

    source: ValuePlace
    """The parameter; for NEW_ID and READ the statement, whose ``parameter`` does not count."""

    difference: int = 0
    """What is added to the source."""

    column: str = ""
    """Of READ: the column whose value it is."""


@dataclasses.dataclass(frozen=True)
class RecentKey:
    """A parameter with keys of rows that other transactions of the log have inserted."""

    table: str
    """The table of these rows."""

    column: str
    """Its key."""

    ages: tuple[int, ...]
    """How many rows were inserted after each of these rows, until its use; empty if the keys do not grow."""


@dataclasses.dataclass
class ClassFacts:
    """A class with what is known of its parameters."""

    layout: ClassLayout
    """Its values by their place."""

    roles: Mapping[int, StatementRoles]
    """The roles of the parameters, by number of the shape."""

    links: Mapping[ValuePlace, ValueLink]
    """How parameters follow from others."""

    recent: Mapping[ValuePlace, RecentKey] = dataclasses.field(default_factory=dict)
    """The parameters with keys of rows that other transactions have inserted."""

    def statement(self, place: ValuePlace) -> StatementRoles:
        """The statement of a parameter."""
        return self.roles[self.layout.runs[place.run].unit[place.statement]]

    def role(self, place: ValuePlace) -> Role:
        """The role of a parameter."""
        return self.statement(place).roles[place.parameter]

    @property
    def weight(self) -> float:
        """The transactions for which a sample stands."""
        return self.layout.of.count / len(self.layout.of.samples)


def whole(value: Value) -> int | None:
    """The value as a whole number; None for any other."""
    if not isinstance(value, str):
        return None
    text = value.strip("'\"") if value[:1] in "'\"" else value
    if not text or len(text) > 18 or not (text[1:] if text[0] == "-" else text).isdecimal() or not text.isascii():
        return None
    return int(text)


def all_whole(values: Sequence[Value]) -> list[int] | None:
    """The values as whole numbers; None if one is none."""
    found = [whole(value) for value in values]
    return [each for each in found if each is not None] if None not in found else None


def find_links(
    layout: ClassLayout, roles: Mapping[int, StatementRoles], schema: SchemaTables
) -> dict[ValuePlace, ValueLink]:
    """The links of a class. A parameter without one is not in the result."""
    return _Finder(layout, roles, schema).all()


class _Finder:
    """Goes through the parameters of a class in their order."""

    def __init__(self, layout: ClassLayout, roles: Mapping[int, StatementRoles], schema: SchemaTables) -> None:
        self._layout, self._roles, self._schema = layout, roles, schema
        self._found: dict[ValuePlace, ValueLink] = {}
        self._columns = {place: layout.column(place) for place in layout.places()}

    def all(self) -> dict[ValuePlace, ValueLink]:
        """All links."""
        for number, run in enumerate(self._layout.runs):
            self._of_run(number, run)
        return self._found

    def role(self, place: ValuePlace) -> Role:
        """The role of a parameter."""
        return self._statement(place).roles[place.parameter]

    def _statement(self, place: ValuePlace) -> StatementRoles:
        return self._roles[self._layout.runs[place.run].unit[place.statement]]

    def _of_run(self, number: int, run: RunLayout) -> None:
        equal: Equal = {}
        apart: Apart = {}
        for place, column in self._columns.items():
            if place.run < number and self._layout.runs[place.run].single:
                _remember(place, [column[owner] for owner in run.owners], equal, apart)
        for place, column in self._columns.items():
            if place.run != number:
                continue
            link = self._direct(place, column, equal, apart) or self._by_schema(place, run, column)
            if link:
                self._found[place] = link
            elif any(run.numbers) and (step := _step(run, column)):
                self._found[place] = ValueLink(STEP, place, step)
            _remember(place, column, equal, apart)

    def _direct(self, place: ValuePlace, column: Sequence[Value], equal: Equal, apart: Apart) -> ValueLink | None:
        distinct = set(column)
        if len(distinct) < FEWEST or not all(isinstance(value, str) for value in distinct):
            return None
        for source in equal.get(tuple(column), ()):
            if self._fit(place, source):
                return ValueLink(SAME, source)
        if not (numbers := all_whole(column)):
            return None
        first = numbers[0]
        for source, other in apart.get(tuple(number - first for number in numbers), ()):
            if abs(first - other) <= MOST_DIFFERENCE and self._fit(place, source):
                return ValueLink(DIFFERENCE, source, first - other)
        return None

    def _fit(self, place: ValuePlace, source: ValuePlace) -> bool:
        """Whether both may have one value: keys of different tables are equal by chance."""
        keys = [self._schema.key_of(role.table, role.column) for role in map(self.role, (place, source)) if role.table]
        tables = {found[0].name for found in keys if found}
        return len(tables) < 2

    def _by_schema(self, place: ValuePlace, run: RunLayout, column: Sequence[Value]) -> ValueLink | None:
        role = self.role(place)
        if not role.column or not all(isinstance(value, str) for value in column):
            return None
        numbers = all_whole(column)
        for source in reversed(self._statements_before(place)):
            statement = self._statement(source)
            owners = list(range(len(column))) if source.run == place.run else run.owners
            times = [self._layout.times[owner] for owner in run.owners]
            if statement.target and numbers and self._new_id(role, statement, owners, times, numbers):
                return ValueLink(NEW_ID, source)
            if statement.selected and (name := self._read(source, place, role, run, column)):
                return ValueLink(READ, source, column=name)
        return None

    def _statements_before(self, place: ValuePlace) -> list[ValuePlace]:
        """The earlier statements whose results a parameter may use: those of single runs, and of its own copy."""
        found = []
        for number, run in enumerate(self._layout.runs[: place.run + 1]):
            own = number == place.run
            if own or run.single:
                found += [ValuePlace(number, one, -1) for one in range(place.statement if own else len(run.unit))]
        return found

    def _new_id(
        self,
        role: Role,
        statement: StatementRoles,
        owners: Sequence[int],
        times: Sequence[int],
        numbers: Sequence[int],
    ) -> bool:
        """Whether the values are those that an INSERT before made. owners: the turn of the INSERT for each value."""
        table = self._schema.get(statement.target)
        if not table or not table.auto_increment or table.auto_increment in statement.written:
            return False
        key = self._schema.key_of(role.table, role.column) if role.table else None
        first: dict[int, int] = {}
        begun: dict[int, int] = {}
        for owner, number, time in zip(owners, numbers, times, strict=True):
            begun[owner] = time
            if first.setdefault(owner, number) != number:
                return False
        if len(set(first.values())) < max(FEWEST, DISTINCT * len(first)):
            return False
        if key and key[0].name == table.name and key[1] == table.auto_increment:
            return True
        known = self._schema.get(role.table)
        if known and role.use == INSERTED and known.auto_increment == role.column:
            return False
        return not key and _grows(list(begun.values()), list(first.values()))

    def _finds_one(self, statement: StatementRoles) -> bool:
        """Whether a SELECT searches by a whole unique key and by nothing else, so that it finds one row again."""
        table = self._schema.get(statement.tables[0])
        searched = {role.column for role in statement.roles if role.use in SEARCHING}
        equal = {role.column for role in statement.roles if role.use == EQUAL}
        return table is not None and searched == equal and any(set(key) == equal for key in table.uniques)

    def _read(self, source: ValuePlace, place: ValuePlace, role: Role, run: RunLayout, column: Sequence[Value]) -> str:
        """The column of a SELECT before whose value this is; empty if it is none."""
        statement = self._statement(source)
        single = self._layout.runs[source.run]
        figures = single.figures[source.statement]
        key = self._schema.key_of(role.table, role.column) if role.table else None
        names = [name for table, name in statement.selected if key and (key[0].name, key[1]) == (table, name)]
        keys = [one for one, each in enumerate(statement.roles) if each.use == EQUAL]
        if not names or not self._finds_one(statement) or any(each.sent != 1 for each in figures):
            return ""
        if any(each.column == names[0] for each in statement.roles):
            return ""
        seen: dict[object, Value] = {}
        owners = range(len(column)) if source.run == place.run else run.owners
        for owner, value in zip(owners, column, strict=True):
            given = tuple(single.values[source.statement][owner][one] for one in keys)
            if seen.setdefault(given, value) != value:
                return ""
        return names[0] if len(set(seen.values())) >= FEWEST else ""


def _remember(place: ValuePlace, column: Sequence[Value], equal: Equal, apart: Apart) -> None:
    if len(set(column)) < FEWEST:
        return
    equal.setdefault(tuple(column), []).append(place)
    if numbers := all_whole(column):
        moved = tuple(number - numbers[0] for number in numbers)
        apart.setdefault(moved, []).append((place, numbers[0]))


def _step(run: RunLayout, column: Sequence[Value]) -> int:
    """The constant difference between a copy and the one before it; 0 if there is none."""
    numbers = all_whole(column) or []
    turns = zip(numbers, numbers[1:], run.numbers[1:], strict=False)
    steps = {number - before for before, number, copy in turns if copy > 0}
    return steps.pop() if len(steps) == 1 and max(run.numbers) > 0 and len(column) >= FEWEST else 0


def _grows(times: Sequence[int], values: Sequence[int]) -> bool:
    """Whether later samples have larger values."""
    ordered = sorted(zip(times, values, strict=True))
    pairs = [(a, b) for (time, a), (later, b) in itertools.pairwise(ordered) if later > time]
    return len(pairs) >= PAIRS and sum(b > a for a, b in pairs) >= ORDERED * len(pairs)
