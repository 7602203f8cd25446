"""A counter in a typical round: exact, silent where nothing was counted, and with the totals beside."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from benchmarks import critical_values as counting
from pytest_dbcluster.claims import counts, critical_values, intervals, power
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.kinds import lower
from pytest_dbcluster.claims.pairs import Pairs, log
from pytest_dbcluster.claims.verdict import Terms, replay
from tests.support.pairs import orders

ALPHA = 0.0005


def counted(candidate, baseline, seed=1):
    """Pairs of a counter."""
    return Pairs.of(candidate, baseline, orders(seed, len(candidate)), counts=True)


def rare(share, number, seed):
    """Counts that are 1 in this share of the rounds, else 0."""
    source = random.Random(seed)
    return [float(source.random() < share) for _ in range(number)]


@pytest.mark.parametrize("level", critical_values.LEVELS)
def test_each_look_has_the_chance_of_its_critical_value(level):
    """So the looks of a claim about a counter add up to its level as well."""
    for look, value in zip(critical_values.LOOKS, critical_values.boundary(level).critical, strict=True):
        if look >= critical_values.RANKS_FROM:
            assert counts.chance(level, look) == pytest.approx(counting.chance(look, value), rel=1e-12)


@pytest.mark.parametrize("values", [[0] * 10 + [1, 2, 3, 1], [*range(1, 15)], [0.7] * 14, [1e6, 1] + [0] * 12])
def test_no_order_of_14_pairs_is_wrong_more_often_than_the_look_may_be(values):
    """All 16384 patterns of which round was whose: the reverse of a pattern has both answers exchanged."""
    found, order = {0.05: 0, ALPHA: 0}, (True,) * 14
    logs = [(log(value), -math.inf) for value in values]
    for pattern in itertools.product((0, 1), repeat=13):
        sides = [*zip(*(both[:: 1 - 2 * p] for both, p in zip(logs, (0, *pattern), strict=True)), strict=True)]
        pairs = Pairs(*sides, order, counts=True)
        reverse = None if sum(pattern) % 5 else Pairs(*sides[::-1], order, counts=True)
        for level in found:
            answers = counts.rejects(pairs, level, 0.0)
            found[level] += sum(answers)
            assert reverse is None or counts.rejects(reverse, level, 0.0) == answers[::-1]
    assert all(wrong <= counts.chance(level, 14) * 2**14 for level, wrong in found.items())


def test_nothing_on_both_sides_is_no_evidence():
    """For no bound; the claim stops once it is futile and says that there was nothing to count."""
    verdict = replay(lower(0.1), counted([0.0] * 160, [0.0] * 160))

    assert (verdict.outcome, verdict.pairs) == (Outcome.INCONCLUSIVE, 28)
    assert verdict.reason.endswith("; 0 of 28 pairs counted anything")
    assert (verdict.ratio, verdict.low, verdict.high) == (1.0, 0.0, math.inf)
    assert verdict.needed_pairs is None


@pytest.mark.parametrize("empty", [0, 20, 120])
def test_pairs_without_anything_leave_first(empty):
    """However many there are, the others say the same."""
    ours, theirs = [1.0, 0.0, 2.0, 0.0] * 10, [3.0, 1.0, 2.0, 4.0] * 10
    more = [0.0] * empty

    assert counts.ratios(counted([*ours, *more], [*theirs, *more])) == counts.ratios(counted(ours, theirs))


def test_rare_counts_of_equal_variants_are_not_judged():
    """One round in ten counts something, in both: no claim holds or fails in 60 measurements."""
    outcomes = {
        replay(lower(), counted(rare(0.1, 160, seed), rare(0.1, 160, -seed - 1), seed)).outcome for seed in range(60)
    }

    assert outcomes == {Outcome.INCONCLUSIVE}


def test_many_against_none_hold_after_three_opening_blocks():
    """As soon as a claim about a speed can."""
    verdict = replay(lower(0.5), counted([0.0] * 160, [3.0, 5.0, 4.0, 6.0] * 40))

    assert (verdict.outcome, verdict.pairs, verdict.ratio) == (Outcome.HOLDS, 12, 0.0)


def test_a_higher_counter_fails():
    """Where most of the orders would have given the candidate less."""
    verdict = replay(lower(), counted([3.0, 5.0, 4.0, 6.0] * 40, [0.0] * 160))

    assert (verdict.outcome, verdict.pairs, verdict.ratio) == (Outcome.FAILS, 12, math.inf)


def test_few_counts_are_inconclusive_and_say_how_few():
    """Three against none are no proof; more pairs may be."""
    verdict = replay(lower(), counted([0.0] * 40, [1.0, 0.0, 1.0, 1.0] + [0.0] * 36), Terms(cap=40))

    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "; 3 of " in verdict.reason


@pytest.mark.parametrize("number", [12, 17, 40, 160])
def test_the_interval_ends_where_the_test_rejects(number):
    """At two of the pairs, on either side."""
    source = random.Random(number)
    pairs = counted([source.expovariate(1) for _ in range(number)], [source.expovariate(0.3) for _ in range(number)])
    low, high = intervals.interval(pairs, ALPHA)

    assert low < intervals.estimate(pairs) < high
    assert intervals.rejects(pairs, ALPHA, high + 0.0001)[1]
    assert not intervals.rejects(pairs, ALPHA, high - 0.0001)[1]
    assert intervals.rejects(pairs, ALPHA, low - 0.0001)[0]
    assert not intervals.rejects(pairs, ALPHA, low + 0.0001)[0]


def test_the_estimate_is_the_median_of_the_pairs():
    """One round with a thousand is one round; the totals, where it is most, are a figure of their own."""
    pairs = counted([1.0, 0.0, 1.0], [1000.0, 0.0, 3.0])
    assert intervals.estimate(pairs) == pytest.approx((math.log(1 / 1000) + math.log(1 / 3)) / 2)
    assert counts.total(pairs) == pytest.approx(math.log(2 / 1003))
    assert counts.total(counted([0.0], [0.0])) == 0.0
    assert counts.total(counted([2.0], [0.0])) == math.inf


def test_without_pairs_nothing_is_known():
    """No estimate, and no totals."""
    assert math.isnan(counts.estimate(counted([], [])))
    assert math.isnan(counts.total(counted([], [])))


def bursts(seed, number, burst=300.0, every=20):
    """Counts of about 2, and every so many rounds a burst."""
    source = random.Random(seed)
    return [burst if place % every == 7 else source.choice((1.0, 2.0, 3.0)) for place in range(number)]


def test_totals_that_disagree_leave_it_open_with_both_figures():
    """Most rounds of the candidate count less, but a few have nearly all counts."""
    answer = replay(lower(0.1), counted(bursts(1, 60), [8.0] * 60), Terms(cap=56))

    assert answer.outcome is Outcome.INCONCLUSIVE
    assert "the typical round and the totals disagree: 0.25x in the median pair" in answer.reason
    assert answer.total > 1 > answer.ratio


def test_bursts_of_both_alike_do_not_hide_a_difference():
    """The typical round counts a quarter, and the bursts are a quarter as large."""
    theirs = [8.0 if value < 100 else 1200.0 for value in bursts(2, 60)]
    answer = replay(lower(0.5), counted(bursts(2, 60), theirs))

    assert (answer.outcome, answer.ratio) == (Outcome.HOLDS, pytest.approx(0.25))
    assert answer.total == pytest.approx(0.25, rel=0.1)


@pytest.mark.parametrize("kind", ["other spread", "rare bursts", "one side mostly 0"])
def test_equal_chances_of_either_side_are_seldom_judged(kind):
    """Whatever the spread: a pair lies above and below the bound equally often, and no claim of 200 holds or fails."""
    made = {
        "other spread": lambda source: (source.lognormvariate(0, 1), source.lognormvariate(0, 0.1)),
        "rare bursts": lambda source: (source.choice((1, 3)) * (100 if source.random() < 0.05 else 1), 2.0),
        "one side mostly 0": lambda source: source.choice(((0.0, 1.0), (5.0, 0.0), (0.0, 0.0), (0.0, 0.0))),
    }[kind]
    source, wrong = random.Random(kind), 0
    for seed in range(200):
        ours, theirs = zip(*(made(source) for _ in range(60)), strict=True)
        wrong += replay(lower(), counted(ours, theirs, seed), Terms(cap=56)).outcome is not Outcome.INCONCLUSIVE
    assert wrong <= 1


def test_could_see_and_needs_are_those_of_the_sign_test():
    """What so many pairs could see is seen by 7 to 9 of 10 claims; nine tenths on a side need few pairs."""
    source, held, runs = random.Random(3), 0, 200
    for seed in range(runs):
        ours, theirs, fresh, others = ([source.lognormvariate(3, 0.3) for _ in range(40)] for _ in range(4))
        could = power.detectable(counted(ours, theirs, seed), ALPHA)
        less = counted([value * math.exp(-could) for value in fresh], others, seed)
        held += any(intervals.rejects(less.first(look), ALPHA, 0.0)[1] for look in (12, 17, 20, 24, 28, 34, 40))
    assert 0.65 < held / runs < 0.95

    clear = counted([1.0] * 9 + [3.0], [2.0] * 10)
    assert counts.pairs_needed(clear, 9, ALPHA, critical_values.LOOKS) in (28, 34, 40)
    assert counts.pairs_needed(clear, 5, ALPHA, critical_values.LOOKS) is None
