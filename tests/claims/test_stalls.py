"""The guard against rare stalls: one look after 40 pairs."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from pytest_dbcluster.claims import power, wording
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.claims.verdict import STALL_PAIRS, USUAL, Terms, judge_stalls
from tests.support.pairs import orders

CALM = [1.0] * STALL_PAIRS


def judged(candidate, baseline, terms=USUAL, **fields):
    """The answer to rounds of so many seconds, pair by pair."""
    pairs = Pairs.of([1 / one for one in candidate], [1 / one for one in baseline], orders(1, len(candidate)), **fields)
    return judge_stalls(pairs, (baseline, candidate), terms)


def stalling(number):
    """Forty rounds of which so many took three times their median."""
    return [3.0] * number + [1.0] * (STALL_PAIRS - number)


@pytest.mark.parametrize("pairs", [0, 8, STALL_PAIRS - 1])
def test_nothing_is_answered_before_40_pairs(pairs):
    """Fewer pairs cannot tell rare stalls from chance."""
    assert judged(stalling(20)[:pairs], CALM[:pairs]) is None


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
    answer = judged(stalling(ours), list(reversed(stalling(theirs))))

    assert (answer.outcome, answer.reason, answer.stalls) == (outcome, reason, (theirs, ours))


def test_a_used_budget_leaves_few_pairs_inconclusive():
    """Too few pairs never hold, whatever they show."""
    answer = judged(CALM[:10], CALM[:10], Terms(out_of_budget="budget of 3 s used"))

    assert (answer.outcome, answer.reason) == (Outcome.INCONCLUSIVE, "budget of 3 s used: 0 v 0")


def test_few_pairs_can_fail():
    """Evidence beyond chance is evidence after a used budget, too."""
    answer = judged(stalling(15), CALM, Terms(out_of_budget="budget of 3 s used"))

    assert answer.outcome is Outcome.FAILS


def test_fewer_pairs_are_looked_at_where_no_more_may_be_drawn():
    """However many another claim has drawn: the guard answers as it would have alone."""
    for drawn in (20, STALL_PAIRS):
        answer = judged(CALM[:drawn], CALM[:drawn], Terms(cap=20))
        assert (answer.pairs, answer.outcome, answer.reason) == (20, Outcome.INCONCLUSIVE, "cap of 20 pairs: 0 v 0")


def test_a_budget_that_is_used_later_is_no_matter_of_the_look():
    """All of its pairs were there, so that the reason is what they show."""
    answer = judged(stalling(7), CALM, Terms(out_of_budget="budget of 3 s used"))

    assert answer.reason == "chance may or may not explain the stalls: 7 v 0"


def test_a_blind_machine_sees_no_stalls():
    """As no answer about time can be trusted there."""
    for ours in (0, 15):
        answer = judged(stalling(ours), CALM, Terms(untrusted="nodes share the cores"))
        assert (answer.outcome, answer.reason) == (Outcome.INCONCLUSIVE, "nodes share the cores")


def test_void_rounds_that_depend_on_the_variant_leave_it_open():
    """A stalled round may be the one that went void."""
    answer = judged(CALM, CALM, void=((3, True), (5, True)))

    assert answer.outcome is Outcome.INCONCLUSIVE
    assert "2 of the candidate and 0 of the baseline were void" in answer.reason


def seconds_of(source, share):
    """Forty rounds of about 1 s, of which about this share take three times as long."""
    return [source.gauss(1, 0.02) * (3.0 if source.random() < share else 1.0) for _ in range(STALL_PAIRS)]


def outcomes(ours, theirs, runs):
    """The outcomes of measurements in which these shares of the rounds stall."""
    source = random.Random(5)
    return Counter(judged(seconds_of(source, ours), seconds_of(source, theirs)).outcome for _ in range(runs))


def test_equal_variants_of_which_half_of_the_rounds_stall_do_not_differ():
    """One median for both: a median of their own would fall on either side by chance, and make one of them red."""
    found = outcomes(0.5, 0.5, 200)

    assert found[Outcome.FAILS] == 0
    assert found[Outcome.HOLDS] > 180


@pytest.mark.parametrize("share", [0.1, 0.2])
def test_the_message_says_how_often_stalls_are_missed(share):
    """Measured: 63 % of claims hold where a tenth of the rounds stalls, and 8 % where a fifth does."""
    held = outcomes(share, 0.0, 300)[Outcome.HOLDS] / 300
    message = wording.message(
        judged(CALM, CALM), names=("new", "old"), metric="throughput", seconds_per_round=1.0, seed=1
    )

    assert held == pytest.approx(power.stalls_missed(share, STALL_PAIRS), abs=0.08)
    assert (
        "it holds with a chance of 63 % if 10 % and 8 % if 20 % of its rounds stall, and none of the other's" in message
    )


APART = 0.07  # of the rounds: three of forty


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome"),
    [
        (0, 0, Outcome.HOLDS),
        (2, 0, Outcome.INCONCLUSIVE),
        (13, 0, Outcome.INCONCLUSIVE),
        (14, 0, Outcome.FAILS),
    ],
)
def test_on_separate_clusters_some_stalls_may_be_the_cluster_s(ours, theirs, outcome):
    """Of one more or fewer than that neither side is to blame: holding and failing both need more evidence."""
    pairs = Pairs.of([1.0] * STALL_PAIRS, [1.0] * STALL_PAIRS, orders(1, STALL_PAIRS))
    times = list(reversed(stalling(theirs))), stalling(ours)
    apart = judge_stalls(pairs, times, apart=math.log1p(APART))
    together = judge_stalls(pairs, times)

    assert apart.outcome is outcome
    assert apart.claim.apart == math.log1p(APART)
    assert apart.stalls == together.stalls
    assert ("a difference between equal clusters" in apart.reason) is (outcome is not Outcome.HOLDS)
    assert "equal clusters" not in together.reason
