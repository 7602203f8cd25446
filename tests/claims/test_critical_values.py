"""The looks and the table of critical values."""

import functools
import math
from itertools import pairwise

import pytest

from benchmarks import critical_values
from pytest_dbcluster.claims import critical_values as critical
from pytest_dbcluster.errors import ConfigError


@functools.cache
def sign_patterns(pairs):
    """How many patterns of signs give each signed-rank sum of ``pairs`` differences."""
    ways = [1] + [0] * (pairs * (pairs + 1) // 2)
    for rank in range(1, pairs + 1):
        ways = [count + (ways[s - rank] if s >= rank else 0) for s, count in enumerate(ways)]
    return ways


def exact_tail(pairs, rank_sum):
    """The exact chance that the signed-rank sum of symmetric differences is at least ``rank_sum``."""
    return sum(sign_patterns(pairs)[rank_sum:]) / 2**pairs


def test_looks_grow_by_about_two_fifths():
    """The looks are those of the rule, six pairs first and 160 last."""
    assert critical.LOOKS == (6, 8, 11, 15, 20, 28, 40, 56, 80, 113, 160)


@pytest.mark.parametrize(
    ("pairs", "look"), [(0, 6), (5, 6), (6, 8), (7, 8), (28, 40), (159, 160), (160, None), (999, None)]
)
def test_next_look_is_the_first_one_ahead(pairs, look):
    """After a look the next one is asked for, after the last none."""
    assert critical.next_look(pairs) == look


@pytest.mark.parametrize(
    ("pairs", "look"), [(0, None), (5, None), (6, 6), (7, 6), (28, 28), (39, 28), (160, 160), (999, 160)]
)
def test_last_look_is_the_one_reached_or_passed(pairs, look):
    """Pairs between two looks belong to the earlier one."""
    assert critical.last_look(pairs) == look


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


def test_stricter_levels_ask_for_more():
    """From level to stricter level no critical value falls."""
    rows = [critical.TABLE[level].critical for level in sorted(critical.TABLE, reverse=True)]
    for loose, strict in pairwise(rows):
        assert all(a <= b for a, b in zip(loose, strict, strict=True))


@pytest.mark.parametrize("level", critical.LEVELS)
@pytest.mark.parametrize("pairs", [15, 20, 28, 40, 56, 80, 113, 160])
def test_rank_sums_are_the_smallest_strong_enough(level, pairs):
    """Each signed-rank value is the smallest sum whose exact chance is at most the nominal level."""
    row = critical.boundary(level)
    value = int(row.at(pairs))
    total = pairs * (pairs + 1) // 2
    chance = exact_tail(pairs, value) if value <= total else 0.0
    assert chance <= row.nominal * (1 + 1e-3) < exact_tail(pairs, value - 1) * (1 + 2e-3)


@pytest.mark.parametrize("level", critical.LEVELS)
@pytest.mark.parametrize("pairs", [6, 8, 11])
def test_t_values_belong_to_a_quarter_of_the_level(level, pairs):
    """Each t value has a quarter of the nominal level, or is infinite where two modes alone could reach it."""
    row = critical.boundary(level)
    if 2 * 4.0**-pairs > level:
        assert math.isinf(row.at(pairs))
    else:
        assert row.at(pairs) == pytest.approx(critical_values.critical_t(2 * row.nominal, pairs), rel=1e-3)


@pytest.mark.parametrize(
    ("t", "df", "p"),
    [
        (2.5706, 5, 0.05),
        (2.3646, 7, 0.05),
        (2.2281, 10, 0.05),
        (6.8688, 5, 0.001),
        (12.706, 1, 0.05),
        (4.3027, 2, 0.05),
    ],
)
def test_student_tail_agrees_with_printed_tables(t, df, p):
    """The closed form of Student's tail gives the levels of the usual quantiles."""
    assert critical_values.student_p(critical_values.np.array([t]), df)[0] == pytest.approx(p, rel=1e-4)


def test_a_small_calibration_finds_the_shipped_levels():
    """Forty thousand runs of the script give nominal levels near those of the table."""
    lowest = critical_values.smallest_p(critical_values.uniform, 40_000, seed=1)
    found = critical_values.nominal_level(lowest[0], 40_000, 0.05) / 2
    assert found == pytest.approx(critical.boundary(0.05).nominal, rel=0.1)
