"""Lua for all transaction files of a workload: one program, which ``lua/sql_files.lua`` loads and runs.

The program returns a table for each file, with its name, its weight and its steps (``flow``). A step is a function
``(t, again)``: it runs one unit and returns the number of the next step, 0 after the last one. ``again`` is true in a
retry; then the step draws the same values, from the same variables as before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from pytest_dbcluster.workloads.sql.language import flow
from pytest_dbcluster.workloads.sql.language.expressions import Expression, FunctionCall
from pytest_dbcluster.workloads.sql.language.flow import Step
from pytest_dbcluster.workloads.sql.language.lua_expressions import Variables, lua_text, sql_literal
from pytest_dbcluster.workloads.sql.language.scripts import (
    Assignment,
    Block,
    Branching,
    Command,
    Script,
    Sleep,
    all_commands,
)
from pytest_dbcluster.workloads.sql.language.statements import BEGIN, COMMIT, ROLLBACK, Placeholder, Statement
from pytest_dbcluster.workloads.sql.language.value_types import variable_types

Constant = int | float | str | bool
Constants = Mapping[str, Constant]
PARAMETERS = {"int": "i", "bool": "i", "double": "d", "text": "s"}  # of prepared statements; others are ``?``


@dataclasses.dataclass(frozen=True)
class Program:
    """A Lua program, and what is known of it."""

    text: str
    """The source text in Lua."""

    statements: tuple[str, ...]
    """The names of its statements, in the order of their numbers: ``order:7`` is in line 7 of order.sql."""

    unique: bool
    """Whether it calls unique_id()."""


def compile_scripts(scripts: Sequence[tuple[Script, int]], constants: Constants, *, prepared: bool) -> Program:
    """The program of these scripts, each with its weight. Raises ConfigError with the place of the first mistake."""
    names: dict[str, None] = {}  # in order
    prepares: list[str] = []
    files = [_File(script, weight, constants, prepared, names, prepares).lua() for script, weight in scripts]
    lines = ["local r, v, s, text = ...", "local files = {}", *files]
    listed = ",\n".join(f"  {lua_text(name)}" for name in names)
    text = "\n".join([*lines, f"return files, {{\n{listed}\n}}, {{\n{','.join(prepares)}\n}}", ""])
    unique = any(flow.uses(script.block, "unique_id") for script, _ in scripts)
    return Program(text, tuple(names), unique)


class _File:
    """Writes the steps of one script."""

    def __init__(
        self,
        script: Script,
        weight: int,
        constants: Constants,
        prepared: bool,
        names: dict[str, None],
        prepares: list[str],
    ) -> None:
        self._script, self._weight, self._prepared = script, weight, prepared
        self._steps = flow.steps_of(script, constants)
        types = variable_types(script.block, constants)
        own = sorted(flow.assigned_names(script.block))
        self._given = {name: value for name, value in constants.items() if name in own}
        fixed = {name: value for name, value in constants.items() if name not in own}
        self._variables = Variables({name: number for number, name in enumerate(own, 1)}, types, fixed)
        self._names, self._prepares = names, prepares
        self._writes = False  # whether the transaction that is open in the step writes

    def lua(self) -> str:
        """Lua that adds the file to ``files``."""
        steps = [f"function(t, again)\n{self._step(number, step)}\nend" for number, step in enumerate(self._steps, 1)]
        given = "".join(
            f"v[{self._variables.slots[name]}] = {self._constant(value)} " for name, value in self._given.items()
        )
        return (
            f"files[#files + 1] = {{name = {lua_text(self._script.name)}, weight = {self._weight}, "
            f"begin = function() {given}end, steps = {{\n" + ",\n".join(steps) + "\n}}"
        )

    @staticmethod
    def _constant(value: Constant) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        return lua_text(value) if isinstance(value, str) else repr(value)

    def _step(self, number: int, step: Step) -> str:
        """The lines of one step."""
        self._opened = False
        block: Block = tuple(step.commands)
        self._writes = _unit_writes(block)
        lines = [*self._restore(number, block)]
        conditions = [condition for condition, _ in step.branches]
        if flow.draws([*block, *_as_commands(conditions)]):
            lines.append(f"r.seed(t, {number})")
        lines += self._block(block)
        if not step.branches:
            return "\n".join([*lines, f"return {step.following}"])
        *choices, (_, otherwise) = step.branches
        for place, (condition, following) in enumerate(choices):
            lines.append(f"{'else' * (place > 0)}if {self._variables.condition(condition)} then return {following}")
        lines.append(f"else return {otherwise}")
        return "\n".join([*lines, "end"])

    def _restore(self, number: int, block: Block) -> Iterable[str]:
        """In a retry, variables that the step changes have the values that they had before it."""
        earlier = set(self._given).union(*(flow.assigned_names(step.commands) for step in self._steps[: number - 1]))
        slots = sorted(self._variables.slots[name] for name in flow.assigned_names(block) & earlier)
        if flow.uses(block, "unique_id"):
            yield "r.restore_unique(again)"
        if slots:
            back = " ".join(f"v[{slot}] = s[{slot}]" for slot in slots)
            keep = " ".join(f"s[{slot}] = v[{slot}]" for slot in slots)
            yield f"if again then {back} else {keep} end"

    def _block(self, block: Block) -> Iterable[str]:
        for command in block:
            yield from self._command(command)

    def _command(self, command: Command) -> Iterable[str]:
        variables = self._variables
        if isinstance(command, Assignment):
            slot, value = variables.slots[command.name], command.value
            if isinstance(value, FunctionCall) and value.function == "list":
                yield variables.list_lines(value, slot)
            else:
                yield f"v[{slot}] = {variables.lua(value)}"
        elif isinstance(command, Sleep):
            yield f"r.sleep(t, {variables.lua(command.value)} * {command.unit!r})"
        elif isinstance(command, Branching):
            opened = self._opened  # where each branch begins; all of them end in the same state
            for number, (condition, inner) in enumerate(command.branches):
                yield f"{'else' * (number > 0)}if {variables.condition(condition)} then"
                yield from self._block(inner)
                self._opened = opened
            yield "else"
            yield from self._block(command.otherwise)
            yield "end"
        else:
            yield from self._statement(command)

    def _statement(self, statement: Statement) -> Iterable[str]:
        """Lua that sends a statement, and reads what it asks for."""
        name = f"{self._script.name}:{statement.place.line}"
        self._names[f"{name}:{statement.place.column}" if name in self._names else name] = None
        number, kinds = len(self._names), [self._kind(each.name) for each in statement.placeholders]
        prepared = self._prepared and statement.preparable and "list" not in kinds
        self._prepares.append(self._prepare(statement) if prepared else "false")
        commits = (statement.role == COMMIT or not (self._opened or statement.role)) and self._writes
        if statement.role:
            self._opened = statement.role == BEGIN
        if commits:
            yield "t.committing = true"
        yield from self._execute(number, statement) if prepared else self._send(number, statement)
        if commits:
            yield "t.committing = false r.commits = r.commits + 1"
        if statement.role in (COMMIT, ROLLBACK):
            yield f"t.rolled_back = {str(statement.role == ROLLBACK).lower()}"
        yield from self._results(statement)

    def _kind(self, name: str) -> str:
        return self._variables.types[name]

    def _results(self, statement: Statement) -> Iterable[str]:
        slots = self._variables.slots
        if statement.reads_into:
            yield f"r.read_row({len(statement.reads_into)}, {lua_text(str(statement.place))})"
            for column, name in enumerate(statement.reads_into):
                yield f"v[{slots[name]}] = r.value({column})"
        if statement.insert_id:
            yield f"v[{slots[statement.insert_id]}] = r.insert_id({lua_text(str(statement.place))})"

    def _send(self, number: int, statement: Statement) -> Iterable[str]:
        """A statement that goes to the server as text."""
        pieces: list[tuple[str, bool]] = []  # the text, and whether it is Lua
        for part in statement.parts:
            piece = self._in_sql(part.name) if isinstance(part, Placeholder) else (part, False)
            if pieces and not pieces[-1][1] and not piece[1]:
                pieces[-1] = (pieces[-1][0] + piece[0], False)
            else:
                pieces.append(piece)
        codes = [code if lua else lua_text(code) for code, lua in pieces]
        drain = ["r.drain()"] if statement.verb == "CALL" else []
        yield " ".join([f"r.begin({number}, {codes[0]})", *(f"text({code})" for code in codes[1:]), "r.send()", *drain])

    def _in_sql(self, name: str) -> tuple[str, bool]:
        """The SQL text of a variable, or Lua for it."""
        if name in self._variables.constants:
            return sql_literal(self._variables.constants[name]), False
        return self._variables.in_sql(self._kind(name), self._variables.variable(name)), True

    def _prepare(self, statement: Statement) -> str:
        """The text of a prepared statement and the types of its parameters; constants stay in the text."""
        text = "".join(
            part if isinstance(part, str) else "?" if part.name not in self._variables.constants
            else sql_literal(self._variables.constants[part.name])
            for part in statement.parts
        )  # fmt: skip
        types = "".join(PARAMETERS.get(self._kind(name), "?") for name in self._parameters(statement))
        return f"  {{{lua_text(text)}, {lua_text(types)}, {lua_text(str(statement.place))}}}"

    def _parameters(self, statement: Statement) -> list[str]:
        return [each.name for each in statement.placeholders if each.name not in self._variables.constants]

    def _execute(self, number: int, statement: Statement) -> Iterable[str]:
        """A statement that the server has prepared."""
        names = self._parameters(statement)
        open_types = [self._variables.variable(name) for name in names if self._kind(name) not in PARAMETERS]
        sets = []
        for place, name in enumerate(names, 1):
            code, kind = self._variables.variable(name), self._kind(name)
            if kind == "text":
                sets.append(f"r.set_text(p[{place}], {code}, {number})")
            elif kind in ("int", "double"):
                sets.append(f"p[{place}]:set({code if kind == 'int' else f'r.double({code})'})")
            else:
                sets.append(f"r.set(p[{place}], {code}, {number})")
        picked = f"r.prepared_for({', '.join([str(number), *open_types])})" if open_types else f"r.prepared[{number}]"
        yield " ".join([f"do local p = {picked}", *sets, f"r.execute({number}, p) end"])


def _unit_writes(block: Block) -> bool:
    """Whether the unit of a step changes rows."""
    return any(isinstance(command, Statement) and command.writes for command in all_commands(block))


def _as_commands(conditions: Sequence[Expression]) -> list[Command]:
    return [Sleep(condition.place, condition, 1.0) for condition in conditions]
