"""The chart of capacities, and what a page has of them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from pytest_dbcluster.reporting.charts import capacity
from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.page import claim_view
from pytest_dbcluster.reporting.recording import Asked, claim_record
from tests.support.capacities import curve, series
from tests.support.records import record

ASKED = Asked("suites/own/test_capacity.py::test_capacity", "quick", "pytest suites/own")


def record_of(answer):
    """The record of an answer."""
    return claim_record(answer, None, ASKED, 1.0)


def test_a_chart_has_a_line_for_each_variant_and_for_the_objective():
    """The figure is valid SVG, with labelled axes."""
    drawn = capacity.svg({"slow": [curve(500.0), curve(540.0)], "fast": [curve(900.0)]})

    texts = set(ElementTree.fromstring(drawn).itertext())
    assert {"slow", "fast", "objective: 20 ms", "p95, ms", "arrival rate, operations / s"} <= texts


def test_rounds_without_capacities_have_no_chart():
    """Those of all other claims."""
    assert capacity.svg(capacity.curves(record().rounds)) is None
    assert claim_view.view(record(), "claim1").rates is None


def test_a_page_shows_the_latency_at_each_rate():
    """In place of the latencies of all rates together, which belong to no rate."""
    slow, fast = series(600.0, 1000.0)
    made = claim_view.view(record_of(fast.beats(slow)), "claim1")

    assert "objective: 20 ms" in made.capacity
    assert made.rates.columns == ("latency in ms at", "400/s", "560/s", "784/s", "1100/s", "1540/s")
    assert [name for name, *_ in made.rates.rows] == ["slow", "fast"]
    slow, _ = made.rates.rows
    assert [cell.endswith(" (missed early)") for cell in slow[1:]] == [False, False, True, True, True]
    assert made.percentiles is None
    assert "operations / s" in made.chart


def test_rounds_at_one_rate_are_drawn_with_their_objective():
    """A round that ended early is hollow; there is no other variant to explain a difference from."""
    [slow, _] = series(600.0, 1000.0, rates={"latencies": (0.012, 0.014), "early": (3,)})
    made = record_of(slow.meets(p95=0.02, at=2000))
    drawn = claim_chart.svg(made)

    ElementTree.fromstring(drawn)
    for text in ("p95, ms", "slow.meets(p95=0.02, at=2000)", "holds, 1"):
        assert text in drawn
    assert claim_view.view(made, "claim1").why is None
