"""Keys that come from other transactions: a transaction inserts an order, and another one pays it.

Keys that grow are recent if most of them are close to the newest key at their time. Other keys are recent if the log
has inserted them before, as often as its samples can show it.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections.abc import Mapping, Sequence

from pytest_dbcluster.workloads.digest.class_layout import Value, ValuePlace
from pytest_dbcluster.workloads.digest.links import NEW_ID, SAME, ClassFacts, RecentKey, whole
from pytest_dbcluster.workloads.digest.schema.schema_tables import SchemaTables
from pytest_dbcluster.workloads.digest.schema.statement_roles import ASSIGNED, EQUAL, INSERTED

FEWEST = 20  # uses of keys, keys that are made, and new keys over the whole log
DISTINCT = 0.95  # share of distinct values of keys that are new
MOST, NEAR = 0.9, 0.25  # this share of the uses is as close to the newest key as this share of all new keys
GAPS = (0.3, 10)  # growth of a key / inserted rows, if the log shows no new key itself
FEWEST_MATCHES, SHOWN = 10, 0.5  # uses of inserted keys, and their share of those that samples can show
Point = tuple[int, int]  # transactions that ended before, and a key


@dataclasses.dataclass
class MadeKeys:
    """The keys that the log inserts into one table."""

    points: list[Point] = dataclasses.field(default_factory=list)
    """Those that are whole numbers."""

    first: dict[Value, int] = dataclasses.field(default_factory=dict)
    """Those that statements name -> transactions that ended before."""

    shown: float = 0.0
    """The share of the transactions with these statements that are samples."""

    rows: float = 0.0
    """The inserted rows."""


def find_recent(facts: Sequence[ClassFacts], schema: SchemaTables) -> None:
    """Set ``recent`` of each class."""
    made: dict[str, MadeKeys] = {}
    for one in facts:
        _read(one, schema, made)
    for one in facts:
        one.recent = {
            place: key for place in one.layout.places() if (key := _recent(one, place, schema, made)) is not None
        }


def _read(one: ClassFacts, schema: SchemaTables, made: dict[str, MadeKeys]) -> None:
    """Add the keys that a class makes."""
    for run in one.layout.runs:
        for shape in run.unit:
            if target := one.roles[shape].target:
                rows = 1 + max((role.row for role in one.roles[shape].roles), default=0)
                made.setdefault(target, MadeKeys()).rows += rows * len(run.owners) * one.weight
    for place in one.layout.places():
        link, role = one.links.get(place), one.role(place)
        table = schema.get(role.table)
        if link and link.kind == NEW_ID:
            keys = made[one.statement(link.source).target]
        elif table and role.use == INSERTED and table.unique_alone(role.column) and _is_new(one, place):
            keys = made[table.name]
            keys.shown = max(keys.shown, 1 / one.weight)
            for number, value in _values(one, place):
                keys.first[value] = min(number, keys.first.get(value, number))
        else:
            continue
        keys.points += [(number, key) for number, value in _values(one, place) if (key := whole(value)) is not None]


def _values(one: ClassFacts, place: ValuePlace) -> list[tuple[int, Value]]:
    """The values of a parameter, each with the transactions that ended before."""
    owners = one.layout.runs[place.run].owners
    return [(one.layout.numbers[owner], value) for owner, value in zip(owners, one.layout.column(place), strict=True)]


def _is_new(one: ClassFacts, place: ValuePlace) -> bool:
    """Whether a key is new each time, and no row had it before."""
    link = one.links.get(place)
    if link and (link.kind != SAME or one.statement(link.source).verb != "SELECT"):
        return False
    column = one.layout.column(place)
    return len(set(column)) >= DISTINCT * len(column)


def _recent(one: ClassFacts, place: ValuePlace, schema: SchemaTables, made: Mapping[str, MadeKeys]) -> RecentKey | None:
    """The keys of a parameter, if other transactions have inserted their rows; otherwise None."""
    role = one.role(place)
    key = schema.key_of(role.table, role.column) if role.use in (EQUAL, INSERTED, ASSIGNED) else None
    own = key and role.use == INSERTED and key[0].name == role.table
    if not key or own or place in one.links or not one.layout.runs[place.run].single:
        return None
    uses, keys = _values(one, place), made.get(key[0].name)
    if not keys or len(uses) < FEWEST or len({value for _, value in uses}) < FEWEST:
        return None
    points = sorted((number, found) for number, value in uses if (found := whole(value)) is not None)
    if len(points) == len(uses) and (ages := _ages(points, keys)):
        return RecentKey(key[0].name, key[1], ages)
    matches = sum(keys.first.get(value, number + 1) <= number for number, value in uses)
    shown = matches >= max(FEWEST_MATCHES, SHOWN * keys.shown * len(uses))
    return RecentKey(key[0].name, key[1], ()) if shown else None


def _ages(uses: Sequence[Point], keys: MadeKeys) -> tuple[int, ...]:
    """How many rows are newer than each use; empty if they are not recent. uses: sorted."""
    own = len(keys.points) < FEWEST
    newest = _Newest(uses if own else keys.points)
    ends = [newest.at(number) for number, _ in uses]
    growth = ends[-1] - ends[0]
    if growth < FEWEST or (own and not GAPS[0] <= growth / keys.rows <= GAPS[1]):
        return ()
    ages = [max(0.0, end - key) for end, (_, key) in zip(ends, uses, strict=True)]
    if sorted(ages)[int(MOST * len(ages))] > NEAR * growth:
        return ()
    scale = min(1.0, keys.rows / growth)  # keys have gaps
    return tuple(int(scale * age) for age in ages)


class _Newest:
    """The newest key at any time, from some keys."""

    def __init__(self, points: Sequence[Point]) -> None:
        ordered = sorted(points)
        self._numbers = [number for number, _ in ordered]
        self._keys = list(itertools.accumulate((key for _, key in ordered), max))

    def at(self, number: int) -> float:
        """The newest key after so many transactions; between two known ones on a line."""
        after = bisect.bisect_right(self._numbers, number)
        if after in (0, len(self._numbers)):
            return self._keys[max(0, after - 1)]
        begin, end = self._numbers[after - 1], self._numbers[after]
        low, high = self._keys[after - 1], self._keys[after]
        return low + (high - low) * (number - begin) / (end - begin)
