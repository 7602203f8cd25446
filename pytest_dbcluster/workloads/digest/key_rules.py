"""Unique keys of INSERTs: what makes a new row differ from all others, and which keys nothing explains."""

from __future__ import annotations

from pytest_dbcluster.workloads.digest.class_layout import ValuePlace
from pytest_dbcluster.workloads.digest.distributions import ValueDrawing
from pytest_dbcluster.workloads.digest.links import DIFFERENCE, NEW_ID, READ, SAME, STEP, ClassFacts, whole
from pytest_dbcluster.workloads.digest.schema.schema_tables import SchemaTable, SchemaTables
from pytest_dbcluster.workloads.digest.schema.statement_roles import EQUAL, INSERTED

NEW = "new"  # the begin of new texts; no generated text has it
DISTINCT = 0.95  # share of distinct values of a key that the application makes anew each time


class KeyRules:
    """The unique keys of one class."""

    def __init__(self, facts: ClassFacts, schema: SchemaTables) -> None:
        self._facts, self._schema = facts, schema
        self._reasons: dict[ValuePlace, str] = {}
        self._new: set[ValuePlace] = set()
        for number, run in enumerate(facts.layout.runs):
            for statement in range(len(run.unit)):
                self._insert(ValuePlace(number, statement, -1))

    @property
    def explained(self) -> bool:
        """Whether each parameter has an explanation."""
        return not self._reasons

    def reason(self, place: ValuePlace) -> str:
        """Why a parameter has no explanation; empty if it has one."""
        return self._reasons.get(place, "")

    def new_key(self, place: ValuePlace) -> ValueDrawing | None:
        """The drawing of a key that the application makes anew; None for any other parameter."""
        if place not in self._new:
            return None
        values = self._facts.layout.column(place)
        if all(isinstance(value, str) and whole(value) is not None and value[0] not in "'\"" for value in values):
            return ValueDrawing("unique_id()")
        return ValueDrawing(f"concat('{NEW}', unique_id())")

    def _insert(self, place: ValuePlace) -> None:
        statement = self._facts.statement(place)
        table = self._schema.get(statement.target) if statement.target else None
        if not table or statement.forgiving:
            return
        by_row: dict[int, dict[str, ValuePlace]] = {}
        for parameter, role in enumerate(statement.roles):
            if role.use == INSERTED:
                by_row.setdefault(role.row, {})[role.column] = place._replace(parameter=parameter)
        for key in table.uniques:
            if table.auto_increment in key and table.auto_increment not in statement.written:
                continue
            for places in by_row.values():
                self._key(table, key, {column: places[column] for column in key if column in places})

    def _key(self, table: SchemaTable, key: tuple[str, ...], places: dict[str, ValuePlace]) -> None:
        """Explain one unique key of one row, or keep why nothing does."""
        if not places or any(self._is_explained(each) for each in places.values()):
            return
        if len(places) == len(key) and all(self._was_deleted(table, column, each) for column, each in places.items()):
            return
        if all("NULL" in self._facts.layout.column(each) for each in places.values()):
            return
        fresh = [each for each in places.values() if self._fresh(table, each)]
        if fresh:
            self._new.add(self._root(fresh[0]))
            return
        column, last = list(places.items())[-1]
        recent = self._facts.recent.get(last)
        why = (
            f"its value is the key of a row that another transaction inserted ({recent.table}.{recent.column})"
            if recent
            else "the log does not tell where its value comes from"
        )
        self._reasons[last] = f"{table.name}.{column} is part of the unique key ({', '.join(key)}), and {why}"

    def _is_explained(self, place: ValuePlace) -> bool:
        """Whether a parameter has another value in each transaction by its link."""
        link = self._facts.links.get(place)
        if place in self._new or (link and link.kind in (NEW_ID, STEP)):
            return True
        if link and link.kind in (SAME, DIFFERENCE):
            return self._is_explained(link.source)
        return False

    def _was_deleted(self, table: SchemaTable, column: str, place: ValuePlace) -> bool:
        """Whether the same transaction has deleted the row with this value before."""
        link = self._facts.links.get(place)
        while link and link.kind == SAME:
            source = link.source
            statement, role = self._facts.statement(source), self._facts.role(source)
            if statement.verb == "DELETE" and table.name in statement.tables and role.column == column:
                return role.use == EQUAL
            if self._also_deleted(table, column, source):
                return True
            link = self._facts.links.get(source)
        return False

    def _also_deleted(self, table: SchemaTable, column: str, source: ValuePlace) -> bool:
        """Whether a DELETE has a parameter that is equal to this one."""
        for place, link in self._facts.links.items():
            if link.kind == SAME and link.source == source and self._facts.statement(place).verb == "DELETE":
                role = self._facts.role(place)
                if role.table == table.name and role.column == column and role.use == EQUAL:
                    return True
        return False

    def _root(self, place: ValuePlace) -> ValuePlace:
        """The first parameter with this value, such as that of a search for the key before its INSERT."""
        while (link := self._facts.links.get(place)) and link.kind == SAME:
            place = link.source
        return place

    def _fresh(self, table: SchemaTable, place: ValuePlace) -> bool:
        """Whether the values are new ones: distinct, and no values of another table."""
        role = self._facts.role(place)
        link = self._facts.links.get(self._root(place))
        if role.column in table.references or (link and link.kind in (READ, DIFFERENCE)) or place in self._facts.recent:
            return False
        values = self._facts.layout.column(place)
        alone = table.unique_alone(role.column)
        return len(set(values)) >= (DISTINCT if alone else 1.0) * len(values) and len(values) >= 3
