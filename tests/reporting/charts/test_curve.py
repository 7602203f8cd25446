"""The chart of a sweep."""

import dataclasses
from xml.etree import ElementTree

from pytest_dbcluster.reporting.charts import curve as curve_chart
from tests.support.curves import curve, over_releases, point


def words(svg):
    """All text of a chart."""
    return [text.strip() for text in ElementTree.fromstring(svg).itertext() if text.strip()]


def sweep(**given):
    """A sweep over three values with two variants."""
    return curve([point(value, name, **given) for value in (1, 4, 16) for name in ("a", "b")])


def test_the_same_curve_gives_the_same_chart():
    """Each value is named on the axis, each variant in the legend."""
    made = sweep()
    shown = words(curve_chart.svg(made))

    assert curve_chart.svg(made) == curve_chart.svg(made)
    assert {"1", "4", "16", "a", "b", "threads", "operations / s", "load over threads"} <= set(shown)


def test_latencies_are_drawn_below():
    """A load with a ledger shows its p95 too; one without has a single panel."""
    assert "p95, ms" in words(curve_chart.svg(sweep(latencies=[0.01] * 300)))
    assert "p95, ms" not in words(curve_chart.svg(sweep()))


def test_long_names_of_five_variants_are_told_apart():
    """Their legend has several rows; in one row the middle of each would be left out."""
    names = [f"galera3_with_{number}_applier_threads" for number in (1, 2, 4, 8, 16)]
    shown = words(curve_chart.svg(curve([point(value, name) for value in (1, 4) for name in names])))

    assert set(names) <= set(shown)


def test_too_few_rounds_have_no_band():
    """An interval of zero width would be a lie: a point without an interval has its rounds and its median alone."""
    few, many = curve_chart.svg(sweep(seconds=(1.0, 1.1))), curve_chart.svg(sweep(seconds=(1.0, 1.1) * 3))

    assert "opacity: 0.16" not in few
    assert "opacity: 0.16" in many


def test_each_round_is_a_dot():
    """Two rounds more are two marks more."""
    two, four = (curve_chart.svg(curve([point(1, "a", seconds=(1.0,) * n)])).count("<use") for n in (2, 4))

    assert four - two == 2


def relative():
    """A sweep whose second variant is half as fast as its baseline, the first one."""
    speeds = {"a": (1.0,) * 3, "b": (2.0,) * 3}
    points = [point(value, name, seconds=seconds) for value in (1, 4) for name, seconds in speeds.items()]
    return curve(points, baseline="a", test="test_x.py::test_it[sync_binlog=0]")


def test_a_curve_with_a_baseline_is_drawn_in_percent_of_it():
    """The metric itself is below; the title has the parameters of the test."""
    shown = words(curve_chart.svg(relative()))

    assert {"% of a", "operations / s", "load over threads, sync_binlog=0", "100", "50"} <= set(shown)
    assert "p95, ms" not in shown


def test_a_value_without_rounds_of_the_baseline_has_no_percents():
    """A run that was interrupted may have none; the metric is drawn all the same."""
    made = relative()
    cut = curve([one for one in made.points if (one.value, one.variant) != (4, "a")], baseline="a")

    assert curve_chart.svg(cut).count("<use") < curve_chart.svg(made).count("<use")


def test_releases_are_drawn_as_ratios_to_the_newest():
    """The metric itself is below."""
    shown = words(curve_chart.svg(over_releases("async")))

    assert {"speed / mariadb:11.8", "operations / s", "mariadb:10.5", "mariadb:11.8", "release", "async"} <= set(shown)


def test_the_interval_of_a_ratio_is_drawn():
    """A ratio without an interval is a mark only."""
    made = over_releases("async")
    without = curve([dataclasses.replace(one, ratio_low=None) for one in made.points], reference=made.reference)

    assert curve_chart.svg(made).count("<path") > curve_chart.svg(without).count("<path")
