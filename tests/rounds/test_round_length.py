"""How long the rounds of a claim last: from the noise of its warm-up, inside of rounds and between them."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest

from pytest_dbcluster.rounds import round_length
from pytest_dbcluster.rounds.round import Round, RunResult
from pytest_dbcluster.rounds.round_length import WARM_UP, RoundLength
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc.workload import TPCC
from tests.support.facts import missing


def one_round(variant, speed, *, block=-5, seconds=WARM_UP, unmeasured=0.4, noise=0.0, lasts=1, coin=None, **outcome):
    """A round whose tenths vary by ``noise`` (of a second's mean); each draw lasts for so many tenths."""
    coin = coin or random.Random(1)
    number = round(seconds * 10)
    draws = [coin.gauss(0, 1) for _ in range(number // lasts + 1)]
    sd = noise / math.sqrt(lasts * 0.1)
    tenths = tuple(max(0, round(speed / 10 * (1 + sd * draws[tenth // lasts]))) for tenth in range(number))
    result = RunResult(seconds, sum(tenths), good=sum(tenths), by_tenth=tenths, **outcome)
    return Round(variant, block, 0, result, seconds + unmeasured, 0.0)


def warm_up(noise, between=0.05, *, lasts=1, unmeasured=0.4, blocks=2, seed=1, speeds=(1000, 1400)):
    """The blocks of a warm-up of two variants."""
    coin = random.Random(seed)
    return [
        [
            one_round(
                name,
                speed * math.exp(coin.gauss(0, between)),
                noise=noise,
                lasts=lasts,
                unmeasured=unmeasured,
                block=block,
                coin=coin,
            )
            for name, speed in zip("ab", speeds, strict=True)
        ]
        for block in range(-5, blocks - 5)
    ]


def middle(most=3.0, least=0.0, **fields):
    """The middle length of many warm-ups."""
    lengths = [round_length.choose(warm_up(seed=seed, **fields), least=least, most=most).seconds for seed in range(41)]
    return sorted(lengths)[20]


def test_quiet_rounds_are_short():
    """More of them say more, and none of them would be better for being longer."""
    assert middle(noise=0.01) == round_length.SHORTEST


def test_noise_inside_of_rounds_makes_them_longer():
    """The more of it, and the more rounds have shown that they agree otherwise."""
    lengths = [middle(noise=noise, between=0.05) for noise in (0.01, 0.04, 0.05, 0.3)]

    assert lengths == sorted(lengths)
    assert len(set(lengths)) == 4
    assert lengths[-1] == round_length.USUAL
    assert middle(noise=0.1, between=0.2, blocks=5) < middle(noise=0.1, between=0.0, blocks=5)


def test_noise_that_lasts_makes_them_longer_still():
    """The same deviation of tenths is no longer averaged out where neighbours share it: batches of tenths show that."""
    alone = one_round("a", 1e6, noise=0.05, seconds=60.0)
    shared = one_round("a", 1e6, noise=0.05, seconds=60.0, lasts=5)

    assert round_length.within_variance([alone]) == pytest.approx(0.05**2, rel=0.4)
    assert round_length.within_variance([shared]) == pytest.approx(0.05**2, rel=0.5)
    tenths = [done.outcome.by_tenth for done in (alone, shared)]
    spread = [math.dist(values, [1e5] * 600) for values in tenths]
    assert spread[0] > 2 * spread[1]  # a look at single tenths alone would call the second one quieter


def test_rounds_that_cost_more_beside_are_longer():
    """Where every round waits for seconds before it begins, fewer and longer ones are drawn; up to a limit."""
    assert middle(noise=0.3, unmeasured=1.3) == pytest.approx(2.6)
    assert middle(noise=0.3, unmeasured=60.0) == round_length.LONGEST


def test_the_variants_are_pooled():
    """A faster variant, and one that is called first, change nothing: each round is compared with its own mean."""
    blocks = warm_up(0.05)
    swapped = [block[::-1] for block in blocks]

    one, other = (round_length.choose(rounds, least=0, most=3) for rounds in (blocks, swapped))
    assert dataclasses.astuple(one) == pytest.approx(dataclasses.astuple(other))
    scaled = [
        [
            one_round(done.variant, 10 * done.throughput, noise=0.05, coin=random.Random(number))
            for number, done in enumerate(block)
        ]
        for block in blocks
    ]
    plain = [
        [
            one_round(done.variant, done.throughput, noise=0.05, coin=random.Random(number))
            for number, done in enumerate(block)
        ]
        for block in blocks
    ]
    assert round_length.choose(scaled, least=0, most=3).seconds == round_length.choose(plain, least=0, most=3).seconds


QUIET_BETWEEN = warm_up(0.08, 0.0)


@pytest.mark.parametrize("distance", [0.0, 0.1, 0.5, 2.0])
def test_a_clear_difference_needs_short_rounds(distance):
    """Three standard deviations of a pair are clear; the usual length is the longest."""
    usual = round_length.choose(QUIET_BETWEEN, least=0.0, most=3.0)
    found = round_length.choose(QUIET_BETWEEN, least=0.0, most=3.0, distance=distance)
    pair = math.sqrt(2 * (found.within**2 + found.between**2))

    assert usual.seconds == 2.0
    assert found.clear is (found.seconds < usual.seconds) is (distance > 0.1)
    assert missing(found.line, "the warm-up shows a clear difference" if found.clear else "from the warm-up") == []
    assert missing(found.expected_time(2), "(12 pairs)" if found.clear else "(30 pairs)") == []
    if found.clear:
        assert round_length.CLEAR * pair < 1.1 * distance
        assert found.seconds < 0.6


@pytest.mark.parametrize(("tail", "seconds"), [(0.8, 0.8), (2.5, 0.3)])
def test_a_clear_difference_leaves_a_later_percentile_its_operations(tail, seconds):
    """Unless the rounds would have had too few anyway."""
    assert round_length.choose(QUIET_BETWEEN, least=0.0, most=3.0, distance=2.0, tail=tail).seconds == seconds


def test_the_budget_shortens_rounds_and_is_named():
    """A claim with little time gets short rounds, so that there are enough pairs of them."""
    length = round_length.choose(warm_up(0.3), least=0, most=0.58)

    assert (length.seconds, length.shortened) == (0.5, True)
    assert length.line.startswith(
        "rounds of 0.5 s, chosen so that the budget (--db-budget) suffices for more of them: "
    )
    assert round_length.choose(warm_up(0.3), least=0, most=0.01).seconds == round_length.SHORTEST


def test_a_metric_that_needs_more_operations_lengthens_rounds():
    """It wins over the budget: a percentile without operations beyond it is none."""
    assert round_length.choose(warm_up(0.01), least=1.23, most=3).seconds == 1.3
    assert round_length.choose(warm_up(0.01), least=1.23, most=0.5).seconds == 1.3
    assert round_length.choose(warm_up(0.01), least=math.inf, most=0.5).seconds == round_length.LONGEST


@pytest.mark.parametrize(("delay", "seconds"), [(0.001, 2.0), (0.08, 2.4), (0.5, 3.0)])
def test_an_open_loop_is_much_longer_than_its_queue(delay, seconds):
    """Its speed is given, so its noise says nothing. Where operations wait long, a short round is a queue alone."""
    block = [one_round(name, 1000, noise=0.3, rate=1000.0, delay=delay) for name in "ab"]
    length = round_length.choose([block, block], least=0, most=3)

    assert length.seconds == seconds
    assert missing(length.line, f"rounds of {seconds:g} s", "chosen from the warm-up") == []
    assert "noise" not in length.line


def test_rounds_without_tenths_last_as_usual():
    """A workload that does not count them says nothing of its noise, nor does a warm-up without blocks."""
    silent = Round("a", -5, 0, RunResult(2.0, 0, good=0), 2.4, 0.0)

    assert round_length.within_variance([silent]) is None
    # Compared as dictionaries: Python 3.13 compares the fields of a dataclass one by one, and nan equals no nan.
    usual = RoundLength(2.0, unmeasured=pytest.approx(0.4), most=3)
    assert vars(round_length.choose([[silent]], least=0, most=3)) == vars(usual)
    assert round_length.choose([], least=0, most=3).seconds == 2.0


def test_the_line_says_the_noise_of_both_kinds():
    """Of a round as long as it was chosen."""
    length = RoundLength(0.7, 0.043, 0.051, 0.4)

    noise = ("noise within a round 4.3 %", "between rounds 5.1 %")
    assert missing(length.line, "rounds of 0.7 s", "chosen from the warm-up", *noise) == []


def test_longer_rounds_correct_the_expected_time():
    """With the time between rounds; a budget that suffices for fewer pairs shortens it."""
    assert RoundLength(1.6, unmeasured=0.4).expected_time(2) == "expected time of a claim: about 2 min (30 pairs)"
    assert RoundLength(2.0, most=2.5).expected_time(3) == "expected time of a claim: about 2 min (25 pairs)"
    assert RoundLength(0.3).expected_time(2) == "expected time of a claim: about 18 s (30 pairs)"


def test_a_lower_rate_lengthens_rounds_as_much():
    """So that they have as many operations, up to the longest."""
    assert RoundLength(1.0).longer(1.25).seconds == 1.3
    assert RoundLength(2.0).longer(9).seconds == round_length.LONGEST


def test_a_round_repeats_its_work_until_its_printed_time_has_many_steps():
    """The shortest round of any variant decides for all; 200 steps make rounding half a percent of a ratio."""
    block = [Round(name, -5, 0, RunResult(seconds, 20, resolution=0.001), 1.0, 0.0) for name, seconds in SHORT.items()]

    assert round_length.repeats([block], most=3.0) == 20
    assert round_length.repeats([block], most=0.12) == 5


@pytest.mark.parametrize("outcome", [RunResult(0.01, 20), RunResult(0.3, 20, resolution=0.001)])
def test_a_round_that_is_long_enough_runs_its_work_once(outcome):
    """Or one whose time is read from a clock; and whatever the budget."""
    assert round_length.repeats([[Round("a", -5, 0, outcome, 1.0, 0.0)]], most=3.0) == 1
    assert round_length.repeats([[Round("a", -5, 0, outcome, 1.0, 0.0)]], most=0.001) == 1
    assert round_length.repeats([], most=3.0) == 1


SHORT = {"a": 0.010, "b": 0.023}


def test_the_rounds_of_a_warm_up_have_two_batches_or_as_many_transactions_as_others():
    """At a rate or with pauses a second has few transactions; a length that the test sets is that of all rounds."""
    (batches,) = {len(round_length._batches(done, round_length.BATCH)) for done in warm_up(0.05)[0]}

    assert batches == 2
    assert SysBench().round_seconds == TPCC().round_seconds == WARM_UP
    assert {SysBench(rate=100).round_seconds, TPCC(pause=0.1).round_seconds} == {round_length.USUAL}
    assert SysBench(seconds=3).round_seconds == 3
