"""The rule of a race: who leaves, who wins, and how often it is wrong."""

import itertools
import math
import random

import pytest

from benchmarks import race
from benchmarks.noise_replay import at_most
from pytest_dbcluster.claims import critical_values, intervals
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.claims.race.rule import MOST, RaceRule

THREE = RaceRule(3, 0.05)
FEW = 4  # blocks of the races that are enumerated


def ratios(values):
    """Pairs whose log ratios differ a little from the difference of two values, by number of the variants."""

    def drawn(candidate, baseline):
        coin = random.Random(f"{candidate} {baseline}")
        logs = [values[candidate] - values[baseline] + coin.gauss(0, 0.01) for _ in range(20)]
        return Pairs(tuple(logs), (0.0,) * 20, tuple(number % 2 == 0 for number in range(20)))

    return drawn


@pytest.mark.parametrize("alpha", critical_values.ALPHAS)
@pytest.mark.parametrize("variants", range(2, MOST + 1))
def test_all_comparisons_with_the_best_variant_share_alpha(variants, alpha):
    """So a race of up to 17 variants is wrong with a chance of alpha at most."""
    rule = RaceRule(variants, 0.05, alpha)

    assert (variants - 1) * rule.level <= alpha * (1 + 1e-9)
    assert rule.level in critical_values.TABLE


@pytest.mark.parametrize("parts", [0, 17])
def test_an_alpha_cannot_be_shared_by_more_than_the_table_has(parts):
    """The number that is possible is in the error."""
    with pytest.raises(ValueError, match=f"shared by 1 to 16 comparisons, not {parts}"):
        critical_values.share(0.0005, parts)


def test_a_variant_leaves_that_another_beats():
    """The slower two leave by the fastest one, which remains and has won."""
    drawn = ratios([0.0, 0.5, 0.2])

    assert THREE.beaten([0, 1, 2], drawn) == {0: 1, 2: 1}
    assert THREE.winner([1], drawn) == 1


def test_a_variant_that_left_beats_nobody():
    """Only those that remain are asked."""
    assert THREE.beaten([0, 2], ratios([0.0, 0.5, 0.2])) == {0: 2}


def test_equal_variants_remain_until_one_is_no_slower():
    """The race ends although nobody left; of those that could win it is the fastest by its estimate."""
    drawn = ratios([0.0, 0.012, 0.005])

    assert RaceRule(3, 0.1).beaten([0, 1, 2], ratios([0.0, 0.0, 0.0])) == {}
    assert RaceRule(3, 0.1).winner([0, 1, 2], drawn) == 1
    assert RaceRule(3, 0.001).winner([0, 1, 2], drawn) is None


def test_variants_that_beat_each_other_in_a_circle_remain():
    """Nobody has lost to one that stays, so nobody leaves."""

    def drawn(candidate, baseline):
        ahead = 0.5 if (candidate - baseline) % 3 == 1 else -0.5
        return Pairs((ahead,) * 20, (0.0,) * 20, (True, False) * 10)

    assert THREE.beaten([0, 1, 2], drawn) == {}


def test_separate_clusters_have_to_differ_by_more_than_equal_ones_can():
    """Neither does a variant leave for less, nor win."""
    apart = RaceRule(3, 0.05, apart=lambda candidate, baseline: 0.3)
    drawn = ratios([0.0, 0.5, 0.2])

    assert THREE.beaten([0, 1, 2], drawn) == {0: 1, 2: 1}
    assert apart.beaten([0, 1, 2], drawn) == {0: 1}
    assert THREE.winner([0, 2], drawn) == 2
    assert apart.winner([0, 2], drawn) is None
    assert RaceRule(3, 0.5, apart=lambda candidate, baseline: 0.3).winner([0, 2], drawn) == 2


@pytest.mark.parametrize(
    "unfit", [{"rounding": (math.inf,) * 20}, {"void": ((3, False), (5, False), (7, False))}], ids=str
)
def test_pairs_that_cannot_be_trusted_let_nobody_leave_or_win(unfit):
    """Rounding that could decide, and void rounds that depend on the variant."""

    def drawn(candidate, baseline):
        return Pairs((0.5,) * 20, (0.0,) * 20, (True, False) * 10, **unfit)

    assert THREE.beaten([0, 1], drawn) == {}
    assert THREE.winner([0, 1], drawn) is None


def always_alike(pairs, level, bound):
    """As ``intervals.rejects``, for a few pairs: all signs have to be alike, which has a chance of 1 in 16."""
    most = len(pairs) * (len(pairs) + 1) // 2
    return intervals.rank_sum(intervals.remainders(pairs, bound)) == most, False


def races(times, speeds):
    """Every order of a race of three variants in a few blocks: what each round takes there is fixed."""
    for orders in itertools.product(itertools.permutations(range(3)), repeat=FEW):
        places = [[3 * block + order.index(variant) for block, order in enumerate(orders)] for variant in range(3)]
        logs = [[speeds[variant] - times[place] for place in places[variant]] for variant in range(3)]
        yield lambda one, other, logs=logs, places=places: Pairs(
            tuple(logs[one]), tuple(logs[other]), tuple(b < c for b, c in zip(places[other], places[one], strict=True))
        )


@pytest.mark.parametrize("slower", [0.0, math.log1p(-0.05)], ids=["all alike", "slower by the margin"])
@pytest.mark.parametrize("noise", ["random", "drift", "wave"])
def test_of_all_orders_few_let_the_best_variant_lose(monkeypatch, noise, slower):
    """Counted over all 1296 orders: each of two others causes an error in 1 of 16, whatever the rounds take."""
    monkeypatch.setattr(intervals, "rejects", always_alike)
    coin = random.Random(5)
    times = {
        "random": [coin.gauss(0, 1) for _ in range(3 * FEW)],
        "drift": [0.3 * place + 0.01 * coin.random() for place in range(3 * FEW)],
        "wave": [place % 4 + 0.01 * coin.random() for place in range(3 * FEW)],
    }[noise]
    wrong = orders = 0
    for drawn in races(times, [0.0, slower, slower]):
        orders += 1
        gone = THREE.beaten([0, 1, 2], drawn)
        remaining = [one for one in range(3) if one not in gone]
        wrong += 0 in gone or bool(slower and THREE.winner(remaining, drawn) in (1, 2))

    assert orders == 6**FEW
    assert 0 < wrong <= 2 * orders / 16


@pytest.mark.parametrize("model", ["normal", "noise / 10", "noise x 10", "drifting"])
def test_a_race_is_seldom_wrong(model):
    """Four variants, three of them slower by the margin; also if the noise changes when somebody leaves."""
    found = race.tally(4, "others at the margin", model, 500, seed=3)

    assert found.races == found.trials == 500
    assert found.wrong == 0 or 1 - at_most(found.wrong - 1, found.races, 0.0005) > 1e-6
    assert found.best_left <= found.wrong


def test_a_race_finds_what_is_clearly_best():
    """In fewer rounds than claims one after the other; the slow ones run only at first."""
    speeds = [0.0, -0.02, 0.3, 0.28, -0.1, 0.01]
    winner, took = race.race_rounds(speeds, random.Random(4))
    king, claimed = race.claim_rounds(speeds, random.Random(4), race.ALPHA)

    assert winner in (2, 3)
    assert king in (2, 3)
    assert took < claimed
