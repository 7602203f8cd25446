"""Rounds of clusters that take turns: several of one start, added up to one."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import Round, RunResult
from pytest_dbcluster.testbed import round_runner


def test_what_counters_cover_adds_up_over_a_turn():
    """Where a load says it at all."""
    done = Round("a", 0, 0, RunResult(0.5, 100, 50, span=6.0), 2.0, 10.0)

    assert round_runner.merge([done, done]).outcome.span == 12.0


def test_the_rounds_of_a_turn_add_up():
    """Times, operations, commits and drains are summed, counters are means; what was not settled is remembered."""
    one = Round(
        "a",
        0,
        0,
        RunResult(1.0, 100, 50),
        2.0,
        10.0,
        counters={"fsyncs": 4.0, "drain_seconds": 1.0},
        samples={"s": 0.0},
    )
    two = Round(
        "a", 0, 0, RunResult(3.0, 100, 50), 4.0, 20.0, settled=False, counters={"fsyncs": 8.0, "drain_seconds": 3.0}
    )

    both = round_runner.merge([one, two])

    assert both.outcome == RunResult(4.0, 200, 100)
    assert (both.throughput, both.wall, both.started, both.settled) == (50.0, 4.0, 10.0, False)
    assert both.counters == {"fsyncs": 6.0, "drain_seconds": 4.0}
    assert both.drained_throughput == 25.0


def test_the_ledgers_of_a_turn_add_up():
    """Types, errors, seconds and CPU time are those of all its rounds; the busiest thread is that of any."""

    def one_round(good, kind, **fields):
        ledger = Ledger({kind: LedgerEntry({1: good, 2: 5}, committed=good + 5)}, {(1213, "node1"): 5})
        outcome = RunResult(
            2.0, good + 10, good, good=good + 5, ledger=ledger, by_second=(good, 5), by_tenth=(good,),
            rate=50.0, offered=good + 6, client_seconds=0.5, busiest=good / 100,
        )  # fmt: skip
        return Round("a", 0, 0, outcome, 2.0, 10.0, **fields)

    both = round_runner.merge([one_round(90, "payment", behind=True), one_round(30, "delivery", limited="a thread")])

    assert both.outcome == RunResult(
        4.0, 140, 120, good=130, by_second=(90, 5, 30, 5), by_tenth=(90, 30), rate=50.0, offered=132,
        client_seconds=1.0, busiest=0.9,
        ledger=Ledger(
            {"payment": LedgerEntry({1: 90, 2: 5}, committed=95), "delivery": LedgerEntry({1: 30, 2: 5}, committed=35)},
            {(1213, "node1"): 10},
        ),
    )  # fmt: skip
    assert (both.goodput, both.limited, both.behind) == (32.5, "a thread", True)


def test_one_void_round_makes_a_turn_void():
    """Wherever in the turn it was."""
    one = Round("a", 0, 0, RunResult(1.0, 100), 2.0, 10.0, void="the primary changed")
    two = dataclasses.replace(one, void="")

    assert round_runner.merge([one, two]).void == "the primary changed"
    assert round_runner.merge([two, two]).void == ""


def test_rounding_of_several_rounds_adds_up():
    """Each of their times may be off by half a step."""
    done = Round("a", 0, 0, RunResult(0.4, 20, resolution=0.001), 1.0, 0.0)

    assert round_runner.merge([done, done]).outcome.resolution == 0.002
