"""Intervals of a quantile from independent repetitions."""

from __future__ import annotations

import math
import random

import pytest

from pytest_dbcluster.claims.repetitions import order_statistics
from pytest_dbcluster.claims.repetitions.samples import Repetitions

SIX = Repetitions((6.04, 6.26, 6.1, 6.2, 6.08, 6.15))


@pytest.mark.parametrize(("share", "level", "needed"), [(0.5, 0.0005, 11), (0.5, 0.025, 6), (0.9, 0.025, 36)])
def test_the_repetitions_that_a_level_needs(share, level, needed):
    """Eleven for the median at .0005, six for its 95 % interval."""
    assert order_statistics.repetitions_needed(share, level) == needed
    assert share**needed <= level < share ** (needed - 1)


@pytest.mark.parametrize(("times", "level"), [(5, None), (6, 0.025), (10, 0.025), (11, 0.0005), (30, 0.0005)])
def test_the_level_follows_from_the_planned_repetitions(times, level):
    """It is known before the first one, so nobody chooses it from the values."""
    assert order_statistics.level_of(times, 0.5, 0.0005) == level


def test_six_values_bound_the_median_by_the_smallest_and_the_largest():
    """Nine values drop one at each end."""
    nine = Repetitions(tuple(map(float, range(1, 10))))

    assert order_statistics.interval(SIX, 0.5, 0.025) == (6.04, 6.26)
    assert order_statistics.interval(nine, 0.5, 0.025) == (2.0, 8.0)


def test_too_few_values_bound_nothing():
    """An end without a bound is 0 or infinite."""
    assert order_statistics.interval(SIX, 0.5, 0.0005) == (0.0, math.inf)
    assert order_statistics.interval(Repetitions(()), 0.5, 0.025) == (0.0, math.inf)


def test_a_lower_bound_is_infinite_at_the_upper_end():
    """A stall that lasted until the load ended may have been longer than all others."""
    censored = Repetitions((6.0, 6.1, 6.2, 6.3, 6.4, 5.0), (False,) * 5 + (True,))

    assert order_statistics.interval(censored, 0.5, 0.025) == (5.0, math.inf)


def test_the_estimate_is_the_quantile_of_the_values():
    """The median, or the value that nine of ten do not exceed."""
    assert order_statistics.quantile(SIX, 0.5) == pytest.approx(6.125)
    assert order_statistics.quantile(Repetitions(tuple(map(float, range(1, 11)))), 0.9) == 9.0
    assert math.isnan(order_statistics.quantile(Repetitions(()), 0.5))


def test_without_a_loss_the_bound_of_its_chance_is_known():
    """1 - .05 ** (1 / n): 39 % after six repetitions, never 0."""
    assert order_statistics.share_interval(0, 6, 0.05) == (0.0, pytest.approx(1 - 0.05 ** (1 / 6)))
    low, high = order_statistics.share_interval(2, 6, 0.05)
    assert order_statistics.at_least(2, 6, low) == pytest.approx(0.05)
    assert 1 - order_statistics.at_least(3, 6, high) == pytest.approx(0.05)
    assert order_statistics.share_interval(6, 6, 0.05)[1] == 1.0


@pytest.mark.parametrize("draw", [random.Random.random, lambda coin: coin.lognormvariate(0, 2)], ids=["even", "skewed"])
def test_an_interval_misses_the_median_as_rarely_as_it_promises(draw):
    """3000 intervals of six values: each end errs in 1.6 %, whatever the distribution is."""
    coin = random.Random(813)
    truth = 0.5 if draw is random.Random.random else 1.0
    found = [
        order_statistics.interval(Repetitions(tuple(draw(coin) for _ in range(6))), 0.5, 0.025) for _ in range(3000)
    ]

    assert sum(low > truth for low, _ in found) / 3000 == pytest.approx(1 / 64, abs=0.008)
    assert sum(high < truth for _, high in found) / 3000 == pytest.approx(1 / 64, abs=0.008)
