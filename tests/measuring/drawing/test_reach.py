"""Whether a claim can reach its first look: within its own budget, and in the rest of the run."""

from __future__ import annotations

import dataclasses
import math

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.errors import ConfigError, Inconclusive
from pytest_dbcluster.measuring.drawing import reach
from pytest_dbcluster.measuring.series import ordered, series_of
from pytest_dbcluster.rounds.round import Round, RunResult
from tests.support import golden
from tests.support.fakes import FakeSource, noisy
from tests.support.measurements import measured, measurement, two


@pytest.mark.parametrize(
    ("claim", "alpha", "look"),
    [
        (kinds.beats(), 0.0005, 12),
        (kinds.beats(), 0.0001, 17),
        (kinds.no_slower_than(0.1), 0.0001, 8),
    ],
)
def test_the_first_look_is_the_first_that_can_decide(claim, alpha, look):
    """A stricter level says nothing at the first look."""
    assert reach.first_look(claim, alpha) == look


@pytest.mark.parametrize(
    ("pairs", "budget", "left", "reachable"),
    [
        (10, 40.0, math.inf, 22),
        (10, 100.0, 30.0, 22),
        (10, 100.0, 0.0, 11),
        (10, 1e6, math.inf, 160),
        (0, 9.0, 1.0, 160),
    ],
)
def test_pairs_are_reachable_at_the_pace_so_far(pairs, budget, left, reachable):
    """Measured seconds bound them, and the rest of the time; both allow a tenth more."""
    rounds = [Round("slow", 0, 0, RunResult(1.0, 100), 1.5, 0.0, {})] * 2 * pairs

    assert reach.reachable(rounds, pairs, budget, left) == reachable


def test_rounds_too_long_for_the_budget_are_an_error_before_anything_starts():
    """The smallest budget that can decide is named, and the longest rounds that this budget allows."""
    source = two()
    source.round_seconds = 2.0
    source.permit = lambda metric: pytest.fail("begun")
    slow, fast = series_of(measurement(source, budget=20.0))

    for ask in (lambda: fast.beats(slow), lambda: ordered(slow, fast), lambda: fast.lower("fsyncs", than=slow)):
        with pytest.raises(ConfigError) as caught:
            ask()
        assert "12 x 2 rounds of 2 s take 48 s" in str(caught.value)
        assert str(caught.value).endswith("--db-budget 48, or seconds=0.83 or less")
    assert source.rounds == []


def test_a_budget_that_suffices_for_the_first_look_is_enough():
    """Exactly; a comparison beside draws what it may."""
    source = two(seconds=lambda variant: (2.0, 1.999)[variant])
    source.round_seconds = 2.0
    slow, fast = series_of(measurement(source, budget=48.0))
    assert fast.beats(slow).verdict.pairs == 12

    short = series_of(measurement(source, budget=20.0))
    assert short[1].against(short[0]).verdict.pairs == 4


def test_chosen_lengths_need_a_budget_for_the_shortest():
    """.3 s each; the advice is the budget alone."""
    source = two()
    source.free_length = True
    slow, fast = series_of(measurement(source, budget=3.0))

    with pytest.raises(ConfigError, match=r"rounds of 0\.3 s take 7\.2 s, .* the smallest budget is --db-budget 8$"):
        fast.beats(slow)


def test_a_fixed_amount_of_work_is_judged_by_its_warm_up():
    """Its length is known then; the claim ends before a round is drawn in vain."""
    source = two(seconds=noisy(4.0, 4.0, sd=0.001))
    slow, fast = series_of(measurement(source, budget=20.0))

    with pytest.raises(
        Inconclusive, match=r"12 x 2 rounds of [34]\.?\d* s take 9[4567]\.?\d* s, .* is --db-budget 9[45678]$"
    ):
        fast.beats(slow)
    assert measured(source) == []


def test_a_claim_that_nearly_reaches_its_look_draws():
    """Rounds may get faster; the verdict says what the first look would have taken."""
    source = two(seconds=lambda variant: 2.0)
    slow, fast = series_of(measurement(source, budget=36.0))

    verdict = fast.beats(slow).verdict
    assert verdict.pairs == 8
    assert verdict.reason.startswith("budget of 36 s of measured time (--db-budget)")
    assert verdict.reason.endswith("a verdict needs at least 12 pairs, which take 48 s")


def test_an_opening_block_that_does_not_fit_the_budget_does_not_start():
    """A comparison without a claim then draws pair by pair what it may, and none of its looks decides anything."""
    source = two(seconds=lambda variant: (2.0, 1.0)[variant])
    asked = measurement(source, budget=7.0)
    slow, fast = series_of(asked)

    verdict = fast.against(slow).verdict
    assert (asked.drawing.blocks.openings, verdict.pairs, verdict.outcome) == (0, 3, Outcome.INCONCLUSIVE)


def test_rounds_that_get_much_faster_after_the_warm_up_reach_the_later_looks():
    """No opening block fitted the budget by the times of the warm-up, so the looks before 14 pairs decide nothing."""
    source = two(seconds=lambda variant: (20.0, 10.0)[variant] if len(source.rounds) <= 4 else (0.2, 0.1)[variant])
    asked = measurement(source, budget=70.0)
    slow, fast = series_of(asked)

    assert fast.against(slow).verdict.outcome is Outcome.HOLDS
    assert (asked.drawing.blocks.openings, asked.pairs >= 14) == (0, True)


@pytest.mark.parametrize(("instances", "look"), [(1, 12), (2, 17), (3, 12), (4, 17)])
def test_instances_in_turn_have_a_later_first_look(instances, look):
    """None comes before every instance has as many opening blocks."""
    assert reach.first_look(kinds.beats(), 0.0005, instances) == look


def test_the_rest_of_the_run_is_too_short():
    """A claim that it cannot hold says so before anything starts, with what it takes and what is left."""
    source = two()
    source.round_seconds = 2.0
    source.permit = lambda metric: pytest.fail("begun")
    slow, fast = series_of(measurement(source, run_left=lambda: 12.4))

    with pytest.raises(Inconclusive) as caught:
        fast.beats(slow)
    assert "12 s left (--db-run-budget)" in str(caught.value)
    assert "takes 56 s or more" in str(caught.value)
    assert source.rounds == []
    assert reach.beyond_run(6, 2, 2.0, 32.0) == ""


def test_rounds_that_are_there_are_judged_whatever_is_left():
    """A second claim replays them, so it needs no time."""
    left = [1000.0]
    source = FakeSource(("slow", "fast"), noisy(1.0, 0.5))
    source.round_seconds = 1.0
    slow, fast = series_of(measurement(source, run_left=lambda: left[0]))
    assert fast.beats(slow)
    left[0] = 0.1

    assert fast.beats(slow)


def test_golden_budget_errors():
    """What is said when a budget ends a claim, or keeps it from its first look, is in the golden file."""
    block = [Round(name, -1, place, RunResult(4.0, 100), 0.0, 0.0, {}) for place, name in enumerate(("slow", "fast"))]
    golden.compare(
        "budgets",
        {
            "rounds that the test made too long": reach.beyond_budget(12, 2, 2.0, 20.0),
            "rounds of an order": reach.beyond_budget(12, 3, 2.0, 20.0, given=False),
            "rounds of a fixed amount of work": reach.why_too_slow([block], (0, 1), 12, 20.0),
            "a run with too little time": reach.beyond_run(12, 2, 2.0, 12.4),
            "a used budget": reach.out_of_budget(20.1, 20.0, "--db-budget", 8, 4),
            "an opening block that does not fit": reach.out_of_budget(16.0, 20.0, "--db-budget", 8, 4),
        },
    )


def blocks_of(*speeds):
    """Two blocks in which each variant does so many operations a second."""
    row = [Round(str(number), 0, 0, RunResult(1.0, speed), 1.0, 0.0) for number, speed in enumerate(speeds)]
    return [row, row]


BEATS, GUARD, ORDER = kinds.beats(), kinds.no_slower_than(0.1), kinds.ordered()
FAR = dataclasses.replace(BEATS, apart=math.log(1.5))


@pytest.mark.parametrize(
    ("claim", "comparisons", "speeds", "ratio"),
    [
        (BEATS, [(1, 0)], (100, 200), 2.0),
        (BEATS, [(1, 0)], (200, 100), 2.0),  # it fails
        (FAR, [(1, 0)], (100, 200), 2 / 1.5),
        (FAR, [(1, 0)], (100, 120), 1.0),  # neither
        (GUARD, [(1, 0)], (100, 180), 2.0),
        (GUARD, [(1, 0)], (100, 45), 2.0),
        (ORDER, [(2, 1), (1, 0)], (100, 150, 300), 1.5),  # the smallest step
        (ORDER, [(2, 1), (1, 0)], (100, 150, 50), 3.0),  # one that fails decides
        (BEATS, [(1, 0)], (100, 0), 1.0),  # no operation
    ],
)
def test_how_far_a_warm_up_is_from_the_other_answer(claim, comparisons, speeds, ratio):
    """The distance to the bounds of the claim as a ratio; 1 if the warm-up says nothing."""
    assert math.exp(reach.distance(claim, comparisons, blocks_of(*speeds))) == pytest.approx(ratio)
