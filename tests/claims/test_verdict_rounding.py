"""Verdicts on times that a tool printed in steps: what rounding could decide is inconclusive."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.verdict import Terms, judge, replay
from pytest_dbcluster.rounds import pairing
from pytest_dbcluster.rounds.round import Round, RunResult
from tests.support.pairs import placed

STEP = 0.001
SENTENCE = "rounding could decide: the tool prints the time of a round in steps of up to {} of a round"


def printed(candidate, baseline, pairs=160, sd=0.001, seed=1):
    """Pairs of rounds that take these seconds in truth, and are printed in milliseconds."""
    source, rounds = random.Random(seed), ([], [])
    for block, *places in placed(seed, pairs):
        for of_variant, name, seconds, place in zip(rounds, "bc", (baseline, candidate), places, strict=True):
            took = round(seconds * math.exp(source.gauss(0, sd)) / STEP) * STEP
            of_variant.append(Round(name, block, place, RunResult(took, 100, resolution=STEP), 0.0, 0.0))
    speeds = tuple([done.throughput for done in of_variant] for of_variant in rounds[::-1])
    found = pairing.pairs_of(rounds[1], rounds[0], speeds)
    return dataclasses.replace(found, rounding=pairing.rounding(rounds[1], rounds[0]))


def judged(claim, pairs):
    """The verdict that these pairs reach, look by look."""
    return replay(claim, pairs, Terms(cap=len(pairs)))


def test_a_guard_does_not_hold_because_of_rounding():
    """10.34 against 9.55 ms are 7.6 % slower, and both are printed as 10 ms. Rounds of a second say that it fails."""
    pairs = printed(0.01034, 0.00955)
    found = judged(kinds.no_slower_than(0.05), pairs)

    assert judged(kinds.no_slower_than(0.05), pairs.exact()).outcome is Outcome.HOLDS
    assert found.outcome is Outcome.INCONCLUSIVE
    assert SENTENCE.format("11 %") in found.reason
    assert found.reason.endswith("make the rounds longer")
    assert found.needed_pairs is None
    assert found.needed_margin == pytest.approx(1 - 0.95**2)
    assert judged(kinds.no_slower_than(0.05), printed(1.034, 0.955)).outcome is Outcome.FAILS


@pytest.mark.parametrize(
    ("claim", "candidate"),
    [
        (kinds.no_slower_than(0.05), 0.0111),
        (kinds.same_as(0.05), 0.0100),
        (kinds.beats(), 0.0092),
        (kinds.beats(0.1), 0.0097),
        (kinds.differs(), 0.0092),
    ],
    ids=str,
)
def test_a_verdict_within_a_step_of_the_bound_is_inconclusive(claim, candidate):
    """Whether exact times would hold or fail: steps of a tenth of the round could change it."""
    pairs = printed(candidate, 0.010, sd=0.03)

    assert judged(claim, pairs.exact()).outcome is not Outcome.INCONCLUSIVE
    assert judged(claim, pairs).outcome is Outcome.INCONCLUSIVE
    assert "rounding could decide" in judged(claim, pairs).reason


@pytest.mark.parametrize(
    ("claim", "candidate", "outcome"),
    [
        (kinds.no_slower_than(0.05), 0.0150, Outcome.FAILS),
        (kinds.no_slower_than(0.20), 0.0100, Outcome.HOLDS),
        (kinds.same_as(0.30), 0.0100, Outcome.HOLDS),
        (kinds.beats(), 0.0050, Outcome.HOLDS),
        (kinds.beats(), 0.0150, Outcome.FAILS),
        (kinds.differs(), 0.0150, Outcome.HOLDS),
    ],
    ids=str,
)
def test_what_rounding_cannot_change_is_decided(claim, candidate, outcome):
    """Short rounds tell large differences."""
    assert judged(claim, printed(candidate, 0.010)).outcome is outcome


def test_rounds_of_half_a_second_decide_as_exact_ones():
    """Their steps are a fifth of a percent."""
    pairs = printed(0.5, 0.5, sd=0.02)
    found, exact = (judged(kinds.no_slower_than(0.05), one) for one in (pairs, pairs.exact()))

    assert (found.outcome, found.pairs, found.low) == (exact.outcome, exact.pairs, exact.low)
    assert 0.001 < found.detectable - exact.detectable < 0.003


def test_a_claim_that_rounding_keeps_open_is_futile():
    """No number of pairs makes the steps smaller, so that it does not go on to the cap."""
    found = judged(kinds.no_slower_than(0.05), printed(0.010, 0.010))

    assert found.reason.startswith("stopped early: ")
    assert "rounding could decide" in found.reason
    assert found.pairs == 28


def test_a_round_within_one_step_decides_nothing():
    """A time of 1 ms is anything from half of it on."""
    pairs = dataclasses.replace(printed(0.010, 0.005), rounding=(math.inf,) * 160)
    found = judged(kinds.beats(), pairs)

    assert found.outcome is Outcome.INCONCLUSIVE
    assert SENTENCE.format("a whole round").removesuffix(" of a round") in found.reason


def test_exact_times_are_judged_as_ever():
    """Nothing is said of rounding where the claim is open for another reason."""
    pairs = printed(0.5, 0.5, pairs=8, sd=0.3)
    found = judge(kinds.beats(), pairs, Terms(cap=8))

    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.reason == "cap of 8 pairs"
