"""One SVG for each claim."""

import dataclasses
import importlib.util
import math
import statistics
from xml.etree import ElementTree

import pytest

from pytest_dbcluster.claims import claim as claims
from pytest_dbcluster.reporting import charts
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from tests.support.records import beside, record, rounds, undecided


def words(svg):
    """All text of a chart."""
    return [text.strip() for text in ElementTree.fromstring(svg).itertext() if text.strip()]


def test_the_same_rounds_give_the_same_file():
    """A chart holds neither a date nor an identifier made by chance."""
    assert charts.chart(record()) == charts.chart(record())


def test_a_chart_is_800_by_400():
    """Its size is that of a report's page, in points of 72 an inch."""
    root = ElementTree.fromstring(charts.chart(record()))

    assert (root.get("width"), root.get("height")) == ("576pt", "288pt")


def test_a_chart_names_what_it_shows():
    """Claim, load, verdict, both variants, claimed and published ratio, interval and axes are text."""
    shown = words(charts.chart(record(published=7.4)))

    assert any(text.startswith("flush_2.beats(galera3), mysqlslap write c50: holds, 1.30 (") for text in shown)
    for text in ("galera3", "flush_2", "claim: 1.00", "published: 7.40", "99.9 % interval", "pair", "ratio"):
        assert text in shown


def test_a_guard_shows_both_margins_and_the_interval_that_decides():
    """A guard has two edges, and holds by its 90 % interval."""
    shown = words(charts.chart(undecided(claim=claims.same_as(within=0.1))))

    assert {"claim: 0.90", "claim: 1.11", "90 % interval"} <= set(shown)


def test_a_comparison_claims_nothing():
    """A comparison that asserts nothing has a line at equal speed."""
    shown = words(charts.chart(beside()))

    assert "equal: 1.00" in shown
    assert not any(text.startswith("claim") for text in shown)


def test_a_counter_is_drawn_like_a_speed():
    """A claim about a counter shows that counter, even where it is zero in one variant."""
    made = record(metric="fsyncs_per_commit")
    zero = dataclasses.replace(made, rounds={**made.rounds, "flush_2": rounds("flush_2", [0.4] * 8, 0.0)})

    assert "fsyncs_per_commit" in words(charts.chart(made))
    assert "fsyncs_per_commit" in words(charts.chart(zero))


def test_an_order_shows_each_step():
    """Of three variants both neighbours have a ratio of their own."""
    made = record()
    three = dataclasses.replace(made, rounds={"fast": rounds("fast", [0.2] * 8, 1.0), **made.rounds})

    assert {"fast / flush_2", "flush_2 / galera3"} <= set(words(charts.chart(three)))


@pytest.mark.parametrize("pairs", [1, 6, 160])
def test_any_number_of_pairs_can_be_drawn(pairs):
    """A chart can be drawn for one pair, and for the maximum number of pairs."""
    assert charts.chart(record(pairs=pairs))


def test_without_pairs_there_is_no_chart():
    """A claim without pairs has no chart."""
    made = record()
    none = dataclasses.replace(made, verdict=dataclasses.replace(made.verdict, pairs=0))

    assert charts.chart(none) is None


def test_without_matplotlib_there_is_no_chart(monkeypatch):
    """The chart is left out, and a sentence says how to get it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    assert charts.chart(record()) is None
    assert charts.MISSING == "no charts: matplotlib is not installed; pip install 'pytest-dbcluster[plots]'"


def test_a_tail_is_drawn_in_milliseconds_and_compared_as_a_speed():
    """The candidate waits 1.3 times less, so that its ratio is 1.3."""
    made = record(metric="p95")

    def with_tail(one):
        ledger = Ledger({"x": LedgerEntry(latencies=Histogram.of([one.seconds / 100] * 300))})
        return dataclasses.replace(one, outcome=dataclasses.replace(one.outcome, ledger=ledger))

    rounds_ = {name: [with_tail(one) for one in many] for name, many in made.rounds.items()}
    shown = words(charts.chart(dataclasses.replace(made, rounds=rounds_)))

    assert "p95, ms" in shown
    ratios = charts._log_ratios(dataclasses.replace(made, rounds=rounds_), "flush_2", "galera3")
    assert math.exp(statistics.median(ratios)) == pytest.approx(1.3, rel=0.1)
