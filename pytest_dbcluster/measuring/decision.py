"""Ask a claim: draw blocks of rounds until its verdict is certain."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence

from pytest_dbcluster.claims import estimators, verdict
from pytest_dbcluster.claims.claim import Claim, Verdict
from pytest_dbcluster.claims.critical_values import LOOKS
from pytest_dbcluster.measuring.answer import Answer, Compared
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.rounds import load_generator, metrics, open_loop

UNTIMED = ("lower", verdict.STALLS_KIND)  # kinds of claims whose answer is no ratio of times
SHOWN_PAIRS = 20  # enough to show what was seen, where it cannot be trusted however much is drawn


def ask(
    claim: Claim,
    measurement: Measurement,
    numbers: Sequence[int],
    metric: str,
    *,
    cap: int | None = None,
    asserted: bool = True,
) -> Answer:
    """Draw blocks until the claim is decided, check the clusters, and give the answer.

    ``numbers`` are the variants: candidate and baseline, or all of an order, fastest first. Pairs that are there
    already are replayed look by look, so it makes no difference which claim was asked first. Raises SeriesVoid.
    """
    rules, source = measurement.rules, measurement.source
    cap = min(cap or rules.cap, rules.cap)
    blind = source.blind_spot(claim.kind, *numbers) if claim.kind != "lower" else ""
    blind = blind or metrics.near_capacity(metric, source.arrival_rate)
    blind = blind or measurement.below_floor(claim, numbers[-1], metric)
    cap = min(cap, SHOWN_PAIRS) if blind else cap
    shown: tuple[float, float, float] | None = None
    judged = functools.partial(_judged, claim, measurement, numbers, metric, cap, blind)
    decided = judged(measurement.over(numbers), drawn_before=True) if measurement.pairs else None
    while decided is None:
        measurement.draw(numbers, shown, cap)
        decided = judged(measurement.over(numbers))
        if measurement.pairs in LOOKS and len(numbers) == 2:
            shown = _so_far(measurement, numbers, metric)
    measurement.check()
    answer = _answer(claim, decided, measurement, numbers, metric, asserted=asserted)
    measurement.finish(answer)
    return answer


def _answer(
    claim: Claim, decided: Verdict, measurement: Measurement, numbers: Sequence[int], metric: str, *, asserted: bool
) -> Answer:
    source, pairs = measurement.source, decided.pairs
    variants = tuple(Compared(number, source.names[number], measurement.rounds[number][:pairs]) for number in numbers)
    if claim.kind not in UNTIMED:
        decided = load_generator.trusted(decided, load_generator.mark({one.name: one.rounds for one in variants}))
    return Answer(
        claim,
        decided,
        variants,
        metric,
        usual=source.metric,
        load=source.load,
        seed=measurement.rules.seed,
        arrival_rate=source.arrival_rate,
        asserted=asserted,
        notes=measurement.notes(numbers, metric, pairs),
        void=measurement.void_blocks(pairs),
    )


def _judged(
    claim: Claim,
    measurement: Measurement,
    numbers: Sequence[int],
    metric: str,
    cap: int,
    blind: str,
    over: str,
    *,
    drawn_before: bool = False,
) -> Verdict | None:
    """The verdict after the pairs that there are; with ``drawn_before`` that of the first look at them."""
    late = next(filter(None, (open_loop.above_capacity(measurement.rounds[number]) for number in numbers)), "")
    if late and metrics.unit(metric) == metrics.LATENCY:
        blind, over = blind or late, over or late
    terms = verdict.Terms(measurement.rules.alpha, cap, over, blind)
    if claim.kind == "ordered":
        steps = [_ratios(measurement, pair, metric) for pair in itertools.pairwise(numbers)]
        answer = verdict.replay_ordered if drawn_before else verdict.judge_ordered
        return answer(steps[::-1], terms, step=claim.margin)
    candidate, baseline = ([done.cost for done in measurement.rounds[number]] for number in numbers)
    if claim.kind == verdict.STALLS_KIND:
        if over and measurement.pairs < verdict.STALL_PAIRS:
            needed = verdict.STALL_PAIRS * measurement.seconds(numbers) / measurement.pairs
            over = f"{over}, and its one look after {verdict.STALL_PAIRS} pairs takes {needed:.0f} s"
            terms = dataclasses.replace(terms, out_of_budget=over)
        return verdict.judge_stalls(candidate, baseline, terms)
    answer_one = verdict.replay if drawn_before else verdict.judge
    return answer_one(
        claim,
        _ratios(measurement, numbers, metric),
        terms,
        orders=measurement.baseline_first(numbers[0], numbers[1]),
        times=(baseline, candidate),
    )


def _ratios(measurement: Measurement, numbers: Sequence[int], metric: str) -> list[float]:
    """The log ratio of each pair of rounds: candidate by baseline."""
    candidate, baseline = (measurement.compared(number, metric) for number in numbers)
    return [estimators.log_ratio(one, other) for one, other in zip(candidate, baseline, strict=True)]


def _so_far(measurement: Measurement, numbers: Sequence[int], metric: str) -> tuple[float, float, float]:
    """Ratio, low and high of the pairs drawn so far."""
    ratios = _ratios(measurement, numbers, metric)
    low, high = estimators.interval(ratios, measurement.rules.alpha)
    return estimators.factor(estimators.hodges_lehmann(ratios)), estimators.factor(low), estimators.factor(high)
