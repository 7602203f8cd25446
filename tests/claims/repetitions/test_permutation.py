"""Intervals of a difference in seconds, from blocks of seven and seven repetitions in random order."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from pytest_dbcluster.claims.repetitions import permutation
from pytest_dbcluster.claims.repetitions.samples import Repetitions

USUAL = Repetitions((6.01, 6.46, 6.2, 6.3, 6.1, 6.4, 6.25))
QUICK = Repetitions((3.06, 3.38, 3.2, 3.1, 3.3, 3.25, 3.15))


def test_the_chances_are_those_of_all_arrangements():
    """Of two groups of three, counted one by one."""
    counts = permutation.arrangements(3, 3)
    every = [
        sum(other < one for one in first for other in set(range(6)) - set(first))
        for first in itertools.combinations(range(6), 3)
    ]

    assert counts == tuple(every.count(u) for u in range(10))


def test_the_first_block_has_3432_arrangements():
    """Its smallest chance is 1 of them."""
    assert permutation.chances(1)[0] == 1 / 3432
    assert permutation.chances(1)[-1] == 1.0
    assert permutation.chances(2)[0] == 1 / 3432**2


@pytest.mark.parametrize("alpha", [0.0005, 0.0001])
@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_all_looks_together_keep_alpha(blocks, alpha):
    """The chances of the looks add up to at most alpha, for any dependence between them."""
    critical = permutation.critical_values(blocks, alpha)
    spent = [permutation.chances(look)[u] for look, u in enumerate(critical, 1) if u is not None]

    assert len(critical) == blocks
    assert 0.0 <= sum(spent) <= alpha
    assert permutation.can_decide(blocks, alpha) is bool(spent)


def test_the_first_look_needs_all_differences_on_one_side():
    """With the smaller alpha it cannot decide at all."""
    assert permutation.critical_values(1, 0.0005) == (0,)
    assert permutation.critical_values(1, 0.0001) == (None,)
    first, second = permutation.critical_values(2, 0.0005)
    assert (first, second > 10) == (0, True)


def test_the_interval_has_the_smallest_and_the_largest_difference():
    """Two of the 49 differences inside the block."""
    low, high = permutation.interval(QUICK, USUAL, 0)

    assert (low, high) == (pytest.approx(6.01 - 3.38), pytest.approx(6.46 - 3.06))
    assert low < permutation.estimate(QUICK, USUAL) < high
    assert permutation.interval(QUICK, USUAL, None) == (-math.inf, math.inf)
    assert math.isnan(permutation.estimate(Repetitions(()), Repetitions(())))


def test_differences_are_taken_inside_blocks():
    """A drift between two blocks is not a difference of the variants."""
    later = Repetitions(tuple(value + 100 for value in USUAL.values))
    least, most = permutation.differences(
        Repetitions(QUICK.values + tuple(value + 100 for value in QUICK.values)),
        Repetitions(USUAL.values + later.values),
    )

    assert len(least) == 98
    assert least == most
    assert max(least) < 4


def test_lower_bounds_make_the_interval_wider():
    """A candidate that may have stalled longer is not certainly shorter, and a baseline may be longer."""
    unknown = (False,) * 6 + (True,)

    assert permutation.interval(Repetitions(QUICK.values, unknown), USUAL, 0)[0] == -math.inf
    assert permutation.interval(QUICK, Repetitions(USUAL.values, unknown), 0)[1] == math.inf
    assert permutation.interval(QUICK, Repetitions(USUAL.values, unknown), 0)[0] == pytest.approx(6.01 - 3.38)


def test_short_values_count_as_equal():
    """Two stalls below .01 s differ by nothing that a timer shows."""
    tiny = Repetitions((0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007))

    assert permutation.interval(tiny, Repetitions((0.009,) * 7), 0) == (0.0, 0.0)


def test_equal_variants_are_told_apart_as_rarely_as_promised():
    """20 000 blocks of fixed values, which stall or not: only the arrangement is drawn."""
    coin = random.Random(37)
    values = [coin.choice((0.3, 6.0)) + coin.random() for _ in range(14)]
    wrong = 0
    for _ in range(20_000):
        coin.shuffle(values)
        low, high = permutation.interval(Repetitions(tuple(values[:7])), Repetitions(tuple(values[7:])), 0)
        wrong += (low > 0) + (high < 0)

    assert 2 <= wrong <= 25  # 2 / 3432 of 20 000 are 11.7
