"""The drift guard: its limits, what it finds, and how often it warns without a cause."""

from __future__ import annotations

import math
import random

import pytest

from pytest_dbcluster.reporting.history.drift import DriftPoint, drift


def points(values, error=0.01):
    """Runs with these log ratios."""
    return [DriftPoint(value, error) for value in values]


@pytest.mark.parametrize(("runs", "limit"), [(5, 8.61), (10, 4.781), (30, 4.781)])
def test_the_limit_is_students_t_of_the_runs_that_count(runs, limit):
    """Two-sided .001 with n - 1 degrees of freedom; at most ten earlier runs count."""
    drawn = random.Random(3)
    found = drift(points(drawn.gauss(0, 0.03) for _ in range(runs)), DriftPoint(0.0, 0.01))

    assert found.limit == pytest.approx(limit, abs=0.001)
    assert found.runs == min(runs, 10)


@pytest.mark.parametrize("runs", range(5))
def test_fewer_than_five_runs_give_no_answer(runs):
    """However far the new one is."""
    found = drift(points([0.01 * number for number in range(runs)]), DriftPoint(5.0, 0.01))

    assert (found.has_enough_runs, found.warns, found.runs) == (False, False, runs)


def test_a_large_change_warns_in_either_direction():
    """The change is that of the new run against the mean of the earlier ones."""
    earlier = points([0.6, 0.61, 0.59, 0.605, 0.595, 0.6, 0.61, 0.59])
    for size in (-0.3, 0.3):
        found = drift(earlier, DriftPoint(0.6 + size, 0.01))
        assert found.warns
        assert found.change == pytest.approx(size, abs=0.002)


def test_a_certain_but_small_change_does_not_warn():
    """A change below 5 % is no regression."""
    earlier = points([0.6 + 0.0001 * (number % 3) for number in range(10)])

    assert drift(earlier, DriftPoint(0.6 + 0.048, 0.01)).warns is False
    assert drift(earlier, DriftPoint(0.6 + 0.050, 0.01)).warns is True


def test_equal_runs_have_no_spread():
    """A change then is as certain as can be, and no change is none."""
    earlier = points([0.5] * 6)

    assert drift(earlier, DriftPoint(0.7, 0.01)).warns
    assert drift(earlier, DriftPoint(0.5, 0.01)).warns is False


def test_a_run_with_a_wide_interval_weighs_less():
    """One uncertain run far away moves the mean little, and is no reason to overlook a change."""
    earlier = [*points([0.6, 0.605, 0.595, 0.6, 0.602, 0.598]), DriftPoint(1.2, 0.5)]
    found = drift(earlier, DriftPoint(0.6, 0.01))

    assert abs(found.change) < 0.001
    assert drift(earlier, DriftPoint(0.75, 0.01)).warns


def test_values_that_are_not_finite_do_not_count():
    """A ratio of 0 or infinity has no logarithm."""
    earlier = points([0.6, -math.inf, 0.61, math.nan, 0.59, 0.6])

    assert drift(earlier, DriftPoint(0.6, 0.01)).runs == 4
    assert drift(points([0.6] * 9), DriftPoint(math.inf, 0.01)).has_enough_runs is False


@pytest.mark.parametrize("runs", [5, pytest.param(10, marks=pytest.mark.thorough)])
def test_healthy_histories_warn_as_rarely_as_promised(runs):
    """20 000 simulated histories of runs that differ by 5 % (sd): .001 of them, and no more."""
    drawn = random.Random(runs)
    warned = 0
    for _ in range(20_000):
        *earlier, new = points((drawn.gauss(0, 0.05) for _ in range(runs + 1)), error=0.02)
        warned += drift(earlier, new).warns

    # Binomial(20 000, .001): 38 or more have a chance of .0002.
    assert warned < 38


def test_a_regression_of_a_fifth_is_found_at_once():
    """Ten runs that differ by 3 % (sd), then one that is 25 % slower: found in most of 500 histories."""
    drawn = random.Random(5)
    found = 0
    for _ in range(500):
        earlier = points(drawn.gauss(0.6, 0.03) for _ in range(10))
        found += drift(earlier, DriftPoint(drawn.gauss(0.6, 0.03) + math.log(0.75), 0.01)).warns

    assert found > 450


def test_one_hundred_healthy_histories_give_no_warning():
    """Each has 20 runs that differ by 3 % (sd); the last one is judged."""
    drawn = random.Random(1)
    histories = [points(drawn.gauss(0.6, 0.03) for _ in range(20)) for _ in range(100)]

    assert [drift(earlier, new).warns for *earlier, new in histories] == [False] * 100
