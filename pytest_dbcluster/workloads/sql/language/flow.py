"""The units of a transaction file: what is tried again after a conflict.

A *step* has one unit at most: a transaction from BEGIN to COMMIT or ROLLBACK, or one statement that commits by itself.
A retry repeats the step that failed, never an earlier one. ``steps_of`` also refuses files whose transactions have no
end, and variables that are read before they are set.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable

from pytest_dbcluster import registry
from pytest_dbcluster.workloads.sql.language import expressions
from pytest_dbcluster.workloads.sql.language.expressions import Expression, Literal
from pytest_dbcluster.workloads.sql.language.lexer import FilePlace
from pytest_dbcluster.workloads.sql.language.scripts import (
    Assignment,
    Block,
    Branching,
    Command,
    Script,
    Sleep,
    all_commands,
    all_statements,
    references,
)
from pytest_dbcluster.workloads.sql.language.statements import BEGIN, COMMIT, ROLLBACK, Statement

END = 0  # the next step of the last one
NEEDS_BEGIN = ("COMMIT", "RELEASE", "ROLLBACK", "SAVEPOINT")


@dataclasses.dataclass
class Step:
    """Commands up to the end of one unit."""

    commands: list[Command]
    """What it runs, in order."""

    branches: list[tuple[Expression, int]] = dataclasses.field(default_factory=list)
    """Conditions, each with the step that follows if it is the first to hold."""

    following: int = END
    """The step that follows otherwise, 1-based."""


def steps_of(script: Script, constants: Collection[str]) -> list[Step]:
    """The steps of a script. constants: names of variables that have a value before it.

    Raises ConfigError for a transaction without an end, and for an unknown variable.
    """
    _Balance().whole(script.block)
    _Assigned(script, constants).whole()
    return _Builder().whole(script.block)


class _Balance:
    """Checks that each transaction has a beginning and an end in the same branch."""

    def __init__(self) -> None:
        self._begun: FilePlace | None = None

    def whole(self, block: Block) -> None:
        """Raise ConfigError for the first transaction that does not."""
        if self._after(block, opened=False):
            assert self._begun
            raise self._begun.error("this transaction has no end: write COMMIT; or ROLLBACK; after its statements")

    def _after(self, block: Block, *, opened: bool, inside: bool = False) -> bool:
        r"""Whether a transaction is open after a block. inside: whether one was open where its \if began."""
        for command in block:
            if isinstance(command, Statement):
                if inside and not opened:
                    raise command.place.error("the transaction has ended in this branch: write it after \\endif")
                opened = self._statement(command, opened)
            elif isinstance(command, Branching):
                if inside and not opened and all_statements((command,)):
                    raise command.place.error("the transaction has ended in this branch: write it after \\endif")
                opened = self._branching(command, opened)
        return opened

    def _statement(self, statement: Statement, opened: bool) -> bool:
        place, role = statement.place, statement.role
        if role == BEGIN:
            if opened:
                assert self._begun
                raise place.error(f"{statement.verb} commits the transaction of line {self._begun.line}: write COMMIT; "
                                  "or ROLLBACK; before it")  # fmt: skip
            self._begun = place
        elif statement.verb in NEEDS_BEGIN and not opened:
            raise place.error(f"{statement.verb} has no BEGIN before it: each statement outside of a transaction "
                              "commits by itself")  # fmt: skip
        return opened if not role else role == BEGIN

    def _branching(self, command: Branching, opened: bool) -> bool:
        ends = [self._after(block, opened=opened, inside=opened) for _, block in command.branches]
        ends.append(self._after(command.otherwise, opened=opened, inside=opened))
        if not opened and any(ends):
            assert self._begun
            raise self._begun.error("a transaction that begins after \\if ends before \\elif, \\else or \\endif: write "
                                    "COMMIT; or ROLLBACK;")  # fmt: skip
        if len(set(ends)) > 1:
            assert self._begun
            raise command.place.error(
                f"some branches of this \\if end the transaction of line {self._begun.line}, others do not: end it in "
                "all of them, with \\else, or after \\endif"
            )
        return ends[0]


class _Assigned:
    """Checks that each variable has a value on every path to where it is read."""

    def __init__(self, script: Script, constants: Collection[str]) -> None:
        self._script = script
        self._first = set(constants)
        self._ever = set(constants)
        for command in all_commands(script.block):
            self._ever |= _sets(command)

    def whole(self) -> None:
        """Raise ConfigError for the first variable that has none."""
        self._after(self._script.block, self._first)

    def _after(self, block: Block, known: set[str]) -> set[str]:
        known = set(known)
        for command in block:
            if isinstance(command, Branching):
                for condition, _ in command.branches:
                    self._read(condition, known)
                ends = [self._after(inner, known) for _, inner in command.branches]
                known = set.intersection(*ends, self._after(command.otherwise, known))
                continue
            if isinstance(command, Statement):
                for placeholder in command.placeholders:
                    self._require(placeholder.place, placeholder.name, known)
            else:
                self._read(command.value, known)
            known |= _sets(command)
        return known

    def _read(self, expression: Expression, known: Collection[str]) -> None:
        for reference in references(expression):
            self._require(reference.place, reference.name, known)

    def _require(self, place: FilePlace, name: str, known: Collection[str]) -> None:
        if name in known:
            return
        if name in self._ever:
            raise place.error(f":{name} has no value here: \\set, \\gset or \\insert_id sets it only later, or not in "
                              "every branch of an \\if")  # fmt: skip
        hint = registry.suggestion("variable", name, sorted(self._ever)).replace("mean ", "mean :")
        listed = ", ".join(f":{each}" for each in sorted(known)) or "none"
        raise place.error(f"unknown variable :{name}{hint or '; known here: ' + listed}; \\set, \\gset or [variables] "
                          "of workload.toml give one a value")  # fmt: skip


def _sets(command: Command) -> set[str]:
    if isinstance(command, Assignment):
        return {command.name}
    if isinstance(command, Statement):
        return {*command.reads_into, *((command.insert_id,) if command.insert_id else ())}
    return set()


class _Builder:
    """Divides the commands of a block into steps."""

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._commands: list[Command] = []  # of the step that has not ended yet
        self._opened = False

    def whole(self, block: Block) -> list[Step]:
        """The steps, in order; the first one begins."""
        self._block(block)
        if self._commands or not self._steps:
            self._end_step()
        self._steps[-1].following = END
        for step in self._steps:
            if step.following > len(self._steps):
                step.following = END
        return self._steps

    def _end_step(self) -> Step:
        step = Step(self._commands, following=len(self._steps) + 2)
        self._steps.append(step)
        self._commands = []
        return step

    def _block(self, block: Iterable[Command]) -> None:
        for command in block:
            if isinstance(command, Branching) and not self._opened and all_statements((command,)):
                self._branching(command)
                continue
            self._commands.append(command)
            self._opened = self._opened_after(command)
            if not self._opened and all_statements((command,)):
                self._end_step()

    def _opened_after(self, command: Command) -> bool:
        if isinstance(command, Statement) and command.role:
            return command.role == BEGIN
        if isinstance(command, Branching) and self._opened:
            roles = {statement.role for statement in all_statements((command,))}
            return not roles & {COMMIT, ROLLBACK}
        return self._opened

    def _branching(self, command: Branching) -> None:
        """A step that chooses the next one, and the steps of each branch."""
        choosing, lasts = self._end_step(), []
        conditions = [*command.branches, (Literal(command.place, True), command.otherwise)]
        for condition, block in conditions:
            choosing.branches.append((condition, len(self._steps) + 1))
            self._block(block)
            lasts.append(self._end_step())
        for step in lasts:
            step.following = len(self._steps) + 1


def draws(commands: Iterable[Command]) -> bool:
    """Whether commands draw random numbers."""
    return any(
        isinstance(part, expressions.FunctionCall) and expressions.FUNCTIONS[part.function].draws
        for part in _parts(commands)
    )


def uses(commands: Iterable[Command], function: str) -> bool:
    """Whether commands call this function."""
    return any(isinstance(part, expressions.FunctionCall) and part.function == function for part in _parts(commands))


def _parts(commands: Iterable[Command]) -> Iterable[Expression]:
    for command in all_commands(tuple(commands)):
        if isinstance(command, Assignment | Sleep):
            yield from expressions.walk(command.value)
        elif isinstance(command, Branching):
            for condition, _ in command.branches:
                yield from expressions.walk(condition)


def assigned_names(commands: Iterable[Command]) -> set[str]:
    """The variables that commands set, those inside of branches too."""
    return {name for command in all_commands(tuple(commands)) for name in _sets(command)}
