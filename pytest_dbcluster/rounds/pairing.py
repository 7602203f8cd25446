"""Pairs of rounds: the rounds of two variants as the data of a claim."""

from __future__ import annotations

import dataclasses
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
    """The pairs of these rounds. Round n of both variants is pair n.

    ``values`` has one value, 0 or more, for each round of (candidate, baseline): a speed, or a counter with ``counts``.
    The order comes from the rounds' blocks and positions. A block with four rounds of each variant is an opening
    block. Raises ValueError as ``Pairs.of`` does.
    """
    lengths = Counter(done.block for done in baseline)
    return Pairs.of(
        *values,
        baseline_first(candidate, baseline),
        openings=sum(length == PER_OPENING for length in lengths.values()),
        instances=instances,
        counts=counts,
    )


def with_ends(pairs: Pairs, candidate: Sequence[Round], baseline: Sequence[Round]) -> Pairs:
    """The pairs of capacities. A capacity that lies beyond all rates of its round is censored."""
    own, others = (
        tuple(done.capacity.censored if done.capacity else 0 for done in rounds) for rounds in (candidate, baseline)
    )
    return dataclasses.replace(pairs, censored=(own, others), centred=False)


def rounding(candidate: Sequence[Round], baseline: Sequence[Round]) -> tuple[float, ...]:
    """The rounding error of each pair's log ratio, because tools print times in steps; empty if no tool does.

    Both times may be off by half a step, in opposite directions.
    """
    if not any(done.outcome.resolution for done in (*candidate, *baseline)):
        return ()
    return tuple(_half_step(one) + _half_step(other) for one, other in zip(candidate, baseline, strict=True))


def _half_step(done: Round) -> float:
    """Half a step of the time of a round, as a log ratio; infinite if the round is no longer."""
    share = done.outcome.resolution / 2 / done.seconds
    return -math.log1p(-share) if share < 1 else math.inf


def baseline_first(candidate: Sequence[Round], baseline: Sequence[Round]) -> tuple[bool, ...]:
    """Whether the baseline's round ran first, for each pair of these rounds."""
    ran = zip(baseline, candidate, strict=True)
    return tuple((first.block, first.position) < (second.block, second.position) for first, second in ran)


def placements(
    rounds: Sequence[Sequence[Round]], log_times: Mapping[int, Sequence[float]], void: Iterable[Round] = ()
) -> list[Placed]:
    """The rounds of the variants in ``log_times`` in the order they ran, each with the variant that ran before it.

    rounds: the rounds of all variants, by 0-based number. log_times: by variant, the natural log of the time of each
    round. void: rounds that did not count. The variant before is unknown for the first round, and if a void round had
    the same place.
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
