"""What a number of pairs can show."""

import dataclasses
import math
import random

import pytest

from benchmarks import critical_values as simulated
from pytest_dbcluster.claims import critical_values, estimators, intervals, power
from pytest_dbcluster.claims.pairs import Pairs
from tests.support.pairs import orders, pairs


def test_the_table_has_every_look_before_20_pairs_that_can_speak():
    """With looks at whole opening blocks less is shown, and no row rises with the pairs."""
    early = [look for look in critical_values.LOOKS if look < power.KNOWN_FROM]
    speaking = {
        (level, look)
        for level in critical_values.LEVELS
        for look in early
        if critical_values.boundary(level).at(look) is not None
    }
    assert set(power.SHOWN) == speaking
    for (level, look), (whole, alone) in power.SHOWN.items():
        assert whole <= alone
        assert math.isinf(alone) == (look < critical_values.RANKS_FROM)
        assert all(
            whole >= power.SHOWN[level, later][0] for later in early if (level, later) in speaking and later > look
        )


@pytest.mark.parametrize(
    ("look", "level", "runs"), [(12, 0.0005, 400), (20, 0.0005, 200), (44, 0.0005, 400), (8, 0.05, 400)]
)
def test_a_detectable_difference_is_found_with_power_8(look, level, runs):
    """Fresh rounds with a difference of what others of the same noise could see: .8 of them show it at the looks."""
    source, found = random.Random(look), 0
    looks = [one for one in critical_values.LOOKS if one <= look]
    for seed in range(runs):
        sides = [[source.gauss(0, 0.07) for _ in range(look)] for _ in range(4)]
        could = power.detectable(Pairs(*map(tuple, sides[:2]), tuple(orders(seed, look))), level)
        fresh = Pairs(tuple(value + could for value in sides[2]), tuple(sides[3]), tuple(orders(seed + 1000, look)))
        found += any(intervals.rejects(fresh.first(one), level, 0.0)[0] for one in looks)
    assert 0.72 < found / runs < 0.88


@pytest.mark.parametrize("openings", [True, False])
def test_the_script_makes_the_table_of_detectable_differences(openings):
    """A small simulation comes close to the shipped factors."""
    for level, found in zip(
        (0.05, 0.0005), simulated.detectable([0.05, 0.0005], 400, seed=5, openings=openings), strict=True
    ):
        for look, theirs in zip(critical_values.LOOKS, found, strict=False):
            if (level, look) in power.SHOWN:
                assert power.SHOWN[level, look][not openings] == pytest.approx(theirs, rel=0.15)


def test_nothing_is_detectable_before_a_look():
    """Without a look that can speak no difference could be seen."""
    assert math.isinf(power.detectable(pairs([]), 0.05))
    assert math.isinf(power.detectable(pairs([0.1, 0.2, 0.3]), 0.05))
    assert math.isinf(power.detectable(pairs([0.1, 0.2, 0.3, 0.4] * 2), 0.0005))


def test_before_20_pairs_it_is_the_factor_of_the_last_look_times_the_scatter():
    """Pairs after the look help to know the scatter alone."""
    values = [0.1, 0.12, 0.14, 0.1, 0.13, 0.15, 0.11, 0.12, 0.16]
    middle = intervals.quick_estimate(pairs(values))
    expected = power.SHOWN[0.05, 8][0] * estimators.pair_sd([value - middle for value in values])
    assert power.detectable(pairs(values), 0.05) == pytest.approx(expected)


def noisy(kind, source, number):
    """Log times of rounds: normal, with stalls of three times as long, or of two modes."""
    extra = {"normal": lambda: 0.0, "stalls": lambda: (source.random() < 0.05) * math.log(3)}
    far = {"normal": 0.05, "stalls": 0.05, "modes": 0.01}[kind]
    more = extra.get(kind, lambda: source.choice((-0.05, 0.05)))
    return tuple(source.gauss(0, far) + more() for _ in range(number))


@pytest.mark.parametrize("kind", ["normal", "stalls", "modes"])
def test_stalls_and_modes_count_for_what_they_cost(kind):
    """Fresh claims with a difference that 28 pairs of the same noise could see: .7 to .9 show it, within 3 errors."""
    source, found, runs = random.Random(kind), 0, 150
    looks = [look for look in critical_values.LOOKS if look <= 28]
    for seed in range(runs):
        could = power.detectable(
            Pairs(noisy(kind, source, 28), noisy(kind, source, 28), tuple(orders(seed, 28))), 0.0005
        )
        faster = tuple(value + could for value in noisy(kind, source, 28))
        fresh = Pairs(faster, noisy(kind, source, 28), tuple(orders(seed + 1000, 28)))
        found += any(intervals.rejects(fresh.first(look), 0.0005, 0.0)[0] for look in looks)
    assert 0.6 < found / runs < 0.97


def test_the_shift_of_one_rank_among_many_draws_is_that_of_the_sorted_shifts():
    """It is found without the search for each draw, also where draws are equal."""
    source = random.Random(3)
    drawn = [sorted(round(source.gauss(0, 1), 1) for _ in range(20)) for _ in range(30)] * 2
    shifts = sorted(power._least_shift(one, 180) for one in drawn)

    assert [power._least_shift_of_many(drawn, 180, rank) for rank in range(60)] == pytest.approx(shifts, abs=1e-3)


def test_few_pairs_and_dependent_ones_tell_a_range():
    """Independent pairs tell one figure from 20 on; a wave over the pairs, or fewer of them, a range around it."""
    source = random.Random(1)
    values = [source.gauss(0, 0.05) for _ in range(40)]
    least, most = power.detectable_range(pairs(values), 0.0005)
    assert least == most == power.detectable(pairs(values), 0.0005)

    few = power.detectable_range(uneven := pairs([0.1, -0.1, 0.2, -0.2] * 2 + [0.01, -0.01, 0.02] * 3), 0.0005)
    assert few[0] <= power.detectable(uneven, 0.0005) <= few[1]
    assert few[0] < few[1]
    wave = pairs([sign * (1 + place) * (0.05 if place // 5 % 2 else 0.001) for place, sign in enumerate((1, -1) * 20)])
    assert power.dependent(wave)
    assert not power.dependent(pairs(values))
    assert power.detectable_range(wave, 0.0005)[0] < power.detectable_range(wave, 0.0005)[1]


def needed(distance, sd=0.2, number=8, **changes):
    """Pairs that an effect at this distance needs, after so many pairs of normal noise."""
    source = random.Random(4)
    drawn = [source.gauss(0, sd) for _ in range(number)]
    return power.pairs_needed(dataclasses.replace(pairs(drawn), **changes), distance, 0.0005)


def test_pairs_needed_are_a_look_with_the_power():
    """Up to 160 the first look that can speak and has it; beyond, a quarter of the pairs for twice the distance."""
    assert needed(100) == 12
    assert needed(100, number=12) == 17
    assert needed(100, instances=2) == 17
    assert needed(100, openings=0) == 17
    far, near = (needed(distance, number=40) for distance in (0.02, 0.01))
    assert near == pytest.approx(4 * far, abs=4)
    assert needed(0.0) is None
    assert needed(math.inf) is None
    assert needed(1e-9) is None


def test_pairs_without_scatter_need_the_next_look():
    """Whatever the distance is."""
    assert power.pairs_needed(pairs([0.5] * 20), 0.01, 0.0005) == 24


def test_chance_to_get_beyond_an_edge():
    """Far beyond the edge it is certain, far before it impossible, and without noise one or the other."""
    assert power.chance_beyond(1.0, 0.1, 28, 0.0005, 160) == pytest.approx(1)
    assert power.chance_beyond(-1.0, 0.1, 28, 0.0005, 160) == pytest.approx(0)
    assert power.chance_beyond(math.inf, 0.1, 28, 0.0005, 160) == 1
    assert power.chance_beyond(0.1, 0.0, 28, 0.0005, 160) == 1
    assert power.chance_beyond(0.0, 0.0, 28, 0.0005, 160) == 0
    assert power.chance_beyond(1.0, math.inf, 8, 0.0005, 8) == 0


def test_what_many_pairs_show_is_known_fast_for_normal_noise():
    """It is close to what resampling says."""
    source = random.Random(2)
    normal = pairs([source.gauss(0, 0.1) for _ in range(80)])
    assert power.detectable_if_normal(normal, 0.0005, 160) == pytest.approx(
        power.detectable(normal, 0.0005, 160), rel=0.3
    )
