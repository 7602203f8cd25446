"""Claims and their verdicts: when they answer, and what they answer."""

import dataclasses
import itertools
import math
import random

import pytest

from pytest_dbcluster.claims import critical_values, verdict
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.kinds import beats, differs, lower, no_slower_than, ordered, same_as, scales
from pytest_dbcluster.claims.verdict import Terms, judge, replay
from pytest_dbcluster.errors import ConfigError
from tests.support.facts import missing
from tests.support.pairs import pairs as made


def noise(mean, sd, pairs, seed=1, **fields):
    """Pairs with normal log ratios."""
    source = random.Random(seed)
    return made([source.gauss(mean, sd) for _ in range(pairs)], seed, **fields)


@pytest.mark.parametrize("pairs", [n for n in range(61) if n not in critical_values.LOOKS])
def test_nothing_is_decided_between_looks(pairs):
    """However clear the pairs are, a claim answers at its looks alone."""
    assert judge(beats(), made([2.0] * pairs)) is None


def test_a_clear_effect_holds_at_the_second_look():
    """Seven times faster with little noise needs twelve pairs; eight cannot show it to one in 2000."""
    assert judge(beats(), noise(math.log(7), 0.1, 8)) is None
    answer = judge(beats(), noise(math.log(7), 0.1, 12))

    assert answer.outcome is Outcome.HOLDS
    assert (answer.pairs, answer.look, answer.needed_pairs, answer.needed_margin) == (12, 2, None, None)
    assert answer.low < 7 < answer.high


@pytest.mark.parametrize(
    ("claim", "effect", "outcome", "reason"),
    [
        (beats(), 0.5, Outcome.HOLDS, "interval lies inside the claim"),
        (beats(0.1), -0.5, Outcome.FAILS, "interval lies below the claim"),
        (no_slower_than(0.05), 0.0, Outcome.HOLDS, "interval lies inside the claim"),
        (no_slower_than(0.05), -0.5, Outcome.FAILS, "interval lies below the claim"),
        (same_as(0.1), 0.0, Outcome.HOLDS, "interval lies inside the claim"),
        (same_as(0.1), 0.5, Outcome.FAILS, "interval lies above the claim"),
        (same_as(0.1), -0.5, Outcome.FAILS, "interval lies below the claim"),
        (scales(1.5), math.log(1.9), Outcome.HOLDS, "interval lies inside the claim"),
        (scales(1.5), math.log(1.1), Outcome.FAILS, "interval lies below the claim"),
        (lower(0.5), math.log(0.1), Outcome.HOLDS, "interval lies inside the claim"),
        (lower(), 0.5, Outcome.FAILS, "interval lies above the claim"),
        (differs(), -0.5, Outcome.HOLDS, "interval excludes equal speed"),
    ],
)
def test_each_claim_answers_as_it_reads(claim, effect, outcome, reason):
    """Twenty quiet pairs on the right side hold, on the wrong side fail, with the reason."""
    answer = judge(claim, noise(effect, 0.01, 20))

    assert (answer.outcome, answer.reason) == (outcome, reason)


def test_equal_variants_never_fail_to_differ():
    """Without a difference differs ends inconclusive: it has no red answer."""
    answer = replay(differs(), noise(0, 0.1, 160, seed=5))

    assert answer.outcome is Outcome.INCONCLUSIVE


def test_equality_proves_no_claim():
    """Ratios of exactly one neither hold nor fail a strict claim; without noise that is futile at once."""
    answer = replay(beats(), made([0.0] * 40))

    assert (answer.outcome, answer.pairs) == (Outcome.INCONCLUSIVE, 28)
    assert answer.needed_pairs is None


def test_a_guard_may_hold_after_two_opening_blocks():
    """Where rounds hardly vary, eight pairs show that nothing got slower; no claim is decided by so few."""
    answer = judge(same_as(0.1), noise(0, 0.02, 8))

    assert (answer.outcome, answer.pairs, answer.look) == (Outcome.HOLDS, 8, 1)
    assert (answer.low, answer.high) == (0, math.inf)
    assert judge(same_as(0.1), noise(1, 0.02, 8)) is None


def test_a_guard_may_hold_at_its_looser_level():
    """The 90 % interval lets a guard hold although the 99.9 % interval reaches below the margin."""
    answer = replay(no_slower_than(0.05), noise(0, 0.1, 160))

    assert answer.outcome is Outcome.HOLDS
    assert answer.low < 0.95 < answer.decided_low < answer.ratio < answer.decided_high < answer.high


def test_futility_stops_from_28_pairs_on():
    """A claim that will hardly be decided at the cap ends at the look after 28 pairs or later, and not before."""
    values = noise(0.0, 0.1, 160, seed=3)

    assert judge(beats(), values.first(24)) is None
    answer = replay(beats(), values)
    assert answer.outcome is Outcome.INCONCLUSIVE
    assert missing(answer.reason, "stopped early", "160 pairs", "not decide", "chance < 1 %") == []
    assert 28 <= answer.pairs < 160


def test_futility_stops_few_claims_that_would_be_decided(monkeypatch):
    """At a CV of 25 % equal variants are seldom given up on where 160 pairs would show that they are equal."""
    stopped = [
        seed for seed in range(40) if replay(same_as(0.1), noise(0, 0.35, 160, seed)).reason[:13] == "stopped early"
    ]
    monkeypatch.setattr(verdict, "FUTILE", -1.0)
    missed = [
        seed for seed in stopped if replay(same_as(0.1), noise(0, 0.35, 160, seed)).outcome.value != "inconclusive"
    ]

    assert stopped
    assert len(missed) <= 1


REST = {"reachable": 24, "budget": "the 120 s of measured time (--db-budget)"}


def test_a_claim_stops_where_the_rest_of_its_budget_hardly_decides():
    """The reason names the budget. With more budget it goes on, and so does a comparison without a claim."""
    first = noise(0.01, 0.4, 14)
    answer = judge(beats(), first, Terms(**REST))

    assert answer.outcome is Outcome.INCONCLUSIVE
    assert missing(answer.reason, "stopped early: the rest of", REST["budget"], "not decide", "chance < 1 %") == []
    assert judge(beats(), first) is None
    assert judge(differs(), first, Terms(**REST)) is None
    assert judge(no_slower_than(0.05), noise(0.01, 1.0, 8), Terms(**REST | {"reachable": 17})).reason == answer.reason
    assert judge(beats(), first.first(12), Terms(**REST)) is None


@pytest.mark.parametrize(
    ("sd", "centre", "pairs"),
    [(0.2, 0.95, (48, 67)), (0.2, 0.9, (44, 56))],
    ids=["may show it", "will hardly show it"],
)
def test_a_guard_goes_on_while_its_interval_may_show_a_wider_margin(sd, centre, pairs):
    """A ratio of .95 does not show a margin of 5 %. It goes on until it shows 10 %, or will hardly do so."""
    wave = made([math.log(centre) + sd * math.sqrt(1.5) * change for change in (1, -1, 0) * 54])
    ends = [replay(no_slower_than(0.05), wave, Terms(cap=80, wider=wider)) for wider in (0.0, 0.1)]

    assert tuple(end.pairs for end in ends) == pairs
    assert {end.reason for end in ends} == {
        "stopped early: even 80 pairs would almost surely not decide (chance < 1 %)"
    }
    assert (ends[1].decided_low > 0.9) is (centre > 0.9)


def test_a_guard_ends_soon_after_its_wider_margin_is_shown():
    """Half as many pairs again are for the claimed margin. The last look shows the wider margin too."""
    wave = made([math.log(0.97) + 0.05 * math.sqrt(1.5) * change for change in (1, -1, 0) * 54])
    guard, wider = no_slower_than(0.05), Terms(wider=0.1)
    first = next(pairs for pairs in critical_values.LOOKS if judge(no_slower_than(0.1), wave.first(pairs)))
    shown = replay(guard, wave, wider)

    assert shown.pairs == next(pairs for pairs in critical_values.LOOKS if pairs >= 1.5 * first)
    assert (
        missing(shown.reason, f"cap of {math.ceil(1.5 * first)} pairs", f"{first} pairs showed a margin of 10 %") == []
    )
    assert shown.outcome is Outcome.INCONCLUSIVE
    assert shown.decided_low > 0.9
    assert replay(guard, wave).pairs > shown.pairs


def test_a_used_budget_is_the_reason_even_where_its_rest_decides_nothing():
    """It says more about what the claim needs."""
    assert judge(beats(), noise(0.01, 0.4, 14), Terms(**REST, out_of_budget="budget used")).reason == "budget used"


def test_few_claims_stop_that_the_rest_of_their_budget_would_decide():
    """Of 120 claims with a budget of 42 pairs, at most one."""
    claims = [(no_slower_than(0.1), 0.2), (beats(), 0.1), (same_as(0.1), 0.1)]
    missed, stopped = 0, 0
    for (claim, sd), seed in itertools.product(claims, range(40)):
        drawn = noise(0.03, sd, 42, seed)
        looks = [look for look in critical_values.LOOKS if 8 <= look <= 42]
        answers = [judge(claim, drawn.first(look), Terms(**REST | {"reachable": 42})) for look in looks]
        found = next(filter(None, answers), None)
        if found and found.reason.startswith("stopped early: the rest"):
            stopped += 1
            missed += replay(claim, drawn, Terms(cap=42)).outcome is not Outcome.INCONCLUSIVE

    assert stopped > 10
    assert missed <= 1


def test_a_promising_claim_is_not_futile():
    """An effect that the cap would show goes on at 28 pairs."""
    assert judge(beats(), noise(0.05, 0.1, 28, seed=2)) is None


@pytest.mark.parametrize(("cap", "ends"), [(160, 160), (999, 160), (30, 28), (28, 28), (7, 4), (3, 3)])
def test_the_cap_ends_at_the_last_look_below_it(cap, ends):
    """A claim that is still open at its last look is inconclusive there, with the cap as reason."""
    answer = judge(beats(), noise(0.01, 0.4, ends), Terms(cap=cap))

    assert answer.outcome is Outcome.INCONCLUSIVE
    assert answer.reason == f"cap of {min(cap, 160)} pairs"
    assert answer.needed_pairs > ends


def test_the_last_look_still_decides():
    """At the cap the rule is applied before the cap is."""
    assert judge(beats(), noise(0.5, 0.1, 28), Terms(cap=28)).outcome is Outcome.HOLDS


@pytest.mark.parametrize("pairs", [0, 1, 3])
def test_a_budget_that_ends_before_the_first_look_bounds_nothing(pairs):
    """With fewer than four pairs the interval is unbounded."""
    answer = judge(beats(), made([0.3] * pairs), Terms(out_of_budget="budget of 120 s used"))

    assert (answer.outcome, answer.reason) == (Outcome.INCONCLUSIVE, "budget of 120 s used")
    assert (answer.low, answer.high, answer.look) == (0, math.inf, 0)


def test_a_budget_that_ends_between_looks_keeps_the_last_interval():
    """Pairs after the last look count for the estimate and not for the interval."""
    values = noise(0.1, 0.3, 19)
    answer = judge(same_as(0.1), values, Terms(out_of_budget="budget of 120 s used"))
    at_look = judge(same_as(0.1), values.first(17), Terms(out_of_budget="budget of 120 s used"))

    assert (answer.low, answer.high) == (at_look.low, at_look.high)
    assert (answer.pairs, answer.look) == (19, 4)
    assert answer.needed_margin > answer.detectable / 2


def test_a_budget_that_ends_at_a_look_lets_the_look_decide():
    """The last pair that the budget paid for may still answer the claim."""
    assert judge(beats(), made([0.5, 0.51] * 6), Terms(out_of_budget="budget used")).outcome is Outcome.HOLDS


def test_a_blind_claim_is_never_answered():
    """A reason why the measurement cannot tell replaces every answer and every promise of one."""
    why = "fsync takes 20 us here, so nothing is flushed"
    for effect in (0.5, -0.5):
        answer = judge(beats(), noise(effect, 0.01, 20), Terms(untrusted=why))
        assert (answer.outcome, answer.reason) == (Outcome.INCONCLUSIVE, why)
        assert answer.needed_pairs is None


def test_the_stricter_alpha_asks_for_more_pairs():
    """At .0001 twelve pairs cannot speak, and the interval is wider."""
    values = noise(1.0, 0.05, 20)

    assert judge(beats(), values.first(12)).outcome is Outcome.HOLDS
    assert judge(beats(), values.first(12), Terms(alpha=0.0001)) is None
    strict, usual = judge(beats(), values, Terms(alpha=0.0001)), judge(beats(), values)
    assert strict.low < usual.low < usual.high < strict.high


def test_an_alpha_without_a_table_is_refused():
    """Only calibrated levels exist."""
    with pytest.raises(ConfigError, match=r"no critical values for level 0\.002"):
        judge(beats(), noise(1, 0.1, 8), Terms(alpha=0.002))


def test_orders_and_times_fill_the_checks():
    """The order effect comes from the order that ran, the stalls from the times of the rounds."""
    values = made([0.5, 0.6] * 6)
    values = dataclasses.replace(values, baseline_first=(True, False) * 6)
    calm = [1.0] * 12
    answer = judge(beats(), values, times=(calm, [9.0, *calm[1:]]))

    assert answer.order_effect == pytest.approx(math.exp(-0.1) - 1)
    assert answer.stalls == (0, 1)
    assert judge(beats(), values).stalls is None


def test_several_instances_have_no_look_that_weighs_one_more():
    """With two instances 12 pairs are no look, however clear the pairs; 8 are for a guard, and 17 for a claim."""
    clear = noise(1.0, 0.01, 17, openings=4, instances=2)
    for drawn in (4, 12, 16):
        assert judge(same_as(0.1), clear.first(drawn)) is None
    assert judge(beats(), clear.first(12)) is None
    assert replay(beats(), clear).pairs == 17
    assert replay(same_as(0.1), noise(0.0, 0.01, 17, openings=4, instances=2)).pairs == 8


def test_void_rounds_that_depend_on_the_variant_decide_nothing():
    """A variant whose slow rounds go void looks faster than it is; the claim draws on, and says why it is open."""
    clear = noise(0.5, 0.01, 20, void=((3, True), (9, True)))

    assert judge(beats(), clear) is None
    answer = judge(beats(), clear, Terms(out_of_budget="budget used"))
    assert (answer.outcome, answer.void) == (Outcome.INCONCLUSIVE, (0, 2))
    assert answer.reason.startswith("budget used; of 22 rounds, 2 of the candidate and 0 of the baseline were void")
    assert "and this may depend on the variant" in answer.reason
    assert judge(beats(), clear, Terms(cap=20)).reason.startswith("cap of 20 pairs; of 22 rounds")


def test_void_rounds_of_both_variants_alike_do_no_harm():
    """Nor do so few that they are 3 % of the rounds, and from 14 pairs on a single one does not either."""
    both = noise(0.5, 0.01, 20, void=((3, True), (9, False)))
    assert judge(beats(), both).outcome is Outcome.HOLDS
    one = noise(0.5, 0.01, 34, void=((3, True),))
    assert judge(beats(), one.first(12)) is None
    assert replay(beats(), one).pairs == 17
    two = noise(0.5, 0.01, 67, void=((3, True), (5, True)))
    assert replay(beats(), two).pairs == 67


def test_a_step_with_unlike_void_rounds_keeps_an_order_open():
    """Each step needs void rounds that do not depend on the variant."""
    steps = [noise(0.6, 0.02, 20), noise(0.4, 0.02, 20, void=((3, False), (4, False)))]
    assert judge(ordered(), steps) is None
    assert "2 of the baseline" in judge(ordered(), steps, Terms(out_of_budget="budget used")).reason


def test_an_order_holds_when_every_step_is_proven():
    """Both steps of three variants clear the step asked for; the smallest one is reported."""
    answer = judge(ordered(0.2), [noise(0.6, 0.02, 12), noise(0.4, 0.02, 12)])

    assert answer.outcome is Outcome.HOLDS
    assert missing(answer.reason, "inside the claim", "smallest step, 2 of 2") == []
    assert [round(part.ratio, 1) for part in answer.neighbours] == [1.8, 1.5]


def test_one_refuted_step_fails_an_order():
    """A step in the wrong direction is enough."""
    answer = judge(ordered(), [noise(0.6, 0.02, 17), noise(-0.4, 0.02, 17)])

    assert answer.outcome is Outcome.FAILS
    assert missing(answer.reason, "below the claim", "smallest step, 2 of 2") == []


def test_one_open_step_keeps_an_order_open():
    """An order waits for its weakest step, until that is futile."""
    open_step = made([0.2, -0.2] * 28)
    assert judge(ordered(), [noise(0.6, 0.02, 12), open_step.first(12)]) is None
    answer = judge(ordered(), [noise(0.6, 0.02, 56), open_step])
    assert (answer.outcome, answer.pairs) == (Outcome.INCONCLUSIVE, 56)


def test_a_step_of_an_order_fails_at_its_share_of_alpha():
    """Twelve pairs that refute one step alone cannot refute one of two."""
    down = noise(-1, 0.05, 12)
    assert judge(ordered(), [down]).outcome is Outcome.FAILS
    assert judge(ordered(), [down, down]) is None


def test_a_blind_order_is_never_answered():
    """The reason of blindness replaces the answer to an order too."""
    answer = judge(ordered(), [noise(0.6, 0.02, 12)] * 2, Terms(untrusted="no flushing here"))
    assert answer.outcome is Outcome.INCONCLUSIVE
    assert missing(answer.reason, "no flushing here", "smallest step, 1 of 2") == []


@pytest.mark.parametrize(("steps", "variants"), [(0, 1), (5, 6)])
def test_an_order_takes_two_to_five_variants(steps, variants):
    """There are critical values for up to four steps."""
    with pytest.raises(ConfigError, match=f"ordered accepts 2 to 5 variants, not {variants}"):
        judge(ordered(), [made([0.1] * 8)] * steps)


def test_the_steps_of_an_order_share_their_blocks():
    """Series of different length do not belong to one measurement."""
    with pytest.raises(ValueError, match="same number of pairs"):
        judge(ordered(), [made([0.1] * 8), made([0.1] * 9)])
