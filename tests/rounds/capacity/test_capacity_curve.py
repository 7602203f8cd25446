"""Where a percentile crosses an objective."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dbcluster.rounds.capacity.capacity_curve import BEYOND, CapacityCurve, RatePoint, mean, rising
from tests.support.capacities import OBJECTIVE, RATES, curve


def found(*milliseconds, early=()):
    """The curve of these latencies at 100, 200, 400 operations/s and so on."""
    points = [RatePoint(100.0 * 2**n, value / 1e3, n in early) for n, value in enumerate(milliseconds)]
    return CapacityCurve.of(OBJECTIVE, points)


def test_the_crossing_is_interpolated_on_logarithmic_scales():
    """20 ms lie in the middle between 10 and 40 ms, so the rate lies in the middle between 200 and 400."""
    one = found(5, 10, 40)

    assert one.value == pytest.approx(200 * math.sqrt(2))
    assert (one.censored, one.upper) == (0, 400.0)


@pytest.mark.parametrize(("values", "value", "censored"), [((5, 8, 19), 400.0, 1), ((21, 30, 50), 100.0, -1)])
def test_a_crossing_beyond_all_rates_is_censored(values, value, censored):
    """Its value is the rate at that end."""
    one = found(*values)

    assert (one.value, one.censored) == (value, censored)


def test_rates_run_in_any_order():
    """The curve sorts them."""
    points = [RatePoint(400.0, 0.04), RatePoint(100.0, 0.005), RatePoint(200.0, 0.01)]

    assert CapacityCurve.of(OBJECTIVE, points) == found(5, 10, 40)
    with pytest.raises(ValueError, match="at least one arrival rate"):
        CapacityCurve.of(OBJECTIVE, [])


def test_a_percentile_exactly_at_the_objective_meets_it():
    """The objective is the most that is allowed."""
    assert found(5, 20).censored == 1
    assert found(20, 20.1).value == pytest.approx(100.0)


def test_how_far_a_queue_has_grown_changes_nothing():
    """Beyond four times the objective it says only how long the rate has run."""
    assert found(5, 10, 1e3 * BEYOND * OBJECTIVE.seconds).value == found(5, 10, 9000).value


def test_a_rate_that_ended_early_misses():
    """Also if the buckets of its latencies round the percentile down to the objective."""
    assert found(5, 20, early=(1,)).value < 200
    assert found(5, 20, early=(1,)).censored == 0


def test_a_stall_at_a_low_rate_is_smoothed():
    """A percentile rises with the rate, so neighbours that fall share their mean."""
    one = found(4, 60, 5, 6, 80)

    assert one.censored == 0
    assert 400 < one.value < 1600


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=9))
def test_rising_values_rise_and_keep_their_sum(values):
    """They are those that are nearest."""
    one = rising(values)

    assert one == sorted(one)
    assert math.fsum(one) == pytest.approx(math.fsum(values), abs=1e-9)
    assert rising(one) == pytest.approx(one)


@pytest.mark.parametrize("capacity", [450.0, 700.0, 1500.0])
def test_a_smooth_curve_gives_its_capacity(capacity):
    """Between the rates the interpolation is exact for a power of the rate, up to four times the objective."""
    assert curve(capacity).value == pytest.approx(capacity, rel=0.02)


def test_several_rounds_of_one_start_are_one_curve():
    """At each rate the geometric mean of the latencies; it ended early if most rounds did."""
    one = mean([found(5, 10, 20, early=(2,)), found(20, 10, 80)])

    assert [point.latency for point in one.points] == pytest.approx([0.01, 0.01, 0.04])
    assert [point.ended_early for point in one.points] == [False, False, False]
    assert mean([curve(600.0)] * 3).value == pytest.approx(curve(600.0).value)
    assert [point.rate for point in curve(600.0).points] == list(RATES)
