"""Carry-over: what a variant costs the round after it, found in rounds whose order is random."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from pytest_dbcluster.claims import carry_over
from pytest_dbcluster.claims.block_order import blocks
from pytest_dbcluster.claims.carry_over import Placed, critical_t

BASELINE, CANDIDATE, THIRD = 0, 1, 2


def drawn(pairs, seed, noise, *, slower=0.0, faster=0.0, variants=2, eights=3):
    """Rounds in an order that was drawn. Noise takes (round, position); ``slower``: log time after the candidate."""
    found, before, done = [], None, 0
    for number, block in enumerate(blocks(variants, seed, eights)):
        if done >= pairs:
            return found
        for position, variant in enumerate(block.order):
            time = noise(len(found), position) - faster * (variant == CANDIDATE) + slower * (before == CANDIDATE)
            found.append(Placed(variant, before, number, time))
            before = variant
        done += block.length
    raise AssertionError("blocks have no end")


def independent(seed, sd=0.02):
    """Independent noise."""
    source = random.Random(f"noise {seed}")  # not the seed of the order
    return lambda number, position: source.gauss(0, sd)


def found(rounds):
    """The carry-over of the candidate against the baseline."""
    return carry_over.of(rounds, CANDIDATE, BASELINE)


def warnings(pairs, noise, runs=1000, **kinds):
    """In how many of these runs the carry-over is warned of."""
    return sum(bool((one := found(drawn(pairs, seed, noise(seed), **kinds))) and one.warned) for seed in range(runs))


@pytest.mark.parametrize(("freedom", "value"), [(1, 63.657), (2, 9.925), (5, 4.032), (10, 3.169), (120, 2.617)])
def test_the_limits_are_students(freedom, value):
    """The table of every textbook, two-sided at .01."""
    assert critical_t(freedom, 0.01) == pytest.approx(value, abs=0.001)


def test_in_pairs_it_is_the_t_test_of_pairs_after_another_variant_against_the_rest():
    """The estimate, its interval and the ratio without it are those of two groups of log ratios."""
    rounds = drawn(40, 3, independent(5), slower=0.03, faster=0.2, eights=0)
    pairs = [sorted(rounds[n : n + 2], key=lambda done: done.variant) for n in range(2, len(rounds), 2)]
    ratios = [slow.log_time - fast.log_time for slow, fast in pairs]
    changed = [rounds[n].variant != rounds[n].after for n in range(2, len(rounds), 2)]
    groups = [
        [ratio for ratio, other in zip(ratios, changed, strict=True) if other is wanted] for wanted in (True, False)
    ]
    squares = sum((value - statistics.fmean(group)) ** 2 for group in groups for value in group)
    error = math.sqrt(squares / (len(ratios) - 2) * sum(1 / len(group) for group in groups))
    after = statistics.fmean(groups[0]) - statistics.fmean(groups[1])
    one = found(rounds)

    assert math.log1p(one.slower) == pytest.approx(after)
    assert math.log(one.ratio) == pytest.approx(statistics.fmean(groups[1]))
    assert math.log1p(one.high) - after == pytest.approx(critical_t(len(ratios) - 2, 0.01) * error)


@pytest.mark.parametrize("pairs", [4, 8, 20])
def test_without_carry_over_one_warning_in_a_hundred_is_wrong(pairs):
    """Counted over orders and noise; 23 of 1000 would be four standard deviations more than 10."""
    assert warnings(pairs, independent) <= 22


def test_a_drift_is_no_carry_over():
    """Rounds of an eight lie further apart than those of a pair, so that a drift makes them noisier."""

    def drifting(seed):
        noise = independent(seed)
        return lambda number, position: noise(number, position) + 0.02 * number

    assert warnings(40, drifting) <= 22


def test_a_slow_place_in_a_pair_is_no_carry_over():
    """Whatever runs second is slower by 5 %."""

    def second_is_slower(seed):
        noise = independent(seed)
        return lambda number, position: noise(number, position) + 0.05 * (position % 2)

    assert warnings(20, second_is_slower) <= 22


@pytest.mark.parametrize("pairs", [8, 20])
def test_a_carry_over_of_a_tenth_is_found(pairs):
    """At a noise of 2 %, in 95 of 100 claims; also where the candidate is faster itself."""
    assert warnings(pairs, independent, runs=200, slower=math.log(1.1), faster=0.3) >= 190


def test_it_says_what_the_ratio_is_without_it():
    """The candidate is a fifth faster, and rounds after it take 10 % longer: both are found."""
    many = [found(drawn(24, seed, independent(seed), slower=math.log(1.1), faster=math.log(1.2))) for seed in range(20)]

    assert statistics.fmean(one.slower for one in many) == pytest.approx(0.1, abs=0.005)
    assert statistics.fmean(one.ratio for one in many) == pytest.approx(1.2, abs=0.01)


def test_it_is_told_of_two_among_three_variants():
    """The third one's rounds are not looked at, only what they do to others."""
    rounds = drawn(24, 1, independent(1), slower=math.log(1.1), variants=3)
    third = [done for done in rounds if done.variant != THIRD]

    assert found(rounds) == found(third)
    assert found(rounds).slower == pytest.approx(0.1, abs=0.02)
    assert warnings(12, independent, variants=3) <= 22
    assert not carry_over.of(rounds, THIRD, BASELINE).warned


def test_of_the_other_direction_it_is_negative():
    """Rounds after the baseline are slower."""
    one = carry_over.of(drawn(24, 1, independent(1), slower=math.log(1.1)), BASELINE, CANDIDATE)

    assert one.slower == pytest.approx(-0.09, abs=0.02)
    assert one.warned


@pytest.mark.parametrize(
    "rounds",
    [
        [],
        drawn(2, 1, independent(1), eights=0),
        [Placed(n % 2, (n + 1) % 2 if n else None, n // 8, 0.01 * n) for n in range(48)],
        [Placed(done.variant, None, done.block, done.log_time) for done in drawn(12, 1, independent(1))],
        [*drawn(12, 1, independent(1)), Placed(0, 1, 2, math.inf)],
    ],
    ids=["no round", "two pairs", "always after the other", "after nobody knows what", "no speed"],
)
def test_it_is_not_known_where_rounds_do_not_tell_it(rounds):
    """Few rounds, an order in which each variant follows the other only, and rounds without a speed."""
    assert found(rounds) is None


def test_without_noise_nothing_is_warned_of():
    """What remains is rounding."""
    one = found(drawn(24, 1, lambda number, position: 0.1 + 0.2 * 3, faster=0.7))

    assert one.slower == pytest.approx(0, abs=1e-9)
    assert not one.warned
