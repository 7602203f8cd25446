"""Published: in TPC-C a server alone is fastest, and two Galera nodes are faster than three and four."""

import pytest

from fixtures.clusters import STANDALONE, galera
from fixtures.loads import SCALES, tpcc

pytestmark = pytest.mark.expected_seconds(100)


@pytest.mark.expected_seconds(450)
def test_a_server_alone_beats_a_cluster_of_one(measure, db_profile):
    """Each commit of a cluster is certified, of one node too; this holds where nodes share the machine's cores."""
    curve = measure.sweep(tpcc(db_profile), on=[galera(1), STANDALONE], threads=SCALES[db_profile].terminals)

    assert curve.every(lambda galera_1, standalone: standalone.beats(galera_1))


@pytest.mark.parametrize("nodes", [3, 4])
def test_two_nodes_beat_more(measure, db_profile, nodes):
    """Every node applies every write, so that more of them only add to the work of a writing load."""
    several, two = measure(tpcc(db_profile, to="all"), on=[galera(nodes), galera(2)])

    assert two.beats(several)


@pytest.mark.expected_seconds(220)
def test_the_curves_beside(measure, db_profile):
    """All of them over the number of terminals: drawn, not claimed."""
    nodes = [STANDALONE, *map(galera, (1, 2, 3, 4))]
    # Who has a commit when it returns differs between one server and several, and nothing is claimed of it here.
    several = SCALES[db_profile].terminals
    load = tpcc(db_profile, to="all")
    curve = measure.sweep(load, on=nodes, threads=several, across_durability=True, instances=1)

    curve.draw(3)
