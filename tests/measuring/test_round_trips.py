"""How many round trips an operation takes, of variants that differ in their round-trip time."""

from __future__ import annotations

import dataclasses
import random

import pytest

from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.evidence import Evidence
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.round_trips import RoundTripsTaken, estimate
from pytest_dbcluster.measuring.series import ordered, series_of
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import Round, RunResult
from tests.support.fakes import FakeSource

RTTS = {"near": 0.0, "between": 0.005, "far": 0.01}


def rounds(variant, *milliseconds):
    """Rounds whose operations all took so long."""
    return [
        Round(variant, number, 0, far_result(took / 1e3), 0.0, float(number))
        for number, took in enumerate(milliseconds)
    ]


def far_result(seconds):
    """What a load says of ten operations that all took so long."""
    entry = LedgerEntry({1: 10}, committed=10, latencies=Histogram.of([seconds] * 10))
    return RunResult(10 * seconds, 10, 10, ledger=Ledger({"commit": entry}))


def test_the_round_trips_of_an_operation_are_the_slope_of_its_latency():
    """Pair by pair, so that a wave over the whole run moves no slope; with the interval of their median."""
    drawn = {
        "far": rounds("far", *[21.0, 41.0] * 4),
        "near": rounds("near", *[1.0, 21.0] * 4),
        "between": rounds("between", *[11.0, 31.0] * 4),
    }
    found = estimate(drawn, RTTS, "load")

    assert found.slope == pytest.approx(2.0, rel=0.05)
    assert found.low <= found.slope <= found.high
    assert found.high - found.low < 0.2
    assert (found.pairs, found.rtts) == (8, (0.0, 0.005, 0.01))


def test_its_text_has_the_interval_and_the_distances():
    """It is the same in a message, in the terminal and in the page."""
    text = str(RoundTripsTaken(1.934, 1.8, 2.05, 8, (0.0, 0.005, 0.01)))
    assert "1.93 (1.80 .. 2.05, 95 % interval of 8 pairs)" in text
    assert text.endswith("(0, 5, 10 ms)")
    assert "1.93 (no interval yet of 1 pair): the" in str(RoundTripsTaken(1.934, None, None, 1, (0.0, 0.01)))


def test_no_slope_without_two_round_trip_times_or_latencies():
    """The tool mysqlslap measures no latencies, and one distance has no slope."""
    near, far = rounds("near", 1.0), rounds("far", 21.0)
    untimed = [dataclasses.replace(done, outcome=RunResult(1.0, 10)) for done in near]

    assert estimate({"near": near, "far": far}, {}, "load") is None
    assert estimate({"near": near, "far": far}, {"near": 0.01, "far": 0.01}, "load") is None
    assert estimate({"near": untimed, "far": far}, RTTS, "load") is None
    assert estimate({"near": [], "far": []}, RTTS, "load") is None
    assert estimate({"near": near, "far": far}, RTTS, "load").pairs == 1


class FarSource(FakeSource):
    """Variants at these distances, whose commits take two round trips and a millisecond."""

    def evidence(self, question):
        """All differ in it alone."""
        return Evidence(rtts=RTTS)


def far_source():
    """One of three distances."""
    noise = random.Random(3)
    seconds = [0.001 + 2 * rtt for rtt in RTTS.values()]
    return FarSource(
        tuple(RTTS),
        lambda number: seconds[number] * noise.lognormvariate(0, 0.01),
        outcome=lambda _, took: far_result(took),
    )


def test_a_claim_about_two_distances_has_the_slope_of_all():
    """The rounds of the others were drawn with it, and its message says so."""
    near, between, _ = series_of(Measurement(far_source(), Rules(seed=3)))
    answer = near.beats(between)

    assert answer
    assert answer.round_trips.rtts == (0.0, 0.005, 0.01)
    assert answer.round_trips.slope == pytest.approx(2.0, rel=0.05)
    assert str(answer.round_trips) in answer.message


def test_other_claims_have_none():
    """Their variants differ in more."""
    answer = ordered(*series_of(Measurement(FakeSource(("slow", "fast"), lambda number: 2.0 - number), Rules(seed=3))))

    assert answer.round_trips is None
    assert "round trips" not in answer.message
