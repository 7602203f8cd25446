"""Noise and diagnostics of paired log ratios."""

import math
import random

import pytest

from pytest_dbcluster.claims import estimators


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


def test_interval_is_widened_to_a_later_estimate():
    """An estimate that later pairs moved out of the interval is drawn into it."""
    assert estimators.widen((0.1, 0.2), 0.3) == (0.1, 0.3)
    assert estimators.widen((0.1, 0.2), 0.15) == (0.1, 0.2)


def test_pair_sd_resists_a_stalled_round():
    """One wild pair does not move the robust standard deviation, and mostly equal pairs use the ordinary one."""
    calm = [0.0, 0.1, 0.2, 0.3, 0.4]
    assert estimators.pair_sd([*calm[:4], 100.0]) == pytest.approx(estimators.pair_sd(calm))
    assert estimators.pair_sd([0.0, 0.0, 0.0, 1.0]) == 0.5


@pytest.mark.parametrize("values", [[], [0.1]])
def test_less_than_two_pairs_have_no_scatter(values):
    """One pair has no scatter, so that no difference is known to be visible."""
    assert math.isinf(estimators.pair_sd(values))


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
    """The median is that of both variants together."""
    calm = [1.0] * 20
    assert estimators.count_stalls(calm, [2.1] * 4 + calm[4:]) == (0, 4)
    assert estimators.count_stalls([2.1] * 4 + calm[4:], calm) == (4, 0)
    assert estimators.count_stalls([], []) == (0, 0)


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
