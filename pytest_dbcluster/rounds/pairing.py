"""Pairs of rounds: the rounds of two variants as the data of a claim."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pytest_dbcluster.claims.block_order import PER_OPENING
from pytest_dbcluster.claims.carry_over import Placed
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.rounds.round import Round

Values = tuple[Sequence[float], Sequence[float]]


def pairs_of(
    candidate: Sequence[Round], baseline: Sequence[Round], values: Values, *, instances: int = 1, counts: bool = False
) -> Pairs:
    """The pairs of these rounds, of which the n-th of both variants are one pair.

    values: of each round of (candidate, baseline) what is compared, at least 0: a speed, the higher is the faster, or a
    counter with ``counts``. The order comes from the rounds' blocks and positions; a block with four rounds of each
    variant is an opening block. Raises ValueError as ``Pairs.of`` does.
    """
    lengths = Counter(done.block for done in baseline)
    return Pairs.of(
        *values,
        baseline_first(candidate, baseline),
        openings=sum(length == PER_OPENING for length in lengths.values()),
        instances=instances,
        counts=counts,
    )


def rounding(candidate: Sequence[Round], baseline: Sequence[Round]) -> tuple[float, ...]:
    """By how much the log ratio of each pair may be wrong, because tools print times in steps; empty where none does.

    Each of both times may be off by half a step, in opposite directions.
    """
    if not any(done.outcome.resolution for done in (*candidate, *baseline)):
        return ()
    return tuple(_half_step(one) + _half_step(other) for one, other in zip(candidate, baseline, strict=True))


def _half_step(done: Round) -> float:
    """Half a step of the time of a round, as a log ratio; infinite where the round took no longer."""
    share = done.outcome.resolution / 2 / done.seconds
    return -math.log1p(-share) if share < 1 else math.inf


def baseline_first(candidate: Sequence[Round], baseline: Sequence[Round]) -> tuple[bool, ...]:
    """For each pair of these rounds whether the baseline's ran first."""
    ran = zip(baseline, candidate, strict=True)
    return tuple((first.block, first.position) < (second.block, second.position) for first, second in ran)


def placed(
    rounds: Sequence[Sequence[Round]], log_times: Mapping[int, Sequence[float]], void: Iterable[Round] = ()
) -> list[Placed]:
    """The rounds of the variants in ``log_times``, as they ran, each with the variant that ran before it.

    rounds: by variant (0-based number), of all variants. log_times: by variant, the natural log of the time of each
    round. void: what ran and did not count. What ran before is not known of the first round, and where a void round
    had the same place.
    """
    again = {(done.block, done.position) for done in void}
    ran = sorted(
        (done.block, done.position, variant, index)
        for variant, of_variant in enumerate(rounds)
        for index, done in enumerate(of_variant)
    )
    found: list[Placed] = []
    before: int | None = None
    for block, position, variant, index in ran:
        if variant in log_times:
            after = None if (block, position) in again else before
            found.append(Placed(variant, after, block, log_times[variant][index]))
        before = variant
    return found
