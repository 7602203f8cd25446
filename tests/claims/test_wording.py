"""The words of a verdict, whole."""

import dataclasses
import math
import random

import pytest

from pytest_dbcluster.claims import wording
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.kinds import beats, differs, no_slower_than, ordered
from pytest_dbcluster.claims.verdict import Terms, judge
from pytest_dbcluster.claims.wording import message, state_count
from tests.support import golden
from tests.support.facts import missing
from tests.support.pairs import pairs as made


def noise(mean, sd, pairs, seed=1):
    """Pairs with normal log ratios."""
    source = random.Random(seed)
    return made([source.gauss(mean, sd) for _ in range(pairs)], seed)


def words(answer, **changes):
    """The message of a verdict with ordinary surroundings."""
    usual = {"names": ("a", "b"), "metric": "throughput", "unit": "/s", "seconds_per_round": 2.0, "seed": 1}
    given_ = {**usual, **changes}
    return message(answer, **given_)


def refuted():
    """The message of a refuted claim with all that a message may have."""
    values = made([math.log(1.3) + 0.02 * sign for sign in (1, -1) * 6])
    values = dataclasses.replace(values, baseline_first=(True, False) * 6)
    return words(
        judge(beats(0.5), values, times=([1.0] * 12, [5.0, *[1.0] * 11])),
        names=("flush_2", "default"),
        seed=813,
        seconds=48.0,
        absolute=(1064, 812),
        settle_timeouts=3,
        extra=["durability: flush=2"],
    )


def test_a_message_begins_with_its_sentence():
    """Then it says what to do next, and then pairs, medians and error on one line."""
    first, following, figures, *_ = refuted().splitlines()

    sentence = beats(0.5).sentence(Outcome.FAILS, ("flush_2", "default"), "throughput", "/s")
    assert first.startswith(f"REFUTED: {sentence}; ")
    assert missing(first, "measured 1.30x", "99.9 %", "1.27 .. 1.33", "claimed more than 1.50x") == []
    assert following.startswith("  next: ")
    assert missing(following, "page", "counters differ") == []
    assert missing(figures, "12 pairs", "48 s", "flush_2 1064, default 812 /s", "1 time in 2000") == []


def test_stalls_stand_at_the_variant_that_has_them():
    """An order is written with its slowest variant first, which is the baseline."""
    times = ([5.0, *[1.0] * 11], [1.0] * 12)
    values = made([math.log(1.3) + 0.02 * sign for sign in (1, -1) * 6])

    assert "stalls fast 0/12 v slow 1/12" in words(judge(beats(), values, times=times), names=("fast", "slow"))
    assert "stalls slow 1/12 v fast 0/12" in words(judge(ordered(), values, times=times), names=("slow", "fast"))


def test_the_details_of_a_message_are_whole():
    """Call, place of the rounds, seed, estimator, detectable difference, noise, checks, and the lines of the caller."""
    *_, marker, call, measured, noise_line, settled, extra = refuted().splitlines()

    assert marker == wording.DETAILS
    assert call.startswith("  flush_2.beats(default, by=0.5)   metric throughput")
    assert call.endswith("12 pairs x 2 x 2 s = 48 s, look 2 of 18, seed 813")
    assert measured.startswith("  estimate 1.30x (1.27 .. 1.33), Hodges-Lehmann")
    assert measured.endswith("-> interval lies below the claim")
    assert "pair sd 3.0 %, could see differences >= 7.5 %" in noise_line
    assert noise_line.endswith("stalls flush_2 1/12 v default 0/12")
    assert settled == "  settle timeouts 3"
    assert extra == "  durability: flush=2"


def test_the_brief_form_leaves_out_only_details():
    """Of several messages in one text each loses its own; a text without details stays as it is."""
    whole = refuted()
    kept = whole.splitlines()[:3]

    assert wording.brief(whole).splitlines() == kept
    assert wording.brief(f"head\n{whole}\nthreads=2: {whole}").splitlines() == [
        "head",
        *kept,
        f"threads=2: {kept[0]}",
        *kept[1:],
    ]
    assert wording.brief("tables differ\n  on node db2") == "tables differ\n  on node db2"


def test_an_inconclusive_message_says_what_would_decide():
    """Pairs with their time, those drawn included, and for a guard the margin that these pairs could have proven."""
    answer = judge(no_slower_than(0.05), noise(0, 0.1, 20), Terms(out_of_budget="budget of 120 s used"))
    text = words(answer)

    assert text.startswith("INCONCLUSIVE: whether a is less than 5 % slower than b; measured 0.99x (99.9 % interval ")
    assert text.splitlines()[1] == "  why: budget of 120 s used"
    assert 20 < answer.needed_pairs <= 160
    assert (
        f"\n  next: it needs about {answer.needed_pairs} pairs in all ({4 * answer.needed_pairs} s) or a margin >= "
        in text
    )
    assert ", 90 % 0." in text


def test_a_message_says_when_no_run_draws_so_many_pairs():
    """What helps then are rounds that scatter less, and a guard with a larger margin."""
    for claim, rest in ((beats(0.05), ""), (no_slower_than(0.05), " or a margin >= ")):
        answer = judge(claim, noise(0, 0.4, 20), Terms(out_of_budget="budget of 120 s used"))
        many = f"about {answer.needed_pairs} pairs in all ({4 * answer.needed_pairs} s)"
        assert answer.needed_pairs > 160
        times = math.ceil(answer.needed_pairs / 160)
        advice = f"needs {many}, but no run draws more than 160: take rounds {times} times as long in the test"
        assert advice in words(answer)
        assert rest in words(answer)


def test_no_message_advises_rounds_that_last_hours():
    """If rounds had to be more than 20 times as long, the message advises a different test."""
    answer = judge(beats(0.05), noise(0, 0.6, 20), Terms(out_of_budget="budget of 120 s used"))
    at_most, more = (dataclasses.replace(answer, needed_pairs=pairs) for pairs in (3200, 3201))

    assert "take rounds 20 times as long" in words(at_most)
    assert (
        "\n  next: it needs a different test: the ratio is so close to the bound that it would take about 3201 pairs\n"
        in words(more)
    )


@pytest.mark.parametrize(
    ("load", "change"),
    [
        ("tpcc w1 t4", "TPCC(..., seconds=8)"),
        ("sysbench oltp_read_write t16", "SysBench(..., seconds=8)"),
        ("mysqlslap write c50", "MySQLSlap(..., queries=4 times as many)"),
        ("a load of one's own", ""),
    ],
)
def test_the_advice_names_the_argument_that_makes_rounds_longer(load, change):
    """Four times as long for 559 pairs, of rounds that took 2 s."""
    answer = judge(beats(0.05), noise(0, 0.6, 20), Terms(out_of_budget="budget of 120 s used"))
    answer = dataclasses.replace(answer, needed_pairs=559)
    text = wording.needs(answer, 80.0, load)

    assert f"rounds 4 times as long in the test{f' ({change})' if change else ''}" in text


def test_more_instances_are_advised_until_there_are_four():
    """More of them differ little less, so a claim that stays open needs another margin."""
    apart = dataclasses.replace(beats(0.1), apart=0.05)
    answer = judge(apart, noise(0.08, 0.001, 20), Terms(out_of_budget="budget of 120 s used"))

    assert answer.needed_pairs is None
    assert wording.needs(answer, 80.0, instances=2) == "more instances of each variant (measure(..., instances=4))"
    assert missing(wording.needs(answer, 80.0, instances=4), "a different test", "than 4 instances") == []


def test_an_inconclusive_message_may_know_no_way_out():
    """Without pairs nothing is known, and where the estimate lies on the bound no number of pairs would do."""
    text = words(judge(beats(), made([]), Terms(out_of_budget="budget of 120 s used")))

    assert text.startswith("INCONCLUSIVE: whether a is faster than b; measured nothing, claimed more than 1.00x\n")
    assert "needs more pairs: these are too few to estimate how many" in text
    on_bound = words(judge(beats(), made([0.1, -0.1] * 6), Terms(out_of_budget="budget of 120 s used")))
    assert "needs a different test: more pairs would not help" in on_bound


def test_a_message_about_one_pair_claims_to_see_nothing():
    """Its scatter is unknown, and so are the margin that a guard could prove and the pairs that it would take."""
    answer = judge(no_slower_than(0.05), made([0.1]), Terms(out_of_budget="budget of 120 s used"))

    assert (answer.needed_pairs, answer.needed_margin) == (None, None)
    assert "noise: pair sd unknown, could see differences >= unknown (power .8);" in words(answer)
    assert answer.detectable == math.inf


def test_the_message_of_a_proof_gives_its_error():
    """A claim errs once in 2000 (10000 with the stricter alpha), a guard once in 20 on its margin."""
    values = noise(0.3, 0.02, 20)

    assert words(judge(beats(), values)).startswith("HOLDS: a is faster than b; measured ")
    assert "this verdict is wrong at most 1 time in 2000\n" in words(judge(beats(), values))
    strict = words(judge(beats(), values, Terms(alpha=0.0001)))
    assert "this verdict is wrong at most 1 time in 10000\n" in strict
    assert "sequential 99.98 % interval" in strict
    guard = words(judge(no_slower_than(0.05), values))
    assert (
        "wrong at most 1 time in 20 if the true ratio equals the margin (1 in 10 if rounds depend on each other)\n"
        in guard
    )


def test_the_message_of_an_order_lists_its_steps():
    """Three variants run in blocks of three rounds, and each step has its line."""
    text = words(judge(ordered(0.2), [made([0.6, 0.61] * 6), made([0.4, 0.41] * 6)]), names=("one", "two", "three"))

    first = text.splitlines()[0]
    assert first.startswith("HOLDS: each of one, two, three is faster than the one before it by more than 20 %; ")
    assert "; measured 1.50x in the smallest step (99.9 % interval 1.4" in first
    assert "\n  ordered(one, two, three, step=0.2)   metric throughput   12 blocks x 3 x 2 s = 72 s" in text
    assert "\n  step 1: 1.83x (" in text
    assert "\n  step 2: 1.50x (" in text


def test_no_message_holds_a_bare_p_value():
    """A reader gets a ratio and an interval, never a significance."""
    assert "p =" not in words(judge(beats(), noise(0.3, 0.02, 20)))
    assert "p-value" not in words(judge(beats(), noise(0.3, 0.02, 20)))


def test_the_message_of_a_comparison_beside_speaks_of_no_claim():
    """Two variants differ, or no difference is shown; the claim is nothing."""
    unclear = words(judge(differs(), noise(0, 0.3, 20), Terms(out_of_budget="cap of 20 pairs")))

    assert words(judge(differs(), noise(0.3, 0.02, 20))).startswith("COMPARED: a and b differ; measured 1.3")
    assert unclear.startswith("COMPARED: no difference between a and b is shown; measured ")
    assert ", claimed nothing\n  why: cap of 20 pairs\n" in unclear


def test_a_number_agrees_with_its_word():
    """One holds, two hold."""
    assert [state_count("holds", number) for number in (1, 2)] == ["1 holds", "2 hold"]
    assert state_count("broken", 2) == "2 broken"


def test_golden_verdict_messages():
    """The message of each outcome is that of the golden file."""
    ended, clear = Terms(out_of_budget="budget of 120 s used"), noise(0.3, 0.02, 20)
    steps = [made([0.6, 0.61] * 6), made([0.4, 0.41] * 6)]
    apart = dataclasses.replace(beats(), apart=math.log(1.05))
    golden.compare(
        "verdicts",
        {
            "a refuted claim": refuted(),
            "a claim that holds": words(judge(beats(), clear)),
            "a claim that holds, with carry-over": words(judge(beats(), clear), carried=True),
            "a claim on separate clusters": words(judge(apart, clear)),
            "a claim that separate clusters leave open": words(judge(apart, noise(0.04, 0.002, 12))),
            "a guard that holds": words(judge(no_slower_than(0.05), clear)),
            "a guard without a verdict": words(judge(no_slower_than(0.05), noise(0, 0.1, 20), ended)),
            "a claim that needs longer rounds": words(judge(beats(0.05), noise(0, 0.6, 20), ended), load="tpcc w1 t4"),
            "a claim without pairs": words(judge(beats(), made([]), ended)),
            "a claim whose estimate lies on its bound": words(judge(beats(), made([0.1, -0.1] * 6), ended)),
            "an order": words(judge(ordered(0.2), steps), names=("one", "two", "three")),
            "a latency": words(judge(beats(), clear), metric="p95", unit="ms", absolute=(12.5, 16.25)),
            "a comparison": words(judge(differs(), clear)),
            "a comparison without a difference": words(judge(differs(), noise(0, 0.3, 20), ended)),
        },
    )
