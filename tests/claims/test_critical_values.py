"""The looks and the table of critical values."""

import itertools
from itertools import pairwise

import pytest

from benchmarks import critical_values
from pytest_dbcluster.claims import critical_values as critical
from pytest_dbcluster.errors import ConfigError

RANK_LOOKS = [look for look in critical.LOOKS if look >= 14]


def test_looks_are_those_of_the_table():
    """Whole eights first, then steps of about a fifth; 160 pairs last."""
    assert critical.LOOKS == (4, 8, 12, 14, 17, 20, 24, 28, 34, 40, 48, 56, 67, 80, 95, 113, 135, 160)
    assert critical.OF_EIGHTS == (4, 8, 12)
    assert critical.RANKS_FROM == 14


@pytest.mark.parametrize(
    ("pairs", "look"), [(0, 4), (3, 4), (4, 8), (12, 14), (28, 34), (159, 160), (160, None), (999, None)]
)
def test_next_look_is_the_first_one_ahead(pairs, look):
    """After a look the next one is asked for, after the last none."""
    assert critical.next_look(pairs) == look


@pytest.mark.parametrize(
    ("pairs", "look"), [(0, None), (3, None), (4, 4), (7, 4), (28, 28), (33, 28), (160, 160), (999, 160)]
)
def test_last_look_is_the_one_reached_or_passed(pairs, look):
    """Pairs between two looks belong to the earlier one."""
    assert critical.last_look(pairs) == look


@pytest.mark.parametrize(
    ("instances", "first"), [(1, (4, 8, 12, 14)), (2, (8, 17, 20)), (3, (12, 14, 17)), (4, (17, 20)), (5, (20, 24))]
)
def test_no_look_weighs_one_instance_more_than_another(instances, first):
    """Looks before every instance has equally many eights are left out, and so are those inside an eight."""
    assert critical.looks(instances)[: len(first)] == first
    assert set(critical.looks(instances)) <= set(critical.LOOKS)
    assert critical.next_look(0, instances) == first[0]
    assert critical.last_look(first[0] - 1, instances) is None


def test_every_promised_level_has_critical_values():
    """Guards, both alphas, and each alpha shared by up to four steps of an order have their row."""
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


@pytest.mark.parametrize(("level", "look"), [(0.05, 4), (0.0005, 8), (0.0005 / 2, 12), (0.0001, 12), (0.0001 / 4, 12)])
def test_the_first_look_that_can_speak_depends_on_the_level(level, look):
    """A guard can hold after one eight, a claim after two, the stricter levels after three."""
    assert critical.boundary(level).first_look == look


def strictness(look, value):
    """A number that grows with the evidence that a critical value asks for."""
    if value is None:
        return float("inf")
    return value if look >= critical.RANKS_FROM else -value


def test_stricter_levels_ask_for_more():
    """From level to stricter level no look gets easier, but for one: .00025 spends at 12 what .0005 spends at 8."""
    for loose, strict in pairwise(sorted(critical.TABLE, reverse=True)):
        for look in critical.LOOKS:
            less, more = (strictness(look, critical.TABLE[level].at(look)) for level in (loose, strict))
            assert (less > more) == ((look, loose) == (12, 0.0005))


@pytest.mark.parametrize("level", critical.LEVELS[1:])
def test_the_looks_of_a_claim_add_up_to_its_level(level):
    """Each look's chance is exact for any noise, so their sum bounds the chance of any of them; little is left over."""
    bound = critical_values.bound(critical.boundary(level).critical)
    assert 0.99 * level < bound <= level


@pytest.mark.parametrize("level", critical.LEVELS[1:])
def test_the_script_makes_the_row_of_a_claim(level):
    """By counting alone."""
    assert critical_values.claim_row(level) == critical.boundary(level).critical


def test_a_guard_is_bounded_for_any_noise():
    """At most .109, which is what its message rounds to .11."""
    assert 0.1 < critical_values.bound(critical.boundary(0.05).critical) <= 0.109 < critical.GUARD_BOUND


def test_the_looks_of_a_guard_share_a_nominal_level():
    """From 14 pairs on each value is the smallest sum whose exact chance is at most .00596."""
    row = critical.boundary(0.05)
    assert [row.at(look) for look in RANK_LOOKS] == [critical_values.strongest(look, 0.005956) for look in RANK_LOOKS]


def test_a_small_calibration_finds_the_level_of_guards():
    """Ten thousand runs of the script give a nominal level near that of the table."""
    assert critical_values.guard_nominal(10_000, seed=1) == pytest.approx(0.00596, rel=0.25)


def test_chances_of_eights_are_those_of_counted_arrangements():
    """The first of so many orders: 1 of 70, 1, 3, 8, 18 of 4900, and 1, 4, 13, 35 of 343000."""
    ways = [list(itertools.accumulate(critical_values.eights_ways(eights)[:4])) for eights in (1, 2, 3)]
    assert ways == [[1, 2, 4, 7], [1, 3, 8, 18], [1, 4, 13, 35]]
    assert [sum(critical_values.eights_ways(eights)) for eights in (1, 2, 3)] == [70, 4900, 343000]


def test_chances_of_rank_sums_agree_with_counting():
    """All 256 patterns of eight signs."""
    sums = [sum(rank for rank, up in enumerate(signs, 1) if up) for signs in itertools.product((0, 1), repeat=8)]
    assert list(critical_values.rank_tails(8)) == [sum(one >= least for one in sums) for least in range(38)]
