"""Answer: a claim that has been asked, with its verdict. Its truth is read with ``assert``."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_dbcluster.claims import estimators, stalls, verdict
from pytest_dbcluster.claims.claim import Claim
from pytest_dbcluster.claims.critical_values import LOOKS
from pytest_dbcluster.claims.verdict import Outcome, Verdict
from pytest_dbcluster.claims.wording import message
from pytest_dbcluster.errors import ClaimFailed, Undecided
from pytest_dbcluster.rounds import load_generator, metrics, open_loop

if TYPE_CHECKING:
    from pytest_dbcluster.measuring.measurement import Measurement, Series

UNTIMED = ("lower", stalls.KIND)  # kinds of claims whose answer is no ratio of times
BLIND_PAIRS = 20  # enough to show what was seen, where it cannot be trusted however much is drawn


@dataclasses.dataclass(eq=False)
class Answer:
    """A claim with its verdict. ``bool`` of it is True, or raises ClaimFailed or Undecided: never False.

    So ``assert not a.beats(b)`` is never a pass. ``series`` are candidate and baseline, or all of an order,
    fastest first. ``read`` says whether anybody has looked; a verdict that nobody read is an error of the test.
    """

    claim: Claim
    verdict: Verdict
    series: tuple[Series, ...]
    metric: str
    asserted: bool = True
    notes: Sequence[str] = ()
    read: bool = False

    @property
    def measurement(self) -> Measurement:
        """The measurement it was asked of."""
        return self.series[0].measurement

    @property
    def compared(self) -> tuple[Series, Series]:
        """Candidate and baseline; of an order its weakest neighbours, whose ratio the verdict gives."""
        steps = self.verdict.neighbours
        fast = len(steps) - 1 - verdict.weakest(steps) if steps else 0
        return self.series[fast], self.series[fast + 1]

    @property
    def text(self) -> str:
        """The claim as a test writes it."""
        names = tuple(item.name for item in self.series)
        ordered = tuple(reversed(names)) if self.claim.kind == "ordered" else names
        return self.claim.call(ordered, self.metric, self.measurement.metric)

    @property
    def message(self) -> str:
        """The whole text: ratio, interval, claim, smallest detectable difference, noise, seed."""
        found = self.verdict
        shown = self.series[::-1] if self.claim.kind == "ordered" else self.series
        used = [item.rounds[: found.pairs] for item in shown]
        rounds = [one for many in used for one in many]
        seconds = sum(one.seconds for one in rounds)
        values = [statistics.median(item.values(self.metric)[: found.pairs] or [math.nan]) for item in shown]
        return message(
            found,
            names=tuple(item.name for item in shown),
            metric=self.metric,
            usual=self.measurement.metric,
            seconds_per_round=seconds / max(1, len(rounds)),
            seed=self.measurement.rules.seed,
            absolute=(values[0], values[1]) if len(values) == 2 else None,
            settle_timeouts=sum(not one.settled for one in rounds),
            unit=metrics.unit(self.metric),
            seconds=seconds,
            extra=self.notes,
        )

    def __bool__(self) -> bool:
        self.read = True
        if not self.asserted or self.verdict.outcome is Outcome.HOLDS:
            return True
        if self.verdict.outcome is Outcome.FAILS:
            raise ClaimFailed(self.message)
        raise Undecided(self.message)

    def __repr__(self) -> str:
        return f"<{self.text}: {self.verdict.outcome.value}>"


def ask(
    claim: Claim, series: Sequence[Series], metric: str, *, cap: int | None = None, asserted: bool = True
) -> Answer:
    """Draw blocks until the claim is decided, check the clusters, and give the answer.

    ``series`` are candidate and baseline, or all variants of an order, fastest first. Pairs that are there
    already are replayed look by look, so it makes no difference which claim was asked first. Raises SeriesVoid.
    """
    measurement = series[0].measurement
    numbers = [item.number for item in series]
    rules = measurement.rules
    cap = min(cap or rules.cap, rules.cap)
    blind = measurement.laboratory.blind(claim.kind, *numbers) if claim.kind != "lower" else ""
    blind = blind or metrics.near_capacity(metric, measurement.laboratory.pace)
    blind = blind or measurement.below_floor(claim, numbers[-1], metric)
    cap = min(cap, BLIND_PAIRS) if blind else cap
    shown: tuple[float, float, float] | None = None
    judged = functools.partial(_judged, claim, series, metric, cap, blind)
    found = judged(measurement.over(numbers), drawn_before=True) if measurement.pairs else None
    while found is None:
        measurement.draw(numbers, shown, cap)
        found = judged(measurement.over(numbers))
        if measurement.pairs in LOOKS and len(series) == 2:
            shown = _so_far(series, metric, rules.alpha)
    measurement.check()
    if claim.kind not in UNTIMED:
        found = load_generator.trusted(
            found, load_generator.mark({item.name: item.rounds[: found.pairs] for item in series})
        )
    notes = measurement.notes(series, metric, found.pairs)
    answer = Answer(claim, found, tuple(series), metric, asserted, notes)
    measurement.finish(answer)
    return answer


def _judged(
    claim: Claim,
    series: Sequence[Series],
    metric: str,
    cap: int,
    blind: str,
    over: str | None,
    *,
    drawn_before: bool = False,
) -> Verdict | None:
    """The verdict after the pairs that there are; with ``drawn_before`` that of the first look at them."""
    measurement, alpha = series[0].measurement, series[0].measurement.rules.alpha
    late = next(filter(None, (open_loop.above_capacity(one.rounds) for one in series)), "")
    if late and metrics.unit(metric) == metrics.LATENCY:
        blind, over = blind or late, over or late
    if claim.kind == "ordered":
        steps = [_ratios(fast, slow, metric) for fast, slow in itertools.pairwise(series)]
        answer = verdict.replay_ordered if drawn_before else verdict.judge_ordered
        return answer(steps[::-1], step=claim.margin, alpha=alpha, cap=cap, out_of_budget=over, blind=blind)
    candidate, baseline = ([item.cost for item in one.rounds] for one in series)
    if claim.kind == stalls.KIND:
        if over and measurement.pairs < stalls.PAIRS:
            needed = stalls.PAIRS * measurement.seconds([one.number for one in series]) / measurement.pairs
            over = f"{over}, and its one look after {stalls.PAIRS} pairs takes {needed:.0f} s"
        return stalls.judge_stalls(candidate, baseline, alpha=alpha, cap=cap, out_of_budget=over, blind=blind)
    answer_one = verdict.replay if drawn_before else verdict.judge
    return answer_one(
        claim,
        _ratios(series[0], series[1], metric),
        alpha=alpha,
        orders=measurement.baseline_first(series[0].number, series[1].number),
        cap=cap,
        out_of_budget=over,
        blind=blind,
        times=(baseline, candidate),
    )


def _ratios(candidate: Series, baseline: Series, metric: str) -> list[float]:
    both = zip(candidate.compared(metric), baseline.compared(metric), strict=True)
    return [estimators.log_ratio(one, other) for one, other in both]


def _so_far(series: Sequence[Series], metric: str, alpha: float) -> tuple[float, float, float]:
    ratios = _ratios(series[0], series[1], metric)
    low, high = estimators.interval(ratios, alpha)
    return estimators.factor(estimators.hodges_lehmann(ratios)), estimators.factor(low), estimators.factor(high)
