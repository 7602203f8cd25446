"""The guard against rare stalls: one look after 40 pairs."""

from __future__ import annotations

import pytest

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.verdict import STALL_PAIRS, Terms, judge_stalls

CALM = [1.0] * STALL_PAIRS


def stalling(number):
    """Forty rounds of which so many took three times their median."""
    return [3.0] * number + [1.0] * (STALL_PAIRS - number)


@pytest.mark.parametrize("pairs", [0, 6, STALL_PAIRS - 1])
def test_nothing_is_answered_before_40_pairs(pairs):
    """Fewer pairs cannot tell rare stalls from chance."""
    assert judge_stalls(stalling(20)[:pairs], CALM[:pairs]) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome", "reason"),
    [
        (0, 0, Outcome.HOLDS, "no more stalls than chance explains: 0 v 0"),
        (2, 0, Outcome.HOLDS, "no more stalls than chance explains: 2 v 0"),
        (0, 15, Outcome.HOLDS, "no more stalls than chance explains: 0 v 15"),
        (7, 0, Outcome.INCONCLUSIVE, "chance may or may not explain the stalls: 7 v 0"),
        (15, 0, Outcome.FAILS, "more stalls than chance explains: 15 v 0"),
    ],
)
def test_stalls_are_judged_by_what_chance_explains(ours, theirs, outcome, reason):
    """The exact test on the rounds of which only one variant stalled; the reason counts both."""
    answer = judge_stalls(stalling(ours), list(reversed(stalling(theirs))))

    assert (answer.outcome, answer.reason, answer.stalls) == (outcome, reason, (theirs, ours))


def test_a_used_budget_leaves_few_pairs_inconclusive():
    """Too few pairs never hold, whatever they show."""
    answer = judge_stalls(CALM[:10], CALM[:10], Terms(out_of_budget="budget of 3 s used"))

    assert (answer.outcome, answer.reason) == (Outcome.INCONCLUSIVE, "budget of 3 s used: 0 v 0")


def test_few_pairs_can_fail():
    """Evidence beyond chance is evidence after a used budget, too."""
    answer = judge_stalls(stalling(15), CALM, Terms(out_of_budget="budget of 3 s used"))

    assert answer.outcome is Outcome.FAILS


def test_fewer_pairs_are_looked_at_where_no_more_may_be_drawn():
    """However many another claim has drawn: the guard answers as it would have alone."""
    for drawn in (20, STALL_PAIRS):
        answer = judge_stalls(CALM[:drawn], CALM[:drawn], Terms(cap=20))
        assert (answer.pairs, answer.outcome, answer.reason) == (20, Outcome.INCONCLUSIVE, "cap of 20 pairs: 0 v 0")


def test_a_budget_that_is_used_later_is_no_matter_of_the_look():
    """All of its pairs were there, so that the reason is what they show."""
    answer = judge_stalls(stalling(7), CALM, Terms(out_of_budget="budget of 3 s used"))

    assert answer.reason == "chance may or may not explain the stalls: 7 v 0"


def test_a_blind_machine_sees_no_stalls():
    """As no answer about time can be trusted there."""
    for ours in (0, 15):
        answer = judge_stalls(stalling(ours), CALM, Terms(untrusted="nodes share the cores"))
        assert (answer.outcome, answer.reason) == (Outcome.INCONCLUSIVE, "nodes share the cores")
