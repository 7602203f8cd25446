"""The chart of every second."""

import math
from xml.etree import ElementTree

from pytest_dbcluster.reporting.charts import timeline
from pytest_dbcluster.reporting.charts.timeline import Samples
from tests.support.records import record


def words(svg):
    """All text of a chart."""
    return [text.strip() for text in ElementTree.fromstring(svg).itertext() if text.strip()]


def samples(**metrics):
    """Samples of ten seconds, each metric the same all the time."""
    seconds = tuple(float(second) for second in range(10))
    return Samples(seconds, {name: (value,) * 10 for name, value in metrics.items()})


def test_each_kind_of_metric_has_its_band():
    """Nodes and load generator share one; the rounds of each variant are named."""
    svg = timeline.svg(
        samples(cpu_node1=0.5, cpu_client=0.2, disk_write_bytes=5e6, receive_queue_node2=7.0), record().rounds
    )

    for said in ("CPU, cores", "node1", "client", "MB / s", "written", "receive queue", "node2", "a round of galera3"):
        assert said in words(svg)
    assert "replica lag, s" not in words(svg)


def test_flow_control_of_group_replication_has_bands_of_its_own():
    """Sessions that it held are no share of the time; the certification queue is no receive queue."""
    svg = timeline.svg(samples(flow_control_held_node1=3.0, certification_queue_node2=7.0), record().rounds)

    for said in ("sessions held by flow control", "certification queue", "node1", "node2", "5", "10"):
        assert said in words(svg)
    assert "share of time" not in words(svg)


def test_the_rounds_of_a_variant_are_one_shape():
    """A claim has up to 320 rounds, and a page sixty claims: each shape costs time and bytes."""
    few, many = (timeline.svg(samples(cpu_node1=0.5), record(pairs=pairs).rounds) for pairs in (8, 80))

    assert few.count("<path") == many.count("<path")


def test_what_never_happened_has_no_band():
    """An empty band says nothing."""
    shown = words(
        timeline.svg(samples(cpu_node1=0.5, flow_control_paused_node1=0.0, replica_lag_node2=0.0), record().rounds)
    )

    assert "CPU, cores" in shown
    assert not [text for text in shown if "share" in text or "lag" in text]


def test_unknown_values_are_gaps():
    """A line is interrupted where a value is unknown, and nothing else happens."""
    known, unknown = Samples((0.0, 1.0, 2.0), {"cpu_node1": (0.5, math.nan, 0.7)}), samples(cpu_node1=math.nan)

    assert timeline.svg(known, record().rounds)
    assert timeline.svg(unknown, record().rounds) is None
