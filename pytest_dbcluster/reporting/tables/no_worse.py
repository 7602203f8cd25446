"""No worse: the answer of ``dbcluster compare``, as the terminal and the page show it.

Each workload has one or two answers: its throughput in a closed loop, and in an open loop its p95. ``judge`` turns them
into one of three results. ``rows``, ``sentence`` and ``differences`` show them. This module does no input or output.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping, Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import wording
from pytest_dbcluster.claims.claim import STATES, Outcome, Verdict
from pytest_dbcluster.formatting import NOTHING, quantity
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables import parts, states
from pytest_dbcluster.reporting.tables.parts import ComparedTransaction, Sides

MARGIN = 0.05  # "no worse": slower by less than this
WIDEST = 0.10  # the widest margin that still counts as "no worse" if MARGIN is not certain
TAIL = "p95"  # the metric of the second answer
COMMAND = "dbcluster compare"
WIDTH = 60  # characters of a value that are shown


class Result(enum.Enum):
    """The result of a comparison for the candidate. ``value`` is the exit code."""

    NO_WORSE = 0
    BROKEN = 1
    WORSE = 3
    UNKNOWN = 4


OUTCOMES = {Result.NO_WORSE: Outcome.HOLDS, Result.WORSE: Outcome.FAILS, Result.UNKNOWN: Outcome.INCONCLUSIVE}
ENDS = {
    Result.NO_WORSE: "{candidate} is no worse than {baseline}",
    Result.BROKEN: "could not measure whether {candidate} is worse than {baseline}",
    Result.WORSE: "{candidate} is worse than {baseline}",
    Result.UNKNOWN: "could not tell whether {candidate} is worse than {baseline}",
}


@dataclasses.dataclass(frozen=True)
class MetricAnswer:
    """The answer about one metric of a workload."""

    verdict: Verdict
    """The verdict; its ratio is above 1 if the candidate is faster."""

    metric: str
    """The metric, such as ``goodput`` or ``p95``."""

    medians: tuple[str, str]
    """The medians of baseline and candidate with their unit."""

    interrupted: bool = False
    """Whether the run ended while the rounds were drawn."""

    transactions: tuple[ComparedTransaction, ...] = ()
    """The types of transactions of a workload with files, by this metric if it is p95. They have no claim."""


def of_answer(answer: Answer) -> MetricAnswer:
    """The answer of a running comparison. Raises nothing, whatever its verdict is."""
    candidate, baseline = answer.contrast
    return _of(answer, (baseline.rounds, candidate.rounds), interrupted=answer.interrupted)


def of_record(record: ClaimRecord) -> MetricAnswer:
    """The answer in the results of a comparison."""
    return _of(record, (record.rounds[record.baseline], record.rounds[record.candidate]))


def _of(claim: Answer | ClaimRecord, sides: Sides, *, interrupted: bool = False) -> MetricAnswer:
    verdict, metric, load = claim.verdict, claim.metric, claim.load
    found: tuple[ComparedTransaction, ...] = ()
    if claim.content and metric == TAIL:
        found = parts.compare_transactions(sides, metric, load, instances=claim.instances, alpha=verdict.alpha)
    return MetricAnswer(verdict, metric, parts.median_texts(metric, load, sides), interrupted, found)


@dataclasses.dataclass(frozen=True)
class ComparedWorkload:
    """One workload on both variants."""

    workload: str
    """Name of the workload."""

    throughput: MetricAnswer | None
    """The answer about good operations a second; None without one."""

    closer: MetricAnswer | None = None
    """The ratio of the throughputs after all rounds."""

    p95: MetricAnswer | None = None
    """The answer about the latency; None without an open loop."""

    reason: str = ""
    """Why an answer is missing; empty if no answer is missing."""

    failed: bool = False
    """Whether it is missing because of an error, such as a server that died."""

    remark: str = ""
    """Remarks about the data (``Evidence.data_fits``) and about earlier tries of the throughput."""

    @property
    def measured(self) -> bool:
        """Whether the throughput has a complete answer."""
        return self.throughput is not None and not self.throughput.interrupted

    @property
    def result(self) -> Result:
        """The result of both answers. After an error only "worse" counts."""
        known = Result.UNKNOWN
        if self.throughput is not None:
            known = judge(self.throughput.verdict, None if self.p95 is None else self.p95.verdict)
        return Result.BROKEN if self.failed and known is not Result.WORSE else known


def certain_margin(verdict: Verdict) -> float:
    """The smallest fraction, from ``MARGIN`` on, by which the candidate is certainly not slower (90 % interval).

    On separate clusters it includes the difference of equal clusters. A guard that holds has shown its own margin too,
    which may be smaller. Infinite if the guard fails, if there is no interval yet, and if this machine cannot decide
    the claim.
    """
    held = verdict.outcome is Outcome.HOLDS
    if verdict.outcome is Outcome.FAILS or not (held or _is_decidable(verdict)):
        return math.inf
    shown = max(MARGIN, _loss(verdict.decided_low, verdict)) if verdict.decided_low > 0 else math.inf
    return min(verdict.claim.margin, shown) if held else max(verdict.claim.margin, shown)


def equal_margin(verdict: Verdict, closer: Verdict | None = None) -> float:
    """The smallest fraction, from ``MARGIN`` on, by which neither variant is certainly slower; infinite without one.

    It comes from the guard's 90 % interval, or from the interval after all rounds. On separate clusters it includes the
    difference of equal clusters.

    closer: the verdict after all rounds.
    """
    if certain_margin(verdict) > WIDEST:
        return math.inf
    intervals = [(verdict.decided_low, verdict.decided_high), *([(closer.low, closer.high)] if closer else [])]
    margins = [
        max(_loss(low, verdict), _loss(1 / high, verdict)) for low, high in intervals if low > 0 and high < math.inf
    ]
    return max(MARGIN, min(margins, default=math.inf))


def _loss(ratio: float, verdict: Verdict) -> float:
    """The fraction that the slower of two variants loses at a ratio, with the difference of equal clusters."""
    return 1 - ratio * math.exp(-verdict.claim.apart)


def is_slower(verdict: Verdict) -> bool:
    """Whether the candidate is certainly slower: the guard fails, or the whole sequential interval is below 1.

    On separate clusters it must be below 1 by more than the difference of equal clusters.
    """
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return _is_decidable(verdict) and verdict.high * math.exp(verdict.claim.apart) < 1
    return verdict.outcome is Outcome.FAILS


def _is_decidable(verdict: Verdict) -> bool:
    """Whether more rounds could decide an inconclusive guard; False if this machine cannot decide it."""
    return verdict.needed_margin is not None


def judge(throughput: Verdict, p95: Verdict | None) -> Result:
    """Return the result for the candidate from the verdicts on throughput and p95.

    It is worse if one of them is certainly worse. It is not worse if the throughput is certainly not slower by MARGIN.
    If MARGIN is not certain, WIDEST takes its place. An undecided p95 does not change the result, because a tail needs
    more rounds.
    """
    if is_slower(throughput) or (p95 is not None and is_slower(p95)):
        return Result.WORSE
    return Result.NO_WORSE if certain_margin(throughput) <= WIDEST else Result.UNKNOWN


def overall(compared: Sequence[ComparedWorkload]) -> Result:
    """Worse if one workload is worse, broken after an error, no worse if all are no worse, otherwise unknown."""
    results = {item.result for item in compared}
    for result in (Result.WORSE, Result.BROKEN):
        if result in results:
            return result
    return Result.NO_WORSE if results == {Result.NO_WORSE} else Result.UNKNOWN


def test_of(workload: object) -> str:
    """The test name of a workload (or of its name) in the results."""
    return f"{COMMAND}::{workload}"


@dataclasses.dataclass(frozen=True)
class ComparedRow:
    """The row of a workload and metric."""

    workload: str
    """Name of the workload."""

    metric: str
    """The metric; empty for a workload without an answer."""

    figures: tuple[str, str, str]
    """The medians of baseline and candidate, and the ratio with its interval."""

    result: Result | None
    """The result of this metric; None for a comparison without a claim."""

    verdict: str
    """The verdict in one to three words."""

    detail: str = ""
    """The certain margin, or why there is no verdict; empty for neither."""

    @property
    def claimed(self) -> str:
        """The metric of the claim whose rounds the row shows: ``p95`` of ``p95:order``."""
        return self.metric.partition(":")[0]

    @property
    def state(self) -> str:
        """The result as a word of ``states.SYMBOLS``."""
        return states.COMPARED if self.result is None else STATES[OUTCOMES[self.result]]

    @property
    def text(self) -> str:
        """Verdict and detail."""
        if not self.detail:
            return self.verdict
        open_or_worse = self.result in (Result.WORSE, Result.UNKNOWN)
        return f"{self.verdict}: {self.detail}" if open_or_worse else f"{self.verdict} ({self.detail})"


def columns(names: tuple[str, ...]) -> tuple[str, ...]:
    """The heading of each column of ``rows``. names: baseline and candidate."""
    return ("workload", "", *names, "ratio (99.9 %)", "")


def rows(compared: Sequence[ComparedWorkload]) -> list[ComparedRow]:
    """One row for each workload and metric, and below p95 one for each type of transaction.

    A ratio above 1 means that the candidate is faster.
    """
    made = []
    for item in compared:
        if item.throughput is None:
            made.append(_row_without_answer(item, ""))
            continue
        made.append(_row(item.workload, item.throughput, item.closer))
        if item.p95 is not None:
            made.append(_row(item.workload, item.p95))
            made += [_row_without_claim(item.workload, one) for one in item.p95.transactions]
        elif item.reason:
            made.append(_row_without_answer(item, TAIL))
    return made


def _row_without_answer(item: ComparedWorkload, metric: str) -> ComparedRow:
    return ComparedRow(item.workload, metric, (NOTHING, NOTHING, NOTHING), Result.UNKNOWN, "no answer", item.reason)


def _row_without_claim(workload: str, compared: ComparedTransaction) -> ComparedRow:
    figures = (*compared.medians, compared.ratio)
    return ComparedRow(workload, compared.metric, figures, None, states.COMPARED, compared.remark)


def _row(workload: str, answer: MetricAnswer, closer: MetricAnswer | None = None) -> ComparedRow:
    """The row of an answer. closer: the answer after all rounds, whose figures are shown."""
    shown, verdict = closer or answer, answer.verdict
    figures = (*shown.medians, _ratio_text(shown.verdict, verdict))
    if is_slower(verdict):
        return ComparedRow(workload, shown.metric, figures, Result.WORSE, "worse")
    held = verdict.outcome is Outcome.HOLDS
    if held and max(verdict.low, shown.verdict.low) * math.exp(-verdict.claim.apart) > 1:
        return ComparedRow(workload, shown.metric, figures, Result.NO_WORSE, "faster")
    margin, equal = certain_margin(verdict), equal_margin(verdict, shown.verdict)
    if margin <= WIDEST:
        detail = _no_difference(equal) if equal <= WIDEST else f"less than {100 * margin:.2g} % slower"
        return ComparedRow(workload, shown.metric, figures, Result.NO_WORSE, "no worse", detail)
    why = f"it may be up to {math.ceil(round(100 * margin, 6))} % slower" if held else verdict.reason
    return ComparedRow(workload, shown.metric, figures, Result.UNKNOWN, "could not tell", why)


def _ratio_text(verdict: Verdict, guard: Verdict) -> str:
    """The ratio with its interval; if it has none yet, with the 90 % interval of the guard."""
    ends = guard.decided_low, guard.decided_high
    if (verdict.low, verdict.high) != (0, math.inf) or ends == (0, math.inf):
        return wording.estimate(verdict)
    return f"{wording.ratio(verdict)} (90 %: {wording.interval(guard, ends)})"


def remarks(compared: Sequence[ComparedWorkload]) -> list[str]:
    """The remarks below the rows."""
    return [f"{item.workload}: {item.remark}" for item in compared if item.remark]


def sentence(compared: Sequence[ComparedWorkload], names: tuple[str, ...]) -> str:
    """The answer in one sentence, with the workloads that decide it. names: baseline and candidate."""
    result = overall(compared)
    text = ENDS[result].format(baseline=names[0], candidate=names[1])
    if result is Result.NO_WORSE:
        return f"{text}: {'; '.join(map(_in_words, compared))}"
    named = ", ".join(f"{item.workload}{_exclusion(item)}" for item in compared if item.result is result)
    return f"{text}: {named}"


def _no_difference(margin: float) -> str:
    return f"no difference of {math.ceil(round(1000 * margin, 6)) / 10:g} % or more"


def _exclusion(item: ComparedWorkload) -> str:
    """How large a difference an open answer still excludes, ``(at most 30 % slower, at most 1.34x as fast)``.

    It comes from the interval after all rounds. Empty for another result, without such an interval, and if this machine
    cannot decide the claim.
    """
    if item.throughput is None or item.result is not Result.UNKNOWN or not _is_decidable(item.throughput.verdict):
        return ""
    verdict = (item.closer or item.throughput).verdict
    apart, ends = math.exp(item.throughput.verdict.claim.apart), []
    if verdict.low > 0:
        ends.append(f"at most {math.ceil(100 * (1 - verdict.low / apart))} % slower")
    if verdict.high < math.inf:
        ends.append(f"at most {formatting.ratio(verdict.high * apart, [1.0])} as fast")
    return f" ({', '.join(ends)})" if ends else ""


def _in_words(item: ComparedWorkload) -> str:
    """The words of a no-worse result about one workload: ``1.27x as fast on tpcc w1 t4, p95 not known``."""
    assert item.throughput is not None
    verdict = item.throughput.verdict
    closer = verdict if item.closer is None else item.closer.verdict
    ratio, apart = formatting.ratio(closer.ratio, [1.0]), math.exp(-verdict.claim.apart)
    if max(verdict.low, closer.low) * apart > 1:
        said = f"{ratio} as fast on {item.workload}"
    elif verdict.decided_low * apart > 1:
        said = f"no slower on {item.workload} (measured {ratio})"
    elif (margin := equal_margin(verdict, closer)) <= WIDEST:
        said = f"{_no_difference(margin)} on {item.workload} (measured {ratio})"
    else:
        said = f"less than {100 * certain_margin(verdict):.2g} % slower on {item.workload} (measured {ratio})"
    told = item.p95 is not None and certain_margin(item.p95.verdict) <= WIDEST
    asked = item.p95 is not None or bool(item.reason)
    return f"{said}, p95 not known" if asked and not told else said


@dataclasses.dataclass(frozen=True)
class EffectDifferences:
    """The differences of the running servers."""

    columns: tuple[str, ...]
    """The heading of each column of ``rows``."""

    rows: tuple[tuple[str, ...], ...]
    """The server variables with two values, each with both values."""

    notes: tuple[str, ...]
    """The variables of only one server, which are counted, and what a commit guarantees if it differs."""


def differences(
    variables: Mapping[str, tuple[str, str]], durability: Mapping[str, str], names: tuple[str, ...]
) -> EffectDifferences:
    """Each variable with both values, and what a commit guarantees.

    Variables of only one server are counted, because another release has dozens of them.

    variables: by name, the values of baseline and candidate. durability: by variant. names: baseline and candidate.
    """
    both = [
        (name, *map(_shorten, pair)) for name, pair in sorted(variables.items()) if all(pair) and _is_behaviour(name)
    ]
    notes = []
    for side, name in enumerate(names):
        if own := [variable for variable, pair in variables.items() if pair[side] and not pair[1 - side]]:
            notes.append(
                f"only {name} has a value for {quantity(len(own), 'variable')}: {_shorten(', '.join(sorted(own)))}"
            )
    if len(set(durability.values())) > 1:
        notes.append(f"a commit guarantees: {'; '.join(f'{name} {durability[name]}' for name in names)}")
    return EffectDifferences(("variable", *names), tuple(both), tuple(notes))


def _is_behaviour(variable: str) -> bool:
    """Whether a variable is about the behaviour of a server, and not only about its place or version."""
    return not variable.startswith(("version_", "performance_schema_max_")) and not variable.endswith("dir")


def _shorten(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."
