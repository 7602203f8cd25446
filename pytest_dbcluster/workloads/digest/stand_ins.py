"""Stand-ins for texts of the log: variables such as ``:status_1``, whose values the user fills in.

A text of the log is in no file unless ``keep`` is set. The values of an ENUM are, since the schema has them.
"""

from __future__ import annotations

import re

from pytest_dbcluster.workloads.digest.schema.schema_tables import TableColumn
from pytest_dbcluster.workloads.digest.value_domains import ValueDomains

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
        self._domains, self.keeps = domains, keep
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
        if self.keeps or not text or (column and text in column.members):
            return text
        if column and column.members:
            return column.members[(number - 1) % len(column.members)]
        if column and column.length and len(name) > column.length:
            name = str(number)[-column.length :]
        return "%" * text.startswith("%") + name + "%" * text.endswith("%")
