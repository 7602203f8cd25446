"""The parts of the script about warm-ups that need no server."""

import random

import pytest

from benchmarks import warm_up
from pytest_dbcluster.rounds.round import Round, RunResult
from pytest_dbcluster.rounds.round_length import LONGEST, SHORTEST


def one_round(variant, speed, coin, noise, wall=2.2):
    """A round of 2 s with this many operations in each tenth, more or less."""
    tenths = tuple(round(speed * coin.uniform(1 - noise, 1 + noise)) for _ in range(20))
    return Round(variant, 0, 0, RunResult(2.0, sum(tenths), by_tenth=tenths), wall, 0.0)


def blocks(noise, number=40):
    """Blocks of two variants."""
    coin = random.Random(1)
    return [[one_round(name, 1000, coin, noise) for name in "ab"] for _ in range(number)]


def test_the_first_part_of_a_round_has_its_own_operations_and_the_same_unmeasured_time():
    """The whole round is as it was."""
    whole = one_round("a", 1000, random.Random(1), 0.5)
    part = warm_up.first_part(whole, 1.1)

    assert part.outcome.by_tenth == whole.outcome.by_tenth[:11]
    assert part.outcome.operations == part.outcome.done == sum(part.outcome.by_tenth)
    assert part.wall - part.seconds == pytest.approx(whole.wall - whole.seconds)
    assert warm_up.first_part(whole, 2.0).outcome.operations == whole.outcome.operations


def test_both_warm_ups_choose_short_rounds_where_no_noise_is_within_them():
    """Each of two neighbouring blocks is used once."""
    quiet = blocks(0.01)

    assert warm_up.chosen(quiet, 2.0) == warm_up.chosen(quiet, 1.1) == [SHORTEST] * 20


def test_the_best_length_takes_the_least_time():
    """Noise within rounds makes the shortest ones cost more, and the longest ones cost their own time."""
    noisy = warm_up.Efficiency(blocks(0.9))
    quiet = warm_up.Efficiency(blocks(0.01))

    assert noisy.lost(SHORTEST) > noisy.lost(1.0) >= 1
    assert quiet.lost(LONGEST) > 2 > quiet.lost(SHORTEST) >= 1
