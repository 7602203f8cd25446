"""The interval of the difference of two variants, in seconds, from blocks of repetitions in random order.

A block has seven repetitions of each variant, in one of 3432 arrangements that are equally likely. Let the candidate be
shorter by exactly b seconds. Then its values plus b and those of the baseline are fixed numbers. Only the arrangement
is random. So the statistic is Mann-Whitney's U, summed over the blocks, and its distribution is counted exactly.
A value of b is rejected if too few differences inside the blocks lie on one side of it.

The first block decides only if all its 49 differences lie on one side: an error of 1 in 3432. The later looks share
what is left of ``alpha`` equally. The number of repetitions says how many looks there are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from pytest_dbcluster.claims.repetitions.samples import Repetitions

PER_BLOCK = 7  # repetitions of each variant in a block
MOST_BLOCKS = 3
LOOKS = tuple(PER_BLOCK * block for block in range(1, MOST_BLOCKS + 1))  # numbers of repetitions of a variant
SHORTEST = 0.01  # seconds: shorter values count as equal


@functools.cache
def arrangements(block: int, others: int) -> tuple[int, ...]:
    """By U, the number of arrangements of two groups of these sizes (the Gaussian binomial coefficients)."""
    if not block or not others:
        return (1,)
    counts = [0] * (block * others + 1)
    for at, number in enumerate(arrangements(block, others - 1)):
        counts[at] += number
    for at, number in enumerate(arrangements(block - 1, others)):
        counts[at + others] += number
    return tuple(counts)


@functools.cache
def chances(blocks: int) -> tuple[float, ...]:
    """By U, the chance that the sum over so many blocks is at most U."""
    counts = [1]
    for _ in range(blocks):
        of_block = arrangements(PER_BLOCK, PER_BLOCK)
        longer = [0] * (len(counts) + len(of_block) - 1)
        for one, number in enumerate(counts):
            for other, times in enumerate(of_block):
                longer[one + other] += number * times
        counts = longer
    total, below, found = sum(counts), 0, []
    for number in counts:
        below += number
        found.append(below / total)
    return tuple(found)


def critical_values(blocks: int, alpha: float) -> tuple[int | None, ...]:
    """For each look, the largest U that rejects; None if the look cannot decide.

    blocks: the number of blocks that are planned, each of which ends with a look. The chances of all looks together are
    at most ``alpha``.
    """
    left, found = alpha, list[int | None]()
    for look in range(1, blocks + 1):
        level = left if look == 1 else left / (blocks - look + 1)
        reached = [u for u, chance in enumerate(chances(look)) if chance <= level]
        found.append(max(reached, default=None))
        left -= chances(look)[found[-1] or 0] if reached else 0.0
    return tuple(found)


def can_decide(blocks: int, alpha: float) -> bool:
    """Whether any look of so many blocks can decide."""
    return any(value is not None for value in critical_values(blocks, alpha))


def differences(candidate: Repetitions, baseline: Repetitions) -> tuple[list[float], list[float]]:
    """The differences baseline - candidate inside each block, in rising order: the smallest and the largest possible.

    They differ for values that are lower bounds.
    """

    def of(longer: Sequence[float], shorter: Sequence[float]) -> list[float]:
        return sorted(
            max(SHORTEST, one) - max(SHORTEST, other)
            for start in range(0, len(longer), PER_BLOCK)
            for one in longer[start : start + PER_BLOCK]
            for other in shorter[start : start + PER_BLOCK]
        )

    return of(baseline.values, candidate.most), of(baseline.most, candidate.values)


def interval(candidate: Repetitions, baseline: Repetitions, critical: int | None) -> tuple[float, float]:
    """The differences in seconds that a look does not reject. critical: of the look, as in ``critical_values``."""
    if critical is None:
        return -math.inf, math.inf
    least, most = differences(candidate, baseline)
    return least[critical], most[-1 - critical]


def estimate(candidate: Repetitions, baseline: Repetitions) -> float:
    """The median of all differences inside the blocks, in seconds; nan without repetitions. Lower bounds count."""
    rising = sorted(
        max(SHORTEST, one) - max(SHORTEST, other)
        for start in range(0, len(candidate), PER_BLOCK)
        for one in baseline.values[start : start + PER_BLOCK]
        for other in candidate.values[start : start + PER_BLOCK]
    )
    if not rising:
        return math.nan
    return (rising[(len(rising) - 1) // 2] + rising[len(rising) // 2]) / 2
