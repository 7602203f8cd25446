r"""The file of a class: its statements, with \set lines that draw their parameters again."""

from __future__ import annotations

import collections
import dataclasses
import math
import re
from collections.abc import Mapping, Sequence

from pytest_dbcluster.workloads.digest import distributions
from pytest_dbcluster.workloads.digest.class_layout import RunLayout, ValuePlace
from pytest_dbcluster.workloads.digest.distributions import ValueDrawing
from pytest_dbcluster.workloads.digest.key_rules import KeyRules
from pytest_dbcluster.workloads.digest.links import (
    DIFFERENCE,
    NEW_ID,
    READ,
    SAME,
    STEP,
    ClassFacts,
    RecentKey,
    all_whole,
)
from pytest_dbcluster.workloads.digest.schema.schema_tables import FRACTIONS, TEXTS, TableColumn
from pytest_dbcluster.workloads.digest.schema.statement_roles import LIKE, SEARCHING, Role
from pytest_dbcluster.workloads.digest.stand_ins import StandIns, quote
from pytest_dbcluster.workloads.digest.value_domains import FEW, SMALL, ValueDomains, flat
from pytest_dbcluster.workloads.sql.rows.numbered_values import text_prefix

MOST_COPIES = 40
RECENT = 0.9  # share of the uses of recent keys that count: the others may be any rows
MARK = re.compile(r"(`[^`]*`)|\?")


@dataclasses.dataclass
class ScriptText:
    """A transaction file."""

    lines: list[str]
    """The lines of the file, without its head."""

    unexplained: list[str] = dataclasses.field(default_factory=list)
    """Unique keys that nothing explains."""

    notes: list[str] = dataclasses.field(default_factory=list)
    """What a reader must know."""

    statements: list[str] = dataclasses.field(default_factory=list)
    """Its statements, without BEGIN and COMMIT."""


@dataclasses.dataclass(frozen=True)
class Inputs:
    """What all files share."""

    texts: Mapping[int, str]
    """Texts of the shapes."""

    domains: ValueDomains
    """The values of all columns."""

    stand_ins: StandIns
    """The variables in place of texts."""

    rows: Mapping[str, str]
    """Table -> the variable with its number of rows."""


def script_of(facts: ClassFacts, inputs: Inputs) -> ScriptText:
    """The file of a class."""
    return _Writer(facts, inputs).script()


class _Writer:
    """Writes one file."""

    def __init__(self, facts: ClassFacts, inputs: Inputs) -> None:
        self._facts, self._inputs = facts, inputs
        self._rules = KeyRules(facts, inputs.domains.schema)
        self._names: dict[object, str] = {}
        self._script = ScriptText([])
        self._drawings: dict[ValuePlace, ValueDrawing] = {}
        self._before: list[str] = []  # lines before the transaction
        self._texts: dict[ValuePlace, str] = {}  # what other parameters read of each parameter

    def script(self) -> ScriptText:
        """The whole file."""
        script, ending = self._script, self._facts.layout.of.ending
        if ending:
            script.lines.append("BEGIN;")
        for number, run in enumerate(self._facts.layout.runs):
            self._run(number, run)
        if ending:
            script.lines.append(f"{ending};")
        script.lines[:0] = self._before
        return script

    def _run(self, number: int, run: RunLayout) -> None:
        counts = collections.Counter(run.counts)
        least, most = min(counts), min(MOST_COPIES, max(counts))
        if max(counts) > MOST_COPIES:
            self._script.notes.append(f"a loop has up to {max(counts)} turns in the log, and {MOST_COPIES} here")
        lines, name = self._script.lines, ""
        if least < most:
            name = self._name(("copies", number), "copies")
            shares = {str(min(count, most)): 0.0 for count in sorted(counts)}
            for count, times in counts.items():
                shares[str(min(count, most))] += times
            lines.append(f"\\set {name} {distributions.draw_weighted(shares)}")
        for copy in range(most):
            if copy >= least:
                lines.append(f"\\if :{name} >= {copy + 1}")
            for statement in range(len(run.unit)):
                self._statement(number, run, statement, copy)
            if copy >= least:
                lines.append("\\endif")

    def _statement(self, number: int, run: RunLayout, statement: int, copy: int) -> None:
        place = ValuePlace(number, statement, -1)
        shape = run.unit[statement]
        roles = self._facts.roles[shape]
        pieces = [
            self._parameter(ValuePlace(number, statement, parameter), copy) for parameter in range(len(roles.roles))
        ]
        given = iter(pieces)
        text = MARK.sub(lambda found: found[1] or next(given), self._inputs.texts[shape])
        self._script.statements.append(text)
        links = self._facts.links
        new_id = any(link.kind == NEW_ID and link.source == place for link in links.values())
        if new_id and _returned_column(text):
            self._script.lines.append(f"{text} \\gset {self._id(place).removesuffix(_returned_column(text))}")
        elif any(link.kind == READ and link.source == place for link in links.values()):
            self._script.lines.append(f"{text} \\gset {self._prefix(place)}")
        else:
            self._script.lines.append(f"{text};")
            if new_id:
                self._script.lines.append(f"\\insert_id {self._id(place)}")

    def _prefix(self, place: ValuePlace) -> str:
        table = self._facts.statement(place).selected[0][0]
        return self._name(("read", place), table) + "_"

    def _as_written(self, place: ValuePlace, column: str) -> str:
        r"""A column with the letters that its SELECT has: \gset makes names of them."""
        shape = self._facts.layout.runs[place.run].unit[place.statement]
        listed = re.split(r"\bFROM\b", self._inputs.texts[shape], maxsplit=1, flags=re.IGNORECASE)[0]
        found = re.search(rf"(?<!\w){re.escape(column)}(?!\w)(?!`?\s*\.)", listed, re.IGNORECASE)
        return found[0] if found else column

    def _id(self, place: ValuePlace) -> str:
        shape = self._facts.layout.runs[place.run].unit[place.statement]
        returned = _returned_column(self._inputs.texts[shape])
        if returned:  # \gset makes the name from a prefix and the column
            return self._name(("id", place), f"{self._facts.statement(place).target}") + f"_{returned}"
        return self._name(("id", place), f"{self._facts.statement(place).target}_id")

    def _parameter(self, place: ValuePlace, copy: int) -> str:
        r"""The text in place of a parameter, after its \set lines are written."""
        link = None if self._rules.reason(place) else self._facts.links.get(place)
        if link and link.kind == NEW_ID:
            return self._kept(place, f":{self._id(link.source)}")
        if link and link.kind == READ:
            return self._kept(place, f":{self._prefix(link.source)}{self._as_written(link.source, link.column)}")
        if link and link.kind == SAME:
            return self._kept(place, self._texts[link.source])
        if link and (link.kind == DIFFERENCE or (link.kind == STEP and copy > 0)):  # of STEP: to the copy before
            sign = "+" if link.difference >= 0 else "-"
            return self._set(place, f"{self._texts[link.source]} {sign} {abs(link.difference)}")
        drawing = self._drawing(place)
        if link and link.kind == STEP and not drawing.expression:
            return self._set(place, drawing.inline)
        if not drawing.expression:
            return self._kept(place, drawing.inline)
        if drawing.inline == "{}" and re.fullmatch(r":\w+", drawing.expression):
            return self._kept(place, drawing.expression)
        return drawing.inline.format(self._set(place, drawing.expression))

    def _kept(self, place: ValuePlace, text: str) -> str:
        self._texts[place] = text
        return text

    def _set(self, place: ValuePlace, expression: str) -> str:
        role = self._facts.role(place)
        name = self._name(place, role.column or {"limit": "count", "delta": "step"}.get(role.use, "value"))
        self._script.lines.append(f"\\set {name} {expression}")
        return self._kept(place, f":{name}")

    def _name(self, key: object, wanted: str) -> str:
        """A name of a variable that no other one has."""
        if key not in self._names:
            base = re.sub(r"\W", "_", wanted, flags=re.ASCII)
            base = f"v_{base}" if base[:1].isdigit() else base
            taken = {*self._names.values(), *self._inputs.rows.values(), *self._inputs.stand_ins.variables}
            number, name = 2, base
            while name in taken:
                name, number = f"{base}_{number}", number + 1
            self._names[key] = name
        return self._names[key]

    def _drawing(self, place: ValuePlace) -> ValueDrawing:
        if place not in self._drawings:
            drawing = self._drawings[place] = self._new_drawing(place)
            if drawing.note:
                self._script.notes.append(f"{self._facts.role(place).column or 'a value'}: {drawing.note}")
        return self._drawings[place]

    def _new_drawing(self, place: ValuePlace) -> ValueDrawing:
        role = self._facts.role(place)
        column = self._facts.layout.column(place)
        values = flat(column)
        if reason := self._rules.reason(place):
            self._script.unexplained.append(reason)
            self._script.lines.append(f"-- unexplained: {reason}")
            return ValueDrawing(f":unexplained_{role.column}")
        present = [value for value in values if value != "NULL"]
        if not present:
            return ValueDrawing("", "NULL")
        recent = self._facts.recent.get(place)
        if recent and recent.ages and self._inputs.domains.rows[recent.table]:
            return self._newest(recent)
        drawing = self._rules.new_key(place) or self._with_misses(place, role, self._present(place, role, present))
        if recent:
            drawing = dataclasses.replace(drawing, note=f"in the log a key that another transaction inserted into "
                                          f"{recent.table}, here one of a generated row")  # fmt: skip
        if any(not isinstance(value, str) for value in column):
            return self._list([len(value) for value in column], drawing)
        return distributions.with_null(drawing, values)

    def _newest(self, recent: RecentKey) -> ValueDrawing:
        """One of the newest keys of a table, which a SELECT finds before the transaction."""
        ages = sorted(recent.ages)
        drawn = distributions.number([min(SMALL, 1 + age) for age in ages[: math.ceil(RECENT * len(ages))]])
        age, prefix = self._name(object(), f"{recent.table}_age"), self._name(object(), f"new_{recent.table}")
        column = self._inputs.domains.schema.tables[recent.table].columns[recent.column].name
        key, table = quote(column), quote(recent.table)
        self._before += [
            "-- Not in the log: it finds one of the newest rows.",
            f"\\set {age} {drawn.expression or drawn.inline}",
            f"SELECT COALESCE(MIN({key}), 0) AS id FROM (SELECT {key} FROM {table} ORDER BY {key} DESC LIMIT :{age}) "
            f"AS newest \\gset {prefix}_",
        ]
        note = f"one of the newest keys of {recent.table}, since another transaction inserted it in the log"
        return ValueDrawing("", f":{prefix}_id", note)

    def _with_misses(self, place: ValuePlace, role: Role, drawing: ValueDrawing) -> ValueDrawing:
        """The same drawing, with values that no row has as often as the statement found no row."""
        statement, domains = self._facts.statement(place), self._inputs.domains
        table = domains.schema.get(role.table)
        column = table.columns.get(role.column) if table else None
        only = statement.searches_by
        alone = only and only.parameter == place.parameter and only.operator in ("=", "LIKE") and not statement.counts
        one = table and (table.unique_alone(role.column) or (table.name, role.column) in domains.numbered)
        if not alone or not one or not column or not drawing.expression or drawing.inline != "{}":
            return drawing
        figures = self._facts.layout.runs[place.run].figures[place.statement]
        found = [each.sent if statement.verb == "SELECT" else each.examined for each in figures]
        share = round(1000 * sum(not each for each in found) / len(found))
        if not share or min(found) < 0:
            return drawing
        missing = "'none'" if column.kind in TEXTS else "0"
        drawn = f"CASE WHEN random(1, 1000) <= {share} THEN {missing} ELSE {drawing.expression} END"
        return ValueDrawing(drawn if share < 1000 else missing, note=drawing.note)

    def _list(self, counts: Sequence[int], drawing: ValueDrawing) -> ValueDrawing:
        """A list of values for IN."""
        drawn = distributions.number(counts)
        number = drawn.expression or drawn.inline
        if drawing.inline != "{}" and drawing.expression:  # dates
            return ValueDrawing(
                "", ", ".join(["NOW()"] * max(1, min(counts))), "dates in IN are the time of the statement"
            )
        return ValueDrawing(f"list({number}, {drawing.expression or drawing.inline})")

    def _present(self, place: ValuePlace, role: Role, values: Sequence[str]) -> ValueDrawing:
        """The drawing of values without NULL."""
        domains = self._inputs.domains
        table = domains.schema.get(role.table)
        column = table.columns.get(role.column) if table else None
        numbers = all_whole(values)
        quoted = any(value[0] in "'\"" for value in values)
        if numbers is not None and not (quoted and (not column or column.kind in TEXTS)):
            return self._whole(role, numbers)
        if not quoted or (column and column.kind in FRACTIONS):
            plain = [value.strip("'\"") for value in values]
            if all(distributions.NUMBER.fullmatch(value) for value in plain):
                return distributions.decimal(plain)
        times = [self._facts.layout.times[owner] for owner in self._facts.layout.runs[place.run].owners]
        if len(times) == len(values) and (found := distributions.dates(values, times, searched=role.use in SEARCHING)):
            return found
        return self._text(place, role, values, column)

    def _whole(self, role: Role, numbers: Sequence[int]) -> ValueDrawing:
        key = self._inputs.domains.key(role)
        if not key or min(numbers) < 0 or not self._inputs.domains.rows[key[0].name]:
            return distributions.number(numbers)
        name = key[0].name
        count = self._inputs.domains.rows[name]
        constant = len(set(numbers)) == 1
        if constant and numbers[0] > SMALL:
            return ValueDrawing(f":{self._inputs.rows[name]} / 2", note="one key in all samples, another one here")
        if len(set(numbers)) * 3 <= len(numbers) and max(numbers) <= SMALL and len(set(numbers)) <= FEW:
            return distributions.number(numbers)
        return ValueDrawing(distributions.keys(numbers, f":{self._inputs.rows[name]}", count))

    def _text(self, place: ValuePlace, role: Role, values: Sequence[str], column: TableColumn | None) -> ValueDrawing:
        domains = self._inputs.domains
        key = domains.key(role)
        table = domains.schema.get(role.table)
        refers = table and role.column in table.references
        exact = role.use in SEARCHING and (role.use != LIKE or not any("%" in value for value in values))
        if exact and column and (distinct := domains.numbered.get((role.table, role.column))):
            return _numbered_text(values, column, distinct, str(distinct))
        if key and (rows := domains.rows[key[0].name]) and (exact or refers):
            return _numbered_text(values, key[0].columns.get(key[1]), rows, f":{self._inputs.rows[key[0].name]}")
        few = domains.of(role).few if role.column else _few(values)
        named_values = bool(few) and set(values) <= set(few)
        typed = distributions.of_type(column.kind) if column and role.use != LIKE else None
        if typed and not (named_values and self._inputs.stand_ins.keeps):
            return typed
        if named_values:
            counts = collections.Counter(values)
            named = {f":{self._inputs.stand_ins.name(role.table, role.column, one)}": counts[one] for one in counts}
            return ValueDrawing(distributions.draw_weighted(dict(sorted(named.items(), key=lambda item: -item[1]))))
        if role.use == LIKE:
            figures = self._facts.layout.runs[place.run].figures[place.statement]
            return distributions.pattern(values, nothing=all(each.sent == 0 for each in figures))
        if column and column.kind == "ENUM" and column.members:
            return distributions.member(column.members)
        return distributions.text(values, column.length if column and column.kind in TEXTS else 0)


def _returned_column(text: str) -> str:
    """The only column that an INSERT ... RETURNING returns; empty without one."""
    found = re.search(r" RETURNING (?:`?\w+`?\s*\.\s*)?`?(\w+)`?\Z", text, re.I)
    return found[1] if found else ""


def _numbered_text(values: Sequence[str], column: TableColumn | None, count: int, shown: str) -> ValueDrawing:
    """A drawing of numbered texts of a column. count: how many there are, which is ``shown`` in the file."""
    ranks = {value: number for number, value in enumerate(sorted(set(values)), 1)}
    exponent = distributions.zipf_exponent([ranks[value] for value in values], count)
    drawn = f"permute(random_zipfian(1, {shown}, {exponent:.2f}), {shown}) + 1" if exponent else f"random(1, {shown})"
    prefix = text_prefix(column.name, column.length, count) if column else ""
    return ValueDrawing(f"concat('{prefix or ''}', {drawn})")


def _few(values: Sequence[str]) -> list[str]:
    """The values of a parameter without a column, if they are few."""
    counts = collections.Counter(values)
    few = len(counts) <= FEW and len(values) >= 3 * len(counts) and not any("\0" in value for value in counts)
    return list(counts) if few else []
