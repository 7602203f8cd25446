"""Published: reads grow with the number of nodes, and a server alone beats a cluster of one."""

import pytest

from fixtures.clusters import STANDALONE, galera, quarters
from fixtures.loads import SCALES, oltp

pytestmark = pytest.mark.expected_seconds(100)

FILE = "galera-node-count"
GAIN = "sysbench_simple.gain_over_one_galera_node"
# By how much two nodes gain more over one node than over a server alone is what the server gains over one node.
ALONE = (f"{GAIN}.2", "sysbench_simple.gain_over_standalone.2")


def published(nodes):
    """The number of nodes, with the published gain over one node."""
    return pytest.param(nodes, marks=pytest.mark.published(FILE, figures={"goodput": f"{GAIN}.{nodes}"}))


@pytest.mark.parametrize("nodes", [published(2), published(3), published(4)])
def test_more_nodes_read_more(measure, db_profile, nodes):
    """Each node answers its share of the connections, so that more of them answer more reads."""
    threads = SCALES[db_profile].threads[-1]
    one, several = measure(oltp("point_select", db_profile, threads, to="reader"), on=[galera(1), galera(nodes)])

    assert several.scales(one, at_least=1.2)


@pytest.mark.parametrize("nodes", [published(2), published(3), published(4)])
def test_more_nodes_with_cores_of_their_own_read_more(measure, db_profile, nodes):
    """On one machine too, where its hosts can be limited and it has enough cores for all of them and the load."""
    threads = SCALES[db_profile].threads[-1]
    one, several = measure(oltp("point_select", db_profile, threads, to="reader"), on=[quarters(1), quarters(nodes)])

    assert several.scales(one, at_least=1.2)


@pytest.mark.expected_seconds(450)
@pytest.mark.published(FILE, figures={"goodput": ALONE})
def test_a_server_alone_reads_faster_than_a_cluster_of_one(measure, db_profile):
    """Certification costs reads a little as well; both run on one node, so shared cores do not matter."""
    curve = measure.sweep(
        oltp("point_select", db_profile, to="reader"),
        on=[galera(1), STANDALONE],
        threads=SCALES[db_profile].threads,
    )

    assert curve.every(lambda galera_1, standalone: standalone.beats(galera_1))
