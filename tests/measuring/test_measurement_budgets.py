"""What the budgets of a claim and of the run end, and what they keep from beginning."""

from __future__ import annotations

import contextlib

import pytest

from pytest_dbcluster.errors import Inconclusive
from pytest_dbcluster.measuring.series import ordered, series_of
from tests.support.fakes import FakeSource
from tests.support.measurements import measurement, two


def test_the_budget_counts_the_variants_of_the_claim():
    """Measured seconds of a third variant do not use it up."""
    source = FakeSource(("a", "b", "c"), lambda variant: (1.0, 1.0, 100.0)[variant])
    asked = measurement(source, budget=30.0)
    a, b, _ = series_of(asked)
    answer = b.beats(a)

    assert answer.verdict.reason == "budget of 30 s of measured time used (--db-budget)"
    assert asked.pairs == 15


USED = "the run's budget of 5 s is used (--db-run-budget)"


def test_the_runs_budget_ends_every_claim():
    """The reason is given by the run; a block is never cut short."""
    asked = measurement(two(), run_over=lambda: USED if asked.pairs else "")
    slow, fast = series_of(asked)

    assert fast.beats(slow).verdict.reason == USED
    assert asked.pairs == 1


@pytest.mark.parametrize("claim", ["beats", "lower", "ordered", "no_slower_than", "against"])
def test_nothing_is_begun_when_the_runs_budget_is_used(claim):
    """No cluster, capacity, floor, warm-up or block: the claim is open, with the run's reason."""
    source = two()
    source.permit = source.blind = lambda *_: pytest.fail("begun")
    asked = measurement(source, run_over=lambda: USED)
    asked.floor = source.permit
    slow, fast = series_of(asked)
    if claim == "lower":
        source.permit = lambda metric: None  # it has nothing to measure for a counter
    ask = {
        "beats": lambda: fast.beats(slow),
        "lower": lambda: fast.lower("fsyncs_per_commit", than=slow),
        "ordered": lambda: ordered(slow, fast),
        "no_slower_than": lambda: fast.no_slower_than(slow, by=0.1),
        "against": lambda: fast.against(slow),
    }

    with pytest.raises(Inconclusive) as caught:
        ask[claim]()
    assert str(caught.value) == f"fake load: {USED}; nothing was drawn"
    assert source.rounds == []


def test_no_floor_is_measured_when_the_runs_budget_is_used():
    """What was drawn for another claim cannot answer one with a margin then."""
    over = []
    asked = measurement(two(), run_over=lambda: USED if over else "")
    asked.floor = lambda *_: pytest.fail("measured")
    slow, fast = series_of(asked)
    assert fast.beats(slow)
    over.append(True)

    reason = fast.no_slower_than(slow, by=0.1).verdict.reason
    assert reason == f"{USED}, before two instances of slow were compared"


@pytest.mark.parametrize("blocks", [0, 2, 5])
def test_a_block_that_waits_past_the_runs_time_ends_the_claim(blocks):
    """What was drawn before is shown, with who has the machine; without a block there is nothing to show."""
    source, words = two(), f"{USED}; it was used while this run waited for the machine: run 4f of pid 4711 (alice)"

    def alone():
        if asked.pairs == blocks:
            raise Inconclusive(words)
        return contextlib.nullcontext()

    source.alone = alone
    asked = measurement(source)
    slow, fast = series_of(asked)
    if not blocks:
        with pytest.raises(Inconclusive, match="pid 4711"):
            fast.against(slow)
        return
    answer = fast.against(slow)

    assert (answer.verdict.reason, answer.verdict.pairs) == (words, blocks)
    assert source.checks == 1
