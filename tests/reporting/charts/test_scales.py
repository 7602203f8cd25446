"""Ranges and ticks of axes."""

import itertools
import math

import pytest

from pytest_dbcluster.reporting.charts import scales


def labels(values, **given):
    """The labels of the ticks for these ratios."""
    return [label for _, label in scales.ratios(values, **given).ticks]


def test_speeds_have_powers_of_two():
    """A quarter and four are equally far from one."""
    assert labels([0.25, 5.0]) == ["1/4", "1/2", "1", "2", "4"]
    assert labels([0.25, 8.1]) == ["1/4", "1/2", "1", "2", "4", "8"]


def test_counters_that_differ_by_thousands_have_decades():
    """A range of more than 64 is shown in powers of ten."""
    assert labels([0.0001]) == ["1/10000", "1/1000", "1/100", "1/10", "1"]


@pytest.mark.parametrize("lowest", [1e-300, 1e-12, 0.3, 0.97, 1.0])
def test_ticks_never_overlap(lowest):
    """However far the ratios lie apart, an axis has at most nine ticks, and at least two."""
    ticks = scales.ratios([lowest, 1.02]).ticks

    assert 2 <= len(ticks) <= 9
    assert [value for value, _ in ticks] == sorted({value for value, _ in ticks})


def test_a_small_difference_has_even_ticks():
    """A few per cent are shown as such."""
    assert labels([0.97, 1.03]) == ["0.97", "0.98", "0.99", "1.00", "1.01", "1.02", "1.03", "1.04"]


@pytest.mark.parametrize(("low", "high"), [(0.7, 1.46), (0.65, 1.0), (1.0, 2.4), (0.3, 1.0), (0.9, 3.9), (0.13, 1.05)])
def test_every_axis_can_be_read(low, high):
    """At least three ticks, and one of them at equal speed; a range with a single power of two is divided evenly."""
    ticks = scales.ratios([low, high]).ticks

    assert len(ticks) >= 3
    assert any(value == pytest.approx(1) for value, _ in ticks)


@pytest.mark.parametrize("value", [math.inf, math.nan, 0.0, -1.0])
def test_what_is_no_ratio_is_left_out(value):
    """The end of an interval that is not bounded yet has no place on the axis."""
    assert scales.ratios([0.5, value]) == scales.ratios([0.5])


def test_one_is_always_shown():
    """Equal speed is inside of every axis."""
    scale = scales.ratios([3.0, 4.0])

    assert scale.low < 1 < scale.high
    assert scales.ratios([1.0], least=1.5).high > 1.5


def test_a_ratio_of_0_is_written_where_it_is_drawn():
    """A logarithmic axis has no 0: without its tick the mark would be read as a tenth."""
    values = [1.0, 0.5, 0.0]
    ends = scales.zero(values), scales.infinity(values)

    assert labels([1.0, 0.5, ends[0]], ends=ends) == ["0", "1/8", "1/4", "1/2", "1"]
    assert labels([1.0, 0.5], ends=ends)[0] != "0"


def test_an_infinite_ratio_has_the_last_tick():
    """Ticks too near to it are left out."""
    ends = scales.zero([1.0, 7.5]), scales.infinity([1.0, 7.5])

    assert labels([1.0, 7.5, ends[1]], ends=ends) == ["1", "10", "∞"]


@pytest.mark.parametrize("far", [1e3, 1e6, 1e9, 1e30])
def test_ticks_beside_0_do_not_overlap(far):
    """However far the other ratios lie apart."""
    values = [1.0, 1 / far, far]
    ends = scales.zero(values), scales.infinity(values)
    scale = scales.ratios([*values, *ends], ends=ends)
    places = [math.log(at) for at, _ in scale.ticks]

    assert {"0", "1", "∞"} <= {label for _, label in scale.ticks}
    assert min(b - a for a, b in itertools.pairwise(places)) > 0.08 * math.log(scale.high / scale.low)


@pytest.mark.parametrize("low", [0.13, 0.3, 0.55, 0.7, 0.9, 0.97, 1.0])
@pytest.mark.parametrize("high", [1.0, 1.1, 1.5, 2.2, 2.7, 3.9, 6.0])
def test_ticks_are_on_both_sides_of_1_and_do_not_crowd(low, high):
    """Two to one is wide enough for a tick of its own."""
    scale = scales.ratios([low, high])
    places = [math.log(at) for at, _ in scale.ticks]

    assert min(b - a for a, b in itertools.pairwise(places)) > 0.07 * math.log(scale.high / scale.low)
    assert low > 0.6 or min(places) < 0
    assert high < 1.7 or max(places) > 0
