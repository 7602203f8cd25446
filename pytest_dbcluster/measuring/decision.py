"""Ask a claim: draw blocks of rounds until its verdict is certain."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

from pytest_dbcluster.claims import estimators, verdict
from pytest_dbcluster.claims.claim import Claim
from pytest_dbcluster.claims.critical_values import LOOKS
from pytest_dbcluster.claims.verdict import Verdict
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.measurement import Series
from pytest_dbcluster.rounds import load_generator, metrics, open_loop

UNTIMED = ("lower", verdict.STALLS_KIND)  # kinds of claims whose answer is no ratio of times
SHOWN_PAIRS = 20  # enough to show what was seen, where it cannot be trusted however much is drawn


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
    cap = min(cap, SHOWN_PAIRS) if blind else cap
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
    if claim.kind == verdict.STALLS_KIND:
        if over and measurement.pairs < verdict.STALL_PAIRS:
            needed = verdict.STALL_PAIRS * measurement.seconds([one.number for one in series]) / measurement.pairs
            over = f"{over}, and its one look after {verdict.STALL_PAIRS} pairs takes {needed:.0f} s"
        return verdict.judge_stalls(candidate, baseline, alpha=alpha, cap=cap, out_of_budget=over, blind=blind)
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
