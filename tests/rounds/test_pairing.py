"""Rounds as the data of a claim: in the order in which they ran, each with the variant before it."""

from __future__ import annotations

import math

import pytest

from pytest_dbcluster.claims.carry_over import Placed
from pytest_dbcluster.rounds import pairing
from pytest_dbcluster.rounds.round import Round, RunResult


def done(variant, block, position, void=""):
    """A round at this place."""
    return Round(variant, block, position, RunResult(1.0, 100), 0.0, 0.0, void=void)


def test_a_round_comes_after_the_one_that_ran_before_it():
    """Also from block to block, and where that was of a variant that is not asked for; of the first it is not known."""
    rounds = [
        [done("a", 0, 1), done("a", 0, 0), done("a", 1, 2)],
        [done("b", 0, 3), done("b", 0, 2), done("b", 1, 0)],
        [done("c", 0, 4), done("c", 0, 5), done("c", 1, 1)],
    ]

    assert pairing.placements(rounds, {0: [1.0, 2.0, 3.0], 1: [4.0, 5.0, 6.0]}) == [
        Placed(0, None, 0, 2.0),
        Placed(0, 0, 0, 1.0),
        Placed(1, 0, 0, 5.0),
        Placed(1, 1, 0, 4.0),
        Placed(1, 2, 1, 6.0),
        Placed(0, 2, 1, 3.0),
    ]


def test_after_a_void_round_nobody_knows_what_a_round_follows():
    """A void round did some of its work, and its place is drawn again."""
    rounds = [[done("a", 0, 0), done("a", 1, 0)], [done("b", 0, 1), done("b", 1, 1)]]
    placed = pairing.placements(rounds, {0: [0.0] * 2, 1: [0.0] * 2}, [done("b", 0, 1, "a primary changed")])

    assert [one.after for one in placed] == [None, None, 1, 0]


def test_times_that_a_tool_prints_may_be_wrong_by_half_a_step_each():
    """Half a millisecond of 10 is a twentieth, in opposite directions at worst; a clock that is read rounds nothing."""
    printed = [Round("a", 0, 0, RunResult(0.010, 100, resolution=0.001), 0.0, 0.0)]
    read = [Round("b", 0, 1, RunResult(0.010, 100), 0.0, 0.0)]
    coarse = [Round("c", 0, 1, RunResult(0.5, 100, resolution=1.0), 0.0, 0.0)]

    assert pairing.rounding(printed, printed) == (pytest.approx(-2 * math.log(0.95)),)
    assert pairing.rounding(printed, read) == (pytest.approx(-math.log(0.95)),)
    assert pairing.rounding(read, read) == ()
    assert pairing.rounding(coarse, read) == (math.inf,)
