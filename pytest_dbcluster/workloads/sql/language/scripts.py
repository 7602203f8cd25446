r"""Transaction files: SQL statements and meta commands of pgbench's script language, as frozen values.

``parse`` reads one file. A *block* is a sequence of statements, ``\set``, ``\sleep`` and ``\if``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from pytest_dbcluster import registry
from pytest_dbcluster.workloads.sql.language import expressions, statements
from pytest_dbcluster.workloads.sql.language.expressions import Expression, VariableReference
from pytest_dbcluster.workloads.sql.language.lexer import FilePlace, SQLText, Token
from pytest_dbcluster.workloads.sql.language.statements import Statement

NAME = re.compile(r"[A-Za-z_]\w*")
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
SLEEP_USAGE = "\\sleep 10 ms, or \\sleep :name us; units: us, ms, s"
META = ("elif", "else", "endif", "gset", "if", "insert_id", "set", "sleep")
REFUSED = {
    "setrandom": "write \\set {name} random(low, high)",
    "shell": "a workload runs SQL only",
    "setshell": "a workload runs SQL only",
    "startpipeline": "statements wait for their results",
    "aset": "\\gset reads one row",
    "cset": "\\gset reads one row",
    "include": "write the statements into this file",
}


@dataclasses.dataclass(frozen=True)
class Assignment:
    r"""``\set name expression``."""

    place: FilePlace
    r"""The place of \set."""

    name: str
    """The variable that it sets."""

    value: Expression
    """The expression that gives the variable its value."""


@dataclasses.dataclass(frozen=True)
class Sleep:
    r"""``\sleep``: waits so long."""

    place: FilePlace
    r"""The place of \sleep."""

    value: Expression
    """How long it waits, in units."""

    unit: float
    """Seconds of one unit."""


@dataclasses.dataclass(frozen=True)
class Branching:
    r"""``\if`` ... ``\endif``."""

    place: FilePlace
    r"""The place of \if."""

    branches: tuple[tuple[Expression, Block], ...]
    r"""Conditions of \if and \elif, with what follows them."""

    otherwise: Block
    r"""What follows \else; empty without it."""


Command = Statement | Assignment | Sleep | Branching
Block = tuple[Command, ...]


@dataclasses.dataclass(frozen=True)
class Script:
    """One transaction file."""

    name: str
    """Name of the file without ``.sql``: the type of its transactions in the ledger."""

    file: str
    """The file in messages, such as ``shop/order.sql``."""

    block: Block
    """Its commands, in order."""


def all_commands(block: Block) -> Iterator[Command]:
    """Every command of a block, those inside of branches too."""
    for command in block:
        yield command
        if isinstance(command, Branching):
            for _, inner in command.branches:
                yield from all_commands(inner)
            yield from all_commands(command.otherwise)


def all_statements(block: Block) -> list[Statement]:
    """Every statement of a block, those inside of branches too."""
    return [command for command in all_commands(block) if isinstance(command, Statement)]


def parse(name: str, file: str, text: str) -> Script:
    """The transaction in a file. Raises ConfigError with file, line and column for the first mistake."""
    script = Script(name, file, _Reader(SQLText(file, text)).whole())
    if not all_statements(script.block):
        raise FilePlace(file, 1, 1).error(
            "there is no SQL statement in this file: write one, or take it out of the transactions of workload.toml"
        )
    return script


@dataclasses.dataclass
class _Open:
    r"""An \if whose \endif has not come yet."""

    place: FilePlace
    condition: Expression
    branches: list[tuple[Expression, Block]] = dataclasses.field(default_factory=list)
    in_else: bool = False


class _Reader:
    """Reads the commands of a file one after the other."""

    def __init__(self, source: SQLText) -> None:
        self._source = source
        self._at = 0
        self._tokens: list[Token] = []  # of the statement that has not ended yet
        self._open: list[_Open] = []
        self._blocks: list[list[Command]] = [[]]

    def whole(self) -> Block:
        """The commands of the file."""
        text = self._source.text
        while self._at < len(text):
            token = self._source.token(self._at)
            self._at = token.end
            if token.kind == "meta":
                self._meta(token)
            elif token.kind == "end":
                self._end_statement()
            else:
                self._tokens.append(token)
        self._end_statement()
        if self._open:
            raise self._open[-1].place.error("this \\if has no end: write \\endif after its commands")
        return tuple(self._blocks[0])

    def _add(self, command: Command) -> None:
        self._blocks[-1].append(command)

    def _end_statement(self) -> list[Token]:
        tokens, self._tokens = self._tokens, []
        if found := statements.analyse(self._source, tokens):
            self._add(found)
            return tokens
        return []

    def _meta(self, token: Token) -> None:
        place, name = self._source.place(token.start), token.text[1:].lower()
        rest, after = self._source.rest_of_line(token.end)
        if name in REFUSED:
            words = rest.split()
            raise place.error(f"there is no \\{name}: " + REFUSED[name].format(name=words[0] if words else "name"))
        if name not in META:
            hint = registry.suggestion("meta command", name, META).replace("mean ", "mean \\")
            known = ", ".join(f"\\{each}" for each in META)
            raise place.error(f"unknown meta command \\{name}{hint or '; known: ' + known}")
        begin, argument = token.end + len(rest) - len(rest.lstrip()), rest.strip()
        if name == "gset":
            self._at = after
            self._gset(place, argument)
            return
        if any(not each.silent for each in self._tokens):
            first = next(each for each in self._tokens if not each.silent)
            raise self._source.place(first.start).error(f"this statement has no end before \\{name}: write ; after it")
        self._tokens, self._at = [], after
        getattr(self, f"_meta_{name}")(place, argument, begin)

    def _gset(self, place: FilePlace, prefix: str) -> None:
        if prefix and not NAME.fullmatch(prefix):
            raise place.error(f"\\gset {prefix}: it takes one prefix of names, such as \\gset buyer_")
        tokens = self._end_statement()
        last = self._blocks[-1][-1] if tokens else None
        if not isinstance(last, Statement):
            raise place.error("\\gset has no statement before it: write it in place of the ; of a SELECT")
        found = statements.columns(self._source, tokens)
        names = [prefix + name for _, name in found]
        for number, (where, _) in enumerate(found):
            if names[number] in names[:number]:
                raise where.error(f"\\gset: two columns are named {names[number]}: write AS name after one of them")
        self._blocks[-1][-1] = dataclasses.replace(last, reads_into=tuple(names))

    def _name(self, place: FilePlace, command: str, argument: str) -> str:
        match = NAME.match(argument)
        if not match:
            raise place.error(f"\\{command} needs the name of a variable after it")
        return match[0]

    def _expression(self, place: FilePlace, text: str, begin: int, usage: str) -> Expression:
        if not text.strip():
            raise place.error(f"a value is missing: write {usage}")
        return expressions.parse(self._source, text, begin)

    def _meta_set(self, place: FilePlace, argument: str, begin: int) -> None:
        name = self._name(place, "set", argument)
        value = argument[len(name) :]
        if value and not value[0].isspace():
            raise place.error(
                f"\\set {argument.split()[0]}: a name has letters, digits and _ only, and a space after it"
            )
        self._add(Assignment(place, name, self._expression(place, value, begin + len(name), f"\\set {name} value")))

    def _meta_insert_id(self, place: FilePlace, argument: str, _: int) -> None:
        name = self._name(place, "insert_id", argument)
        last = self._blocks[-1][-1] if self._blocks[-1] else None
        if name != argument:
            raise place.error(f"\\insert_id {argument}: it takes one name, such as \\insert_id order_id")
        if not isinstance(last, Statement) or last.verb not in ("INSERT", "REPLACE"):
            raise place.error("\\insert_id has no INSERT before it: write it after the INSERT whose id it reads")
        self._blocks[-1][-1] = dataclasses.replace(last, insert_id=name)

    def _meta_sleep(self, place: FilePlace, argument: str, begin: int) -> None:
        match = re.fullmatch(r"(\d+|:[A-Za-z_]\w*)\s*([A-Za-z]*)", argument)
        if not match:
            raise place.error(f"\\sleep {argument}: write {SLEEP_USAGE}")
        unit = match[2].lower() or "s"
        if unit not in SECONDS:
            raise place.error(f"\\sleep: unknown unit {match[2]!r}: write {SLEEP_USAGE}")
        self._add(Sleep(place, expressions.parse(self._source, match[1], begin), SECONDS[unit]))

    def _meta_if(self, place: FilePlace, argument: str, begin: int) -> None:
        condition = self._expression(place, argument, begin, "\\if condition")
        self._open.append(_Open(place, condition))
        self._blocks.append([])

    def _next_branch(self, place: FilePlace, command: str) -> _Open:
        r"""End the branch before an \elif, \else or \endif."""
        if not self._open:
            raise place.error(f"\\{command} has no \\if before it")
        current = self._open[-1]
        if current.in_else and command != "endif":
            raise place.error(f"\\{command} stands after \\else: write it before")
        if not current.in_else:
            current.branches.append((current.condition, tuple(self._blocks.pop())))
            self._blocks.append([])
        return current

    def _meta_elif(self, place: FilePlace, argument: str, begin: int) -> None:
        current = self._next_branch(place, "elif")
        current.condition = self._expression(place, argument, begin, "\\elif condition")

    def _meta_else(self, place: FilePlace, argument: str, _: int) -> None:
        _refuse_more(place, "else", argument)
        self._next_branch(place, "else").in_else = True

    def _meta_endif(self, place: FilePlace, argument: str, _: int) -> None:
        _refuse_more(place, "endif", argument)
        current = self._next_branch(place, "endif")
        otherwise = tuple(self._blocks.pop())
        self._open.pop()
        self._add(Branching(current.place, tuple(current.branches), otherwise))


def _refuse_more(place: FilePlace, command: str, argument: str) -> None:
    if argument and not argument.startswith("--"):
        raise place.error(f"\\{command} {argument}: nothing stands after \\{command}")


def references(expression: Expression) -> list[VariableReference]:
    """The variables that an expression reads."""
    return [part for part in expressions.walk(expression) if isinstance(part, VariableReference)]
