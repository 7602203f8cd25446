"""The types of variables and expressions, as far as they are known before a load runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_dbcluster.workloads.sql.language import expressions
from pytest_dbcluster.workloads.sql.language.expressions import (
    ARITHMETIC,
    BITS,
    FUNCTIONS,
    NUMBERS,
    Choice,
    Expression,
    FunctionCall,
    Literal,
    VariableReference,
)
from pytest_dbcluster.workloads.sql.language.scripts import Assignment, Block, all_commands
from pytest_dbcluster.workloads.sql.language.statements import Statement

Types = Mapping[str, str]
NONE = "none"  # of a variable that no command before has set


def join_types(types: Iterable[str]) -> str:
    """The type of a value that has one of these types."""
    distinct = {each for each in types if each != NONE}
    if not distinct:
        return NONE
    return distinct.pop() if len(distinct) == 1 else "any"


def number(types: Iterable[str]) -> str:
    """The type of arithmetic over values of these types."""
    found = set(types) - {NONE}
    if found <= {"int"}:
        return "int"
    return "double" if found <= set(NUMBERS) else "any"


def type_of(expression: Expression, types: Types) -> str:
    """The type of an expression. Mistakes in it count as ``any``: what writes Lua reports them."""
    if isinstance(expression, Literal):
        return expression.type
    if isinstance(expression, VariableReference):
        return types.get(expression.name, NONE)
    if isinstance(expression, Choice):
        values = [*(value for _, value in expression.branches), expression.otherwise]
        return join_types(type_of(value, types) for value in values)
    parts = [type_of(part, types) for part in expressions.children(expression)]
    if isinstance(expression, FunctionCall):
        result = FUNCTIONS[expression.function].result
        if result == "same":
            return join_types(parts[::2])
        return number(parts) if result == "number" else result
    if expression.operator in BITS or expression.operator == "~":
        return "int"
    return number(parts) if expression.operator in ARITHMETIC else "bool"


def variable_types(block: Block, constants: Mapping[str, int | float | str | bool]) -> dict[str, str]:
    """The type of each variable that a script sets or is given."""
    place_free = {name: {int: "int", float: "double", str: "text"}.get(type(value), "bool")
                  for name, value in constants.items()}  # fmt: skip
    types = dict(place_free)
    while True:
        found = {name: [kind] for name, kind in place_free.items()}
        for command in all_commands(block):
            if isinstance(command, Assignment):
                found.setdefault(command.name, []).append(type_of(command.value, types))
            elif isinstance(command, Statement):
                for name in command.reads_into:
                    found.setdefault(name, []).append("any")
                if command.insert_id:
                    found.setdefault(command.insert_id, []).append("int")
        now = {name: join_types(kinds) for name, kinds in found.items()}
        if now == types:
            return types
        types = now
