"""The chart of every second."""

import math
from xml.etree import ElementTree

import pytest

from pytest_dbcluster.reporting.charts import timeline
from pytest_dbcluster.reporting.charts.colours import style
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


def test_a_single_value_between_unknown_ones_is_a_dot():
    """A server that was asked once in a short round: a line needs two values."""
    values = (math.nan, 0.5, math.nan, 0.4, 0.4)
    single = Samples(tuple(map(float, range(5))), {"flow_control_paused_node1": values})
    line = Samples(single.seconds, {"flow_control_paused_node1": (0.4, 0.5, 0.5, 0.4, 0.4)})

    assert timeline.svg(single, {}).count("<use") == timeline.svg(line, {}).count("<use") + 1


def test_a_share_is_at_most_1():
    """A late sample may say more, and the axis would end at 2."""
    shown = words(timeline.svg(samples(flow_control_paused_node1=1.06), {}))

    below = shown.index("seconds since the first round began")
    assert shown[below + 1 : below + 3] == ["0", "1"]


def test_five_nodes_leave_room_for_the_load_generator():
    """What has no line is counted."""
    nodes = {f"cpu_node{number}": 0.5 for number in range(1, 6)}
    shown = words(timeline.svg(samples(**nodes, steal=0.0, cpu_client=0.2), {}))

    assert {"node1", "node3", "client", "stolen", "CPU, cores (2 more in its CSV file)"} <= set(shown)
    assert "node4" not in shown


def test_a_node_has_one_colour_in_all_bands():
    """What is of the whole machine takes none of theirs."""
    svg = timeline.svg(samples(cpu_node1=0.5, pressure_io=0.3, flow_control_paused_node1=0.2), {})

    assert svg.count(f"stroke: {style(0).colour}; stroke-width: 1.3") == 4  # two lines and their samples
    assert svg.count(f"stroke: {style(4).colour}; stroke-width: 1.3") == 2


@pytest.mark.parametrize("nodes", [1, 3])
def test_the_load_generator_has_one_colour_in_all_charts(nodes):
    """However many nodes there are before it."""
    svg = timeline.svg(samples(**{f"cpu_node{n}": 0.5 for n in range(nodes)}, cpu_client=0.2), {})

    assert svg.count(f"stroke: {style(4).colour}; stroke-width: 1.3") == 2  # its line and the sample of it


def test_each_host_has_a_band_for_its_cpu():
    """Its disk and network are a line in a band with those of the others."""
    figures = {"cpu_user": 0.5, "cpu_idle": 0.4, "disk_write_bytes": 5e6, "network_sent_bytes": 0.0}
    of_hosts = {
        f"{metric}_{owner}": value for owner in ("node1", "node2", "client") for metric, value in figures.items()
    }
    svg = timeline.hosts_svg(samples(cpu_user=1.2, iowait=0.3, cpu_idle=0.5, **of_hosts), record().rounds)
    shown = words(svg)

    for owner in ("this machine", "node1", "node2", "client"):
        assert f"CPU of {owner}, cores" in shown
    assert [shown.count(said) for said in ("user", "iowait", "idle", "node1", "client")] == [4, 1, 4, 1, 1]
    assert "disk writes, MB / s" in shown
    assert "network sent, MB / s" not in shown


def test_a_timeline_without_figures_of_hosts_has_no_such_chart():
    """Those of earlier versions have none."""
    assert timeline.hosts_svg(samples(cpu_node1=0.5, cpu_all=1.0), record().rounds) is None


def test_figures_of_hosts_are_not_those_of_the_machine():
    """The first chart has the machine's disk alone."""
    shown = words(timeline.svg(samples(disk_write_bytes=5e6, disk_write_bytes_node1=9e6), record().rounds))

    assert "written" in shown
    assert "node1" not in shown
