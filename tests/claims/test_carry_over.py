"""Carry-over: what a variant costs the round after it, found in rounds whose order is random."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from pytest_dbcluster.claims import carry_over
from pytest_dbcluster.claims.block_order import blocks
from pytest_dbcluster.claims.carry_over import Placed

BASELINE, CANDIDATE, THIRD = 0, 1, 2


def drawn(pairs, seed, noise, *, slower=0.0, faster=0.0, variants=2, openings=3):
    """Rounds in an order that was drawn. Noise takes (round, position); ``slower``: log time after the candidate."""
    found, before, done = [], None, 0
    for number, block in enumerate(blocks(variants, seed, openings)):
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


def wave(seed):
    """A square wave of twelve rounds: Student's t would warn in more than 2 of 100 orders of it."""
    noise = independent(seed)
    return lambda number, position: noise(number, position) + math.log(1.3) * ((number + 4) % 12 < 6)


def drifting(seed):
    """Rounds of an opening block lie further apart than those of a pair, so that a drift makes them noisier."""
    noise = independent(seed)
    return lambda number, position: noise(number, position) + 0.02 * number


def second_is_slower(seed):
    """Whatever runs second is slower by 5 %."""
    noise = independent(seed)
    return lambda number, position: noise(number, position) + 0.05 * (position % 2)


def one_of_two_is_slower(seed):
    """One round of every two, either of them, takes twice as long."""
    noise, source = independent(seed), random.Random(f"slow {seed}")
    slow = [2 * number + source.randrange(2) for number in range(100)]
    return lambda number, position: noise(number, position) + math.log(2) * (number in slow)


def without_mean(seed):
    """Times without a mean."""
    source = random.Random(f"noise {seed}")
    return lambda number, position: 0.02 * math.tan(math.pi * (source.random() - 0.5))


def ratios_by_change(rounds):
    """The log ratios of pairs that begin (after another variant, after the same variant), without the first pair."""
    groups = {True: [], False: []}
    for n in range(2, len(rounds), 2):
        candidate, baseline = sorted(rounds[n : n + 2], key=lambda done: -done.variant)
        groups[rounds[n].variant != rounds[n].after].append(baseline.log_time - candidate.log_time)
    return groups[True], groups[False]


def difference_and_error(changed, same):
    """The difference of two means, with its standard error."""
    squares = sum((value - statistics.fmean(group)) ** 2 for group in (changed, same) for value in group)
    error = math.sqrt(squares / (len(changed) + len(same) - 2) * (1 / len(changed) + 1 / len(same)))
    return statistics.fmean(changed) - statistics.fmean(same), error


def test_in_pairs_it_compares_pairs_after_another_variant_with_the_rest():
    """The estimate and the ratio without it are those of two groups of log ratios."""
    rounds = drawn(40, 3, independent(5), slower=0.03, faster=0.2, openings=0)
    changed, same = ratios_by_change(rounds)
    one = found(rounds)

    assert math.log1p(one.slower) == pytest.approx(difference_and_error(changed, same)[0])
    assert math.log(one.ratio) == pytest.approx(statistics.fmean(same))


@pytest.mark.parametrize(("noise", "wider"), [(independent, 1.3), (wave, 1.3), (without_mean, 2.5)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_interval_is_as_wide_as_other_orders_of_the_same_rounds_ask_for(noise, wider, seed):
    """It reaches as far as 99 of 100 values of t that other orders of these very times give.

    It is wider, because it holds for any ratio of the two variants; most where few rounds have all of the noise.
    """
    rounds = drawn(20, seed, noise(seed), faster=0.2, openings=0)
    times = [done.log_time + 0.2 * done.variant for done in rounds]
    coin, others = random.Random(seed), []
    for _ in range(3000):
        labels = [label for pair in times[::2] for label in ((0, 1) if coin.random() < 0.5 else (1, 0))]
        ran = zip(labels, [None, *labels[:-1]], times, strict=True)
        groups = ratios_by_change([Placed(own, before, 0, time) for own, before, time in ran])
        if min(map(len, groups)) > 0:
            difference, error = difference_and_error(*groups)
            others.append(abs(difference) / error)
    asked = sorted(others)[-30]
    middle, error = difference_and_error(*ratios_by_change(rounds))
    one = found(rounds)

    assert 0.97 * asked < (math.log1p(one.high) - middle) / error < wider * asked
    assert math.log1p(one.high) - middle == pytest.approx(middle - math.log1p(one.low))


NOISES = (independent, wave, drifting, second_is_slower, one_of_two_is_slower, without_mean)


@pytest.mark.parametrize("pairs", [8, pytest.param(20, marks=pytest.mark.thorough)])
def test_without_carry_over_one_warning_in_a_hundred_is_wrong_whatever_the_noise_is(pairs):
    """Also where the candidate is 1.3 times as fast. A level of 5 % has 15 and 8 wrong warnings in all here."""
    wrong = {noise.__name__: warnings(pairs, noise, runs=50, faster=math.log(1.3)) for noise in NOISES}

    assert max(wrong.values()) <= 3, wrong
    assert sum(wrong.values()) <= 7, wrong


@pytest.mark.parametrize("pairs", [8, 20])
def test_a_carry_over_of_a_tenth_is_found(pairs):
    """At a noise of 2 %, in 95 of 100 claims; also where the candidate is faster itself."""
    assert warnings(pairs, independent, runs=20, slower=math.log(1.1), faster=0.3) >= 19


def test_it_says_what_the_ratio_is_without_it():
    """The candidate is a fifth faster, and rounds after it take 10 % longer: both are found."""
    many = [found(drawn(24, seed, independent(seed), slower=math.log(1.1), faster=math.log(1.2))) for seed in range(10)]

    assert statistics.fmean(one.slower for one in many) == pytest.approx(0.1, abs=0.007)
    assert statistics.fmean(one.ratio for one in many) == pytest.approx(1.2, abs=0.014)


def test_it_is_told_of_two_among_three_variants():
    """The third one's rounds are not looked at, only what they do to others."""
    rounds = drawn(24, 1, independent(1), slower=math.log(1.1), variants=3)
    third = [done for done in rounds if done.variant != THIRD]

    assert found(rounds) == found(third)
    assert found(rounds).slower == pytest.approx(0.1, abs=0.02)
    assert warnings(12, independent, runs=50, variants=3) <= 3
    assert not carry_over.of(rounds, THIRD, BASELINE).warned


def test_what_runs_after_a_third_variant_is_slower_by_any_amount():
    """A third variant that leaves work behind is no carry-over of the other two, and hides none."""
    rounds = drawn(24, 1, independent(1), slower=math.log(1.1), variants=3)
    slowed = [
        Placed(done.variant, done.after, done.block, done.log_time + 0.5 * (done.after == THIRD)) for done in rounds
    ]

    assert found(slowed).slower == pytest.approx(found(rounds).slower)
    assert found(slowed).high == pytest.approx(found(rounds).high)


@pytest.mark.parametrize("slower", [0.0, math.log(1.1)])
def test_of_the_other_direction_it_is_the_reverse(slower):
    """Who is the candidate changes neither the warning nor the interval."""
    rounds = drawn(24, 1, independent(1), slower=slower)
    one, other = found(rounds), carry_over.of(rounds, BASELINE, CANDIDATE)

    assert math.log1p(other.slower) == pytest.approx(-math.log1p(one.slower))
    assert (math.log1p(other.low), math.log1p(other.high)) == pytest.approx(
        (-math.log1p(one.high), -math.log1p(one.low))
    )
    assert math.log(other.ratio) == pytest.approx(-math.log(one.ratio))
    assert other.warned == one.warned == (slower > 0)


@pytest.mark.parametrize("noise", [independent, wave, without_mean])
def test_how_fast_the_candidate_is_changes_nothing_but_the_ratio(noise):
    """The interval is that of the worst ratio of the variants, so it is the same whatever the true one is."""
    equal, faster = (found(drawn(20, 2, noise(1), faster=by)) for by in (0.0, 2.0))

    assert faster.slower == pytest.approx(equal.slower)
    assert (faster.low, faster.high) == pytest.approx((equal.low, equal.high), rel=2 * carry_over.EXACT)
    assert faster.ratio == pytest.approx(math.exp(2) * equal.ratio)


def test_the_same_rounds_have_the_same_interval():
    """The other orders are drawn with a seed that comes from the order itself."""
    assert found(drawn(24, 1, independent(1))) == found(drawn(24, 1, independent(1)))


@pytest.mark.parametrize(
    "rounds",
    [
        [],
        drawn(2, 1, independent(1), openings=0),
        drawn(4, 1, independent(1), slower=0.3),
        drawn(7, 1, independent(1), slower=0.3, openings=0),
        [Placed(n % 2, (n + 1) % 2 if n else None, n // 8, 0.01 * n) for n in range(48)],
        [Placed(done.variant, None, done.block, done.log_time) for done in drawn(12, 1, independent(1))],
        [*drawn(12, 1, independent(1)), Placed(0, 1, 2, math.inf)],
    ],
    ids=[
        "no round",
        "two pairs",
        "70 orders",
        "128 orders",
        "always after the other",
        "after nobody knows what",
        "no speed",
    ],
)
def test_it_is_not_known_where_rounds_do_not_tell_it(rounds):
    """Few rounds or orders, an order in which each variant follows the other only, and rounds without a speed."""
    assert found(rounds) is None


def test_without_noise_nothing_is_warned_of():
    """What remains is rounding."""
    one = found(drawn(24, 1, lambda number, position: 0.1 + 0.2 * 3, faster=0.7))

    assert one.slower == pytest.approx(0, abs=1e-9)
    assert not one.warned


@pytest.mark.parametrize(("slower", "warned"), [(0.0005, False), (0.002, True)])
def test_a_carry_over_below_a_thousandth_is_inside_of_the_interval(slower, warned):
    """Without noise the smallest one would be certain; what is not warned of is not outside of its interval either."""
    one = found(drawn(24, 1, independent(1, 1e-6), faster=0.1, slower=slower))

    assert one.slower == pytest.approx(slower, rel=0.01)
    assert one.warned == warned
    assert (one.low > 0) == warned
