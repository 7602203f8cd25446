"""The total difference of a counter: exact, and silent where nothing was counted."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from benchmarks import critical_values as counting
from pytest_dbcluster.claims import critical_values, intervals, totals
from pytest_dbcluster.claims.claim import Outcome, lower
from pytest_dbcluster.claims.pairs import Pairs
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
        assert totals.chance(level, look) == pytest.approx(counting.chance(look, value), rel=1e-12)


@pytest.mark.parametrize(
    "eight",
    [
        (0, 0, 0, 0, 0, 0, 0, 1),
        (0, 0, 3, 0, 0, 1, 7, 0),
        (5, 5, 5, 5, 6, 6, 6, 6),
        (1000, 1010, 990, 1500, 2000, 1001, 4, 1003),
        (0.1, 0.2, 0.30000000000000004, 0.3, 0.5, 0.8, 1.3, 2.1),
    ],
)
def test_no_order_of_two_eights_is_wrong_more_often_than_the_look_may_be(eight):
    """All 4900 arrangements of fixed values, as the draw gives them: the chance is a share of them."""
    ways = list(itertools.combinations(range(8), 4))

    def labelled(chosen):
        return [eight[n] for n in chosen], [eight[n] for n in range(8) if n not in chosen]

    found = []
    for first, second in itertools.product(ways, repeat=2):
        (a, b), (c, d) = labelled(first), labelled(second)
        pairs = Pairs.of([*a, *c], [*b, *d], [True] * 8, counts=True)
        found.append(totals.chance_below(pairs, 0.0))
    for most in (0.0002041, 0.0025, 0.05, 0.3):
        assert sum(chance <= most for chance in found) <= most * len(found)


@pytest.mark.parametrize("values", [[0] * 10 + [1, 2, 3, 1], [*range(1, 15)], [0.7] * 14, [1e6, 1] + [0] * 12])
def test_no_order_of_14_pairs_is_wrong_more_often_than_the_look_may_be(values):
    """All 16384 patterns of which round was whose."""
    found = []
    for pattern in itertools.product((0, 1), repeat=14):
        ours, theirs = ([v if p == side else 0.0 for v, p in zip(values, pattern, strict=True)] for side in (0, 1))
        found.append(totals.chance_below(Pairs.of(ours, theirs, [True] * 14, counts=True), 0.0))
    for most in (2**-14, 0.001, 0.05, 0.3):
        assert sum(chance <= most for chance in found) <= most * len(found)


def test_nothing_on_both_sides_is_no_evidence():
    """For no bound; the claim stops once it is futile and says that there was nothing to count."""
    verdict = replay(lower(by=0.1), counted([0.0] * 160, [0.0] * 160))

    assert (verdict.outcome, verdict.pairs) == (Outcome.INCONCLUSIVE, 28)
    assert verdict.reason.endswith("; 0 of 28 pairs counted anything")
    assert (verdict.ratio, verdict.low, verdict.high) == (1.0, 0.0, math.inf)
    assert verdict.needed_pairs is None


@pytest.mark.parametrize("empty", [0, 20, 120])
def test_pairs_without_anything_leave_first(empty):
    """However many there are, the others say the same."""
    ours, theirs = [1.0, 0.0, 2.0, 0.0] * 10, [3.0, 1.0, 2.0, 4.0] * 10
    more = [0.0] * empty

    assert totals.chance_below(counted([*ours, *more], [*theirs, *more]), 0.0) == pytest.approx(
        totals.chance_below(counted(ours, theirs), 0.0)
    )


def test_rare_counts_of_equal_variants_are_not_judged():
    """One round in ten counts something, in both: no claim holds or fails in 60 measurements."""
    outcomes = {
        replay(lower(), counted(rare(0.1, 160, seed), rare(0.1, 160, -seed - 1), seed)).outcome for seed in range(60)
    }

    assert outcomes == {Outcome.INCONCLUSIVE}


def test_many_against_none_hold_after_three_eights():
    """As soon as a claim about a speed can."""
    verdict = replay(lower(by=0.5), counted([0.0] * 160, [3.0, 5.0, 4.0, 6.0] * 40))

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
    """To a hundredth of a per cent, on either side."""
    source = random.Random(number)
    pairs = counted([source.expovariate(1) for _ in range(number)], [source.expovariate(0.3) for _ in range(number)])
    low, high = intervals.interval(pairs, ALPHA)

    assert low < intervals.estimate(pairs) < high
    assert intervals.rejects(pairs, ALPHA, high + 0.01)[1]
    assert not intervals.rejects(pairs, ALPHA, high - 0.01)[1]
    if low > -math.inf:
        assert intervals.rejects(pairs, ALPHA, low - 0.01)[0]
        assert not intervals.rejects(pairs, ALPHA, low + 0.01)[0]


def test_the_estimate_is_the_ratio_of_the_totals():
    """One round with a thousand counts as much as it is."""
    assert intervals.estimate(counted([1.0, 0.0, 1.0], [1000.0, 0.0, 3.0])) == pytest.approx(math.log(2 / 1003))


def test_without_pairs_nothing_is_known():
    """No estimate, and no spread."""
    assert math.isnan(totals.estimate(counted([], [])))
    assert totals.distance(counted([1.0], [2.0]), 0.0) == (0.0, 0.0)
