"""Claims and their verdicts: when they answer, what they answer, and what the answer says."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dbcluster import claim as claims
from pytest_dbcluster import critical, verdict
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.verdict import (
    Outcome,
    beats,
    differs,
    judge,
    judge_ordered,
    lower,
    no_slower_than,
    replay,
    same_as,
    scales,
)

CLAIMS = (
    beats(),
    beats(by=0.1),
    no_slower_than(by=0.05),
    same_as(within=0.1),
    scales(at_least=1.5),
    lower(),
    differs(),
)

any_claim = st.sampled_from(CLAIMS)
any_pairs = st.integers(0, 60)
looks = st.sampled_from(critical.LOOKS[:6])
extreme = st.one_of(st.sampled_from([0.0, 1e-300, 0.1, -0.1, 1e300, -1e300, math.inf, -math.inf]), st.floats(-9, 9))


def noise(mean, sd, pairs, seed=1):
    """Normal log ratios."""
    source = random.Random(seed)
    return [source.gauss(mean, sd) for _ in range(pairs)]


def opposite(outcome):
    """The answer to the mirrored question."""
    return {Outcome.HOLDS: Outcome.FAILS, Outcome.FAILS: Outcome.HOLDS}.get(outcome, outcome)


@st.composite
def plausible(draw, pairs=any_pairs):
    """Log ratios with a true effect and noise, and whether each pair began with the baseline."""
    count, effect, sd = draw(pairs), round(draw(st.floats(-0.6, 0.6)), 6), draw(st.sampled_from([0.0, 0.01, 0.1, 0.3]))
    return noise(effect, sd, count, draw(st.integers(0, 2**32)))


@pytest.mark.parametrize("pairs", [n for n in range(61) if n not in critical.LOOKS])
def test_nothing_is_decided_between_looks(pairs):
    """However clear the pairs are, a claim answers at its looks alone."""
    assert judge(beats(), [2.0] * pairs) is None


def test_a_clear_effect_holds_at_the_first_look():
    """Seven times faster with little noise needs six pairs."""
    answer = judge(beats(), noise(math.log(7), 0.1, 6))

    assert answer.outcome is Outcome.HOLDS
    assert (answer.pairs, answer.look, answer.needed_pairs, answer.needed_margin) == (6, 1, None, None)
    assert answer.low < 7 < answer.high


@pytest.mark.parametrize(
    ("claim", "effect", "outcome", "reason"),
    [
        (beats(), 0.5, Outcome.HOLDS, "interval lies inside the claim"),
        (beats(by=0.1), -0.5, Outcome.FAILS, "interval lies below the claim"),
        (no_slower_than(by=0.05), 0.0, Outcome.HOLDS, "interval lies inside the claim"),
        (no_slower_than(by=0.05), -0.5, Outcome.FAILS, "interval lies below the claim"),
        (same_as(within=0.1), 0.0, Outcome.HOLDS, "interval lies inside the claim"),
        (same_as(within=0.1), 0.5, Outcome.FAILS, "interval lies above the claim"),
        (same_as(within=0.1), -0.5, Outcome.FAILS, "interval lies below the claim"),
        (scales(at_least=1.5), math.log(1.9), Outcome.HOLDS, "interval lies inside the claim"),
        (scales(at_least=1.5), math.log(1.1), Outcome.FAILS, "interval lies below the claim"),
        (lower(by=0.5), math.log(0.1), Outcome.HOLDS, "interval lies inside the claim"),
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
    answer = replay(beats(), [0.0] * 40)

    assert (answer.outcome, answer.pairs) == (Outcome.INCONCLUSIVE, 28)
    assert answer.needed_pairs is None


def test_a_guard_may_hold_at_its_looser_level():
    """The 90 % interval lets a guard hold although the 99.9 % interval reaches below the margin."""
    answer = replay(no_slower_than(by=0.05), noise(0, 0.1, 160))

    assert answer.outcome is Outcome.HOLDS
    assert answer.low < 0.95 < answer.decided_low < answer.ratio < answer.decided_high < answer.high


def test_futility_stops_from_28_pairs_on():
    """A claim that will hardly be decided at the cap ends at the seventh look and not before."""
    values = noise(0.0, 0.1, 160, seed=3)

    assert judge(beats(), values[:20]) is None
    answer = replay(beats(), values)
    assert answer.outcome is Outcome.INCONCLUSIVE
    assert answer.reason == "futile: chance to decide before the cap of 160 pairs < 5 %"
    assert answer.pairs in critical.LOOKS[5:]


def test_a_promising_claim_is_not_futile():
    """An effect that the cap would show goes on at 28 pairs."""
    assert judge(beats(), noise(0.05, 0.1, 28, seed=2)) is None


@pytest.mark.parametrize(("cap", "ends"), [(160, 160), (999, 160), (30, 28), (28, 28), (7, 6), (3, 3)])
def test_the_cap_ends_at_the_last_look_below_it(cap, ends):
    """A claim that is still open at its last look is inconclusive there, with the cap as reason."""
    answer = judge(beats(), noise(0.01, 0.2, ends), cap=cap)

    assert answer.outcome is Outcome.INCONCLUSIVE
    assert answer.reason == f"cap of {min(cap, 160)} pairs"
    assert answer.needed_pairs > ends


def test_the_last_look_still_decides():
    """At the cap the rule is applied before the cap is."""
    assert judge(beats(), noise(0.5, 0.1, 28), cap=28).outcome is Outcome.HOLDS


@pytest.mark.parametrize("pairs", [0, 1, 5])
def test_a_budget_that_ends_before_the_first_look_bounds_nothing(pairs):
    """With fewer than six pairs the interval is unbounded."""
    answer = judge(beats(), [0.3] * pairs, out_of_budget="budget of 120 s used")

    assert (answer.outcome, answer.reason) == (Outcome.INCONCLUSIVE, "budget of 120 s used")
    assert (answer.low, answer.high, answer.look) == (0, math.inf, 0)


def test_a_budget_that_ends_between_looks_keeps_the_last_interval():
    """Pairs after the last look count for the estimate and not for the interval."""
    values = noise(0.1, 0.3, 19)
    answer = judge(same_as(within=0.1), values, out_of_budget="budget of 120 s used")
    at_look = judge(same_as(within=0.1), values[:15], out_of_budget="budget of 120 s used")

    assert (answer.low, answer.high) == (at_look.low, at_look.high)
    assert (answer.pairs, answer.look) == (19, 4)
    assert answer.needed_margin > answer.detectable / 2


def test_a_budget_that_ends_at_a_look_lets_the_look_decide():
    """The last pair that the budget paid for may still answer the claim."""
    assert judge(beats(), [0.5, 0.51] * 3, out_of_budget="budget used").outcome is Outcome.HOLDS


def test_a_blind_claim_is_never_answered():
    """A reason why the measurement cannot tell replaces every answer and every promise of one."""
    why = "fsync takes 20 us here, so nothing is flushed"
    for effect in (0.5, -0.5):
        answer = judge(beats(), noise(effect, 0.01, 20), blind=why)
        assert (answer.outcome, answer.reason) == (Outcome.INCONCLUSIVE, why)
        assert answer.needed_pairs is None


def test_the_stricter_alpha_asks_for_more_pairs():
    """At .0001 six pairs cannot speak, and the interval is wider."""
    values = noise(1.0, 0.05, 8)

    assert judge(beats(), values[:6]).outcome is Outcome.HOLDS
    assert judge(beats(), values[:6], alpha=0.0001) is None
    strict, usual = judge(beats(), values, alpha=0.0001), judge(beats(), values)
    assert strict.low < usual.low < usual.high < strict.high


def test_an_alpha_without_a_table_is_refused():
    """Only calibrated levels exist."""
    with pytest.raises(ConfigError, match=r"no critical values for level 0\.002"):
        judge(beats(), noise(1, 0.1, 6), alpha=0.002)


def test_orders_and_times_fill_the_checks():
    """The order effect and the stalls appear when the caller says which order ran and how long rounds took."""
    values = [0.5, 0.6, 0.5, 0.6, 0.5, 0.6]
    calm = [1.0] * 6
    answer = judge(beats(), values, orders=[True, False] * 3, times=(calm, [9.0, *calm[1:]]))

    assert answer.order_effect == pytest.approx(math.exp(-0.1) - 1)
    assert answer.stalls == (0, 1)
    plain = judge(beats(), values)
    assert plain.stalls is None
    assert math.isnan(plain.order_effect)


@settings(deadline=None)
@given(any_claim, st.lists(extreme, max_size=45))
def test_no_input_crashes_a_claim(claim, values):
    """Constant, tied, infinite, tiny and huge ratios get an answer or another pair, and a message."""
    answer = replay(claim, values, out_of_budget="end")

    assert answer is not None
    assert "seed 1" in words(answer)


@settings(deadline=None)
@given(plausible(looks))
def test_swapping_the_variants_mirrors_beats(values):
    """Whatever holds one way round fails the other way round, after as many pairs."""
    forward, backward = judge(beats(), values), judge(beats(), [-value for value in values])

    assert (forward is None) == (backward is None)
    if forward is not None:
        assert backward.outcome is opposite(forward.outcome)
        assert backward.ratio == pytest.approx(1 / forward.ratio)
        assert backward.low == pytest.approx(1 / forward.high)


@settings(deadline=None)
@given(plausible(looks), st.sampled_from([0.25, 2.0, 64.0]))
def test_the_unit_of_noise_does_not_matter(values, scale):
    """Stretching every log ratio leaves the answer of a claim without margin."""
    plain, stretched = judge(beats(), values), judge(beats(), [value * scale for value in values])

    assert (plain and plain.outcome) == (stretched and stretched.outcome)


@settings(deadline=None)
@given(any_claim, plausible())
def test_an_answer_keeps_clear_of_the_bound(claim, values):
    """The interval that decided holds none of the claim's bounds, and lies inside or outside all of it."""
    answer = replay(claim, values, out_of_budget="end")

    inside = answer.decided_low, answer.decided_high
    if answer.outcome is Outcome.HOLDS:
        assert not any(inside[0] <= math.exp(bound) <= inside[1] for bound in claim.bounds)
    if answer.outcome is Outcome.FAILS:
        low, high = map(math.exp, claim.bounds)
        assert answer.high < low or answer.low > high


@settings(deadline=None)
@given(any_claim, plausible())
def test_replay_is_asking_after_every_pair(claim, values):
    """A claim asked of drawn pairs answers as one that was asked while they were drawn."""
    orders = [index % 2 == 0 for index in range(len(values))]
    asked = (judge(claim, values[:n], orders=orders[:n], cap=40) for n in range(len(values) + 1))
    first = next((answer for answer in asked if answer is not None), None)

    assert repr(replay(claim, values, orders=orders, cap=40)) == repr(first)


@settings(deadline=None)
@given(any_claim, plausible(st.integers(7, 40)))
def test_replay_under_a_budget_decides_no_earlier(claim, values):
    """A used-up budget changes nothing about the looks before it."""
    free = replay(claim, values)
    ended = replay(claim, values, out_of_budget="budget used", times=([1.0] * len(values),) * 2)

    if free is not None:
        assert (ended.outcome, ended.pairs) == (free.outcome, free.pairs)
    else:
        assert (ended.outcome, ended.pairs, ended.reason) == (Outcome.INCONCLUSIVE, len(values), "budget used")


@settings(max_examples=50, deadline=None)
@given(plausible(looks), st.integers(2, 5))
def test_an_order_of_equal_steps_is_no_stronger_than_one(values, variants):
    """With the same series as every step an order holds when one step does, and fails only if that one fails."""
    one, order = judge_ordered([values]), judge_ordered([values] * (variants - 1))

    if order is not None and order.outcome is not Outcome.INCONCLUSIVE:
        assert order.outcome is one.outcome


def test_an_order_holds_when_every_step_is_proven():
    """Both steps of three variants clear the step asked for; the smallest one is reported."""
    answer = judge_ordered([noise(0.6, 0.02, 8), noise(0.4, 0.02, 8)], step=0.2)

    assert answer.outcome is Outcome.HOLDS
    assert answer.reason == "interval lies inside the claim (the smallest step, 2 of 2)"
    assert [round(part.ratio, 1) for part in answer.neighbours] == [1.8, 1.5]


def test_one_refuted_step_fails_an_order():
    """A step in the wrong direction is enough."""
    answer = judge_ordered([noise(0.6, 0.02, 8), noise(-0.4, 0.02, 8)])

    assert answer.outcome is Outcome.FAILS
    assert answer.reason == "interval lies below the claim (the smallest step, 2 of 2)"


def test_one_open_step_keeps_an_order_open():
    """An order waits for its weakest step, until that is futile."""
    open_step = [0.2, -0.2] * 28
    assert judge_ordered([noise(0.6, 0.02, 8), open_step[:8]]) is None
    answer = judge_ordered([noise(0.6, 0.02, 56), open_step])
    assert (answer.outcome, answer.pairs) == (Outcome.INCONCLUSIVE, 56)


def test_a_step_of_an_order_fails_at_its_share_of_alpha():
    """Six pairs that refute one step alone cannot refute one of two."""
    down = noise(-1, 0.05, 6)
    assert judge_ordered([down]).outcome is Outcome.FAILS
    assert judge_ordered([down, down]) is None


def test_a_blind_order_is_never_answered():
    """The reason of blindness replaces the answer to an order too."""
    answer = judge_ordered([noise(0.6, 0.02, 8)] * 2, blind="no flushing here")
    assert answer.outcome is Outcome.INCONCLUSIVE
    assert answer.reason == "no flushing here (the smallest step, 1 of 2)"


@pytest.mark.parametrize(("steps", "variants"), [(0, 1), (5, 6)])
def test_an_order_takes_two_to_five_variants(steps, variants):
    """There are critical values for up to four steps."""
    with pytest.raises(ConfigError, match=f"ordered takes 2 to 5 variants, not {variants}"):
        judge_ordered([[0.1] * 6] * steps)


def test_the_steps_of_an_order_share_their_blocks():
    """Series of different length do not belong to one measurement."""
    with pytest.raises(ValueError, match="every step of an order needs the same number of pairs"):
        judge_ordered([[0.1] * 6, [0.1] * 7])


@pytest.mark.parametrize("margin", [None, "5 %", True])
@pytest.mark.parametrize(("make", "option"), [(no_slower_than, "by"), (same_as, "within")])
def test_a_guard_without_a_number_is_refused(make, option, margin):
    """A guard needs its margin, and the text says which are usual."""
    with pytest.raises(ConfigError) as refused:
        make(margin)
    assert str(refused.value) == (
        f"{make.__name__}({option}={margin!r}): {option} must be a number, 0 < {option} < 1; "
        "a guard needs its margin, .05 and .10 are usual"
    )


@pytest.mark.parametrize(
    ("make", "margin", "text"),
    [
        (no_slower_than, 0, "no_slower_than(by=0): by is out of range, 0 < by < 1"),
        (no_slower_than, 5, "no_slower_than(by=5): by is out of range, 0 < by < 1"),
        (same_as, 1.0, "same_as(within=1.0): within is out of range, 0 < within < 1"),
        (beats, -0.1, "beats(by=-0.1): by is out of range, 0 <= by < inf"),
        (beats, math.nan, "beats(by=nan): by is out of range, 0 <= by < inf"),
        (beats, "much", "beats(by='much'): by must be a number, 0 <= by < inf"),
        (scales, 0, "scales(at_least=0): at_least is out of range, 0 < at_least < inf"),
        (scales, math.inf, "scales(at_least=inf): at_least is out of range, 0 < at_least < inf"),
        (lower, 1, "lower(by=1): by is out of range, 0 <= by < 1"),
        (claims.ordered, -1, "ordered(step=-1): step is out of range, 0 <= step < inf"),
    ],
)
def test_an_absurd_margin_is_refused_with_its_range(make, margin, text):
    """The text names the claim, what was given, and what is allowed."""
    with pytest.raises(ConfigError) as refused:
        make(margin)
    assert str(refused.value) == text


@pytest.mark.parametrize(
    ("claim", "call", "claimed"),
    [
        (beats(), "a.beats(b)", "more than +0.0 %"),
        (beats(by=1.5), "a.beats(b, by=1.5)", "more than x2.5"),
        (no_slower_than(by=0.05), "a.no_slower_than(b, by=0.05)", "more than -5.0 %"),
        (same_as(within=0.1), "a.same_as(b, within=0.1)", "between -10 % and +11 %"),
        (scales(at_least=1.5), "a.scales(b, at_least=1.5)", "more than +50 %"),
        (lower(by=0.5), 'a.lower("fsyncs", than=b, by=0.5)', "less than -50 %"),
        (differs(), "a.differs(b)", "other than +0.0 %"),
    ],
)
def test_a_claim_prints_as_it_was_written(claim, call, claimed):
    """The message repeats the call of the test and the range that it means."""
    text = words(judge(claim, noise(0, 0.1, 6), out_of_budget="end"), metric="fsyncs")

    assert text.split("   ")[0].split(" ", 1)[1] == call
    assert f"claimed {claimed}   ->" in text


def words(answer, **changes):
    """The message of a verdict with ordinary surroundings."""
    given_ = {"names": ("a", "b"), "metric": "commits/s", "seconds_per_round": 2.0, "seed": 1, **changes}
    return verdict.message(answer, **given_)


FAILED = """\
FAILED flush_2.beats(default, by=0.5)   metric commits/s   8 pairs x 2 x 2 s = 40 s, look 2 of 11, seed 813
  measured +30 % (Hodges-Lehmann; sequential 99.9 % interval +20 % .. +40 %)   claimed more than +50 %   -> \
interval lies below the claim
  noise: pair sd 3.0 %, could see differences >= 5.4 % (power .8); halves +30 % / +30 %, order AB-BA +4.1 %, \
lag-1 r -0.88, stalls flush_2 1/8 v default 0/8
  error of this verdict <= 1 in 2000; absolute medians flush_2 1064 v default 812 commits/s; settle timeouts 3; \
data .dbcluster/3f2a.json
  durability: flush=2"""


def test_the_message_of_a_failure_is_whole():
    """Ratio, interval, claim, detectable difference, noise, checks, error, medians, seed and place of the rounds."""
    values = [math.log(1.3) + 0.02 * sign for sign in (1, -1) * 4]
    answer = judge(beats(by=0.5), values, orders=[True, False] * 4, times=([1.0] * 8, [5.0, *[1.0] * 7]))
    text = words(
        answer,
        names=("flush_2", "default"),
        seed=813,
        seconds=40.0,
        absolute=(1064, 812),
        unit="commits/s",
        settle_timeouts=3,
        data=".dbcluster/3f2a.json",
        extra=["durability: flush=2"],
    )

    assert text == FAILED


def test_an_inconclusive_message_says_what_would_decide():
    """Pairs with their time, and for a guard the margin that these pairs could have proven."""
    answer = judge(no_slower_than(by=0.05), noise(0, 0.3, 20), out_of_budget="budget of 120 s used")
    text = words(answer)

    assert text.startswith("INCONCLUSIVE a.no_slower_than(b, by=0.05)   metric commits/s   20 pairs x 2 x 2 s = 80 s")
    assert "-> budget of 120 s used" in text
    assert f"needs about {answer.needed_pairs} pairs ({4 * answer.needed_pairs} s) or a margin >= " in text
    assert "; 90 % " in text


def test_an_inconclusive_message_may_know_no_way_out():
    """Without pairs nothing is known, and the message says so."""
    text = words(judge(beats(), [], out_of_budget="budget of 120 s used"))

    assert "measured unknown (Hodges-Lehmann; sequential 99.9 % interval not bounded yet)" in text
    assert "no number of pairs is known to decide it" in text


def test_the_message_of_a_proof_gives_its_error():
    """A claim errs once in 2000 (10000 with the stricter alpha), a guard once in 20 on its margin."""
    values = noise(0.3, 0.02, 20)

    assert "HOLDS a.beats(b)" in words(judge(beats(), values))
    assert "error of this verdict <= 1 in 2000;" in words(judge(beats(), values))
    strict = words(judge(beats(), values, alpha=0.0001))
    assert "error of this verdict <= 1 in 10000;" in strict
    assert "sequential 99.98 % interval" in strict
    guard = words(judge(no_slower_than(by=0.05), values))
    assert "error of this verdict <= 1 in 20, exactly on the margin" in guard


def test_the_message_of_an_order_lists_its_steps():
    """Three variants run in blocks of three rounds, and each step has its line."""
    text = words(judge_ordered([[0.6, 0.61] * 4, [0.4, 0.41] * 4], step=0.2), names=("one", "two", "three"))

    assert text.startswith("HOLDS ordered(one, two, three, step=0.2)   metric commits/s   8 blocks x 3 x 2 s = 48 s")
    assert "\n  step 1: +83 % (Hodges" in text
    assert "\n  step 2: +50 % (Hodges" in text


def test_no_message_holds_a_bare_p_value():
    """A reader gets a ratio and an interval, never a significance."""
    assert "p =" not in words(judge(beats(), noise(0.3, 0.02, 20)))
    assert "p-value" not in words(judge(beats(), noise(0.3, 0.02, 20)))


def test_everything_a_measurement_needs_comes_from_one_module():
    """The measuring loop imports claims, looks, stalls and words from the verdict."""
    assert all(hasattr(verdict, name) for name in verdict.__all__)
    assert verdict.next_look(6) == 8
    assert verdict.stall_test([1.0], [1.0]) == (0, 0, 1.0)
