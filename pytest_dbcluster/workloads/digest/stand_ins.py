"""Stand-ins for texts of the log: variables such as ``:status_1``, whose values the user fills in.

A text of the log is in no file unless ``keep`` is set. The values of an ENUM are, since the schema has them.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Mapping

from pytest_dbcluster.workloads.digest.links import whole
from pytest_dbcluster.workloads.digest.schema.schema_tables import DATES, WHOLE, SchemaTable, TableColumn
from pytest_dbcluster.workloads.digest.value_domains import FEW, SMALL, ColumnValues, ValueDomains

PARTS = 1000
RESERVED = ("CONDITION", "DESC", "GROUP", "GROUPS", "INDEX", "KEY", "KEYS", "OPTION", "ORDER", "RANGE", "RANK", "READ",
            "TABLE", "USAGE", "USE", "WRITE")  # fmt: skip


def text_of_literal(literal: str) -> str:
    """The text of a quoted literal."""
    return literal[1:-1].replace("''", "'").replace("\\'", "'").replace('\\"', '"').replace("\\\\", "\\")


def quote(name: str) -> str:
    """A name of a table or a column in statements."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and name.upper() not in RESERVED else f"`{name}`"


class StandIns:
    """Gives each text one variable."""

    def __init__(self, domains: ValueDomains, *, keep: bool) -> None:
        self._domains, self._keep = domains, keep
        self.variables: dict[str, str] = {}
        """Name -> value of each stand-in."""

        self._names: dict[tuple[str, str, str], str] = {}
        for (table, column), values in domains.columns.items():
            for literal in values.few:  # here, so that no file uses one of these names for another variable
                self.name(table, column, literal)

    def name(self, table: str, column: str, literal: str) -> str:
        """The variable in place of a text."""
        key = (table, column, literal)
        if key not in self._names:
            known = self._domains.schema.get(table)
            declared = known.columns.get(column) if known else None
            base = column or "text"
            if any(name.rpartition("_")[0] == base and (one, other) != (table, column)
                   for (one, other, _), name in self._names.items()):  # fmt: skip
                base = f"{table}_{base}"
            number = 1 + sum(name.rpartition("_")[0] == base for name in self._names.values())
            name = f"{base}_{number}"
            self._names[key] = name
            self.variables[name] = self._value(name, number, literal, declared)
        return self._names[key]

    def _value(self, name: str, number: int, literal: str, column: TableColumn | None) -> str:
        text = text_of_literal(literal)
        if self._keep or not text or (column and text in column.members):
            return text
        if column and column.members:
            return column.members[(number - 1) % len(column.members)]
        if column and column.length and len(name) > column.length:
            name = str(number)[-column.length :]
        return "%" * text.startswith("%") + name + "%" * text.endswith("%")

    def fit(self) -> list[str]:
        """Statements that give generated rows the few values by which transactions search."""
        found = []
        for table in self._domains.schema.tables.values():
            settings = []
            for name, column in table.columns.items():
                values = self._domains.columns.get((table.name, name))
                key = table.columns[table.primary[0]] if len(table.primary) == 1 else None
                if key and key.kind in WHOLE and (rows := self._domains.even(table, name)):
                    settings.append(f"{quote(column.name)} = 1 + ({quote(key.name)} - 1) % {rows}")
                elif values and (chosen := self._frequencies(table, column, values)):
                    settings.append(f"{quote(column.name)} = {_choice(table, name, chosen)}")
            if settings and table.primary:
                found.append(f"UPDATE {quote(table.name)} SET {', '.join(settings)};")
        return found

    def _frequencies(self, table: SchemaTable, column: TableColumn, values: ColumnValues) -> Mapping[str, float]:
        """The values of a column with their frequencies; empty if its generated rows stay."""
        name = column.name.lower()
        if (
            not values.searched
            or column.kind in DATES
            or any(name in unique for unique in table.uniques)
            or self._domains.schema.key_of(table.name, name)
        ):
            return {}
        if few := values.few:
            counts = collections.Counter({each: values.texts[each] for each in few})
            inserted = {each: values.inserted[each] for each in few if values.inserted[each]}
            return {f":{self.name(table.name, name, each)}": count for each, count in (inserted or counts).items()}
        numbers = values.numbers
        if numbers and len(numbers) <= FEW and all(abs(number) <= SMALL for number in numbers):
            given = {number: count for each, count in values.inserted.items() if (number := whole(each)) is not None}
            return {str(number): count for number, count in (given or numbers).items()}
        return {}


def _choice(table: SchemaTable, column: str, chosen: Mapping[str, float]) -> str:
    """A CASE that gives each row one of the values, by a hash of its primary key."""
    if len(chosen) == 1:
        return next(iter(chosen))
    total, reached, parts = sum(chosen.values()), 0.0, []
    drawn = f"CRC32(CONCAT('{column}', {', '.join(map(quote, table.primary))})) % {PARTS}"
    *first, last = chosen.items()
    for value, count in first:
        reached += count
        parts.append(f"WHEN {drawn} < {round(PARTS * reached / total)} THEN {value}")
    return f"CASE {' '.join(parts)} ELSE {last[0]} END"
