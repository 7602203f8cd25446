"""Curves of made-up rounds, for the tests of everything that shows them."""

from pytest_dbcluster.claims import estimators
from pytest_dbcluster.reporting.records import CurvePoint, CurveRecord
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import Round, RunResult


def point(value, variant, *, seconds=(1.0,) * 6, limited="", latencies=(), ratio=(None, None, None)):
    """A variant at a value, in rounds of 100 operations."""
    ledger = Ledger({"x": LedgerEntry(latencies=Histogram.of(latencies))}) if latencies else None
    rounds = [
        Round(variant, n, 0, RunResult(took, 100, ledger=ledger), 0.0, 0.0, limited=limited)
        for n, took in enumerate(seconds)
    ]
    speeds = [one.throughput for one in rounds]
    low, high = estimators.median_interval(speeds) or (None, None)
    return CurvePoint(value, variant, rounds, sorted(speeds)[len(speeds) // 2], low, high, "", *ratio)


def curve(points, **changes):
    """A curve of these points."""
    given = {
        "test": "t", "load": "load", "field": "threads", "metric": "throughput", "release": "r", "profile": "quick",
        "seed": 1, "fingerprint": {}, "points": points,
        "notes": (),
    }  # fmt: skip
    return CurveRecord(**{**given, **changes})


def over_releases(*variants):
    """A curve over two releases; the older one is a quarter faster."""
    ratios = {"mariadb:10.5": (0.8, (1.25, 1.2, 1.3)), "mariadb:11.8": (1.0, (1.0, None, None))}
    points = [
        point(release, name, seconds=(seconds,) * 6, ratio=ratio)
        for release, (seconds, ratio) in ratios.items()
        for name in variants
    ]
    versions = "mariadb:10.5 10.5.29, mariadb:11.8 11.8.6"
    return curve(points, field="release", reference="mariadb:11.8", release=versions)
