"""Exact: how many of all orders of the rounds give a wrong verdict, when the times of the rounds are fixed numbers.

Whatever the noise was, the times that came out are fixed once the variants do not matter; only the order is random. So
each model below is one list of 24 log times (three opening blocks), and every order of it is counted, not sampled.
"""

import itertools
import math
import random

import pytest

from benchmarks.critical_values import arrangements, chance, rank_tails
from pytest_dbcluster.claims import critical_values, intervals
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.kinds import beats, no_slower_than
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.claims.verdict import judge

ROUNDS = 24
PLACES = list(arrangements())


def jitter(seed=1, sd=0.02):
    """Independent noise of 24 rounds."""
    source = random.Random(seed)
    return [source.gauss(0, sd) for _ in range(ROUNDS)]


def wave(period, phase, sd=0.02):
    """A square wave: for half of its period rounds take 1.3 times as long."""
    slow = [(place + phase) % period < period / 2 for place in range(ROUNDS)]
    return [value + math.log(1.3) * is_slow for value, is_slow in zip(jitter(period + phase, sd), slow, strict=True)]


def marked(slow, factor=2.0):
    """Noise in which the rounds of these places take ``factor`` times as long."""
    return [value + math.log(factor) * (place in slow) for place, value in enumerate(jitter())]


def cauchy():
    """Times without a mean."""
    source = random.Random(4)
    return [math.tan(math.pi * (source.random() - 0.5)) for _ in range(ROUNDS)]


def walk():
    """A random walk."""
    return list(itertools.accumulate(jitter(7, 0.3)))


MODELS = {
    "independent": jitter(),
    "cauchy": cauchy(),
    "walk": walk(),
    "growth": [0.05 * place for place in range(ROUNDS)],
    "decay": [math.exp(-place) for place in range(ROUNDS)],
    "growth with noise": [0.02 * place + value for place, value in enumerate(jitter())],
    "two modes": marked([place for place in range(ROUNDS) if random.Random(place).random() < 0.5], 1.5),
    "stalls": marked([3, 11, 12, 20], 5.0),
    "one slow round a pair of rounds": marked([2 * block + block % 2 for block in range(12)]),
    "one slow round an opening block": marked([5, 9, 18]),
    "the second round is slower": marked(range(1, ROUNDS, 2), 1.1),
    "the first half is slower": marked(range(12)),
    "the first half of each opening block is slower": marked([p for p in range(ROUNDS) if p % 8 < 4]),
    "a burst": marked(range(6, 15), 3.0),
    "all alike": [0.0] * ROUNDS,
    "few different times": [float(place * 7 % 3) for place in range(ROUNDS)],
    "two different times": [float(place * 5 % 8 < 4) for place in range(ROUNDS)],
    "pairs of equal times": [float(place // 2 * 5 % 12) for place in range(ROUNDS)],
    "checkpoints with sawtooth": [0.1 * (place % 7) for place in range(ROUNDS)],
    "a sine": [math.sin(place) for place in range(ROUNDS)],
} | {
    f"wave of {period}, phase {phase}": wave(period, phase)
    for period in (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24)
    for phase in range(period)
}


def opening(times, places):
    """The pairs of one opening block whose candidate has these places."""
    others = [place for place in range(8) if place not in places]
    candidate, baseline = ([-times[place] for place in chosen] for chosen in (places, others))
    first = [theirs < ours for ours, theirs in zip(places, others, strict=True)]
    return Pairs(tuple(candidate), tuple(baseline), tuple(first))


def not_faster(times):
    """Of an opening block: how many of its 70 orders have so many of the 16 differences not above 0."""
    ways = [0] * 17
    for places in PLACES:
        ways[sum(ratio <= intervals.ROUNDING for ratio in opening(times, places).cross_differences())] += 1
    return ways


def together(one, other):
    """The same of two lots of opening blocks."""
    ways = [0] * (len(one) + len(other) - 1)
    for (i, a), (j, b) in itertools.product(enumerate(one), enumerate(other)):
        ways[i + j] += a * b
    return ways


@pytest.mark.parametrize("times", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("level", [0.05, 0.0005])
def test_of_all_orders_no_more_reject_than_the_table_says(times, level):
    """All 4900 orders of two opening blocks and 343000 of three; without ties exactly as many as it says."""
    row = critical_values.boundary(level)
    openings = [not_faster(times[start : start + 8]) for start in range(0, ROUNDS, 8)]
    for look, ways in zip((8, 12), list(itertools.accumulate(openings, together))[1:], strict=True):
        if (value := row.at(look)) is not None:
            rejected = sum(ways[: value + 1]) / sum(ways)
            assert rejected <= chance(look, value) * (1 + 1e-12)
            if len(set(times)) == ROUNDS:
                assert rejected == pytest.approx(chance(look, value))


def joined(one, other):
    """Two opening blocks in one measurement."""
    fields = ("candidate", "baseline", "baseline_first")
    return Pairs(*(getattr(one, name) + getattr(other, name) for name in fields))


@pytest.mark.parametrize("name", ["wave of 4, phase 1", "few different times"])
def test_the_verdicts_of_all_4900_orders_are_counted(name):
    """What judge says at 8 pairs: a guard on its margin fails in none, and holds in 18 of 4900 at most."""
    times, outcomes = MODELS[name], []
    margin = no_slower_than(0.05).bounds[0]
    first, second = ([opening(times[start : start + 8], places) for places in PLACES] for start in (0, 8))
    for one, other in itertools.product(first, second):
        decided = judge(no_slower_than(0.05), moved(joined(one, other), margin))
        outcomes.append(decided and decided.outcome)

    assert len(outcomes) == 4900
    held = outcomes.count(Outcome.HOLDS)
    assert held == 18 if len(set(times)) == ROUNDS else held < 18
    assert outcomes.count(Outcome.FAILS) == 0
    assert judge(beats(), joined(first[0], second[0])) is None


def moved(pairs, shift):
    """The same with another log speed of the candidate."""
    return Pairs(tuple(value + shift for value in pairs.candidate), pairs.baseline, pairs.baseline_first)


@pytest.mark.parametrize("name", ["growth with noise", "stalls", "few different times", "wave of 4, phase 0"])
def test_of_all_patterns_of_signs_no_more_reject_than_the_table_says(name):
    """At 14 pairs: 16384 patterns, from the same differences; the centre that is taken out changes nothing."""
    times = [*MODELS[name], 0.01, 0.02, 0.5, 0.0]
    differences = [second - first for first, second in zip(times[::2], times[1::2], strict=True)]
    assert len(differences) == 14
    kept = [value - intervals.centre(differences) for value in differences]
    sums = [
        intervals.rank_sum([sign * value for sign, value in zip(signs, kept, strict=True)])
        for signs in itertools.product((1, -1), repeat=14)
    ]
    for value in (91, 105):
        assert sum(one >= value for one in sums) <= rank_tails(14)[value]
    pattern = (1, -1) * 7
    pairs = Pairs(
        tuple(sign * value for sign, value in zip(pattern, differences, strict=True)),
        (0.0,) * 14,
        tuple(sign > 0 for sign in pattern),
    )
    assert intervals.remainders(pairs, 0.0) == pytest.approx(
        [s * value for s, value in zip(pattern, kept, strict=True)]
    )
