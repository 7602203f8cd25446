"""The forest plot."""

import dataclasses
import math
from xml.etree import ElementTree

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.reporting.charts import colours, forest
from tests.support.records import beside, failed, record, undecided


def words(svg):
    """All text of a chart."""
    return [text.strip() for text in ElementTree.fromstring(svg).itertext() if text.strip()]


def plot(*records):
    """The plot of these claims, named by number."""
    return forest.svg([forest.Line(made, f"claim {n}", f"#c{n}") for n, made in enumerate(records)])


def test_each_claim_is_a_line():
    """Its name leads to its details; the axis says which side is faster, with powers of two."""
    svg = plot(record(published=7.4), failed(), undecided(), beside())

    assert {"claim 0", "claim 1", "claim 2", "claim 3", "← slower", "faster →", "1", "2", "4", "8"} <= set(words(svg))
    assert 'xlink:href="#c1"' in svg


def test_verdicts_have_markers_of_their_own():
    """Colour alone says nothing in grey print: each outcome has another shape."""
    assert len({marker for marker, _ in [*forest.MARKS.values(), forest.BESIDE]}) == 4
    assert colours.REFUTED in plot(failed())
    assert colours.REFUTED not in plot(record())


def test_counters_have_no_faster_side():
    """A counter is lower or higher."""
    made = record(kinds.lower(), metric="fsyncs_per_commit")

    assert {"← lower", "higher →"} <= set(words(plot(made)))


def test_a_ratio_of_0_is_drawn_at_the_end_of_the_axis():
    """A claim that removes a counter altogether has its line, with an interval that is no hollow mark."""
    made = record(kinds.lower(), metric="fsyncs_per_commit")
    none = dataclasses.replace(made, verdict=dataclasses.replace(made.verdict, ratio=0.0, low=0.0, high=0.001))
    unknown = dataclasses.replace(made, verdict=dataclasses.replace(none.verdict, high=math.inf))

    assert {"claim 0", "claim 1", "1/1000"} <= set(words(plot(none, made)))
    assert plot(none).count(colours.PAPER) < plot(unknown).count(colours.PAPER)  # only this one is hollow


@pytest.mark.parametrize(("ratio", "low", "high"), [(0.2, 0.0, 0.5), (5.0, 2.0, math.inf), (math.inf, 2.0, math.inf)])
def test_an_interval_to_the_end_of_the_axis_is_no_hollow_mark(ratio, low, high):
    """That of a counter may reach from 0, or to infinity where the baseline counted nothing: it proves as much."""
    made = record(kinds.lower(), metric="fsyncs_per_commit")
    one_sided = dataclasses.replace(made, verdict=dataclasses.replace(made.verdict, ratio=ratio, low=low, high=high))

    assert plot(one_sided).count(colours.PAPER) == plot(made).count(colours.PAPER)
    assert "claim 0" in words(plot(one_sided))


def test_a_guard_that_holds_has_an_interval():
    """It holds by its 90 % interval, which comes before the other one: its mark is not hollow, and the line is dark."""
    made = record(kinds.no_slower_than(0.2), faster=1.02, sd=0.01, pairs=8)
    verdict = made.verdict
    assert (verdict.outcome.value, verdict.low, verdict.high) == ("holds", 0.0, math.inf)
    open_ = dataclasses.replace(made, verdict=dataclasses.replace(verdict, outcome=Outcome.INCONCLUSIVE))

    assert plot(made).count(colours.PAPER) < plot(open_).count(colours.PAPER)  # only this one is hollow
    assert plot(made).count(colours.INK) > plot(open_).count(colours.INK)


def test_the_published_ratio_is_a_tick():
    """It is drawn where something is published, and only there."""
    assert colours.PUBLISHED in plot(record(published=1.2))
    assert colours.PUBLISHED not in plot(record())


def test_a_claim_without_a_ratio_has_no_line():
    """Nothing was measured: there is nothing to draw."""
    made = record()
    none = dataclasses.replace(made, verdict=dataclasses.replace(made.verdict, ratio=math.nan))

    assert plot(none) is None
    assert words(plot(none, made)).count("claim 0") == 0


def test_on_a_phone_names_are_above_their_lines():
    """Beside them they would take half of its width; each leads to its details there too."""
    lines = [forest.Line(made, f"claim {n}", f"#c{n}") for n, made in enumerate((record(), failed()))]
    svg = forest.svg(lines, "phone", forest.NARROW)

    assert ElementTree.fromstring(svg).get("width") == f"{72 * forest.NARROW.width:g}pt"
    assert {"claim 0", "claim 1", "← slower"} <= set(words(svg))
    assert 'xlink:href="#c1"' in svg


def test_many_claims_have_ticks_at_both_ends():
    """The plot of sixty claims is higher than a screen."""
    few, many = (words(plot(*[record(published=7.4)] * number)) for number in (forest.MANY, forest.MANY + 1))

    assert (few.count("4"), many.count("4")) == (1, 2)


def test_a_long_name_is_cut():
    """It never runs out of the picture, and its end is kept: that may be all that differs between two releases."""
    [shown] = [
        text for text in words(forest.svg([forest.Line(record(), "x" * 200 + ", mysql:9.7")])) if text.startswith("xxx")
    ]

    assert len(shown) == forest.WIDE.letters
    assert "…" in shown
    assert shown.endswith(", mysql:9.7")
