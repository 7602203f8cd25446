"""Curves of made-up rounds, for the tests of everything that shows them."""

from pytest_dbcluster.claims import estimators
from pytest_dbcluster.reporting.records import CurvePoint, CurveRecord
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import Round, RunResult


def point(value, variant, *, seconds=(1.0,) * 6, limited="", latencies=()):
    """A variant at a value, in rounds of 100 operations."""
    ledger = Ledger({"x": LedgerEntry(latencies=Histogram.of(latencies))}) if latencies else None
    rounds = [
        Round(variant, n, 0, RunResult(took, 100, ledger=ledger), 0.0, 0.0, limited=limited)
        for n, took in enumerate(seconds)
    ]
    speeds = [one.throughput for one in rounds]
    low, high = estimators.median_interval(speeds) or (None, None)
    return CurvePoint(value, variant, rounds, sorted(speeds)[len(speeds) // 2], low, high)


def curve(points, **changes):
    """A curve of these points."""
    given = {
        "test": "t", "load": "load", "field": "threads", "metric": "throughput", "release": "r", "profile": "quick",
        "seed": 1, "fingerprint": {}, "points": points,
        "notes": (),
    }  # fmt: skip
    return CurveRecord(**{**given, **changes})
