"""The looks and the table of critical values."""

import itertools
from itertools import pairwise

import numpy as np
import pytest

from benchmarks import critical_values
from pytest_dbcluster.claims import critical_values as critical
from pytest_dbcluster.errors import ConfigError

RANK_LOOKS = [look for look in critical.LOOKS if look >= 14]


def test_looks_are_those_of_the_table():
    """Whole opening blocks first, then steps of about a fifth; 160 pairs last."""
    assert critical.LOOKS == (8, 12, 14, 17, 20, 24, 28, 34, 40, 44, 48, 56, 67, 80, 95, 113, 135, 160)
    assert critical.OF_OPENINGS == (8, 12)
    assert critical.RANKS_FROM == 14


@pytest.mark.parametrize(
    ("pairs", "look"), [(0, 8), (3, 8), (8, 12), (12, 14), (40, 44), (159, 160), (160, None), (999, None)]
)
def test_next_look_is_the_first_one_ahead(pairs, look):
    """After a look the next one is asked for, after the last none."""
    assert critical.next_look(pairs) == look


@pytest.mark.parametrize(
    ("pairs", "look"), [(0, None), (7, None), (8, 8), (11, 8), (28, 28), (33, 28), (47, 44), (160, 160), (999, 160)]
)
def test_last_look_is_the_one_reached_or_passed(pairs, look):
    """Pairs between two looks belong to the earlier one."""
    assert critical.last_look(pairs) == look


@pytest.mark.parametrize(
    ("instances", "first"), [(1, (8, 12, 14)), (2, (8, 17, 20)), (3, (12, 14, 17)), (4, (17, 20)), (5, (20, 24))]
)
def test_no_look_weighs_one_instance_more_than_another(instances, first):
    """Looks inside an opening block are left out, and those before every instance has equally many of them."""
    assert critical.looks(instances)[: len(first)] == first
    assert set(critical.looks(instances)) <= set(critical.LOOKS)
    assert critical.next_look(0, instances) == first[0]
    assert critical.last_look(first[0] - 1, instances) is None


def test_every_promised_level_has_critical_values():
    """Guards, both alphas, and each alpha shared into up to nine parts, or into 12 and 16, have their row."""
    assert set(critical.LEVELS) == set(critical.TABLE)
    assert all(len(row.critical) == len(critical.LOOKS) for row in critical.TABLE.values())


def test_an_unknown_level_is_refused_with_the_known_ones():
    """A level without calibrated values names those that exist."""
    with pytest.raises(ConfigError, match=r"no critical values for level 0\.01; there are values for 0\.05, 0\.0005, "):
        critical.boundary(0.01)


def test_a_number_of_pairs_between_looks_has_no_critical_value():
    """Asking a boundary for 7 pairs is an error."""
    with pytest.raises(ValueError, match="not in tuple"):
        critical.boundary(0.05).at(7)


@pytest.mark.parametrize(("level", "look"), [(0.05, 8), (0.0005, 12), (0.0005 / 2, 17), (0.0001, 17), (0.0001 / 4, 20)])
def test_the_first_look_that_can_speak_depends_on_the_level(level, look):
    """A guard can hold after two opening blocks, a claim after three, the stricter levels after more pairs."""
    assert critical.boundary(level).first_look == look


def strictness(look, value):
    """A number that grows with the evidence that a critical value asks for."""
    if value is None:
        return float("inf")
    return value if look >= critical.RANKS_FROM else -value


def test_stricter_levels_ask_for_more():
    """From level to stricter level no look gets easier."""
    for loose, strict in pairwise(sorted(critical.TABLE, reverse=True)):
        for look in critical.LOOKS:
            less, more = (strictness(look, critical.TABLE[level].at(look)) for level in (loose, strict))
            assert less <= more


@pytest.mark.parametrize("level", critical.LEVELS[1:])
def test_the_looks_of_a_claim_add_up_to_its_level(level):
    """Each look's chance is exact, so their sum bounds the chance of any of them; little is left over.

    Two levels leave more over: each of their looks must be at least as strict as that of a looser level.
    """
    row = critical.boundary(level).critical
    assert critical_values.bound(row) <= critical_values.unequal_bound(row)
    assert {0.0005 / 2: 0.91, 0.0005 / 7: 0.988}.get(level, 0.99) * level < critical_values.unequal_bound(row) <= level


@pytest.mark.parametrize("level", critical.LEVELS)
def test_no_look_speaks_that_one_noisy_variant_could_decide_alone(level):
    """All rounds of it lie on one side of the other variant with chance 2 to the power of minus the pairs."""
    row = critical.boundary(level)
    speaking = [look for look in critical.LOOKS if row.at(look) is not None]
    assert 2 ** -speaking[0] < level
    if level <= 0.0005:
        assert all(2**-look <= level / 10 for look in speaking if look >= critical.RANKS_FROM)


@pytest.mark.parametrize("level", critical.LEVELS[1:])
def test_the_script_makes_the_row_of_a_claim(level):
    """By counting alone."""
    assert critical_values.claim_row(level) == critical.boundary(level).critical


def test_a_guard_is_bounded_where_rounds_depend_on_each_other():
    """The looks add up to at most 1 in 10, which its message says."""
    assert 0.099 < critical_values.bound(critical.boundary(0.05).critical) <= critical.GUARD_BOUND == 0.1


def test_the_looks_of_a_guard_share_a_nominal_level():
    """From 14 pairs on each value is the smallest sum whose exact chance is at most .00604."""
    row = critical.boundary(0.05)
    assert critical_values.row_at(critical_values.guard_nominal(), 0.05) == row.critical
    nominal = critical_values.guard_nominal()
    assert nominal == pytest.approx(0.00604, rel=0.002)
    assert [row.at(look) for look in RANK_LOOKS] == [critical_values.strongest(look, nominal) for look in RANK_LOOKS]


@pytest.mark.parametrize("spread", [1, 5])
def test_a_small_calibration_shows_that_guards_keep_their_level(spread):
    """For independent normal rounds a larger nominal level than that of the table has an error of .05."""
    assert critical_values.guard_nominal() < critical_values.independent_nominal(spread, 40_000, seed=1) < 0.01


def test_drawing_the_order_of_a_run_again_gives_what_new_runs_give():
    """The statistics of 20 draws of each run have the mean and the spread of runs with one draw, at each look."""
    for spread in (1.0, 3.0):
        rng = np.random.default_rng(3)
        mine, theirs = (critical_values.normal(rng, 4000, 320) for _ in range(2))
        others = {} if spread == 1 else {"others": theirs}
        new = critical_values.statistics_of(spread * mine, rng, **others)
        again = critical_values.redrawn(spread * mine[:1000], rng, 20, **others and {"others": theirs[:1000]})
        for look in critical.LOOKS:
            assert again[look].mean() == pytest.approx(new[look].mean(), rel=0.05)
            assert again[look].std() == pytest.approx(new[look].std(), rel=0.06)


def test_chances_of_opening_blocks_are_those_of_counted_arrangements():
    """The first of so many orders: 1 of 70, 1, 3, 8, 18 of 4900, and 1, 4, 13, 35 of 343000."""
    ways = [list(itertools.accumulate(critical_values.opening_ways(openings)[:4])) for openings in (1, 2, 3)]
    assert ways == [[1, 2, 4, 7], [1, 3, 8, 18], [1, 4, 13, 35]]
    assert [sum(critical_values.opening_ways(openings)) for openings in (1, 2, 3)] == [70, 4900, 343000]


def test_chances_of_rank_sums_agree_with_counting():
    """All 256 patterns of opening block signs."""
    sums = [sum(rank for rank, up in enumerate(signs, 1) if up) for signs in itertools.product((0, 1), repeat=8)]
    assert list(critical_values.rank_tails(8)) == [sum(one >= least for one in sums) for least in range(38)]
