r"""Expressions of meta commands: pgbench's, with texts and a few more functions.

``parse`` returns a tree of frozen values. Each node has a ``type``:

- ``int``: a whole number up to 2^53, exact. ``double``: any other number.
- ``text``, ``bool``, ``null``.
- ``list``: values for ``IN (:name)``.
- ``any``: known only when the load runs, such as a value that ``\gset`` read.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from pytest_dbcluster import registry
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.workloads.sql.language.lexer import FilePlace, SQLText

LARGEST = 2**53  # numbers of Lua are doubles, which have whole numbers up to here
# From the weakest to the strongest, as in pgbench. ``not`` stands before its operand.
LEVELS = (("or",), ("and",), ("not",), ("is", "isnull", "notnull"), ("<", "<=", ">", ">=", "=", "==", "<>", "!="),
          ("|", "#", "&"), ("<<", ">>"), ("+", "-"), ("*", "/", "%"))  # fmt: skip
NOT, IS = 2, 3
LEVEL_OF = {operator: number for number, operators in enumerate(LEVELS) if number != NOT for operator in operators}
PREFIXES = ("-", "+", "~", "not")
COMPARISONS = {"<": "<", "<=": "<=", ">": ">", ">=": ">=", "=": "==", "==": "==", "<>": "~=", "!=": "~="}
BITS = ("|", "#", "&", "<<", ">>")
ARITHMETIC = ("+", "-", "*", "/", "%")
NUMBERS = ("int", "double")
TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<text>'(?:[^']|'')*')
    |(?P<variable>:[A-Za-z_]\w*)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<operator><<|>>|<=|>=|<>|!=|==|[-+*/%<>=|\#&~(),])
    |(?P<other>\S)
    )""",
    re.VERBOSE,
)


@dataclasses.dataclass(frozen=True)
class Literal:
    """A constant."""

    place: FilePlace
    """Where it begins. The NULL of a missing ELSE has the place of CASE."""

    value: int | float | str | bool | None
    """The value; None is NULL. A whole number is 2^53 at most."""

    @property
    def type(self) -> str:
        """The type of the value."""
        return {int: "int", float: "double", str: "text", bool: "bool"}.get(type(self.value), "null")


@dataclasses.dataclass(frozen=True)
class VariableReference:
    """A variable: ``:name``."""

    place: FilePlace
    """The place of its colon."""

    name: str
    """The name without the colon."""


@dataclasses.dataclass(frozen=True)
class Operation:
    """An operator with one or two operands; ``is`` has the texts of what it tests in ``test``."""

    place: FilePlace
    """The place of the operator."""

    operator: str
    """The operator in lower case: one of ``LEVELS`` or ``PREFIXES``."""

    operands: tuple[Expression, ...]
    """One or two operands, in order."""

    test: str = ""
    """``null``, ``true`` or ``false``, for ``is``."""


@dataclasses.dataclass(frozen=True)
class Choice:
    """``CASE WHEN condition THEN value ... ELSE value END``."""

    place: FilePlace
    """The place of CASE."""

    branches: tuple[tuple[Expression, Expression], ...]
    """Pairs of a condition and its value, at least one, in order."""

    otherwise: Expression
    """The value of ELSE; NULL without it."""


@dataclasses.dataclass(frozen=True)
class FunctionCall:
    """A function with its arguments."""

    place: FilePlace
    """The place of its name."""

    function: str
    """A name in ``FUNCTIONS``, in lower case."""

    arguments: tuple[Expression, ...]
    """The arguments, in order."""


Expression = Literal | VariableReference | Operation | Choice | FunctionCall


@dataclasses.dataclass(frozen=True)
class Signature:
    """The arguments and the result of a function."""

    usage: str
    """The call, for messages."""

    least: int
    """Minimum number of arguments."""

    most: int | None
    """Maximum number of arguments; None: any number."""

    result: str
    """The type of the result; ``number``: int if all arguments are, ``same``: that of all arguments together."""

    takes: str = "number"
    """What its arguments are: ``number``, ``any``, or one of both for each argument."""

    draws: bool = False
    """Whether it draws random numbers."""


FUNCTIONS: Mapping[str, Signature] = {
    "abs": Signature("abs(number)", 1, 1, "number"),
    "ceil": Signature("ceil(number)", 1, 1, "int"),
    "concat": Signature("concat(value, ...)", 1, None, "text", "any"),
    "double": Signature("double(number)", 1, 1, "double"),
    "exp": Signature("exp(number)", 1, 1, "double"),
    "floor": Signature("floor(number)", 1, 1, "int"),
    "greatest": Signature("greatest(number, ...)", 1, None, "number"),
    "int": Signature("int(number)", 1, 1, "int"),
    "least": Signature("least(number, ...)", 1, None, "number"),
    "list": Signature("list(count, value)", 2, 2, "list", "number any"),
    "ln": Signature("ln(number)", 1, 1, "double"),
    "mod": Signature("mod(number, number)", 2, 2, "int"),
    "permute": Signature("permute(number, size [, seed])", 2, 3, "int"),
    "pi": Signature("pi()", 0, 0, "double"),
    "pow": Signature("pow(number, exponent)", 2, 2, "double"),
    "power": Signature("power(number, exponent)", 2, 2, "double"),
    "random": Signature("random(low, high)", 2, 2, "int", draws=True),
    "random_digits": Signature("random_digits('###-##')", 1, 1, "text", "any", draws=True),
    "random_exponential": Signature("random_exponential(low, high, parameter)", 3, 3, "int", draws=True),
    "random_gaussian": Signature("random_gaussian(low, high, parameter)", 3, 3, "int", draws=True),
    "random_text": Signature("random_text(length) or random_text(shortest, longest)", 1, 2, "text", draws=True),
    "random_weighted": Signature(
        "random_weighted(value, weight, value, weight, ...)", 2, None, "same", "any number", draws=True
    ),
    "random_zipfian": Signature("random_zipfian(low, high, exponent)", 3, 3, "int", draws=True),
    "sqrt": Signature("sqrt(number)", 1, 1, "double"),
    "unique_id": Signature("unique_id()", 0, 0, "int"),
}
HASHES = ("hash", "hash_fnv1a", "hash_murmur2")
CONSTANTS = {"null": None, "true": True, "false": False}


def parse(source: SQLText, text: str, offset: int) -> Expression:
    """The expression in ``text``, which begins at this offset of the source. Raises ConfigError with the place."""
    return _Parser(source, text, offset).whole()


class _Parser:
    """Precedence climbing over the tokens of one expression."""

    def __init__(self, source: SQLText, text: str, offset: int) -> None:
        self._source, self._offset = source, offset
        stripped = text.rstrip()
        self._tokens: list[tuple[str, str, int]] = []
        at = 0
        while at < len(stripped):
            match = TOKEN.match(stripped, at)
            assert match
            assert match.lastgroup
            self._tokens.append((match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
            at = match.end()
        self._end = len(stripped)
        self._next = 0

    def whole(self) -> Expression:
        """The whole expression."""
        found = self._level(0)
        if self._next < len(self._tokens):
            raise self._place().error(f"unexpected {self._tokens[self._next][1]!r} after the expression")
        return found

    def _place(self) -> FilePlace:
        return self._place_of(self._next)

    def _place_of(self, number: int) -> FilePlace:
        at = self._tokens[number][2] if number < len(self._tokens) else self._end
        return self._source.place(self._offset + at)

    def _peek(self) -> str:
        """The next operator, or word in lower case; empty for other tokens and at the end."""
        if self._next == len(self._tokens):
            return ""
        kind, text, _ = self._tokens[self._next]
        return text.lower() if kind in ("operator", "word") else ""

    def _take(self, *wanted: str) -> str:
        """The next operator or word, if it is one of these; otherwise an empty text, and nothing is taken."""
        found = self._peek()
        if found not in wanted or not found:
            return ""
        self._next += 1
        return found

    def _need(self, wanted: str, after: str) -> None:
        if not self._take(wanted):
            raise self._place().error(f"{wanted} is missing after {after}")

    def _level(self, level: int) -> Expression:
        """An expression whose operators bind at least as strongly as those of ``LEVELS[level]``."""
        left = self._unary()
        while True:
            place_number, operator = self._next, self._peek()
            found = LEVEL_OF.get(operator, -1)
            if found < level:
                return left
            if found == IS:
                tested = self._test()
                left = _test(self._place_of(place_number), left, tested)
                continue
            self._next += 1
            left = Operation(self._place_of(place_number), operator, (left, self._level(found + 1)))

    def _test(self) -> str:
        """``null``, ``not null`` and the like, from IS on."""
        if found := self._take("isnull", "notnull"):
            return {"isnull": "null", "notnull": "not null"}[found]
        self._take("is")
        negated = "not " if self._take("not") else ""
        if not (what := self._take("null", "true", "false")):
            raise self._place().error("IS needs NULL, TRUE or FALSE after it, or NOT and one of them")
        return negated + what

    def _unary(self) -> Expression:
        operator = self._peek()
        if operator not in PREFIXES:
            return self._primary()
        place = self._place()
        self._next += 1
        if operator == "not":
            return Operation(place, "not", (self._level(NOT),))
        operand = self._unary()
        if operator == "+":
            return operand
        if operator == "-" and isinstance(operand, Literal) and operand.type in NUMBERS:
            assert isinstance(operand.value, int | float)
            return Literal(place, -operand.value)
        return Operation(place, operator, (operand,))

    def _primary(self) -> Expression:
        place = self._place()
        if self._next == len(self._tokens):
            raise place.error("an expression ends too early: a value is missing here")
        kind, text, _ = self._tokens[self._next]
        self._next += 1
        if kind == "number":
            return self._number(place, text)
        if kind == "text":
            return Literal(place, text[1:-1].replace("''", "'"))
        if kind == "variable":
            return VariableReference(place, text[1:])
        if text == "(":
            inner = self._level(0)
            self._need(")", "an expression in parentheses")
            return inner
        if kind == "word" and text.lower() in CONSTANTS:
            return Literal(place, CONSTANTS[text.lower()])
        if kind == "word" and text.lower() == "case":
            return self._case(place)
        if kind == "word":
            return self._call(place, text)
        if text in ("'", '"'):
            raise place.error("texts stand in single quotes, with an end in the same command: 'text'")
        raise place.error(f"unexpected {text!r}: a value is expected here")

    def _number(self, place: FilePlace, text: str) -> Literal:
        if not text.isdigit():
            return Literal(place, float(text))
        if int(text) > LARGEST:
            raise place.error(f"{text} is too large: whole numbers go up to {LARGEST}")
        return Literal(place, int(text))

    def _case(self, place: FilePlace) -> Choice:
        branches = []
        while self._take("when"):
            condition = self._level(0)
            self._need("then", "the condition of WHEN")
            branches.append((condition, self._level(0)))
        if not branches:
            raise self._place().error("CASE needs WHEN after it: CASE WHEN condition THEN value ELSE value END")
        otherwise: Expression = self._level(0) if self._take("else") else Literal(place, None)
        self._need("end", "CASE")
        return Choice(place, tuple(branches), otherwise)

    def _call(self, place: FilePlace, word: str) -> FunctionCall:
        name = word.lower()
        if self._peek() != "(":
            raise place.error(f"{word!r} is neither a number nor a function: write :{word} for a variable, '{word}' "
                              "for a text")  # fmt: skip
        if name in HASHES:
            raise place.error(f"there is no function {name}: permute(number, size, seed) spreads numbers over a range")
        if name not in FUNCTIONS:
            hint = registry.suggestion("function", name, FUNCTIONS)
            raise place.error(f"unknown function {word!r}{hint or '; known: ' + ', '.join(FUNCTIONS)}")
        self._next += 1
        arguments: list[Expression] = []
        if not self._take(")"):
            arguments.append(self._level(0))
            while self._take(","):
                arguments.append(self._level(0))
            self._need(")", f"the arguments of {name}")
        return _checked_call(place, name, arguments)


def _test(place: FilePlace, operand: Expression, tested: str) -> Operation:
    found = Operation(place, "is", (operand,), tested.removeprefix("not "))
    return Operation(place, "not", (found,)) if tested.startswith("not ") else found


def _checked_call(place: FilePlace, name: str, arguments: Sequence[Expression]) -> FunctionCall:
    """The call, with the right number of arguments."""
    known, count = FUNCTIONS[name], len(arguments)
    odd = name == "random_weighted" and count % 2
    if count < known.least or (known.most is not None and count > known.most) or odd:
        raise place.error(f"{name} has {quantity(count, 'argument')}: write {known.usage}")
    return FunctionCall(place, name, tuple(arguments))


def children(expression: Expression) -> tuple[Expression, ...]:
    """The parts of an expression."""
    if isinstance(expression, Operation):
        return expression.operands
    if isinstance(expression, FunctionCall):
        return expression.arguments
    if isinstance(expression, Choice):
        return (*(part for branch in expression.branches for part in branch), expression.otherwise)
    return ()


def walk(expression: Expression) -> list[Expression]:
    """The expression and all its parts."""
    found = [expression]
    for child in children(expression):
        found += walk(child)
    return found
