"""Lua for the expressions of meta commands. ``r`` is the runtime of ``lua/sql_files.lua``, ``v`` has the variables."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping

from pytest_dbcluster.workloads.sql.language.expressions import (
    ARITHMETIC,
    BITS,
    COMPARISONS,
    FUNCTIONS,
    NUMBERS,
    Choice,
    Expression,
    FunctionCall,
    Literal,
    Operation,
    VariableReference,
)
from pytest_dbcluster.workloads.sql.language.value_types import type_of

SQL_VALUES = {"int": "int", "double": "double", "text": "quoted", "bool": "truth_value"}  # functions of the runtime
BIT_NAMES = {"|": "bit_or", "#": "bit_xor", "&": "bit_and", "<<": "shift_left", ">>": "shift_right"}
# What the third argument of a distribution must be, and whether it must be above that.
LEAST = {"random_zipfian": (0.0, True), "random_exponential": (0.0, True), "random_gaussian": (2.0, False)}
LUA_NAMES = {"double": "double_of", "int": "int_of"}  # those of SQL texts are taken


PLAIN = re.compile(r"[ !#-\[\]-~]*")  # printable ASCII without " and \\


def lua_text(text: str) -> str:
    """A text as a string of Lua. Bytes that are not printable ASCII are written as numbers."""
    if PLAIN.fullmatch(text):
        return f'"{text}"'
    written = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03d}" for byte in text.encode()
    )
    return f'"{written}"'


def sql_literal(value: int | float | str | bool) -> str:
    """A constant as SQL text."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


@dataclasses.dataclass(frozen=True)
class Variables:
    """What is known of the variables of a script."""

    slots: Mapping[str, int]
    """The place of each variable in ``v``, 1-based."""

    types: Mapping[str, str]
    """The type of each variable, such as ``int``; ``expressions`` lists the types."""

    constants: Mapping[str, int | float | str | bool]
    """Variables that no command sets, with their values."""

    def type_of(self, expression: Expression) -> str:
        """The type of an expression."""
        return type_of(expression, self.types)

    def variable(self, name: str) -> str:
        """Lua for the value of a variable."""
        return _literal(self.constants[name]) if name in self.constants else f"v[{self.slots[name]}]"

    def lua(self, expression: Expression) -> str:
        """Lua for an expression. Raises ConfigError with the place of a value that has the wrong type."""
        if isinstance(expression, Literal):
            return _literal(expression.value)
        if isinstance(expression, VariableReference):
            if self.types[expression.name] == "list":
                raise expression.place.error(f":{expression.name} is a list: only a statement can use it, as in "
                                             f"IN (:{expression.name})")  # fmt: skip
            return self.variable(expression.name)
        if isinstance(expression, Choice):
            return self._choice(expression)
        if isinstance(expression, FunctionCall):
            return self._call(expression)
        return self._operation(expression)

    def condition(self, expression: Expression) -> str:
        """Lua for an expression that is true or false; 0 and NULL are false, other numbers true."""
        kind, code = self.type_of(expression), self.lua(expression)
        if kind == "bool":
            return code
        if kind in NUMBERS:
            return f"({code} ~= 0)"
        if kind == "text":
            raise expression.place.error("a text is neither true nor false: compare it, as in :name = 'text'")
        return f"r.holds({_where(expression)}, {code})"

    def _operation(self, found: Operation) -> str:
        operator, operands = found.operator, found.operands
        if operator == "not":
            return f"(not {self.condition(operands[0])})"
        if operator in ("and", "or"):
            return f"({self.condition(operands[0])} {operator} {self.condition(operands[1])})"
        if operator == "is":
            test = "nil" if found.test == "null" else found.test
            return f"({self.lua(operands[0])} == {test})"
        if operator in COMPARISONS:
            return self._comparison(found)
        codes = [self._number(operand, f"{operator}") for operand in operands]
        if operator == "~":
            return f"r.bit_not({codes[0]})"
        if len(codes) == 1:
            return f"(-{codes[0]})"
        if operator in BITS:
            return f"r.{BIT_NAMES[operator]}({codes[0]}, {codes[1]})"
        return self._arithmetic(found, codes)

    def _arithmetic(self, found: Operation, codes: list[str]) -> str:
        assert found.operator in ARITHMETIC
        if found.operator == "%":
            return f"r.modulo({_where(found)}, {codes[0]}, {codes[1]})"
        if found.operator == "/":
            kinds = [self.type_of(operand) for operand in found.operands]
            name = "divide" if "double" in kinds else "divide_whole" if kinds == ["int", "int"] else "divide_any"
            return f"r.{name}({_where(found)}, {codes[0]}, {codes[1]})"
        return f"({codes[0]} {found.operator} {codes[1]})"

    def _number(self, operand: Expression, user: str) -> str:
        """Lua for an operand that has to be a number."""
        kind, code = self.type_of(operand), self.lua(operand)
        if kind in NUMBERS:
            return code
        if kind == "any":
            return f"r.number({_where(operand)}, {code})"
        hint = "; concat(a, b) joins texts" if kind == "text" and user == "+" else ""
        raise operand.place.error(f"{user} needs a number, and this is a {_name(kind)}{hint}")

    def _comparison(self, found: Operation) -> str:
        operator = COMPARISONS[found.operator]
        kinds = [self.type_of(operand) for operand in found.operands]
        left, right = (self.lua(operand) for operand in found.operands)
        families = {"number" if kind in NUMBERS else kind for kind in kinds}
        if "null" in families:
            raise found.place.error(f"{found.operator} NULL is never true: write IS NULL or IS NOT NULL")
        if len(families) == 1 and families <= {"number", "text"}:
            return f"({left} {operator} {right})"
        if len(families) == 1 and families == {"bool"} and operator in ("==", "~="):
            return f"({left} {operator} {right})"
        if "any" in families:
            return f"r.compare({_where(found)}, {lua_text(operator)}, {left}, {right})"
        raise found.place.error(
            f"{found.operator} compares a {_name(kinds[0])} with a {_name(kinds[1])}: compare equal types"
        )

    def _choice(self, found: Choice) -> str:
        pairs = [(self.condition(condition), self.lua(value)) for condition, value in found.branches]
        kinds = [self.type_of(value) for _, value in found.branches]
        if {*kinds} <= {"int", "double", "text"}:  # values that count as true in Lua
            chain = " or ".join(f"{condition} and {value}" for condition, value in pairs)
            return f"({chain} or {self.lua(found.otherwise)})"
        lines = [f"{'else' * (number > 0)}if {pair[0]} then return {pair[1]}" for number, pair in enumerate(pairs)]
        return f"(function() {' '.join(lines)} else return {self.lua(found.otherwise)} end end)()"

    def _call(self, call: FunctionCall) -> str:
        name, signature = call.function, FUNCTIONS[call.function]
        if name == "list":
            raise call.place.error("list(count, value) stands alone after \\set: \\set ids list(10, random(1, 100))")
        wanted = signature.takes.split()
        codes = []
        for number, argument in enumerate(call.arguments):
            takes = wanted[number % len(wanted)]
            codes.append(self._number(argument, name) if takes == "number" else self.lua(argument))
        _check_constants(call)
        return f"r.{LUA_NAMES.get(name, name)}({', '.join([_where(call), *codes])})"

    def list_lines(self, call: FunctionCall, slot: int) -> str:
        """Lua that gives a variable the values of a list, as text in SQL."""
        count, value = call.arguments
        item = self.in_sql(self.type_of(value), self.lua(value))
        return (
            f"do local n = r.count({_where(call)}, {self._number(count, 'list')}) "
            f"for i = 1, n do r.items[i] = {item} end v[{slot}] = r.joined(n) end"
        )

    def in_sql(self, kind: str, code: str) -> str:
        """Lua for the SQL text of a value."""
        return code if kind == "list" else f"r.{SQL_VALUES.get(kind, 'literal')}({code})"


def _literal(value: int | float | str | bool | None) -> str:
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    return lua_text(value) if isinstance(value, str) else f"({value!r})" if value < 0 else repr(value)


def _where(expression: Expression) -> str:
    return lua_text(str(expression.place))


def _name(kind: str) -> str:
    return {"bool": "truth value", "int": "whole number", "double": "number"}.get(kind, kind)


def _check_constants(call: FunctionCall) -> None:
    """Raise ConfigError for arguments that are constants out of their range."""
    name = call.function
    known = [
        float(argument.value) if isinstance(argument, Literal) and isinstance(argument.value, int | float) else math.nan
        for argument in call.arguments
    ]
    least, above = LEAST.get(name, (-math.inf, False))
    if len(known) == 3 and (known[2] < least or (above and known[2] == least)):
        words = f"above {least:g}" if above else f"{least:g} or more"
        raise call.arguments[2].place.error(f"{name}: the third number must be {words}; got {known[2]:g}")
    if FUNCTIONS[name].usage.startswith(f"{name}(low, high") and known[0] > known[1]:
        raise call.place.error(f"{name}: the low end {known[0]:g} is above the high end {known[1]:g}")
    if name == "random_weighted":
        _check_weights(call, known[1::2])
    if name == "permute" and not (math.isnan(known[1]) or 1 <= known[1] <= 2**31):
        raise call.arguments[1].place.error(f"permute: the size must be from 1 to {2**31}; got {known[1]:g}")


def _check_weights(call: FunctionCall, weights: list[float]) -> None:
    for number, weight in enumerate(weights):
        if weight < 0:
            raise call.arguments[2 * number + 1].place.error(
                f"random_weighted: a weight must be 0 or more; got {weight:g}"
            )
    if sum(weights) == 0:
        raise call.place.error("random_weighted: one weight at least must be above 0")
