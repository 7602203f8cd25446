"""A comparison of three or more my.cnf files: a race on each workload, and one sentence."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from pytest_dbcluster.claims.race import standing
from pytest_dbcluster.claims.race.standing import Standing
from pytest_dbcluster.clusters.servers.variables import is_identity, meaning
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import NOTHING
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.reporting.tables import layout
from pytest_dbcluster.reporting.tables.no_worse import Result
from pytest_dbcluster.testbed.variants import Variant


@dataclasses.dataclass(frozen=True)
class RacedWorkload:
    """The race on one workload."""

    workload: str
    """Name of the workload."""

    answer: Answer | None
    """The answer of the race; None without one."""

    reason: str = ""
    """Why there is no winner; empty if there is one."""

    failed: bool = False
    """Whether an error ended the race, such as a server that died."""

    @property
    def standings(self) -> Sequence[Standing]:
        """The place of each variant; empty without an answer."""
        return () if self.answer is None else self.answer.standings

    @property
    def winner(self) -> str:
        """The name of the winner; empty without one."""
        return next((one.name for one in self.standings if one.wins), "")

    @property
    def result(self) -> Result:
        """Whether there is a winner. The exit code of the command depends on all workloads."""
        return Result.NO_WORSE if self.winner else Result.BROKEN if self.failed else Result.UNKNOWN


def refuse_equal(variants: Sequence[Variant], files: Sequence[str], *, anyway: bool = False) -> None:
    """Raise ConfigError if two files give the servers the same options, before a server starts.

    anyway: the user wants to measure equal files; only two can do that.
    """
    if anyway:
        raise ConfigError(f"--equal measures two files, not {len(files)}: equal ones have no best")
    known: dict[object, int] = {}
    for number, one in enumerate(variants):
        options = tuple(sorted((name, meaning(value)) for name, value in one.options.items()))
        if (other := known.setdefault(options, number)) != number:
            raise ConfigError(
                f"{files[other]} and {files[number]} give the servers the same options, so no server was started; "
                "leave one of them out"
            )


def differences(names: Sequence[str], variants: Sequence[Variant], defaults: Sequence[Mapping[str, str]]) -> list[str]:
    """The lines about the options of the files that differ, with the value of each variant.

    defaults: the variables of the servers of each variant, as ``Resolution.defaults``.
    """
    options = sorted({name for one in variants for name in one.options if not is_identity(name)})
    values = {name: [own.get(name, NOTHING) for own in defaults] for name in options}
    rows = [(name, *own) for name, own in values.items() if len(set(map(meaning, own))) > 1]
    return ["", "differs in effect:", *layout.plain(("variable", *names), rows).splitlines()] if rows else []


def tables(raced: Sequence[RacedWorkload]) -> list[str]:
    """The lines of a table for each workload."""
    lines = []
    for item in raced:
        lines += ["", f"{item.workload}:"]
        if item.standings:
            columns, rows = standing.columns(item.standings), standing.rows(item.standings)
            lines += layout.plain(columns, rows).splitlines()
        lines += [f"no winner: {item.reason}"] if item.reason else []
    return [*lines, ""]


def overall(raced: Sequence[RacedWorkload]) -> Result:
    """Whether one variant wins on all workloads, and whether an error ended a race."""
    if any(item.result is Result.BROKEN for item in raced):
        return Result.BROKEN
    winners = {item.winner for item in raced}
    return Result.NO_WORSE if len(winners) == 1 and "" not in winners else Result.UNKNOWN


def sentence(raced: Sequence[RacedWorkload]) -> str:
    """The answer in one sentence."""
    if overall(raced) is Result.NO_WORSE:
        return f"{raced[0].winner} is best: it wins on {' and '.join(item.workload for item in raced)}"
    won = [f"{item.winner} wins on {item.workload}" for item in raced if item.winner]
    won += [f"no winner on {item.workload}" for item in raced if not item.winner]
    return f"could not tell which is best: {', '.join(won)}"
