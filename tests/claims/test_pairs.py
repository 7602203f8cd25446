"""Pairs: the data of a claim."""

import math

import pytest

from pytest_dbcluster.claims.pairs import Pairs, clamp

FIRST = (True, False, True, True)


def test_values_become_log_ratios():
    """Of candidate / baseline, pair by pair; two zeros are equal, a single zero is clamp."""
    pairs = Pairs.of([2.0, 0.0, 0.0, 5.0], [1.0, 0.0, 3.0, 0.0], FIRST)

    assert pairs.ratios == (math.log(2), 0.0, -700.0, 700.0)
    assert pairs.signs == (1, -1, 1, 1)
    assert len(pairs) == 4


def test_a_ratio_that_is_not_a_number_is_refused():
    """NaN never enters a verdict, infinities become the largest log ratio."""
    with pytest.raises(ValueError, match="not a number; was a round without a result given"):
        clamp(math.nan)
    with pytest.raises(ValueError, match="not a number; was a round without a result given"):
        Pairs.of([math.nan], [1.0], [True])
    assert (clamp(math.inf), clamp(-math.inf)) == (700, -700)


def test_a_negative_value_is_refused():
    """With the value."""
    with pytest.raises(ValueError, match="at least 0, not -1"):
        Pairs.of([1.0], [-1.0], [True])


def test_pairs_need_as_many_rounds_of_each():
    """And an order for each."""
    with pytest.raises(ValueError, match="as many rounds of each variant: 2, 1, 1"):
        Pairs.of([1.0, 2.0], [1.0], [True])


def test_rounds_are_crossed_inside_whole_openings_only():
    """16 differences of each opening block that is drawn, none between two opening blocks, none of later pairs."""
    pairs = Pairs(tuple(map(float, range(10))), (0.0,) * 4 + (100.0,) * 6, (True,) * 10, openings=2)

    assert pairs.whole_openings == 2
    assert sorted(pairs.cross_differences()) == sorted(
        [float(k) for k in range(4)] * 4 + [k - 100.0 for k in range(4, 8)] * 4
    )
    assert pairs.first(7).whole_openings == 1
    assert Pairs((1.0,) * 14, (0.0,) * 14, (True,) * 14).whole_openings == 3


def test_the_first_pairs_keep_the_void_rounds_before_them():
    """Those that came later are no matter of an earlier look."""
    pairs = Pairs((1.0,) * 9, (0.0,) * 9, (True,) * 9, void=((0, True), (4, False), (8, True)))

    assert pairs.void_rounds() == (1, 2)
    assert pairs.first(8).void_rounds() == (1, 1)
    assert pairs.first(4).void_rounds() == (0, 1)
    assert pairs.first(20) is pairs
