"""What the budgets of a claim and of the run end, and what they keep from beginning."""

from __future__ import annotations

import contextlib
import itertools

import pytest

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.errors import Inconclusive, LockHeld
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import fades, ordered, series_of
from tests.support.facts import missing
from tests.support.fakes import FakeSource, noisy
from tests.support.measurements import measured, measurement, two


def test_the_budget_counts_the_variants_of_the_claim():
    """Measured seconds of a third variant do not use it up."""
    source = FakeSource(("a", "b", "c"), lambda variant: (1.0, 1.0, 100.0)[variant])
    asked = measurement(source, budget=30.0)
    a, b, _ = series_of(asked)
    answer = b.against(a)

    assert missing(answer.verdict.reason, "budget of 30 s of measured time", "used", "(--db-budget)") == []
    assert asked.pairs == 15


def test_an_opening_block_that_does_not_fit_the_budget_does_not_start():
    """No look comes inside of it, so its rounds would be drawn for nothing; a later pair may be the last."""
    asked = measurement(FakeSource(("a", "b"), lambda variant: 1.0), budget=20.0)
    a, b = series_of(asked)
    reason = b.beats(a).verdict.reason

    assert asked.pairs == 8
    assert reason.startswith("budget of 20 s of measured time (--db-budget)")
    assert reason.endswith("a verdict needs at least 12 pairs, which take 24 s")
    asked = measurement(FakeSource(("a", "b"), lambda variant: 1.0), budget=24.0)
    a, b = series_of(asked)
    reason = b.beats(a).verdict.reason
    assert missing(reason, "budget of 24 s of measured time", "used", "(--db-budget)") == []
    assert "pairs" not in reason
    assert asked.pairs == 12


USED = "the run's budget of 5 s is spent (--db-run-budget)"


def test_the_runs_budget_ends_every_claim():
    """The reason is given by the run; a block is never cut short."""
    asked = measurement(two(), run_over=lambda: USED if asked.pairs else "")
    slow, fast = series_of(asked)

    assert fast.beats(slow).verdict.reason == USED
    assert asked.pairs == 4


def test_a_notice_that_the_hosts_will_be_gone_ends_a_claim():
    """No block is drawn after it, with its reason; a claim that earlier rounds decide is decided."""
    why, source = "AWS takes the spot instance of server1 back", two()
    asked = measurement(source)
    slow, fast = series_of(asked)
    decided = fast.beats(slow).verdict
    source.notice = lambda: why
    drawn = asked.pairs

    assert fast.beats(slow).verdict == decided
    undecided = fast.beats(slow, by=0.97).verdict
    assert (undecided.outcome, undecided.reason) == (Outcome.INCONCLUSIVE, why)
    assert asked.pairs == drawn


@pytest.mark.parametrize("claim", ["beats", "lower", "ordered", "fades", "no_slower_than", "against"])
def test_nothing_is_begun_when_the_runs_budget_is_used(claim):
    """No cluster, capacity, warm-up or block: the claim is open, with the run's reason."""
    source = two() if claim != "fades" else FakeSource(tuple("abcd"), noisy(1, 1, 1, 1))
    source.permit = source.blind = lambda *_: pytest.fail("begun")
    asked = measurement(source, run_over=lambda: USED)
    slow, fast, *others = series_of(asked)
    if claim == "lower":
        source.permit = lambda metric: None  # it has nothing to measure for a counter
    ask = {
        "beats": lambda: fast.beats(slow),
        "lower": lambda: fast.lower("fsyncs_per_commit", than=slow),
        "ordered": lambda: ordered(slow, fast),
        "fades": lambda: fades((slow, fast), others),
        "no_slower_than": lambda: fast.no_slower_than(slow, by=0.1),
        "against": lambda: fast.against(slow),
    }

    with pytest.raises(Inconclusive) as caught:
        ask[claim]()
    assert missing(caught.value, f"fake load: {USED}", "nothing was drawn") == []
    assert source.rounds == []


@pytest.mark.parametrize("blocks", [0, 4])
def test_a_block_that_waits_past_the_runs_time_ends_the_claim(blocks):
    """What was drawn before is shown, with who has the machine; without a block there is nothing to show."""
    source, words = two(), f"{USED}; another run had the machine while this run waited: run 4f of pid 4711 (alice)"

    def exclusive():
        if asked.pairs == blocks:
            raise Inconclusive(words)
        return contextlib.nullcontext()

    source.exclusive = exclusive
    asked = measurement(source)
    slow, fast = series_of(asked)
    if not blocks:
        with pytest.raises(Inconclusive, match="pid 4711"):
            fast.against(slow)
        return
    answer = fast.against(slow)

    assert (answer.verdict.reason, answer.verdict.pairs) == (words, blocks)
    assert source.checks == 1


@pytest.mark.parametrize(("turns", "pairs"), [(0, 0), (1, 0), (5, 3), (9, 7), (16, 14)])
def test_a_lock_waited_for_in_vain_ends_the_claim_with_its_rounds(turns, pairs):
    """Whole pairs of an opening block that was begun count too; the answer is reported, then the error ends the run."""
    source, told, left = two(), [], itertools.count()

    def exclusive():
        if asked.drawing.warm_up.done and next(left) >= turns:
            raise LockHeld("waited 30 min for pid 4711")
        return contextlib.nullcontext()

    source.exclusive = exclusive
    asked = Measurement(source, Rules(seed=7, alpha=1e-4), finished=told.append)
    slow, fast = series_of(asked)
    with pytest.raises(LockHeld, match="pid 4711"):
        fast.beats(slow, by=0.9)

    if not pairs:
        assert told == []
        return
    (answer,) = told
    assert (answer.interrupted, answer.asserted) == (True, True)
    assert answer.verdict.outcome is Outcome.INCONCLUSIVE
    assert answer.verdict.pairs == len(answer.variants[0].rounds) == len(answer.variants[1].rounds)
    assert 0 < answer.verdict.pairs <= turns
    assert "pid 4711" in answer.message
    assert 1.8 < answer.verdict.ratio < 2.2
    assert source.checks == 0


def test_an_opening_block_that_was_interrupted_is_drawn_again():
    """The first three blocks that count are opening blocks in any case: the looks before 14 pairs rest on them."""
    source, asked_alone = two(), []

    def exclusive():
        asked_alone.append(asked.pairs)
        if len(asked_alone) == 5:  # two blocks of warm-up, then inside of the first opening block
            raise Inconclusive(USED)
        return contextlib.nullcontext()

    source.exclusive = exclusive
    asked = measurement(source)
    slow, fast = series_of(asked)
    with pytest.raises(Inconclusive):
        fast.against(slow)
    before = len(measured(source))
    while asked.pairs < 14:
        asked.drawing.draw((1, 0))

    assert before == 4
    assert [done.block for done in slow.rounds] == [0] * 4 + [1] * 4 + [2] * 4 + [3, 4]
    assert [variant for variant, _, _ in measured(source)[:4]] == [variant for variant, _, _ in measured(source)[4:8]]
