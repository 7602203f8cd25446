"""``dbcluster compare --by-option``: which of the options that differ between two my.cnf files makes the difference?

All options are measured in the same rounds (``claims.factorial``). Each has one claim: its two values are equally fast
within 5 %. The options and all pairs of them share the error of a comparison. At last the options that make a
difference are measured alone, against all options of the candidate.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_dbcluster import reasons
from pytest_dbcluster.claims import wording
from pytest_dbcluster.claims.claim import EQUAL, Outcome, Verdict
from pytest_dbcluster.cli.compare import guards
from pytest_dbcluster.cli.compare.comparison import OUTCOMES, Comparison, is_failure
from pytest_dbcluster.clusters.servers.variables import is_identity, meaning
from pytest_dbcluster.errors import ConfigError, DBClusterError
from pytest_dbcluster.formatting import NOTHING, ratio
from pytest_dbcluster.measuring.drawing.levels import LevelPlan
from pytest_dbcluster.measuring.factorial.effects import Effects, InteractionEstimate
from pytest_dbcluster.reporting.documents import run_document
from pytest_dbcluster.reporting.tables import layout
from pytest_dbcluster.reporting.tables.no_worse import COMMAND, MARGIN, Result
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.options import levels
from pytest_dbcluster.testbed.options.level_testbed import LevelTestbed
from pytest_dbcluster.testbed.options.levels import Levels
from pytest_dbcluster.testbed.resolution import Resolution
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import Workload

OPTION = "--by-option"
COLUMNS = ("option", "", "ratio ({})", "share", "")
SMALL = 0.01  # of the sum of all effects, in logs: less has no shares
# Reasons of a verdict that more rounds would close.
FEW_ROUNDS = {
    "budget-used",
    "budget-too-small",
    "pairs-used",
    "futile",
    "run-budget-spent",
    "run-budget-too-short",
    "share-of-time-used",
}
EFFECTS_SHARE = 0.75  # of a workload's time for the effects; the rest is for the options that carry it alone
BY_PRESENCE = ("log_bin",)  # its value is the name of a file, and without the option it is off
ALONE, ALL = "those alone", "all options"  # names of variants


class OptionRole(enum.Enum):
    """What an option does to the difference of two files."""

    CARRIES = "carries it"
    NOTHING = "does nothing measurable"
    TOGETHER = "only together with"
    UNKNOWN = "could not tell"


@dataclasses.dataclass(frozen=True)
class OptionRow:
    """One option with its answer."""

    option: str
    """Its name."""

    levels: tuple[str, str]
    """Its values in both files, the current one first."""

    verdict: Verdict
    """The verdict on its effect."""

    role: OptionRole
    """What it does."""

    share: float = math.nan
    """Its log ratio as a share of the sum of all; nan if it has none."""

    detail: str = ""
    """The margin, the other option, or why there is no answer."""

    @property
    def text(self) -> str:
        """The role with its detail."""
        if self.role is OptionRole.TOGETHER:
            return f"{self.role.value} {self.detail}"
        return (
            f"{self.role.value}: {self.detail}"
            if self.role is OptionRole.UNKNOWN
            else _with(self.role.value, self.detail)
        )


def _with(text: str, detail: str) -> str:
    return f"{text} ({detail})" if detail else text


@dataclasses.dataclass(frozen=True)
class AloneAnswer:
    """The options that carry the difference, alone, against all options that differ."""

    options: tuple[str, ...]
    """Their names."""

    count: int
    """The number of all options that differ."""

    verdict: Verdict | None
    """The verdict on the guard that both are equally fast; None if there is none."""

    reason: str = ""
    """Why there is no verdict; empty if there is one."""

    failed: bool = False
    """Whether an error is the reason, such as a server that died."""

    @property
    def text(self) -> str:
        """The answer in one line."""
        head = f"{' and '.join(self.options)} alone against all {self.count} options"
        verdict = self.verdict
        if verdict is None:
            return f"{head}: could not tell: {self.reason}"
        measured = wording.estimate(verdict)
        if verdict.outcome is Outcome.HOLDS:
            figures = f"{wording.ratio(verdict)}{wording.guard_interval(verdict)}"
            return f"{head}: equally fast within {100 * verdict.claim.margin:.0f} % ({figures})"
        if verdict.outcome is Outcome.FAILS:
            return f"{head}: not equally fast, {measured}; the other options matter too"
        return f"{head}: could not tell, {measured}: {verdict.reason}"


@dataclasses.dataclass(frozen=True)
class OptionAnswer:
    """The options of one workload."""

    workload: str
    """Its name."""

    rows: tuple[OptionRow, ...]
    """The options, the largest share of the difference first."""

    reason: str = ""
    """Why there is no answer; empty if there is one."""

    alone: AloneAnswer | None = None
    """The answer about the options that carry the difference; None if none or all of them do."""

    failed: bool = False
    """Whether an error is the reason, such as a server that died."""

    @property
    def why(self) -> str:
        """``reason``, or the error of the options alone."""
        return self.reason or (self.alone.reason if self.alone is not None and self.alone.failed else "")

    @property
    def result(self) -> Result:
        """Whether each option has an answer, and whether an error ended the measurement."""
        if self.failed or (self.alone is not None and self.alone.failed):
            return Result.BROKEN
        return Result.NO_WORSE if self.is_complete else Result.UNKNOWN

    @property
    def is_complete(self) -> bool:
        """Whether each option has an answer."""
        return bool(self.rows) and all(row.role is not OptionRole.UNKNOWN for row in self.rows)


@dataclasses.dataclass(frozen=True)
class Differing:
    """The options that differ between two files."""

    options: Levels
    """Both values of each, the current one first."""

    variants: Sequence[Variant]
    """The levels, as ``LevelTestbed`` takes them."""

    spec: ClusterSpec
    """The cluster of the current file."""


def differing(resolution: Resolution, spec: ClusterSpec, checked: Sequence[Variant]) -> Differing:
    """The options that differ in effect. spec: of the current file. checked: the variants of both files.

    Reads the cold-start references of the options. Raises ConfigError if no option differs in effect.
    """
    usual = [resolution.defaults(one) for one in checked]
    found, unclear = Levels(), list[str]()
    for name in sorted({*checked[0].options, *checked[1].options}):
        if is_identity(name) or checked[0].options.get(name) == checked[1].options.get(name):
            continue
        one, other = (_level(name, checked[n].options, usual[n], usual[1 - n]) for n in (0, 1))
        if one is None or other is None:
            unclear.append(name)
        elif meaning(one) != meaning(other):
            found[name] = one, other
    if unclear:
        raise ConfigError(
            f"{OPTION}: {', '.join(unclear)} of one file has no value that could stand in the other; write it in both "
            f"files in the same way, or compare them without {OPTION}"
        )
    if not found:
        raise ConfigError(f"{OPTION}: no option differs in effect; compare the files without {OPTION}")
    specs = levels.specs(spec, found, usual[0])
    return Differing(found, [resolution.resolve(one) for one in specs], spec)


def _level(name: str, options: Mapping[str, str], usual: Mapping[str, str], others: Mapping[str, str]) -> str | None:
    """The value of an option in a file, or that of a server without it. None if no text gives it.

    usual, others: the variables of the servers of this file and of the other one. A line without a value turns an
    option on.
    """
    if name not in options:
        return None if name in BY_PRESENCE else usual.get(name)
    if options[name] or name in BY_PRESENCE:
        return options[name] or None
    return "ON" if others.get(name) in ("ON", "OFF") else others.get(name) and ""


class OptionComparison(Comparison):
    """A comparison of the options that differ between two files."""

    _plan = LevelPlan()
    _share = EFFECTS_SHARE

    def __init__(self, found: Differing, *arguments: Any, **keywords: Any) -> None:
        """found: the options. arguments, keywords: those of ``Comparison`` after its variants."""
        super().__init__(found.variants, *arguments, **keywords)
        self._how = arguments, keywords
        self._found = found
        self._pairs = list(itertools.combinations(found.options, 2))
        self._parts = len(found.options) + len(self._pairs)

    def _testbed(self, workload: Workload) -> Testbed:
        return LevelTestbed(
            self._found.options,
            workload,
            self._variants,
            self._pool,
            "quick",
            self._progress,
            across_durability=True,
            sampled=True,
        )

    def answers(self, workloads: Sequence[Workload]) -> list[OptionAnswer]:
        """Measure the workloads one after the other; each gets an equal share of the remaining time."""
        self._count = len(workloads)
        return [self._answer(workload, len(workloads) - number) for number, workload in enumerate(workloads)]

    def _answer(self, workload: Workload, left: int) -> OptionAnswer:
        name, now = str(workload), self._pool.turns.clock()
        if self._held:
            return OptionAnswer(name, (), self._held)
        end = now + max(0.0, self._end - now) / left
        try:
            measurement = self._measurement(workload, test_of(name), EFFECTS_SHARE * (end - now))
            effects = Effects(measurement, self._found.options, self._pairs)
            verdicts = {}
            for option in effects:
                answer = effects[option].same_as(within=MARGIN)
                answer.report()  # no test reads it
                verdicts[option] = answer.verdict
            measurement.end()
            found = rows(self._found, verdicts, effects.interactions())
        except DBClusterError as error:
            return OptionAnswer(name, (), self._why(error), failed=is_failure(error))
        return OptionAnswer(name, found, alone=self._measure_alone(workload, found, end))

    def _measure_alone(self, workload: Workload, found: Sequence[OptionRow], end: float) -> AloneAnswer | None:
        """Compare the options that carry the difference with all options. end: of the time of this workload."""
        carrying = tuple(row.option for row in found if row.role is OptionRole.CARRIES)
        if not 0 < len(carrying) < len(found):
            return None
        values = {name: levels[1] for name, levels in self._found.options.items()}
        some = self._found.spec.with_options({name: values[name] for name in carrying}).named(ALONE)
        every = self._found.spec.with_options(values).named(ALL)
        arguments, keywords = self._how
        try:
            variants = [self._pool.resolution.resolve(one) for one in (every, some)]
            seconds = max(0.0, end - self._pool.turns.clock())
            comparison = Comparison(variants, *arguments, **keywords)
            comparison._count, comparison._share = self._count, 1 - EFFECTS_SHARE
            answer = guards.same(comparison._measurement(workload, test_of(workload), seconds))
            return AloneAnswer(carrying, len(found), answer.verdict)
        except DBClusterError as error:
            return AloneAnswer(carrying, len(found), None, self._why(error), is_failure(error))


def rows(
    found: Differing, verdicts: Mapping[str, Verdict], interactions: Sequence[InteractionEstimate]
) -> tuple[OptionRow, ...]:
    """The options with their answers, the largest share first.

    interactions: of all pairs.
    """
    logs = {option: math.log(one.ratio) for option, one in verdicts.items() if 0 < one.ratio < math.inf}
    total = math.fsum(logs.values())
    made = []
    for option, verdict in verdicts.items():
        share = logs[option] / total if option in logs and abs(total) > SMALL else math.nan
        made.append(_row(option, found.options[option], verdict, share, interactions))
    made.sort(key=lambda row: -abs(logs.get(row.option, 0.0)))
    return tuple(made)


def _row(
    option: str,
    values: tuple[str, str],
    verdict: Verdict,
    share: float,
    interactions: Sequence[InteractionEstimate],
) -> OptionRow:
    if _is_blocked(verdict):
        return OptionRow(option, values, verdict, OptionRole.UNKNOWN, share, verdict.reason)
    clear = [one for one in interactions if option in one.options and not one.low <= 1 <= one.high]
    other = next((name for one in clear for name in one.options if name != option), "")
    if verdict.outcome is Outcome.HOLDS and not clear:
        return OptionRow(option, values, verdict, OptionRole.NOTHING, share, f"within {100 * MARGIN:.0f} %")
    if verdict.outcome is Outcome.FAILS or not verdict.low <= 1 <= verdict.high:
        return OptionRow(option, values, verdict, OptionRole.CARRIES, share, f"depends on {other}" if other else "")
    if clear:
        return OptionRow(option, values, verdict, OptionRole.TOGETHER, share, other)
    return OptionRow(option, values, verdict, OptionRole.UNKNOWN, share, f"{verdict.reason}{_needs(verdict)}")


def _needs(verdict: Verdict) -> str:
    """How many times as many rounds would decide, after a semicolon; empty if unknown."""
    if not verdict.needed_pairs or not verdict.pairs:
        return ""
    return f"; it needs about {max(2, math.ceil(verdict.needed_pairs / verdict.pairs))} times as many rounds"


def _is_blocked(verdict: Verdict) -> bool:
    """Whether a verdict is open for another reason than too few rounds, so that its interval says nothing."""
    known = {reason.name for reason in reasons.find(verdict.reason)}
    return verdict.outcome is Outcome.INCONCLUSIVE and bool(known - FEW_ROUNDS)


def check(arguments: argparse.Namespace) -> None:
    """Raise ConfigError if ``--by-option`` has no two files, has two releases, or an option that it does not take."""
    if not arguments.by_option:
        return
    if len(arguments.cnf) != 2 or len(arguments.release) > 1:
        raise ConfigError(f"{OPTION} compares two my.cnf files on one release: --cnf current.cnf --cnf candidate.cnf")
    for name in ("resume", "equal", "why"):
        if getattr(arguments, name):
            raise ConfigError(f"{OPTION} does not take --{name}")


def test_of(workload: object) -> str:
    """The test name of a workload in the results."""
    return f"{COMMAND} {OPTION}::{workload}"


def outcomes(answers: Sequence[OptionAnswer]) -> list[tuple[str, run_document.Outcome, str]]:
    """Test name, outcome and reason of each workload, for ``ComparisonResults.finish_tests``."""
    return [(test_of(one.workload), OUTCOMES[one.result], one.why) for one in answers]


def overall(answers: Sequence[OptionAnswer]) -> Result:
    """Whether each option of each workload has an answer, and whether an error ended a measurement."""
    results = {one.result for one in answers}
    return next((one for one in (Result.BROKEN, Result.UNKNOWN) if one in results), Result.NO_WORSE)


def table(answer: OptionAnswer, names: tuple[str, ...]) -> list[str]:
    """The lines of a workload. names: of both files, the current one first."""
    head = f"{answer.workload}: what {names[1]} changes, option by option"
    if not answer.rows:
        return ["", f"{answer.workload}: no answer: {answer.reason}"]
    level = wording.level(answer.rows[0].verdict)
    cells = [
        (
            row.option,
            " -> ".join(row.levels),
            wording.estimate(row.verdict),
            NOTHING if math.isnan(row.share) else f"{100 * row.share:.0f} %",
            row.text,
        )
        for row in answer.rows
    ]
    columns = tuple(column.format(level) for column in COLUMNS)
    last = [answer.alone.text] if answer.alone else []
    return ["", head, *layout.plain(columns, cells).splitlines(), *last]


def sentence(answers: Sequence[OptionAnswer]) -> str:
    """The answer in one sentence: the options that carry the difference, by workload."""
    return "; ".join(map(_in_words, answers))


def _in_words(answer: OptionAnswer) -> str:
    carrying = [row for row in answer.rows if row.role is OptionRole.CARRIES]
    if not answer.rows:
        return f"could not tell which option does it on {answer.workload}"
    if not carrying:
        unknown, joint = (
            [row.option for row in answer.rows if row.role is role]
            for role in (OptionRole.UNKNOWN, OptionRole.TOGETHER)
        )
        said = [f"{' and '.join(joint)} matter only together"] if joint else []
        said += [f"could not tell {', '.join(unknown)}"] if unknown else []
        return f"{', '.join(said) or 'no option does anything measurable'} on {answer.workload}"
    named = (f"{row.option} ({ratio(row.verdict.ratio, EQUAL)})" for row in carrying)
    return f"{', '.join(named)} {'carries' if len(carrying) == 1 else 'carry'} the difference on {answer.workload}"
