"""The guards of a comparison: which margin is claimed, and whether the time suffices for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Claim
from pytest_dbcluster.claims.cluster_difference import ONE_IN, percent
from pytest_dbcluster.errors import Inconclusive
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.drawing import reach
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.measuring.series import Series, ask_or_recall, series_of
from pytest_dbcluster.reporting.tables.no_worse import MARGIN, TAIL, WIDEST

ROOM = 1.1  # a wider margin / the difference of equal clusters, as log ratios
CLOSER_SECONDS = 15.0  # measured seconds that the interval of a ratio may take, once the guard is decided
CANDIDATE, BASELINE = 1, 0

# Claims a margin of the candidate and the baseline.
Asks = Callable[[Series, Series, float], Answer]


def no_slower(measurement: Measurement, metric: str | None) -> Answer:
    """Claim that the candidate is not slower by ``MARGIN``.

    The margin is ``WIDEST`` if equal clusters can differ by ``MARGIN``. That of a latency can be wider, which can show
    a large difference. Raises Inconclusive if the throughput of equal clusters can differ by ``WIDEST``. It
    raises it too if the time is too short for the first look.
    """
    difference = measurement.source.cluster_difference(CANDIDATE, BASELINE, metric=metric or measurement.metric)
    wider = [] if difference is None or metric is None else [-math.expm1(-ROOM * difference.bound)]

    def ask(candidate: Series, baseline: Series, margin: float) -> Answer:
        return candidate.no_slower_than(baseline, by=margin, metric=metric)

    means = f"no worse means slower by {100 * WIDEST:.0f} % at most"
    return _narrowest(measurement, metric, [MARGIN, WIDEST, *wider], kinds.no_slower_than, ask, means)


def tail_cap(measurement: Measurement) -> int:
    """The maximum number of pairs for p95 on the clusters of a measurement.

    If equal clusters can differ by more than ``WIDEST``, only a larger difference of p95 can be shown. The cap is the
    first look at which it can.
    """
    difference = measurement.source.cluster_difference(CANDIDATE, BASELINE, metric=TAIL)
    only_large = difference is not None and difference.bound > -math.log1p(-WIDEST)
    return _first_look(measurement) if only_large else measurement.rules.cap


def closer(measurement: Measurement) -> Answer:
    """The ratio of the throughputs; it draws a few more rounds if they may show that it is not 1."""
    pairs, look = measurement.pairs, _first_look(measurement)
    seconds = measurement.drawing.blocks.seconds((BASELINE, CANDIDATE))
    soon = not pairs or ((look - pairs) * seconds / pairs <= CLOSER_SECONDS and _on_one_side(measurement))
    question = Question(kinds.differs(), CANDIDATE, BASELINE, measurement.metric, asserted=False)
    answer = ask_or_recall(question, measurement, cap=max(pairs, look if soon else 1))
    answer.report()  # no test reads it
    return answer


def _on_one_side(measurement: Measurement) -> bool:
    """Whether all pairs so far show the same variant as faster, by more than equal clusters can differ.

    With few pairs an interval excludes 1 only if almost all of them do (``critical_values``).
    """
    metric = measurement.metric
    difference = measurement.source.cluster_difference(CANDIDATE, BASELINE, metric=metric)
    ratios, apart = measurement.values.pairs(CANDIDATE, BASELINE, metric).ratios, difference.bound if difference else 0
    return min(ratios) > apart or max(ratios) < -apart


def _first_look(measurement: Measurement) -> int:
    """The first look at which a difference can be certain."""
    return reach.first_look_at(measurement.rules.alpha, measurement.drawing.instances)


def same(measurement: Measurement) -> Answer:
    """Claim that candidate and baseline are equally fast; margins and errors are those of ``no_slower``."""

    def ask(candidate: Series, baseline: Series, margin: float) -> Answer:
        return candidate.same_as(baseline, within=margin)

    means = f"equally fast means within {100 * WIDEST:.0f} % at most"
    return _narrowest(measurement, None, [MARGIN, WIDEST], kinds.same_as, ask, means)


def _narrowest(
    measurement: Measurement,
    metric: str | None,
    margins: Sequence[float],
    kind: Callable[[float], Claim],
    ask: Asks,
    means: str,
) -> Answer:
    """Claim the first margin that equal clusters permit. means: what the widest one means, for a message."""
    series = series_of(measurement)
    difference = measurement.source.cluster_difference(CANDIDATE, BASELINE, metric=metric or measurement.metric)
    for margin in margins:
        guard = kind(margin)
        if difference is None or not difference.refuses(guard.kind, guard.margins):
            question = Question(guard, CANDIDATE, BASELINE, metric or measurement.metric)
            if measurement.recall(question) is None:
                _require_time(measurement, guard)
            answer = ask(series[CANDIDATE], series[BASELINE], margin)
            answer.report()  # no test reads it
            measurement.end()
            return answer
    assert difference is not None
    raise Inconclusive(
        f"cannot answer: equal clusters can differ by {percent(difference.bound)} (1 in {ONE_IN}; "
        f"{difference.source}), and {means}; run "
        f"{difference.command or 'dbcluster calibrate'}"
    )


def _require_time(measurement: Measurement, guard: Claim) -> None:
    """Raise Inconclusive if the time of this workload ends before the first look for any length of rounds."""
    rules, source = measurement.rules, measurement.source
    seconds = reach.shortest_round(source.round_seconds, source.free_length)
    if seconds is None:
        return
    look = reach.first_look(guard, rules.alpha, measurement.drawing.instances)
    if why := reach.beyond_budget(look, 2, seconds, rules.budget, given=False, larger=rules.larger_budget):
        raise Inconclusive(why)
