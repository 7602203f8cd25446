"""Estimate and interval: what the looks do not reject."""

import math
import random
import statistics
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import critical_values as simulated
from pytest_dbcluster.claims import critical_values, intervals
from pytest_dbcluster.claims.pairs import Pairs
from tests.support.pairs import orders, pairs

ratios = st.floats(-5, 5).map(lambda x: round(x, 6))
series = st.lists(ratios, min_size=4, max_size=40).map(lambda values: values[: len(values) // 4 * 4 or 4])
seeds = st.integers(0, 2**32)


def noisy(seed, count, effect=0.0, sd=1.0):
    """Pairs of which both rounds have noise."""
    source = random.Random(seed)
    candidate = tuple(effect + source.gauss(0, sd) for _ in range(count))
    return Pairs(candidate, tuple(source.gauss(0, sd) for _ in range(count)), tuple(orders(seed, count)))


def moved(given_, shift):
    """The same with another log speed of the candidate."""
    return Pairs(tuple(value + shift for value in given_.candidate), given_.baseline, given_.baseline_first)


@settings(deadline=None, max_examples=50)
@given(series, seeds, ratios)
def test_a_shift_moves_estimate_and_interval(values, seed, shift):
    """Adding a constant to every log ratio adds it to the estimate and to both ends of the interval."""
    before, after = pairs(values, seed), moved(pairs(values, seed), shift)
    assert intervals.estimate(after) == pytest.approx(intervals.estimate(before) + shift, abs=1e-8)
    expected = [end + shift for end in intervals.interval(before, 0.05)]
    assert intervals.interval(after, 0.05) == pytest.approx(expected, abs=1e-8)


@settings(deadline=None, max_examples=50)
@given(series, seeds)
def test_swapping_the_variants_mirrors_the_interval(values, seed):
    """The interval of baseline over candidate is that of candidate over baseline, turned round."""
    forward = pairs(values, seed)
    backward = Pairs(forward.baseline, forward.candidate, tuple(not first for first in forward.baseline_first))
    low, high = intervals.interval(forward, 0.05)
    assert intervals.interval(backward, 0.05) == pytest.approx((-high, -low), abs=1e-9)
    assert intervals.estimate(backward) == pytest.approx(-intervals.estimate(forward), abs=1e-9)


@settings(deadline=None, max_examples=50)
@given(series, seeds)
def test_intervals_nest_by_level(values, seed):
    """A stricter level gives an interval that contains the looser one's."""
    given_ = pairs(values, seed)
    levels = sorted(critical_values.TABLE, reverse=True)
    for (low, high), (wider_low, wider_high) in pairwise([intervals.interval(given_, level) for level in levels]):
        assert wider_low <= low + 1e-12
        assert high <= wider_high + 1e-12


@settings(deadline=None, max_examples=50)
@given(seeds, st.sampled_from(critical_values.LOOKS[:10]))
def test_interval_holds_the_estimate_of_its_look(seed, look):
    """At a look the estimate lies inside its interval."""
    given_ = noisy(seed, look)
    low, high = intervals.interval(given_, 0.05)
    assert low - 1e-12 <= intervals.estimate(given_) <= high + 1e-12


@settings(deadline=None, max_examples=40)
@given(seeds, st.sampled_from([12, 14, 20, 40]), st.sampled_from([1e-3, 1e-6]))
def test_a_coarse_interval_is_never_narrower(seed, look, within):
    """Its ends lie outside of the exact ones, by no more than was asked for; so does what the estimate is made of."""
    given_ = noisy(seed, look)
    low, high = intervals.interval(given_, 0.05)
    coarse_low, coarse_high = intervals.interval(given_, 0.05, within)

    assert low - within <= coarse_low <= low
    assert high <= coarse_high <= high + within
    assert intervals.estimate(given_, within) == pytest.approx(intervals.estimate(given_), abs=within)


@settings(deadline=None, max_examples=60)
@given(seeds, st.sampled_from(critical_values.LOOKS[:10]), st.floats(-1, 1), st.sampled_from([0.05, 0.0005]))
def test_what_a_look_rejects_is_outside_of_its_interval(seed, look, bound, level):
    """And what it does not reject is inside: deciding and showing agree."""
    given_ = noisy(seed, look)
    low, high = intervals.interval(given_, level)
    assert intervals.rejects(given_, level, bound) == (bound < low, bound > high)


@settings(deadline=None, max_examples=40)
@given(seeds, st.sampled_from([14, 17, 20, 28, 40]), st.floats(-1, 1))
def test_the_rank_sum_is_that_of_ranks(seed, count, bound):
    """Counting sums of two values above 0 gives the signed-rank sum, also of the script that simulates."""
    given_ = noisy(seed, count)
    kept = intervals.remainders(given_, bound)
    by_ranks = sum(rank for rank, value in enumerate(sorted(kept, key=abs), 1) if value > 0)
    shifted = simulated.np.array([[ratio - bound for ratio in given_.ratios]])
    signs = simulated.np.array([given_.signs])
    assert intervals.rank_sum(kept) == by_ranks == simulated.rank_sums(shifted, signs)[0]
    assert intervals._rising_remainders(given_, bound) == sorted(kept)


@settings(deadline=None, max_examples=40)
@given(seeds, st.sampled_from([14, 17, 20, 40]))
def test_the_rank_sum_falls_with_the_bound(seed, count):
    """So what is rejected is a half line, and bisection finds its end."""
    given_ = noisy(seed, count)
    sums = [intervals.rank_sum(intervals.remainders(given_, -3 + step / 25)) for step in range(150)]
    assert all(a >= b for a, b in pairwise(sums))


@settings(deadline=None, max_examples=40)
@given(seeds, st.floats(-3, 3), st.sampled_from([20, 41]))
def test_a_position_effect_changes_nothing_from_14_pairs_on(seed, effect, count):
    """What every second round of a pair loses is taken out with the centre."""
    given_ = noisy(seed, count)
    shifted = [value + sign * effect for value, sign in zip(given_.candidate, given_.signs, strict=True)]
    slower = Pairs(tuple(shifted), given_.baseline, given_.baseline_first)
    assert intervals.remainders(slower, 0.0) == pytest.approx(intervals.remainders(given_, 0.0), abs=1e-9)


def test_the_centre_is_the_mean_of_the_middle_half():
    """A quarter of the values is left out at either end, rounded down."""
    assert intervals.centre([9.0, 1.0, 2.0, -100.0]) == 1.5
    assert intervals.centre([1.0, 2.0, 6.0]) == 3.0
    assert intervals.centre([0.0, 0.0, 3.0, 5.0, 7.0, 99.0, 99.0]) == statistics.fmean([0, 3, 5, 7, 99])


def test_the_ends_at_whole_openings_are_differences_inside_them():
    """At 12 pairs and .0005 the third of either side, at .05 the eighth."""
    given_ = noisy(5, 12)
    crossed = sorted(given_.cross_differences())
    assert len(crossed) == 48
    assert intervals.interval(given_, 0.0005) == (crossed[2], crossed[-3])
    assert intervals.interval(given_, 0.05) == (crossed[7], crossed[-8])
    assert intervals.estimate(given_) == statistics.median(crossed)


def test_no_interval_before_the_first_look():
    """Seven pairs bound nothing, nor do looks that cannot speak at a level."""
    assert intervals.interval(pairs([0.1] * 7), 0.05) == intervals.UNBOUNDED
    assert intervals.interval(pairs([0.1] * 8), 0.0005) == intervals.UNBOUNDED
    assert intervals.interval(pairs([0.1] * 12), 0.0001) == intervals.UNBOUNDED
    assert intervals.interval(pairs([0.1] * 4, openings=4, instances=2), 0.05) == intervals.UNBOUNDED


def test_pairs_between_looks_do_not_move_the_interval():
    """An interval rests on the pairs up to the last look."""
    values = [0.1 + 0.01 * (k % 5) for k in range(12)]
    assert intervals.interval(pairs([*values, 9.0]), 0.05) == intervals.interval(pairs(values), 0.05)


@pytest.mark.parametrize("count", [8, 12, 20, 40])
def test_equal_pairs_have_an_interval_without_width(count):
    """Pairs without noise: both ends are the ratio itself."""
    assert intervals.interval(pairs([0.3] * count), 0.05) == pytest.approx((0.3, 0.3), abs=1e-12)
    assert intervals.estimate(pairs([0.3] * count)) == pytest.approx(0.3, abs=1e-12)


def test_pairs_that_all_ran_in_one_order_bound_nothing():
    """An effect of the position would look the same; coins fall so once in 2**19 measurements."""
    given_ = Pairs((0.3,) * 20, (0.0,) * 20, (True,) * 20)
    assert intervals.interval(given_, 0.05) == intervals.UNBOUNDED
    assert intervals.estimate(given_) == pytest.approx(0.3)


@pytest.mark.parametrize("count", [1, 2, 3, 6, 13])
def test_pairs_that_are_no_whole_openings_have_an_estimate(count):
    """It is for display: no look comes there."""
    assert intervals.estimate(pairs([0.2] * count)) == pytest.approx(0.2)
    assert math.isnan(intervals.estimate(pairs([])))


def test_hodges_lehmann_is_the_median_of_averages():
    """For 1, 2, 6 the averages are 1, 1.5, 2, 3.5, 4, 6, so the estimate is 2.75."""
    assert intervals.hodges_lehmann([1.0, 2.0, 6.0]) == 2.75
    assert math.isnan(intervals.hodges_lehmann([]))


def test_stalls_cost_fewer_pairs_than_with_a_mean(monkeypatch):
    """The centre leaves stalled rounds out: where a tenth of rounds is three times slower, intervals are narrower."""

    def widths():
        source, found = random.Random(3), []
        for seed in range(20):
            sides = [[-source.gauss(0, 0.02) - math.log(3) * (source.random() < 0.1) for _ in range(34)] for _ in "AB"]
            low, high = intervals.interval(Pairs(*map(tuple, sides), tuple(orders(seed, 34))), 0.05)
            found.append(high - low)
        return statistics.fmean(found)

    trimmed = widths()
    intervals._at_look.cache_clear()
    monkeypatch.setattr(intervals, "centre", statistics.fmean)
    assert trimmed < 0.85 * widths()
    intervals._at_look.cache_clear()


def test_a_forecast_knows_no_position_effect():
    """The quick estimate is near the slow one, also where all second rounds are slower."""
    given_ = noisy(3, 40, effect=0.2, sd=0.05)
    shifted = [value + 0.3 * sign for value, sign in zip(given_.candidate, given_.signs, strict=True)]
    slower = Pairs(tuple(shifted), given_.baseline, given_.baseline_first)
    assert intervals.quick_estimate(slower) == pytest.approx(intervals.estimate(slower), abs=0.02)
    assert intervals.quick_estimate(pairs([0.3])) == 0.3
    assert math.isnan(intervals.quick_estimate(pairs([])))
