"""Pairs whose values may be known only as above or below a limit: what counts, and that the error stays."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dbcluster.claims import intervals
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.kinds import beats, no_slower_than, same_as
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.claims.verdict import Terms, judge
from tests.support.pairs import orders

ALPHA = 0.0005
LOW, HIGH = -1.0, 1.0  # the log speeds between which values are known
LAST = Terms(out_of_budget="all are drawn")


def seen(value):
    """A value as a measurement with these limits has it, and its end."""
    return (min(max(value, LOW), HIGH), (value > HIGH) - (value < LOW))


def censored(candidate, baseline, seed=1):
    """The pairs of these true log speeds as they are seen."""
    both = [[seen(value) for value in values] for values in (candidate, baseline)]
    values, ends = ([tuple(one[place] for one in many) for many in both] for place in (0, 1))
    return Pairs(*values, tuple(orders(seed, len(candidate))), censored=(ends[0], ends[1]), centred=False)


def true(candidate, baseline, seed=1):
    """The pairs of these log speeds, all known."""
    return Pairs(tuple(candidate), tuple(baseline), tuple(orders(seed, len(candidate))), centred=False)


def drawn(seed, pairs, effect=0.0, sd=0.8):
    """Log speeds with normal noise."""
    coin = random.Random(seed)
    return [effect + coin.gauss(0, sd) for _ in range(pairs)], [coin.gauss(0, sd) for _ in range(pairs)]


@settings(max_examples=100)
@given(st.integers(0, 10**6), st.sampled_from([8, 12, 14, 20, 28]), st.floats(-1, 1), st.floats(-2, 2))
def test_censoring_never_shows_more_than_the_true_values(seed, pairs, bound, effect):
    """So the chance of a wrong verdict is at most that of the true values, with any margin."""
    values = drawn(seed, pairs, effect)
    known, unknown = (intervals.rejects(one(*values, seed), 0.05, bound) for one in (true, censored))

    assert unknown[0] <= known[0]
    assert unknown[1] <= known[1]


@pytest.mark.parametrize("pairs", [12, 20])
def test_pairs_that_are_censored_on_both_sides_count_for_neither(pairs):
    """Nothing is known of two variants that are both above the highest rate, not even that they are equal."""
    both = censored([2.0] * pairs, [2.0] * pairs)

    assert intervals.interval(both, ALPHA) == intervals.UNBOUNDED
    for claim in (beats(), no_slower_than(0.05), same_as(0.05)):
        assert judge(claim, both, LAST).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(("pairs", "sign"), [(12, 1), (20, 1), (12, -1), (20, -1)])
def test_a_variant_beyond_all_rates_counts_by_its_order(pairs, sign):
    """One that is always above the highest rate beats one that is below it; how far it does is not known."""
    coin = random.Random(4)
    values = [coin.uniform(-0.5, 0.5) for _ in range(pairs)]
    far = censored([sign * 3.0] * pairs, values)
    low, high = intervals.interval(far, ALPHA)

    assert judge(beats(), far).outcome is (Outcome.HOLDS if sign > 0 else Outcome.FAILS)
    assert (high, low)[sign < 0] == sign * math.inf
    assert 0 < sign * (low, high)[sign < 0] < 1.5


def test_values_without_a_censored_one_are_compared_as_they_are():
    """The interval is that of the same pairs without a centre."""
    candidate, baseline = drawn(3, 20, 0.2, 0.1)
    one = censored(candidate, baseline, 3)

    assert set(one.censored[0] + one.censored[1]) == {0}
    assert intervals.interval(one, ALPHA) == intervals.interval(true(candidate, baseline, 3), ALPHA)
    assert intervals.estimate(one) == intervals.estimate(true(candidate, baseline, 3))


def test_the_first_pairs_keep_their_ends():
    """A look sees those that were drawn by then."""
    one = censored([2.0] * 8 + [0.0] * 4, [0.0] * 12)

    assert one.first(8).censored == ((1,) * 8, (0,) * 8)
    assert one.first(12) is one
    assert dataclasses.replace(one, censored=None).at_worst(above=True).candidate == one.candidate


def test_a_true_ratio_on_the_margin_rarely_passes_for_more():
    """In 2000 claims with a margin, many of whose values are censored, no side errs more often than alpha allows."""
    margin, wrong = math.log1p(0.1), [0, 0]
    for seed in range(2000):
        candidate, baseline = drawn(seed, 12, margin, 1.5)
        above, below = intervals.rejects(censored(candidate, baseline, seed), ALPHA, margin)
        wrong = [wrong[0] + above, wrong[1] + below]

    assert max(wrong) <= 5
