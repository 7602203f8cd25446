"""The latency percentiles of variants."""

import dataclasses
from xml.etree import ElementTree

import pytest

from pytest_dbcluster.reporting.charts import latency
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from tests.support.records import record


def with_latencies(made, milliseconds):
    """The claim with rounds whose operations took so long."""
    ledger = Ledger({"x": LedgerEntry(latencies=Histogram.of([milliseconds / 1e3] * 100))})
    many = {
        name: tuple(dataclasses.replace(one, outcome=dataclasses.replace(one.outcome, ledger=ledger)) for one in rounds)
        for name, rounds in made.rounds.items()
    }
    return dataclasses.replace(made, rounds=many)


def test_every_variant_has_its_percentiles():
    """From p50 to p99.9, in milliseconds."""
    made = with_latencies(record(), 12)
    found = latency.percentiles(made.rounds)
    svg = latency.svg(latency.percentiles(made.rounds))

    assert found["flush_2"]["p99.9"] == pytest.approx(12, rel=0.02)
    assert {"p50", "p99.9", "milliseconds", "flush_2"} <= set(ElementTree.fromstring(svg).itertext())


def test_a_load_without_a_ledger_has_none():
    """There is nothing to draw."""
    assert latency.svg(latency.percentiles(record().rounds)) is None


def test_the_axis_ends_at_ticks():
    """Three of them at least: one or two say nothing about a logarithmic axis."""
    svg = latency.svg({"galera3": {"p50": 278.0, "p99.9": 1101.0}})
    ticks = {text for text in ElementTree.fromstring(svg).itertext() if text.strip().isdigit()}

    assert {"200", "500", "1000", "2000"} <= ticks
