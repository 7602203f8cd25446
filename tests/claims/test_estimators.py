"""Estimates, intervals and diagnostics of paired log ratios."""

import math
import random
import statistics
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dbcluster.claims import critical_values, estimators

ratios = st.floats(-5, 5).map(lambda x: round(x, 6))
series = st.lists(ratios, min_size=6, max_size=40)


@pytest.mark.parametrize(
    ("candidate", "baseline", "expected"),
    [(2, 1, math.log(2)), (0, 0, 0), (3, 3, 0), (0, 5, -700), (5, 0, 700), (1e308, 1e-308, 700)],
)
def test_log_ratio_of_counts_is_always_finite(candidate, baseline, expected):
    """Zeros and extremes of a counter give a bounded log ratio, two zeros are equal."""
    assert estimators.log_ratio(candidate, baseline) == pytest.approx(expected)


def test_log_ratio_of_a_negative_value_is_refused():
    """A negative measurement is an error that shows it."""
    with pytest.raises(ValueError, match="at least 0, not -1 and 2"):
        estimators.log_ratio(-1, 2)


def test_a_ratio_that_is_not_a_number_is_refused():
    """NaN never enters a verdict, infinities become the largest log ratio."""
    with pytest.raises(ValueError, match="not a number; was a round without a result given"):
        estimators.bounded(math.nan)
    assert (estimators.bounded(math.inf), estimators.bounded(-math.inf)) == (700, -700)


def test_hodges_lehmann_is_the_median_of_averages():
    """For 1, 2, 6 the averages are 1, 1.5, 2, 3.5, 4, 6, so the estimate is 2.75."""
    assert estimators.walsh((1.0, 2.0, 6.0)) == (1, 1.5, 2, 3.5, 4, 6)
    assert estimators.hodges_lehmann([1.0, 2.0, 6.0]) == 2.75
    assert math.isnan(estimators.hodges_lehmann([]))


@settings(deadline=None)
@given(series, ratios)
def test_a_shift_moves_estimate_and_interval(values, shift):
    """Adding a constant to every log ratio adds it to the estimate and to both ends of the interval."""
    moved = [value + shift for value in values]
    before, after = estimators.interval(values, 0.05), estimators.interval(moved, 0.05)
    assert estimators.hodges_lehmann(moved) == pytest.approx(estimators.hodges_lehmann(values) + shift, abs=1e-9)
    assert after == pytest.approx([end + shift for end in before], abs=1e-9)


@settings(deadline=None)
@given(series)
def test_swapping_the_variants_mirrors_the_interval(values):
    """The interval of baseline over candidate is that of candidate over baseline, turned round."""
    low, high = estimators.interval(values, 0.0005)
    assert estimators.interval([-value for value in values], 0.0005) == (-high, -low)


@settings(deadline=None)
@given(series)
def test_intervals_nest_by_level(values):
    """A stricter level gives an interval that contains the looser one's."""
    intervals = [estimators.interval(values, level) for level in sorted(critical_values.TABLE, reverse=True)]
    for (low, high), (wider_low, wider_high) in pairwise(intervals):
        assert wider_low <= low <= high <= wider_high


@settings(deadline=None)
@given(series)
def test_interval_holds_the_estimate_of_its_look(values):
    """At a look the estimate lies inside its interval."""
    seen = values[: critical_values.last_look(len(values))]
    low, high = estimators.interval(seen, 0.05)
    assert low - 1e-12 <= estimators.hodges_lehmann(seen) <= high + 1e-12


@settings(deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([15, 20, 28, 40]), st.floats(-1, 1))
def test_rank_interval_excludes_what_the_signed_rank_rejects(seed, pairs, effect):
    """Zero lies below the interval exactly when the signed-rank sum reaches its critical value."""
    source = random.Random(seed)
    seen = [source.gauss(effect, 1) for _ in range(pairs)]
    ranked = sorted(seen, key=abs)
    rank_sum = sum(rank for rank, value in enumerate(ranked, 1) if value > 0)
    rejected = rank_sum >= critical_values.boundary(0.05).at(len(seen))
    assert (estimators.interval(seen, 0.05)[0] > 0) == rejected


def test_t_interval_reaches_the_extreme_pairs():
    """With few pairs an interval that excludes a pair is widened to it."""
    values = [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.0999]
    assert estimators.t_interval(values, 0.0) == (0.0999, 0.1)


def test_t_interval_is_the_textbook_one():
    """Mean -+ t s / sqrt(n) when that is wider than the pairs."""
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    reach = 4.0 * statistics.stdev(values) / math.sqrt(6)
    assert estimators.t_interval(values, 4.0) == pytest.approx((3.5 - reach, 3.5 + reach))


def test_no_interval_before_the_first_look():
    """Five pairs bound nothing, nor do six at a level at which six cannot speak."""
    assert estimators.interval([0.1] * 5, 0.05) == estimators.UNBOUNDED
    assert estimators.interval([0.1] * 6, 0.0001) == estimators.UNBOUNDED
    assert estimators.interval([0.1] * 15, 0.0001) == estimators.UNBOUNDED


def test_pairs_between_looks_do_not_move_the_interval():
    """An interval rests on the pairs up to the last look."""
    values = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    assert estimators.interval([*values, 9.0], 0.05) == estimators.interval(values, 0.05)


def test_interval_is_widened_to_a_later_estimate():
    """An estimate that later pairs moved out of the interval is drawn into it."""
    assert estimators.around((0.1, 0.2), 0.3) == (0.1, 0.3)
    assert estimators.around((0.1, 0.2), 0.15) == (0.1, 0.2)


def test_pair_sd_resists_a_stalled_round():
    """One wild pair does not move the robust standard deviation, and mostly equal pairs use the ordinary one."""
    calm = [0.0, 0.1, 0.2, 0.3, 0.4]
    assert estimators.pair_sd([*calm[:4], 100.0]) == pytest.approx(estimators.pair_sd(calm))
    assert estimators.pair_sd([0.0, 0.0, 0.0, 1.0]) == 0.5


@pytest.mark.parametrize("values", [[], [0.1]])
def test_less_than_two_pairs_show_nothing(values):
    """One pair has no scatter, so that no difference is known to be visible."""
    assert math.isinf(estimators.pair_sd(values))
    assert math.isinf(estimators.detectable(values, 0.05))


def test_detectable_difference_follows_its_formula():
    """(z + .84) * 1.05 * sd / sqrt(n), and nothing can be seen without pairs."""
    values = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    z = statistics.NormalDist().inv_cdf(1 - critical_values.boundary(0.05).nominal)
    assert estimators.detectable(values, 0.05) == pytest.approx((z + 0.84) * 1.05 * 1.4826 * 0.15 / math.sqrt(6))
    assert math.isinf(estimators.detectable([], 0.05))


def test_pairs_needed_shrink_with_the_distance():
    """Twice the distance needs a quarter of the pairs, never under six, and no distance has no answer."""
    far, near = (estimators.pairs_needed(distance, 0.2, 0.0005) for distance in (0.1, 0.05))
    assert near == pytest.approx(4 * far, abs=4)
    assert estimators.pairs_needed(100, 0.2, 0.0005) == 6
    assert estimators.pairs_needed(0.0, 0.2, 0.0005) is None
    assert estimators.pairs_needed(math.inf, 0.2, 0.0005) is None


def test_chance_to_get_beyond_an_edge():
    """Far beyond the edge it is certain, far before it impossible, and without noise one or the other."""
    assert estimators.chance_beyond(1.0, 0.1, 28, 0.0005, 160) == pytest.approx(1)
    assert estimators.chance_beyond(-1.0, 0.1, 28, 0.0005, 160) == pytest.approx(0)
    assert estimators.chance_beyond(math.inf, 0.1, 28, 0.0005, 160) == 1
    assert estimators.chance_beyond(0.1, 0.0, 28, 0.0005, 160) == 1
    assert estimators.chance_beyond(0.0, 0.0, 28, 0.0005, 160) == 0


def test_halves_show_a_trend():
    """The medians of both halves, unknown for a single pair."""
    assert estimators.halves([1.0, 2.0, 3.0, 7.0, 8.0, 9.0]) == (2.0, 8.0)
    assert all(map(math.isnan, estimators.halves([1.0])))


def test_order_effect_is_ab_minus_ba():
    """The median of the pairs that began with the baseline minus that of the others; unknown without both."""
    assert estimators.order_effect([1.0, 4.0, 2.0, 6.0], [True, False, True, False]) == -3.5
    assert math.isnan(estimators.order_effect([1.0, 2.0], [True, True]))


def test_lag1_sees_alternation():
    """Alternating pairs correlate negatively, constant ones not, and two pairs tell nothing."""
    assert estimators.lag1([1.0, -1.0] * 10) == pytest.approx(-0.95)
    assert estimators.lag1([0.5] * 4) == 0.0
    assert math.isnan(estimators.lag1([1.0, 2.0]))


def test_stalls_count_rounds_of_twice_the_median():
    """Four stalls against none, all in different pairs: the chance of that is one in sixteen."""
    calm = [1.0] * 20
    assert estimators.stall_test(calm, [2.1] * 4 + calm[4:]) == (0, 4, 1 / 16)
    assert estimators.stall_test([2.1] * 4 + calm[4:], calm) == (4, 0, 1.0)


def test_stalls_of_both_variants_in_one_pair_cancel():
    """A pair in which both stalled says nothing about either."""
    both = [3.0, *[1.0] * 9]
    assert estimators.stall_test(both, both) == (1, 1, 1.0)
    assert estimators.stall_test([], []) == (0, 0, 1.0)


def test_stalls_need_as_many_rounds_of_each():
    """Series of different length are refused."""
    with pytest.raises(ValueError, match="shorter"):
        estimators.stall_test([1.0, 1.0], [1.0])


def test_factor_never_overflows():
    """A log ratio beyond the largest exponent is an infinite ratio."""
    assert estimators.factor(800.0) == math.inf
    assert estimators.factor(0.0) == 1.0


def test_the_interval_of_a_median_takes_six_values():
    """The extremes of six hold it in 31 of 32 cases; of five in too few for 95 %."""
    assert estimators.median_interval([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]) == (1.0, 6.0)
    assert estimators.median_interval([3.0, 1.0, 2.0, 5.0, 4.0]) is None
    assert estimators.median_interval([]) is None


def test_the_interval_of_a_median_covers_it():
    """In 95 of 100 samples or more, whatever the distribution; that of twenty leaves five out at either end."""
    source = random.Random(1)
    samples = [[source.lognormvariate(0, 1) for _ in range(20)] for _ in range(2000)]
    found = [estimators.median_interval(one) for one in samples]

    assert found[0] == (sorted(samples[0])[5], sorted(samples[0])[14])
    assert 0.95 <= sum(low <= 1.0 <= high for low, high in found) / 2000 < 0.97
