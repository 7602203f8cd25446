"""The chart of a claim about an event: commits around it, and the value of each repetition."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.recording import Asked, claim_record
from pytest_dbcluster.rounds.outages.load_times import TimedErrors
from pytest_dbcluster.rounds.outages.states import StateChange
from tests.support.outages import outage, series

ASKED = Asked("suites/faults/test_kill.py::test_kill", "quick", "pytest suites/faults")
COMMITS = {"commits_by_tenth": (21, 20, 22, 0, 0, 0, 19, 21), "first_tenth": -3}


def record_of(answer):
    """The record of an answer."""
    return claim_record(answer, None, ASKED, 1.0)


def test_one_variant_has_its_bound_and_its_interval():
    """Both panels are labelled, and the figure is valid SVG."""
    [galera] = series("galera3", times=6, outages=lambda variant, number: outage(6 + number / 10, **COMMITS))
    drawn = claim_chart.svg(record_of(galera.below("stall", 8)))

    ElementTree.fromstring(drawn)
    for text in ("commits / 0.1 s", "seconds since the event", "galera3, median", "usual", "stall, s", "holds, 6.25 s"):
        assert text in drawn


def test_marks_and_errors_stand_beside_the_commits():
    """A mark at its median with its seconds, an error with its number and how often it came."""
    errors = (TimedErrors(0.1, 2013, "node3", False, 4), TimedErrors(0.2, 0, "", False, 2))
    [galera] = series("galera3", times=6, outages=lambda *_: outage(6, errors=errors, commits_by_tenth=(20,) * 100))
    drawn = claim_chart.svg(record_of(galera.below("stall", 8)))

    for text in ("ended 0.0 s", "evicted 6.0 s", "error 2013 x 24", "connection lost x 12"):
        assert text in drawn


def test_two_variants_have_a_line_of_dots_each():
    """A lower bound is hollow. The interval of the difference is below the line of the candidate."""
    usual, quick = series(
        "usual", "quick", outages=lambda variant, number: outage(6.0 - 3 * variant, censored=number == 0, **COMMITS)
    )
    drawn = claim_chart.svg(record_of(quick.shorter("stall", than=usual)), titled=False)

    assert "usual, median" in drawn
    assert "quick, median" in drawn
    assert ">usual<" in drawn
    assert ">quick<" in drawn
    assert drawn.count('id="interval"') == 1


def test_lost_transactions_are_drawn_too():
    """Their axis has the metric."""
    [galera] = series("galera3", times=2, outages=lambda variant, number: outage(lost=number, **COMMITS))

    assert ">lost<" in claim_chart.svg(record_of(galera.loses_nothing()))


def test_strips_show_the_states_of_the_repetition_with_the_median_stall():
    """Each node has a strip in the colour of its state, and the proxy one with the name of its node."""
    states = {
        "node1": (
            StateChange(-6.0, "writes"),
            StateChange(0.1, "down"),
            StateChange(4.0, "not ready"),
            StateChange(5.0, "writes"),
        ),
        "node2": (StateChange(-6.0, "writes"), StateChange(0.5, "no answer"), StateChange(9.0, "reads")),
    }
    routes = (StateChange(-6.0, "node1"), StateChange(0.4, ""), StateChange(2.0, "node2"))
    long = (20,) * 100
    [galera] = series(
        "galera3",
        times=6,
        outages=lambda _, number: outage(
            6 + number, states=states if number == 2 else {"node9": ()}, routes=routes, commits_by_tenth=long
        ),
    )
    drawn = claim_chart.svg(record_of(galera.below("stall", 20)))

    for text in (">node1<", ">node2<", "> node2<", ">proxy to<", "writes", "down", "not ready", "no answer", "reads"):
        assert text in drawn
    assert "galera3, the repetition with the median stall" in drawn
    assert "node9" not in drawn
