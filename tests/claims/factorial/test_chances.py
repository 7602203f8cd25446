"""The exact distribution of the statistic of an effect, and the looks."""

from __future__ import annotations

import collections
import itertools

import pytest

from pytest_dbcluster.claims.factorial import chances

BLOCK = (4, 4)


def counted(shapes):
    """By U, the number of arrangements, counted one by one."""
    of_strata = []
    for second, first in shapes:
        places = range(second + first)
        chosen = (set(some) for some in itertools.combinations(places, second))
        of_strata.append([sum(i <= j for i in some for j in places if j not in some) for some in chosen])
    return collections.Counter(map(sum, itertools.product(*of_strata)))


@pytest.mark.parametrize("shapes", [(BLOCK,), (BLOCK, BLOCK), ((1, 3), (2, 2), (3, 1)), ((0, 4), (2, 2)), ()])
def test_the_distribution_is_that_of_all_arrangements(shapes):
    """Also if the strata have other numbers of rounds, and of a stratum in which a level is missing."""
    ways = counted(shapes)

    assert chances.ways(shapes) == tuple(itertools.accumulate(ways[u] for u in range(max(ways) + 1)))


def test_the_critical_value_is_the_largest_whose_chance_is_allowed():
    """Of three blocks 1, 4, 13 and 35 of 343000 arrangements have U of at most 0 to 3."""
    three = [BLOCK] * 3

    assert [chances.critical_value(three, most / 343_000) for most in (1, 3.9, 4, 13, 34)] == [0, 0, 1, 2, 2]
    assert chances.critical_value(three, 0.9 / 343_000) is None
    assert chances.critical_value([(2, 2)], 1.0) == 4


@pytest.mark.parametrize("level", [0.05, 0.0005, 0.0001, 0.0005 / 12])
def test_all_looks_together_keep_the_level(level):
    """The chances of the looks add up to at most the level, for any dependence between them."""
    spent = 0.0
    for look in chances.LOOKS:
        value = chances.critical_value([BLOCK] * look, chances.at_look(level))
        ways = chances.ways((BLOCK,) * look)
        spent += 0.0 if value is None else ways[value] / ways[-1]

    assert 0 < spent <= level


def test_the_first_look_is_the_first_that_can_decide():
    """Four blocks for any usual level; more for a very small one."""
    assert [chances.first_look(level) for level in (0.05, 0.0001, 1e-7)] == [4, 4, 5]
    assert [chances.last_look(blocks) for blocks in (0, 3, 4, 9, 100)] == [0, 0, 4, 8, 40]
    assert chances.PAIRS[:2] == (16, 20)
