"""Published: read throughput grows with the number of nodes, and a standalone server beats a one-node cluster."""

import pytest

from fixtures.clusters import STANDALONE, galera, quarters
from fixtures.loads import SCALES, oltp

pytestmark = pytest.mark.expected_seconds(100)

FILE = "galera-node-count"
GAIN = "sysbench_simple.gain_over_one_galera_node"
# Standalone over one Galera node: the gain of two nodes over one node, divided by their gain over standalone.
STANDALONE_GAIN = (f"{GAIN}.2", "sysbench_simple.gain_over_standalone.2")


def published_gain(nodes):
    """The number of nodes, with the published gain over one node."""
    return pytest.param(nodes, marks=pytest.mark.published(FILE, figures={"goodput": f"{GAIN}.{nodes}"}))


@pytest.mark.parametrize("nodes", [published_gain(2), published_gain(3), published_gain(4)])
def test_more_nodes_read_more(measure, db_profile, nodes):
    """Connections are spread over the nodes, so that more nodes answer more reads."""
    threads = SCALES[db_profile].threads[-1]
    one, several = measure(oltp("point_select", db_profile, threads, to="reader"), on=[galera(1), galera(nodes)])

    assert several.scales(one, at_least=1.2)


@pytest.mark.parametrize("nodes", [published_gain(2), published_gain(3), published_gain(4)])
def test_more_nodes_with_cores_of_their_own_read_more(measure, db_profile, nodes):
    """Reads scale on one machine too if each node has its own cores and enough cores remain for the load generator."""
    threads = SCALES[db_profile].threads[-1]
    one, several = measure(oltp("point_select", db_profile, threads, to="reader"), on=[quarters(1), quarters(nodes)])

    assert several.scales(one, at_least=1.2)


@pytest.mark.expected_seconds(900)
@pytest.mark.budget(400)  # the gain is 5 to 10 %, and equal clusters can differ by 5.5 %, so there are four of each
@pytest.mark.published(FILE, figures={"goodput": STANDALONE_GAIN})
def test_standalone_reads_beat_a_one_node_cluster(measure, db_profile):
    """Galera slows reads slightly too. Both variants are one server, so shared cores do not matter."""
    curve = measure.sweep(
        oltp("point_select", db_profile, to="reader"),
        on=[galera(1), STANDALONE],
        threads=SCALES[db_profile].threads,
        instances=4,
    )

    assert curve.every(lambda galera_1, standalone: standalone.beats(galera_1))
