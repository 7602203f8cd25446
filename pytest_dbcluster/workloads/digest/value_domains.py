"""The values of each column over all classes, and from them the number of rows of each table.

Values are weighed by the transactions for which a sample stands.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable, Sequence

from pytest_dbcluster.workloads.digest.class_layout import Value
from pytest_dbcluster.workloads.digest.links import NEW_ID, READ, ClassFacts, whole
from pytest_dbcluster.workloads.digest.log.log_files import Figures
from pytest_dbcluster.workloads.digest.schema.schema_tables import TEXTS, WHOLE, SchemaTable, SchemaTables
from pytest_dbcluster.workloads.digest.schema.statement_roles import (
    EQUAL,
    INSERTED,
    LIKE,
    LIST,
    SEARCHING,
    Role,
    StatementRoles,
)

FEW = 20  # values of a column that are drawn by their frequencies
SMALL = 1000  # larger whole numbers are literals, which stay in the log
MOST_KEPT = 2000  # distinct values of a column that are counted
MOST_ROWS = 2_000_000
USUAL_ROWS = 100


@dataclasses.dataclass
class ColumnValues:
    """The values of one column in statements."""

    texts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    """Quoted values, with their frequencies."""

    numbers: collections.Counter[int] = dataclasses.field(default_factory=collections.Counter)
    """Whole numbers, with their frequencies."""

    inserted: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    """Values that statements insert."""

    equal: bool = False
    """Whether a statement searches by it for rows with one of the values."""

    @property
    def few(self) -> list[str]:
        """The quoted values, the most frequent first, if they are few; otherwise none."""
        total = sum(self.texts.values())
        if (
            not self.texts
            or len(self.texts) > FEW
            or total < 3 * len(self.texts)
            or any("\0" in each for each in self.texts)
        ):
            return []
        return [text for text, _ in self.texts.most_common()]


def flat(column: Iterable[Value]) -> list[str]:
    """The values of a parameter, with those of lists one after the other."""
    return [each for value in column for each in ((value,) if isinstance(value, str) else value)]


class ValueDomains:
    """The values of all columns, and the sizes of all tables."""

    def __init__(self, facts: Sequence[ClassFacts], schema: SchemaTables) -> None:
        self.schema = schema
        self.columns: dict[tuple[str, str], ColumnValues] = {}
        self.rows: dict[str, int] = {}
        self.reasons: dict[str, str] = {}
        """By table, where its number of rows comes from."""

        self._largest: dict[str, int] = {}
        self._first_new: dict[str, int] = {}
        self._new_ids: dict[tuple[str, str], str] = {}  # columns that get new AUTO_INCREMENT values, with their tables
        self._inserts: collections.Counter[str] = collections.Counter()
        self._examined: dict[tuple[str, str], list[float]] = {}
        self._scanned: dict[str, collections.Counter[int]] = {}
        self.numbered: dict[tuple[str, str], int] = {}
        """Table and column -> values, of texts without a key by which statements search for one of many rows."""

        self._used: set[str] = set()
        self._touched: dict[str, tuple[int, int]] = {}  # table -> statements, and rows that they examined at most
        self._yielded: collections.Counter[str] = collections.Counter()  # table -> rows that its statements found
        for one in facts:
            self._read(one)
        self._decide()

    def even(self, table: SchemaTable, column: str) -> int:
        """The rows of the table to which a column refers, if each search by it finds equally many; otherwise 0."""
        found = self.schema.key_of(table.name, column) if column in table.references else None
        examined = self._examined.get((table.name, column), [])
        constant = len(examined) >= FEW and len(set(examined)) == 1 and examined[0] > 0
        return self.rows[found[0].name] if found and constant else 0

    def is_searched(self, table: str, column: str) -> bool:
        """Whether statements search by a column for one of many values: it has a key, or they have many values."""
        found = self.columns.get((table, column)) or ColumnValues()
        many = len(found.texts) + len(found.numbers) > FEW or (found.texts and not found.few)
        return bool(self.schema.key_of(table, column) or many)

    def of(self, role: Role) -> ColumnValues:
        """The values of the column of a role."""
        return self.columns.get((role.table, role.column)) or ColumnValues()

    def key(self, role: Role) -> tuple[SchemaTable, str] | None:
        """The table whose rows the column of a role counts, and its key."""
        return self.schema.key_of(role.table, role.column) if role.table else None

    def _read(self, one: ClassFacts) -> None:
        for run in one.layout.runs:
            for number, shape in enumerate(run.unit):
                roles = one.roles[shape]
                self._used |= set(roles.tables)
                if roles.target:
                    rows = 1 + max((role.row for role in roles.roles), default=0)
                    self._inserts[roles.target] += round(rows * len(run.owners) * one.weight)
                self._examine(roles, run.figures[number])
        for place in one.layout.places():
            role = one.role(place)
            if not role.column:
                continue
            values = flat(one.layout.column(place))
            link = one.links.get(place)
            if link and link.kind in (NEW_ID, READ):
                if link.kind == NEW_ID:
                    target = one.statement(link.source).target
                    numbers = [each for value in values if (each := whole(value)) is not None]
                    self._first_new[target] = min([*numbers, self._first_new.get(target, 2**62)])
                    self._new_ids[role.table, role.column] = target
                continue
            if recent := one.recent.get(place):
                numbers = [each for value in values if recent.ages and (each := whole(value)) is not None]
                if numbers and self.schema.tables[recent.table].auto_increment == recent.column:
                    self._first_new[recent.table] = min([*numbers, self._first_new.get(recent.table, 2**62)])
                continue
            self._count(role, values, one.weight)

    def _count(self, role: Role, values: Sequence[str], weight: float) -> None:
        found = self.columns.setdefault((role.table, role.column), ColumnValues())
        exact = role.use == LIKE and not any("%" in value for value in values)
        found.equal = found.equal or exact or role.use in (EQUAL, LIST)
        table = self.schema.get(role.table)
        column = table.columns.get(role.column) if table else None
        key = self.key(role)
        for value in values:
            number = whole(value)
            if number is not None and (value[0] not in "'\"" or (column and column.kind in WHOLE)):
                if len(found.numbers) < MOST_KEPT:
                    found.numbers[number] += weight  # type: ignore[assignment]
                own_new = role.use == INSERTED and table and key and key[0] is table
                if key and not own_new:
                    self._largest[key[0].name] = max(number, self._largest.get(key[0].name, 0))
            elif value[0] in "'\"" and len(found.texts) < MOST_KEPT:
                found.texts[value] += weight  # type: ignore[assignment]
            if role.use == INSERTED and len(found.inserted) < MOST_KEPT:
                found.inserted[value] += weight  # type: ignore[assignment]

    def _examine(self, roles: StatementRoles, figures: Sequence[Figures]) -> None:
        """Keep the rows that searches by one column of one table examined."""
        searched = [role for role in roles.roles if role.use in SEARCHING]
        known = [figure.examined for figure in figures[:MOST_KEPT] if figure.examined >= 0]
        for name in () if roles.target or not known else roles.tables:
            count, most = self._touched.get(name, (0, 0))
            self._touched[name] = count + len(known), max(most, *known)
            read = [each.examined if roles.counts else max(each.sent, each.affected) for each in figures[:MOST_KEPT]]
            self._yielded[name] += sum(read)
        if len(roles.tables) != 1 or roles.target or not known:
            return
        columns = {role.column for role in searched} | {condition.column for condition in roles.conditions.simple}
        if not roles.limited and not any(self.schema.has_index(roles.tables[0], column) for column in columns):
            read = [number for number in known if number > 1 or not roles.counts]  # MAX(id) reads one row of an index
            self._scanned.setdefault(roles.tables[0], collections.Counter()).update(read)
        if len(searched) == 1 and searched[0].use == EQUAL and searched[0].column:
            self._examined.setdefault((searched[0].table, searched[0].column), []).extend(map(float, known))

    def _decide(self) -> None:
        tables = self.schema.tables.items()
        for name, table in tables:
            self._by_log(name, table)
        for _ in range(3):  # a table may follow from one that follows from another
            for name, table in tables:
                if name not in self.rows:
                    self._by_others(name, table)
        for name in self.schema.tables:
            if name not in self.rows:
                self._assume(name)
        for name, table in tables:
            self._by_searches(name, table)
        for _ in range(3):  # as above
            for _, table in tables:
                self._refer(table)
                self._cut(table)

    def _assume(self, name: str) -> None:
        """Decide the rows of a table of which the log tells no number."""
        if name in self._touched and not self._yielded[name] and not self._inserts[name]:
            self.rows[name], self.reasons[name] = 0, "no statement found a row"
        elif name in self._used:
            self._set(name, USUAL_ROWS, "assumed, the log does not tell it")
        else:
            self.rows[name], self.reasons[name] = 0, "no statement uses it"

    def _by_log(self, name: str, table: SchemaTable) -> None:
        """Decide the rows of a table from its own statements, if they tell it."""
        count, most = self._touched.get(name, (0, 1))
        if count >= FEW and most == 0 and name not in self._inserts:
            self.rows[name], self.reasons[name] = 0, "no statement found a row"
        elif scanned := self._scanned.get(name):
            self._set(name, scanned.most_common(1)[0][0], "the rows that reads of the whole table examined", exact=True)
        elif self._first_new.get(name, 0) > 1:
            self._set(name, self._first_new[name] - 1, "the first new AUTO_INCREMENT value")
        elif name in self._largest:
            self._set(name, self._largest[name], "the largest key in the log")
        elif table.next_id > 1 and name in self._used:
            self._set(name, table.next_id - 1, "AUTO_INCREMENT= in the schema")

    def _by_searches(self, name: str, table: SchemaTable) -> None:
        """Decide the rows of a table from searches that always find equally many rows of a foreign key."""
        counts = {column: len(self._examined.get((name, column), ())) for column in table.references}
        for column in sorted(counts, key=lambda column: -counts[column]):
            parent = self.schema.key_of(name, column)
            if name not in self._scanned and parent and self.rows.get(parent[0].name) and self.even(table, column):
                each = int(self._examined[name, column][0])
                rows = each * self.rows[parent[0].name]
                self._set(name, rows, f"{each} for each {column}", exact=True)
                return

    def _refer(self, table: SchemaTable) -> None:
        """Give rows to the tables to which rows of this one, or its INSERTs, must refer."""
        for column, (parent, _) in table.references.items():
            values, found = self.columns.get((table.name, column)), self.schema.get(parent)
            known = table.columns.get(column)
            needed = self.rows[table.name] and known and not known.nullable
            if found and not self.rows[found.name] and (needed or (values and set(values.inserted) - {"NULL"})):
                self._set(found.name, FEW, f"rows of {table.name} refer to it")

    def _cut(self, table: SchemaTable) -> None:
        """Cut the rows of a table to those that its unique keys have room for."""
        for key in table.uniques:
            source = (
                self._new_ids.get((table.name, key[0])) if len(key) > 1 and key[0] not in table.references else None
            )
            if source and self.rows[table.name] > self.rows[source] > 0:  # generated keys count from 1, below new ones
                self._set(table.name, self.rows[source], f"1 for each row of {source}", exact=True)
            rooms = [self._room(table, column) for column in key]
            if self.rows[table.name] > math.prod(rooms):
                self._set(table.name, math.prod(rooms), f"room of the unique key ({', '.join(key)})", exact=True)

    def _room(self, table: SchemaTable, column: str) -> int:
        """The number of different values of a column."""
        found, known = table.references.get(column), table.columns.get(column)
        parent = self.schema.get(found[0]) if found else None
        if parent and parent is not table:
            return max(1, self.rows[parent.name])
        return len(known.members) if known and known.members else MOST_ROWS

    def _by_others(self, name: str, table: SchemaTable) -> None:
        """Decide the rows of a table from another table's."""
        for column, (parent, _) in table.references.items():
            examined = self._examined.get((name, column))
            if parent in self.rows and examined:
                self._set(name, int(self.rows[parent] * sum(examined) / len(examined)), f"the rows of each {column}")
                return
        for parent, _ in table.references.values():
            if parent in self.rows and self._inserts[name] and self._inserts[parent]:
                share = self._inserts[name] / self._inserts[parent]
                self._set(name, int(self.rows[parent] * share), f"the INSERTs for each one into {parent}")
                return

    def _set(self, name: str, rows: int, reason: str, *, exact: bool = False) -> None:
        rows = rows if exact else round_up(max(1, rows))
        most = min([MOST_ROWS, *self._most(self.schema.tables[name])])
        if rows > most:
            reason += f", {rows} cut to {most}"
        self.rows[name] = min(rows, most)
        self.reasons[name] = reason

    def _most(self, table: SchemaTable) -> list[int]:
        """The numbers of generated rows for which unique columns have different values."""
        found = []
        for name, *others in table.uniques:
            column = table.columns.get(name)
            if others or not column or column.kind not in TEXTS or not column.length:
                continue
            found.append(10**column.length - 1)
        return found


def round_up(number: int) -> int:
    """The next whole number with two significant digits."""
    step = int(10 ** max(0, len(str(number)) - 2))
    return math.ceil(number / step) * step
