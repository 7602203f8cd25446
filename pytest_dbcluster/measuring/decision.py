"""Ask a claim: draw blocks of rounds until the claim is decided."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence

from pytest_dbcluster.claims import estimators, verdict
from pytest_dbcluster.claims.claim import Claim, Verdict
from pytest_dbcluster.claims.critical_values import LOOKS
from pytest_dbcluster.errors import Inconclusive
from pytest_dbcluster.measuring import reach
from pytest_dbcluster.measuring.answer import Answer, Compared
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.rounds import load_generator, metrics, open_loop

UNTIMED = ("lower", verdict.STALLS_KIND)  # claims that compare no speeds or latencies
SHOWN_PAIRS = 20  # the cap when no verdict can be trusted: enough to show an estimate


def ask(
    claim: Claim,
    measurement: Measurement,
    numbers: Sequence[int],
    metric: str,
    *,
    cap: int | None = None,
    asserted: bool = True,
) -> Answer:
    """Draw blocks until the claim is decided, check the clusters, and return the answer.

    numbers: the 0-based variants: candidate and baseline, or all variants of an order, fastest first. cap: a lower
    maximum of pairs than the run's. asserted: False for a comparison without a claim. Pairs that another claim has
    drawn are replayed look by look, so the order of the claims in a test changes no verdict. When no verdict can be
    trusted on this machine, it draws at most 20 pairs, to show an estimate. Raises SeriesVoid for too many void blocks
    or a failed check. Raises Inconclusive when the run's time is used before the first block, and when the warm-up
    shows that the budget ends before the first look.
    """
    rules, source = measurement.rules, measurement.source
    cap = min(cap or rules.cap, rules.cap)
    untrusted = source.blind_spot(claim.kind, *numbers) if claim.kind != "lower" else ""
    untrusted = untrusted or metrics.near_capacity(metric, source.arrival_rate)
    untrusted = untrusted or measurement.below_floor(claim, numbers[-1], metric)
    cap = min(cap, SHOWN_PAIRS) if untrusted else cap
    if asserted and not untrusted and (why := measurement.too_slow(claim, numbers)):
        raise Inconclusive(f"{source.load}: {claim.kind} cannot be decided: {why}")
    estimate: tuple[float, float, float] | None = None
    judged = functools.partial(_judged, claim, measurement, numbers, metric, cap, untrusted)
    decided = judged(measurement.over(numbers), drawn_before=True) if measurement.pairs else None
    while decided is None:
        try:
            measurement.draw(numbers, estimate, cap)
        except Inconclusive as error:  # the run's time was used while it waited for the machine
            if not measurement.pairs:
                raise
            decided = judged(str(error))
            continue
        decided = judged(measurement.over(numbers))
        if measurement.pairs in LOOKS and len(numbers) == 2:
            estimate = _so_far(measurement, numbers, metric)
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
        bottleneck = load_generator.mark({variant.name: variant.rounds for variant in variants})
        decided = load_generator.trusted(decided, bottleneck)
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
    untrusted: str,
    over: str,
    *,
    drawn_before: bool = False,
) -> Verdict | None:
    """The verdict after the pairs drawn so far, None to draw on; ``drawn_before`` replays the looks one by one.

    ``over`` says why drawing must end now, ``untrusted`` why no verdict can be trusted; empty for no reason.
    """
    look = reach.first_look(claim, measurement.rules.alpha)
    if over and measurement.pairs < look and claim.kind != verdict.STALLS_KIND and measurement.spent(numbers):
        needed = look * measurement.seconds(numbers) / measurement.pairs
        over = f"{over}; the first look comes after {look} pairs, which take {needed:.0f} s"
    late = next(filter(None, (open_loop.above_capacity(measurement.rounds[number]) for number in numbers)), "")
    if late and metrics.unit(metric) == metrics.LATENCY:
        untrusted, over = untrusted or late, over or late
    terms = verdict.Terms(measurement.rules.alpha, cap, over, untrusted)
    if claim.kind == "ordered":
        steps = [_ratios(measurement, pair, metric) for pair in itertools.pairwise(numbers)]
        judge_order = verdict.replay_ordered if drawn_before else verdict.judge_ordered
        return judge_order(steps[::-1], terms, step=claim.margin)
    candidate, baseline = ([done.cost for done in measurement.rounds[number]] for number in numbers)
    if claim.kind == verdict.STALLS_KIND:
        if over and measurement.pairs < verdict.STALL_PAIRS:
            needed = verdict.STALL_PAIRS * measurement.seconds(numbers) / measurement.pairs
            over = f"{over}; the only look comes after {verdict.STALL_PAIRS} pairs, which take {needed:.0f} s"
            terms = dataclasses.replace(terms, out_of_budget=over)
        return verdict.judge_stalls(candidate, baseline, terms)
    judge = verdict.replay if drawn_before else verdict.judge
    return judge(
        claim,
        _ratios(measurement, numbers, metric),
        terms,
        orders=measurement.baseline_first(numbers[0], numbers[1]),
        times=(baseline, candidate),
    )


def _ratios(measurement: Measurement, numbers: Sequence[int], metric: str) -> list[float]:
    """log(candidate / baseline) of each pair of rounds."""
    candidate, baseline = (measurement.compared(number, metric) for number in numbers)
    return [estimators.log_ratio(*values) for values in zip(candidate, baseline, strict=True)]


def _so_far(measurement: Measurement, numbers: Sequence[int], metric: str) -> tuple[float, float, float]:
    """The ratio of the pairs drawn so far, and the two ends of its sequential interval."""
    ratios = _ratios(measurement, numbers, metric)
    low, high = estimators.interval(ratios, measurement.rules.alpha)
    return estimators.factor(estimators.hodges_lehmann(ratios)), estimators.factor(low), estimators.factor(high)
