"""Change points: a step is found where it is, and series without one have none."""

from __future__ import annotations

import math
import random

import pytest

from pytest_dbcluster.reporting.history.change_points import SHUFFLES, change_points


def series(drawn, *levels, sd=0.03):
    """A series with so many values on each (level, number)."""
    return [drawn.gauss(level, sd) for level, number in levels for _ in range(number)]


def test_a_step_of_seven_percent_is_found_where_it_is():
    """40 daily ratios with a standard deviation of 3 %, and a step of -7 % in their middle."""
    values = series(random.Random(2), (0.0, 20), (math.log(0.93), 20))
    (found,) = change_points(values)

    assert abs(found.first - 20) <= 2
    assert found.size == pytest.approx(math.log(0.93), abs=0.02)
    assert found.chance <= 0.001


def test_two_steps_are_both_found():
    """Up and down again, in their order, each with the size between its neighbours."""
    values = series(random.Random(3), (0.0, 15), (0.3, 15), (0.1, 15))
    first, second = change_points(values)

    assert (abs(first.first - 15) <= 1, abs(second.first - 30) <= 1) == (True, True)
    assert (first.size, second.size) == (pytest.approx(0.3, abs=0.03), pytest.approx(-0.2, abs=0.03))


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 1.0] * 3, [0.5] * 40])
def test_few_or_equal_values_have_no_change(values):
    """Seven values cannot have four on either side."""
    assert change_points(values) == []


def test_a_hundred_healthy_histories_have_no_change():
    """30 runs each, without any step."""
    drawn = random.Random(4)
    found = [change_points(series(drawn, (0.5, 30))) for _ in range(100)]

    assert found == [[]] * 100


def test_the_same_series_gives_the_same_answer():
    """The shuffles have a seed, so that a report can be made again."""
    values = series(random.Random(6), (0.0, 12), (0.2, 12))

    assert change_points(values) == change_points(values)
    assert change_points(values)[0].chance * (SHUFFLES + 1) == pytest.approx(1)
