"""The chart of a claim's history."""

import math
from xml.etree import ElementTree

import pytest

from pytest_dbcluster.reporting.charts import colours, history
from pytest_dbcluster.reporting.charts.history import ChartedRun


def words(svg):
    """All text of a chart."""
    return [text.strip() for text in ElementTree.fromstring(svg).itertext() if text.strip()]


def test_outcomes_have_the_words_of_claims():
    """A claim that fails is called refuted, as everywhere."""
    shown = words(
        history.svg([ChartedRun("1", "holds", 1.8, 1.5, 2.1), ChartedRun("2", "fails", 0.9, 0.8, 0.95)], [], [])
    )

    assert {"holds", "refuted"} <= set(shown)
    assert "fails" not in shown


def test_a_run_without_an_interval_is_hollow():
    """It has no bar over the whole axis, which would be the widest interval of all."""
    known = [ChartedRun("1", "holds", 1.8, 1.5, 2.1), ChartedRun("2", "inconclusive", 1.7, 0.9, 2.9)]
    unknown = [known[0], ChartedRun("2", "inconclusive", 1.7, 0.0, math.inf)]
    drawn, without = history.svg(known, [], []), history.svg(unknown, [], [])

    assert "inconclusive, without interval" in words(without)
    assert colours.PAPER in without
    assert colours.PAPER not in drawn
    assert drawn.count("stroke-width: 1.2") == without.count("stroke-width: 1.2") + 1


def test_a_counter_that_was_0_is_in_its_history():
    """Runs in which the candidate did without it are no gap; the axis names the counter, and says where 0 is."""
    runs = [
        ChartedRun("1", "holds", 0.0, 0.0, 0.01),
        ChartedRun("2", "holds", 0.0, 0.0, 0.01),
        ChartedRun("3", "fails", 1.3, 1.1, 1.6),
    ]
    shown = words(history.svg(runs, [], [], label="ratio of fsyncs_per_commit"))

    assert {"0", "holds", "refuted", "ratio of", "fsyncs_per_commit"} <= set(shown)


@pytest.mark.parametrize("number", [2, 7, 24, 400])
def test_dates_do_not_overlap(number):
    """Below a chart at most eight dates fit; the first one is always there."""
    runs = [ChartedRun(f"2026-11-{day:02}", "holds", 1.8, 1.5, 2.1) for day in range(number)]
    dates = [text for text in words(history.svg(runs, [], [])) if text.startswith("2026-11-")]

    assert dates[0] == "2026-11-00"
    assert 2 <= len(dates) <= 8
