"""What holds of every verdict, whatever the pairs."""

import dataclasses
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dbcluster.claims import critical_values, wording
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.kinds import beats, differs, lower, no_slower_than, ordered, same_as, scales
from pytest_dbcluster.claims.pairs import clamp
from pytest_dbcluster.claims.verdict import Terms, judge, replay
from tests.support.pairs import pairs as made

CLAIMS = (
    beats(),
    beats(0.1),
    no_slower_than(0.05),
    same_as(0.1),
    scales(1.5),
    lower(),
    differs(),
)

any_claim = st.sampled_from(CLAIMS)
any_pairs = st.integers(0, 60)
looks = st.sampled_from(critical_values.LOOKS[:8])
extreme = st.one_of(st.sampled_from([0.0, 1e-300, 0.1, -0.1, 1e300, -1e300, math.inf, -math.inf]), st.floats(-9, 9))


def noise(mean, sd, pairs, seed=1):
    """Pairs with normal log ratios."""
    source = random.Random(seed)
    return made([source.gauss(mean, sd) for _ in range(pairs)], seed)


def swapped(pairs):
    """The same rounds, with candidate and baseline exchanged."""
    first = tuple(not first for first in pairs.baseline_first)
    return dataclasses.replace(pairs, candidate=pairs.baseline, baseline=pairs.candidate, baseline_first=first)


def opposite(outcome):
    """The answer to the mirrored question."""
    return {Outcome.HOLDS: Outcome.FAILS, Outcome.FAILS: Outcome.HOLDS}.get(outcome, outcome)


@st.composite
def plausible(draw, pairs=any_pairs):
    """Pairs with a true effect and noise."""
    count, effect, sd = draw(pairs), round(draw(st.floats(-0.6, 0.6)), 6), draw(st.sampled_from([0.0, 0.01, 0.1, 0.3]))
    return noise(effect, sd, count, draw(st.integers(0, 2**32)))


@given(any_claim, st.lists(extreme, max_size=45))
def test_no_input_crashes_a_claim(claim, values):
    """Constant, tied, infinite, tiny and huge ratios get an answer or another pair, and a message."""
    answer = replay(claim, made(list(map(clamp, values))), Terms(out_of_budget="end"))

    assert answer is not None
    text = wording.message(answer, names=("a", "b"), metric="m", seconds_per_round=2.0, seed=1)
    assert "seed 1" in text


@given(plausible(looks))
def test_swapping_the_variants_mirrors_beats(values):
    """Whatever holds one way round fails the other way round, after as many pairs."""
    forward, backward = judge(beats(), values), judge(beats(), swapped(values))

    assert (forward is None) == (backward is None)
    if forward is not None:
        assert backward.outcome is opposite(forward.outcome)
        assert backward.ratio == pytest.approx(1 / forward.ratio)
        assert backward.low == pytest.approx(1 / forward.high)


@given(plausible(looks), st.sampled_from([0.25, 2.0, 64.0]))
def test_the_unit_of_noise_does_not_matter(values, scale):
    """Stretching every log ratio leaves the answer of a claim without margin."""
    plain, stretched = judge(beats(), values), judge(beats(), made([value * scale for value in values.ratios]))
    plain = judge(beats(), made(values.ratios))

    assert (plain and plain.outcome) == (stretched and stretched.outcome)


@given(any_claim, plausible())
def test_an_answer_keeps_clear_of_the_bound(claim, values):
    """The interval that decided holds none of the claim's bounds, and lies inside or outside all of it."""
    answer = replay(claim, values, Terms(out_of_budget="end"))

    inside = answer.decided_low, answer.decided_high
    if answer.outcome is Outcome.HOLDS:
        assert not any(inside[0] <= math.exp(bound) <= inside[1] for bound in claim.bounds)
    if answer.outcome is Outcome.FAILS:
        low, high = map(math.exp, claim.bounds)
        assert answer.high < low or answer.low > high


@given(any_claim, plausible())
def test_replay_is_asking_after_every_pair(claim, values):
    """A claim asked of drawn pairs answers as one that was asked while they were drawn."""
    asked = (judge(claim, values.first(n), Terms(cap=40)) for n in range(len(values) + 1))
    first = next((answer for answer in asked if answer is not None), None)

    assert repr(replay(claim, values, Terms(cap=40))) == repr(first)


@given(any_claim, plausible(st.integers(9, 40)))
def test_replay_under_a_budget_decides_no_earlier(claim, values):
    """A used-up budget changes nothing about the looks before it."""
    free = replay(claim, values)
    ended = replay(claim, values, Terms(out_of_budget="budget used"), times=([1.0] * len(values),) * 2)

    if free is not None:
        assert (ended.outcome, ended.pairs) == (free.outcome, free.pairs)
    else:
        assert (ended.outcome, ended.pairs, ended.reason) == (Outcome.INCONCLUSIVE, len(values), "budget used")


@given(plausible(), st.sampled_from([0.0, 0.1]))
def test_replay_of_an_order_is_asking_after_every_block(values, step):
    """An order asked of drawn blocks answers as one that was asked while they were drawn."""
    series = [values, made(values.ratios[::-1], 2)]
    asked = (judge(ordered(step), [one.first(n) for one in series], Terms(cap=40)) for n in range(len(values) + 1))
    first = next((answer for answer in asked if answer is not None), None)

    assert repr(replay(ordered(step), series, Terms(cap=40))) == repr(first)


@settings(max_examples=50, deadline=None)
@given(plausible(looks), st.integers(2, 5))
def test_an_order_of_equal_steps_is_no_stronger_than_one(values, variants):
    """With the same series as every step an order holds when one step does, and fails only if that one fails."""
    one, order = judge(ordered(), [values]), judge(ordered(), [values] * (variants - 1))

    if order is not None and order.outcome is not Outcome.INCONCLUSIVE:
        # At 12 pairs a half of alpha asks for less than alpha itself, which has spent its part at 8 pairs.
        assert order.outcome is (one.outcome if one else Outcome.FAILS)
        assert one or (len(values), variants) == (12, 3)
