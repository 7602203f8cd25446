"""Rounds whose time is fixed: what reads seconds as the cost of the work reads seconds of one operation there."""

from __future__ import annotations

import math

import pytest

from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import Round, RunResult
from tests.support.fakes import FakeSource


def two(outcome):
    """A source of two variants whose load says this."""
    return FakeSource(("slow", "fast"), lambda variant: 2.0, outcome=outcome)


def measurement(source, **rules):
    """A measurement with a fixed seed."""
    return Measurement(source, Rules(**{"seed": 7, **rules}))


def warm_ups(source):
    """The rounds that do not count."""
    return [one for one in source.rounds if one[1] < 0]


def test_the_cost_of_an_operation_is_its_share_of_the_time():
    """Of good ones; infinite where there was none. In an open loop, whose speed is given, it is the mean latency."""
    ledger = Ledger({"x": LedgerEntry(latencies=Histogram.of([0.1, 0.3]))})

    def cost(*outcome, **more):
        return Round("a", 0, 0, RunResult(*outcome, **more), 0.0, 0.0).cost

    assert cost(2.0, 100) == 0.02
    assert cost(2.0, 100, good=50, ledger=ledger) == 0.04
    assert cost(2.0, 100, good=0) == math.inf
    assert cost(2.0, 100, good=2, ledger=ledger, rate=1.0) == pytest.approx(0.2, rel=0.011)
    assert cost(2.0, 100, good=0, ledger=Ledger(), rate=1.0) == math.inf


def fixed(*speeds):
    """What a load says whose rounds last 2 s whatever happens: the good operations, one after the other."""
    left = list(speeds)
    return lambda variant, seconds: RunResult(2.0, 1000, 1000, good=left.pop(0) if len(left) > 1 else left[0])


def test_warm_up_of_rounds_of_fixed_time_looks_at_their_operations():
    """Their seconds are always the same; here the first blocks do more and more, three times."""
    source = two(fixed(100, 100, 200, 200, 400, 400, 400))
    asked = measurement(source)
    asked.drawing.draw([0, 1])

    assert len(warm_ups(source)) == 8


def test_warm_up_that_never_ends_is_said():
    """After five blocks it is measured all the same, and the message says how much faster the last one still was."""
    source = two(fixed(*(10 * 2**n for n in range(5) for _ in range(2)), 160))
    slow, fast = series_of(measurement(source))

    line = "\n  warm-up ended after 5 blocks; the last block was still 2.00x as fast as the one before"
    assert line in fast.against(slow).message
