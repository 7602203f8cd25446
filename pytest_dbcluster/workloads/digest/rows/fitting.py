"""The statements of ``fit.sql``: generated rows get the values by which statements of the log find them.

As many rows meet a condition as the log's statements found, if it tells that (``found_rows``). Otherwise the few values
of a column are as frequent as in INSERTs, or as in searches.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence

from pytest_dbcluster.workloads.digest.links import whole
from pytest_dbcluster.workloads.digest.rows.found_rows import NOW, VALUES, FoundRows, Predicate
from pytest_dbcluster.workloads.digest.schema.conditions import BETWEEN
from pytest_dbcluster.workloads.digest.schema.schema_tables import DATES, TEXTS, WHOLE, SchemaTable, TableColumn
from pytest_dbcluster.workloads.digest.stand_ins import StandIns, quote, text_of_literal
from pytest_dbcluster.workloads.digest.value_domains import FEW, SMALL, ColumnValues, ValueDomains
from pytest_dbcluster.workloads.sql.language.lua_expressions import sql_literal
from pytest_dbcluster.workloads.sql.rows.numbered_values import text_prefix

PARTS = 1000
PRIMES = (7919, 7907)  # one of them has no common factor with the number of rows, unless it is above 62 millions
FUTURE = "'2037-01-01'"  # later than any run; a TIMESTAMP ends in 2038
NULL = "NULL"
KEEP = ""  # in the place of a value: the generated one
# A whole number that meets a comparison with another one, and one that does not, as differences to it.
COMPARED = {"<": (-1, 0), "<=": (0, 1), ">": (1, 0), ">=": (0, -1), "<>": (1, 0)}
Parts = list[tuple[float, str]]  # shares of the rows, 0 to 1, each with its value


def fit_statements(
    domains: ValueDomains, stand_ins: StandIns, found: FoundRows
) -> tuple[list[str], dict[Predicate, str]]:
    """One UPDATE for each table whose generated rows change, and the conditions that are left out, with the reason."""
    statements, refused = [], dict[Predicate, str]()
    for table in domains.schema.tables.values():
        shares = found.shares(table.name)
        if not table.primary:
            refused |= dict.fromkeys(shares, f"{table.name} has no primary key")
        if not domains.rows[table.name] or not table.primary:
            continue
        fit = _TableFit(table, domains, stand_ins, shares)
        settings = [
            f"{quote(column.name)} = {value}" for column in table.columns.values() if (value := fit.value(column))
        ]
        if settings:
            statements.append(f"UPDATE {quote(table.name)} SET {', '.join(settings)};")
        refused |= fit.refused
    return statements, refused


class _TableFit:
    """What the columns of one table get."""

    def __init__(
        self, table: SchemaTable, domains: ValueDomains, stand_ins: StandIns, shares: Mapping[Predicate, float]
    ) -> None:
        self._table, self._domains, self._stand_ins, self._shares = table, domains, stand_ins, shares
        self._rows = domains.rows[table.name]
        key = table.columns[table.primary[0]] if len(table.primary) == 1 else None
        self._key = key.name if key and key.kind in WHOLE else ""
        """The primary key, if generated rows count it from 1."""

        self.refused: dict[Predicate, str] = {}
        """The conditions that ``value`` has left out, with the reason."""

    def value(self, column: TableColumn) -> str:
        """The value of a column in all rows, in SQL; empty if the generated values stay."""
        name = column.name.lower()
        predicates = {each: share for each, share in self._shares.items() if each.column == name}
        if any(name in key for key in self._table.uniques):
            self._refuse(predicates, f"{name} is part of a unique key")
            return ""
        if distinct := self._domains.numbered.get((self._table.name, name)):
            self._refuse(predicates, f"{name} is searched for one of many values, too")
            prefix = text_prefix(column.name, column.length, distinct)
            return f"CONCAT('{prefix}', {self._turn(distinct)})" if prefix is not None and self._key else ""
        spread = self._domains.even(self._table, name) if self._key else 0
        otherwise = self._turn(spread) if spread else KEEP
        if parts := self._parts(column, predicates):
            return self._choice([(share, value or otherwise) for share, value in parts], column)
        values = self._domains.columns.get((self._table.name, name))
        return otherwise or (self._by_frequency(column, values) if values else "")

    def _turn(self, size: int) -> str:
        """Numbers from 1 to a size, each for equally many rows."""
        return f"1 + ({quote(self._key)} - 1) % {size}"

    def _refuse(self, predicates: Iterable[Predicate], reason: str) -> None:
        self.refused.update(dict.fromkeys(predicates, reason))

    def _parts(self, column: TableColumn, shares: Mapping[Predicate, float]) -> Parts:
        """The parts of the rows with their values, so that as many meet each condition as have to."""
        if not column.nullable:
            shares = {each: share for each, share in shares.items() if each.operator != "IS NOT NULL"}
        if not shares:
            return []
        by_operator = {each.operator: share for each, share in shares.items()}
        dated = column.kind in DATES
        values = {each: share for each, share in shares.items() if each.operator in VALUES and not dated}
        compared = [each for each in sorted(shares) if each.operator in COMPARED or each.operator == BETWEEN]
        parts: Parts = []
        if values:
            parts = self._value_parts(column, values)
            self._refuse(compared, f"{column.name} is compared with values, too")
        elif compared:
            parts = self._compared_parts(column, compared[0], shares[compared[0]])
            self._refuse(compared[1:], f"{column.name} is compared in several ways")
        elif "IS NOT NULL" in by_operator:
            parts = [(by_operator["IS NOT NULL"], KEEP), (1.0, NULL)]
        if column.nullable and "IS NULL" in by_operator:
            parts = _with_nulls(parts, by_operator["IS NULL"])
        if dated:
            self._refuse((each for each in shares if each.operator in VALUES), f"{column.name} equals a time")
        if not parts or (any(value == NULL for _, value in parts) and not column.nullable):
            self._refuse(shares, f"generated values of {column.name} stay as they are")
            return []
        return parts

    def _compared_parts(self, column: TableColumn, predicate: Predicate, share: float) -> Parts:
        """The parts for a comparison; none if it compares with something else than the time or small numbers."""
        if column.kind in DATES:
            later = predicate.operator in (">", ">=", "<>") and predicate.value == NOW
            return [(share, FUTURE), (1 - share, KEEP)] if later else [(share, KEEP), (1 - share, FUTURE)]
        low, _, high = predicate.value.partition(" AND ")
        first, last = _small(low), _small(high or low)
        if column.kind not in WHOLE or first is None or last is None:
            return []
        inside, outside = COMPARED.get(predicate.operator, (0, 1))  # BETWEEN: the first number, and one above the last
        return [(share, str(first + inside)), (1 - share, str(last + outside))]

    def _value_parts(self, column: TableColumn, shares: Mapping[Predicate, float]) -> Parts:
        """The parts for values and patterns that conditions name, and for other ones."""
        total = max(1.0, sum(shares.values()))
        ordered = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
        parts = [(share / total, self._meeting_value(column, predicate)) for predicate, share in ordered]
        if any(value is None for _, value in parts):
            return []
        named = [(share, str(value)) for share, value in parts]
        rest, taken = 1 - sum(share for share, _ in parts), {value for _, value in named}
        others = {value: count for value, count in self._few(column).items() if value not in taken}
        patterns = [f"{quote(column.name)} LIKE {self._literal(column, each.value)}" for each, _ in ordered
                    if each.operator == "LIKE"]  # fmt: skip
        if patterns:
            return [*named, (rest, f"IF({' OR '.join(patterns)}, '', {quote(column.name)})")]
        if not others:
            return [*named, (rest, _other(column, [each.value for each in shares]))]
        return [*named, *((rest * count / sum(others.values()), value) for value, count in others.items())]

    def _meeting_value(self, column: TableColumn, predicate: Predicate) -> str | None:
        """A value that meets a condition; None if it cannot be told."""
        value = self._literal(column, predicate.value)
        if predicate.operator == "=" or value is None:
            return value
        return f"REPLACE({value}, '%', '')" if column.kind in TEXTS and not column.members else None

    def _literal(self, column: TableColumn, literal: str) -> str | None:
        """A value of the log as a fit may have it; None for a large number."""
        if whole(literal) is not None and (literal[0] not in "'\"" or column.kind in WHOLE):
            number = _small(literal)
            return None if number is None else str(number)
        return f":{self._stand_ins.name(self._table.name, column.name.lower(), literal)}"

    def _choice(self, parts: Parts, column: TableColumn) -> str:
        """A CASE that gives each row one of the values; empty if all rows keep theirs."""
        total = self._rows if self._key else PARTS
        prime = next(each for each in PRIMES if total % each)
        drawn = (
            f"{quote(self._key)} * {prime} % {total}"
            if self._key
            else f"CRC32(CONCAT('{self._table.name}', {', '.join(map(quote, self._table.primary))})) % {PARTS}"
        )
        named = [(part, value or quote(column.name)) for part, value in parts]
        chosen = _case(drawn, total, named)
        return "" if chosen == quote(column.name) else chosen

    def _by_frequency(self, column: TableColumn, values: ColumnValues) -> str:
        """The few values of a column by which statements search, as often as INSERTs or searches have them."""
        key = self._domains.schema.key_of(self._table.name, column.name.lower())
        if not values.equal or column.kind in DATES or key:
            return ""
        few = self._few(column)
        drawn = f"CRC32(CONCAT('{column.name.lower()}', {', '.join(map(quote, self._table.primary))})) % {PARTS}"
        return _case(drawn, PARTS, [(count / sum(few.values()), value) for value, count in few.items()])

    def _few(self, column: TableColumn) -> Mapping[str, float]:
        """The values of a column in SQL, with their frequencies in INSERTs or searches; empty if they are many."""
        name = column.name.lower()
        values = self._domains.columns.get((self._table.name, name)) or ColumnValues()
        if few := [each for each in values.few if "%" not in text_of_literal(each)]:
            counts = collections.Counter({each: values.texts[each] for each in few})
            inserted = {each: values.inserted[each] for each in few if values.inserted[each]}
            names = {each: self._stand_ins.name(self._table.name, name, each) for each in few}
            return {f":{names[each]}": count for each, count in (inserted or counts).items()}
        if values.numbers and len(values.numbers) <= FEW and all(abs(number) <= SMALL for number in values.numbers):
            given = {number: count for each, count in values.inserted.items() if (number := whole(each)) is not None}
            return {str(number): count for number, count in (given or values.numbers).items()}
        return {}


def _small(literal: str) -> int | None:
    """The whole number of a literal; None for any other, and for a large one, which stays in the log."""
    number = whole(literal)
    return number if number is not None and abs(number) <= SMALL else None


def _with_nulls(parts: Parts, share: float) -> Parts:
    """The same parts with NULL in a share of all rows, after the values that conditions name."""
    named, reached = [], 0.0
    for part, value in parts:
        if value == KEEP or reached >= 1 - share:
            break
        named.append((min(part, 1 - share - reached), value))
        reached += part
    return [*named, (share, NULL), (1.0, parts[-1][1] if parts else KEEP)]


def _other(column: TableColumn, literals: Sequence[str]) -> str:
    """A value that differs from all literals; the generated one if the column is neither an ENUM nor whole numbers."""
    if column.members:
        taken = [text_of_literal(each) for each in literals]
        return next((sql_literal(each) for each in column.members if each not in taken), KEEP)
    numbers = [number for each in literals if (number := whole(each)) is not None]
    if column.kind not in WHOLE or not numbers:
        return KEEP
    return "1" if set(numbers) == {0} else "0" if set(numbers) == {1} else str(max(numbers) + 1)


def _case(drawn: str, total: int, parts: Parts) -> str:
    """A CASE that gives each row one of the values by their shares; empty without any. drawn: a number below total."""
    reached, share, cuts = 0, 0.0, []
    for part, value in parts:
        share += part
        if (cut := min(total, round(total * share))) > reached:
            cuts.append((cut, value))
            reached = cut
    if len({value for _, value in cuts}) < 2:
        return cuts[0][1] if cuts else ""
    *first, (_, last) = cuts
    whens = " ".join(f"WHEN {drawn} < {cut} THEN {value}" for cut, value in first)
    return f"CASE {whens} ELSE {last} END"
