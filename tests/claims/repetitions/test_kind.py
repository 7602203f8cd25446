"""Claims about an event: when they hold, when they fail, and how they are written."""

from __future__ import annotations

import dataclasses
import random

import pytest

from pytest_dbcluster.claims import kinds, wording
from pytest_dbcluster.claims.claim import KINDS, Outcome, Shape
from pytest_dbcluster.claims.repetitions.kind import RepetitionKind, seconds_text
from pytest_dbcluster.claims.repetitions.samples import Repetitions
from pytest_dbcluster.errors import ConfigError

ALPHA = 0.0005
STALLS = (6.04, 6.26, 6.1, 6.2, 6.08, 6.15, 6.12, 6.11, 6.09, 6.22, 6.18)
QUICK, USUAL = Repetitions((3.06, 3.38, 3.2, 3.1, 3.3, 3.25, 3.15)), Repetitions((6.01, 6.46, 6.2, 6.3, 6.1, 6.4, 6.25))


def below(bound, values=STALLS, times=None, share=0.5, censored=()):
    """The verdict on these stalls."""
    claim = dataclasses.replace(kinds.below(bound), share=share)
    return claim.of_kind.judge(claim, [Repetitions(tuple(values), censored)], times or len(values), ALPHA)


@pytest.mark.parametrize(("bound", "outcome"), [(8, Outcome.HOLDS), (5, Outcome.FAILS), (6.15, Outcome.INCONCLUSIVE)])
def test_a_duration_is_compared_with_a_bound(bound, outcome):
    """It holds if the interval lies below the bound."""
    found = below(bound)

    assert (found.outcome, found.pairs, found.alpha) == (outcome, 11, ALPHA)
    assert (found.low, found.ratio, found.high) == (6.04, 6.12, 6.26)


def test_six_repetitions_have_a_wider_error():
    """Their verdict is that of a 95 % interval, and says so."""
    found = below(8, STALLS[:6])

    assert (found.outcome, found.alpha) == (Outcome.HOLDS, 0.025)
    assert wording.level(found) == "95 %"
    assert wording.estimate(found) == "6.12 s (6.04 .. 6.26 s)"


def test_no_verdict_comes_before_the_last_repetition():
    """Their number is fixed, so a claim does not stop at a lucky one."""
    assert below(8, STALLS[:6], times=11) is None


@pytest.mark.parametrize(
    ("share", "times", "facts"),
    [(0.5, 5, ("times=6", "times=11")), (0.9, 35, ("share=0.9", "times=36", "times=73"))],
)
def test_too_few_repetitions_are_refused(share, times, facts):
    """The message names the numbers that decide."""
    claim = dataclasses.replace(kinds.below(8), share=share)
    why = claim.of_kind.refuses(claim, times, ALPHA)

    assert [fact for fact in facts if fact not in why] == []
    assert claim.of_kind.refuses(claim, times + 1, ALPHA) == ""


def test_a_stall_without_an_end_never_counts_as_short():
    """It lasted until the load ended, so its value is a lower bound."""
    values = (*STALLS[:5], 1.0)

    assert below(8, values, censored=(False,) * 5 + (True,)).outcome is Outcome.INCONCLUSIVE
    assert below(8, values).outcome is Outcome.HOLDS


def shorter(seconds, candidate=QUICK, baseline=USUAL, times=7):
    """The verdict on two variants."""
    claim = kinds.shorter(seconds)
    return claim.of_kind.judge(claim, [candidate, baseline], times, ALPHA)


@pytest.mark.parametrize(("seconds", "outcome"), [(2, Outcome.HOLDS), (4, Outcome.FAILS), (3, Outcome.INCONCLUSIVE)])
def test_two_variants_are_compared_in_seconds(seconds, outcome):
    """After seven repetitions of each all 49 differences must lie on one side."""
    found = shorter(seconds)

    assert (found.outcome, found.pairs, found.alpha) == (outcome, 7, ALPHA)
    assert found.ratio == pytest.approx(3.04, abs=0.05)


@pytest.mark.parametrize("ends", [(True,) * 7, (False,) * 6 + (True,)], ids=["all", "one"])
def test_a_baseline_that_never_ends_is_longer(ends):
    """Its stalls are lower bounds, so the interval has no upper end. The lower end proves the claim."""
    found = shorter(2, baseline=Repetitions(USUAL.values, ends))

    assert (found.outcome, found.high) == (Outcome.HOLDS, float("inf"))
    assert shorter(2, candidate=Repetitions(QUICK.values, ends)).outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(("by", "outcome"), [(0.22, Outcome.HOLDS), (0.02, Outcome.FAILS), (0.1, Outcome.INCONCLUSIVE)])
def test_the_speeds_after_an_event_are_compared_in_per_cent_of_the_usual_rate(by, outcome):
    """The candidate has 84 to 96 %, and the control 99 to 105 %."""
    kill = Repetitions((84.0, 96.0, 90.0, 91.0, 89.0, 92.0, 88.0))
    none = Repetitions((99.0, 105.0, 101.0, 102.0, 100.0, 104.0, 103.0))
    claim = kinds.event_no_slower_than(by)
    found = claim.of_kind.judge(claim, [kill, none], 7, ALPHA)

    assert (found.outcome, found.ratio, found.low, found.high) == (outcome, 12, 3, 21)


@pytest.mark.parametrize(
    ("candidate", "outcome"),
    [(QUICK, Outcome.HOLDS), (Repetitions((9.0,) * 7), Outcome.HOLDS), (USUAL, Outcome.INCONCLUSIVE)],
)
def test_a_comparison_of_durations_never_fails(candidate, outcome):
    """It shows which one is shorter, or that no difference is shown."""
    claim = kinds.event_differs()

    assert claim.of_kind.judge(claim, [candidate, USUAL], 7, ALPHA).outcome is outcome
    assert claim.of_kind.claims_nothing
    shown = claim.of_kind.headline("-0.22 s", ("semisync", "async"), "stall", "s", holds=True, count=7)
    assert shown == "stall of semisync is 0.22 s longer than that of async"


def test_a_later_look_allows_for_some_overlap():
    """One stall of the second block lies among the others."""
    candidate = Repetitions((*QUICK.values, *QUICK.values[:6], 6.2))
    baseline = Repetitions(USUAL.values * 2)

    assert shorter(2.7, candidate.first(7), baseline.first(7), times=14) is None
    assert shorter(2.5, candidate, baseline, times=14).pairs == 7
    assert shorter(2.7, Repetitions((6.2, *QUICK.values[1:], *QUICK.values)), baseline, times=14).pairs == 14


def test_only_whole_blocks_compare():
    """Their numbers depend on alpha: at .0001 the first block cannot decide."""
    kind, claim = KINDS["shorter"], kinds.shorter(2)

    assert [kind.refuses(claim, times, ALPHA) == "" for times in (6, 7, 8, 14, 21)] == [False, True, False, True, True]
    assert "14 or 21" in kind.refuses(claim, 7, 0.0001)


def test_seconds_are_rounded_to_their_side_of_the_bound():
    """A stall of 7.999 s is not shown as the bound of 8 s."""
    assert seconds_text(7.999, [8.0]) == "7.999"
    assert seconds_text(8.0, [8.0]) == "8.00"
    assert seconds_text(6.123) == "6.12"


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "8", None])
def test_a_bound_is_a_positive_number(seconds):
    """Without a hint about fractions."""
    with pytest.raises(ConfigError, match="0 < seconds < inf") as caught:
        kinds.below(seconds)
    assert "fraction" not in str(caught.value)


def test_the_kinds_of_repetitions_are_no_ratios():
    """Charts of ratios leave them out."""
    found = {name for name, kind in KINDS.items() if not kind.is_ratio}

    own = {"below", "event_differs", "event_no_slower_than", "loses_nothing", "returned_by", "shorter"}
    assert found == {*own, "meets"}
    assert all(isinstance(KINDS[name], RepetitionKind) for name in found)
    assert {KINDS[name].shape for name in found} == {Shape.DURATION, Shape.PROPORTION}


def test_a_claim_is_written_as_a_test_calls_it():
    """With its share and its margin."""
    of_nine = dataclasses.replace(kinds.below(8), share=0.9)

    assert kinds.below(8).call(("galera3",), "stall") == 'galera3.below("stall", 8)'
    assert of_nine.call(("galera3",), "stall") == 'galera3.below("stall", 8, share=0.9)'
    assert kinds.shorter(2).call(("PT2S", "galera3"), "stall") == 'PT2S.shorter("stall", than=galera3, seconds=2)'
    assert kinds.loses_nothing().call(("galera3",), "lost") == "galera3.loses_nothing()"
    assert kinds.returned_by().call(("galera3",), "returned_by:IST") == 'galera3.returned_by("IST")'


def test_a_true_median_on_the_bound_is_rarely_missed():
    """2000 claims of six lognormal stalls whose median is the bound: each side errs in at most 2.5 %."""
    coin = random.Random(5)
    found = [below(1.0, [coin.lognormvariate(0, 1) for _ in range(6)]).outcome for _ in range(2000)]

    assert found.count(Outcome.HOLDS) <= 60
    assert found.count(Outcome.FAILS) <= 60
    assert Outcome.INCONCLUSIVE in found
