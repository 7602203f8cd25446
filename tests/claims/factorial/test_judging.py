"""Verdicts on effects: at the looks, from the same rounds for all options."""

from __future__ import annotations

import dataclasses
import math

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.factorial.judging import judge
from pytest_dbcluster.claims.factorial.trial import FactorialTrial
from pytest_dbcluster.claims.verdict import Terms
from tests.claims.factorial.test_contrasts import trial_of

TERMS = Terms(alpha=0.0005 / 4)
CLEAR = trial_of([0.4, 0.0, -0.3, 0.1], 12)


@pytest.mark.parametrize(
    ("claim", "option", "outcome"),
    [
        (kinds.effect_beats(0.05), 0, Outcome.HOLDS),
        (kinds.effect_beats(0.05), 2, Outcome.FAILS),
        (kinds.effect_same_as(0.05), 1, Outcome.HOLDS),
        (kinds.effect_same_as(0.05), 2, Outcome.FAILS),
        (kinds.effect_differs(), 2, Outcome.HOLDS),
    ],
)
def test_a_clear_effect_is_decided_at_a_look(claim, option, outcome):
    """The figures are those of the rounds that the look has seen."""
    found = judge(claim, CLEAR, TERMS, option)

    assert found.outcome is outcome
    assert found.pairs in claim.of_kind.looks(1)
    assert found.alpha == TERMS.alpha
    assert found.low < found.ratio < found.high
    assert (found.pair_sd, found.look) == (pytest.approx(0.042, abs=0.02), 1 + found.pairs // 4 - 4)


def test_nothing_is_decided_before_the_first_look():
    """Three blocks decide nothing, however clear the effect is."""
    assert judge(kinds.effect_beats(), CLEAR.part(0, 3), TERMS, 0) is None
    assert judge(kinds.effect_beats(), CLEAR.part(0, 4), TERMS, 0).pairs == 16


def test_a_claim_that_is_made_later_gets_the_same_verdict():
    """It is judged look by look, so the rounds that another claim drew change nothing."""
    claim = kinds.effect_beats()

    assert judge(claim, CLEAR, TERMS, 0) == judge(claim, CLEAR.part(0, 4), TERMS, 0)


def test_an_effect_on_its_bound_stays_open():
    """Until the cap or the budget ends it; then it says how many pairs would decide."""
    close = trial_of([0.06, 0.0], 5, sd=0.05)
    claim = kinds.effect_same_as(0.05)
    found = judge(claim, close, dataclasses.replace(TERMS, out_of_budget="budget used"), 0)

    assert judge(claim, close, TERMS, 0) is None
    assert (found.outcome, found.reason, found.pairs) == (Outcome.INCONCLUSIVE, "budget used", 20)
    assert found.needed_pairs > 20
    assert found.needed_margin > 0.05
    capped = judge(claim, close, dataclasses.replace(TERMS, cap=20), 0)
    assert (capped.outcome, capped.reason) == (Outcome.INCONCLUSIVE, "cap of 20 pairs")


def test_an_interaction_is_judged_at_both_levels_of_the_other_option():
    """The same claim about the effect of one option at the levels of the other."""
    both = trial_of([0.3, 0.3, 0.0], 24, interaction=0.4)

    assert judge(kinds.effect_beats(), both, TERMS, 0, 1).outcome is Outcome.HOLDS
    assert judge(kinds.effect_beats(), both, TERMS, 0, 2) is None


def test_void_rounds_that_depend_on_the_level_decide_nothing():
    """A level whose slow rounds are void looks faster than it is."""
    lost = dataclasses.replace(CLEAR, void=((0, 1), (1, 1), (2, 1), (2, 1)))
    found = judge(kinds.effect_beats(), lost, dataclasses.replace(TERMS, out_of_budget="budget used"), 0)

    assert (found.outcome, found.void) == (Outcome.INCONCLUSIVE, (0, 4))
    assert "4 of the candidate and 0 of the baseline were void" in found.reason


def test_rounding_that_could_decide_keeps_a_claim_open():
    """Times in steps move an end of the interval by up to their step."""
    claim = kinds.effect_beats()

    assert judge(claim, dataclasses.replace(CLEAR, rounding=math.inf), TERMS, 0) is None
    assert judge(claim, dataclasses.replace(CLEAR, rounding=0.5), TERMS, 0) is None


def test_no_verdict_is_given_where_none_can_be_trusted():
    """The reason is that of the machine."""
    found = judge(kinds.effect_beats(), CLEAR, Terms(TERMS.alpha, 20, "", "fsync costs nothing"), 0)

    assert (found.outcome, found.reason) == (Outcome.INCONCLUSIVE, "fsync costs nothing")


def test_without_rounds_there_are_no_figures():
    """Only the reason."""
    found = judge(kinds.effect_beats(), FactorialTrial((), (), 2), Terms(TERMS.alpha, out_of_budget="time is over"), 0)

    assert (found.outcome, found.pairs, found.needed_pairs) == (Outcome.INCONCLUSIVE, 0, None)
    assert math.isnan(found.ratio)
