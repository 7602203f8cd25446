"""What a number of pairs can show."""

import math
import random
from itertools import pairwise

import pytest

from benchmarks import critical_values as simulated
from pytest_dbcluster.claims import critical_values, estimators, intervals, power
from pytest_dbcluster.claims.pairs import Pairs
from tests.support.pairs import orders, pairs


def test_every_level_has_a_factor_for_each_look():
    """It falls with the looks, and is infinite until the first look that can speak."""
    assert set(power.DETECTABLE) == set(critical_values.LEVELS)
    for level, factors in power.DETECTABLE.items():
        assert len(factors) == len(critical_values.LOOKS)
        assert all(a >= b for a, b in pairwise(factors))
        first = critical_values.boundary(level).first_look
        assert [math.isinf(factor) for factor in factors] == [look < first for look in critical_values.LOOKS]


def test_ranks_alone_show_less_at_the_first_looks():
    """Where no whole eights are compared; infinite until the first look that can speak, and later the same."""
    assert set(power.RANKS_ALONE) == set(critical_values.LEVELS)
    for level, factors in power.RANKS_ALONE.items():
        with_eights = [power.factor(level, look) for look in critical_values.LOOKS]
        alone = [power.factor(level, look, 0) for look in critical_values.LOOKS]
        assert all(a >= b for a, b in zip(alone, with_eights, strict=True))
        assert all(a >= b for a, b in pairwise(alone))
        assert all(map(math.isinf, alone[:2]))
        known = [look for look, times in zip(critical_values.LOOKS, alone, strict=True) if math.isfinite(times)]
        row = critical_values.boundary(level)
        assert known[0] == next(look for look in critical_values.LOOKS[2:] if row.at(look) is not None)
        assert alone[2 + len(factors) :] == with_eights[2 + len(factors) :]
    assert power.pairs_needed(100, 0.2, 0.0005, eights=0) == 17
    assert (power.pairs_needed(0.4, 0.2, 0.0005), power.pairs_needed(0.4, 0.2, 0.0005, eights=0)) == (20, 24)


@pytest.mark.parametrize(("look", "level"), [(12, 0.0005), (20, 0.0005), (44, 0.0005), (8, 0.05)])
def test_a_detectable_difference_is_found_with_power_8(look, level):
    """Fresh rounds with a difference of what others of the same noise could see: .8 of them show it at the looks."""
    source, found = random.Random(look), 0
    looks = [one for one in critical_values.LOOKS if one <= look]
    for seed in range(400):
        sides = [[source.gauss(0, 0.07) for _ in range(look)] for _ in range(4)]
        could = power.detectable(Pairs(*map(tuple, sides[:2]), tuple(orders(seed, look))), level)
        fresh = Pairs(tuple(value + could for value in sides[2]), tuple(sides[3]), tuple(orders(seed + 1000, look)))
        found += any(intervals.rejects(fresh.first(one), level, 0.0)[0] for one in looks)
    assert 0.72 < found / 400 < 0.88


def test_the_script_makes_the_table_of_detectable_differences():
    """A small simulation comes close to the shipped factors."""
    (found,) = simulated.detectable([0.0005], 400, seed=5)
    (alone,) = simulated.detectable([0.0005], 400, seed=5, eights=False)
    for ours, theirs in zip(power.DETECTABLE[0.0005], found, strict=True):
        assert ours == pytest.approx(theirs, rel=0.12)
    for look, theirs in zip(critical_values.LOOKS, alone, strict=True):
        assert power.factor(0.0005, look, 0) == pytest.approx(theirs, rel=0.15)


def test_nothing_is_detectable_before_a_look():
    """Without a look that can speak no difference could be seen."""
    assert math.isinf(power.detectable(pairs([]), 0.05))
    assert math.isinf(power.detectable(pairs([0.1, 0.2, 0.3]), 0.05))
    assert math.isinf(power.detectable(pairs([0.1, 0.2, 0.3, 0.4] * 2), 0.0005))


def test_detectable_is_the_factor_of_the_last_look_times_the_scatter():
    """Pairs after the look help to know the scatter alone."""
    values = [0.1, 0.12, 0.14, 0.1, 0.13, 0.15, 0.11, 0.12, 0.16]
    expected = power.factor(0.05, 8) * estimators.pair_sd(values)
    assert power.detectable(pairs(values), 0.05) == pytest.approx(expected)


def test_pairs_needed_are_a_look_with_the_power():
    """Up to 160 the first look that has it; beyond, a quarter of the pairs for twice the distance."""
    assert power.pairs_needed(100, 0.2, 0.0005) == 12
    assert power.pairs_needed(100, 0.2, 0.0005, more_than=12) == 14
    assert power.pairs_needed(100, 0.2, 0.0005, instances=2, more_than=8) == 17
    far, near = (power.pairs_needed(distance, 0.2, 0.0005) for distance in (0.02, 0.01))
    assert near == pytest.approx(4 * far, abs=4)
    assert power.pairs_needed(0.0, 0.2, 0.0005) is None
    assert power.pairs_needed(math.inf, 0.2, 0.0005) is None
    assert power.pairs_needed(1e-9, 0.2, 0.0005) is None


def test_pairs_without_scatter_need_the_next_look():
    """Whatever the distance is."""
    assert power.pairs_needed(0.01, 0.0, 0.0005, more_than=20) == 24


def test_chance_to_get_beyond_an_edge():
    """Far beyond the edge it is certain, far before it impossible, and without noise one or the other."""
    assert power.chance_beyond(1.0, 0.1, 28, 0.0005, 160) == pytest.approx(1)
    assert power.chance_beyond(-1.0, 0.1, 28, 0.0005, 160) == pytest.approx(0)
    assert power.chance_beyond(math.inf, 0.1, 28, 0.0005, 160) == 1
    assert power.chance_beyond(0.1, 0.0, 28, 0.0005, 160) == 1
    assert power.chance_beyond(0.0, 0.0, 28, 0.0005, 160) == 0
    assert power.chance_beyond(1.0, 0.1, 8, 0.0005, 8) == 0
