"""What holds for every topology, on real servers: ready means ready, a write arrives, a killed node comes back."""

from __future__ import annotations

import psutil
import pytest

from pytest_dbcluster import registry, wait
from pytest_dbcluster.errors import ConfigError, NodeDied, Unsupported
from pytest_dbcluster.runs import Run
from pytest_dbcluster.topology import PLANNED, topology

NAMES = sorted(registry.names("pytest_dbcluster.topologies"))
ONE_NODE = {"standalone"}
SIZES = [(name, nodes) for name in NAMES for nodes in (1, 2, 3) if nodes == 1 or name not in ONE_NODE]


@pytest.fixture(scope="module", params=SIZES, ids=[f"{name}{nodes}" for name, nodes in SIZES])
def cluster(request, bring):
    """Each topology with one, two and three nodes."""
    made = bring(*request.param)
    yield made
    made.close()


def value_everywhere(cluster):
    """The rows of the table that the tests write, as each node has them."""
    return [node.query("SELECT id, word FROM contract.words ORDER BY id") for node in cluster.nodes]


def written(cluster, node, word):
    """Write one row on one node and wait until it is settled everywhere."""
    node.query("CREATE DATABASE IF NOT EXISTS contract")
    node.query("CREATE TABLE IF NOT EXISTS contract.words (id INT PRIMARY KEY, word VARCHAR(20))")
    node.query(f"REPLACE INTO contract.words VALUES (1, '{word}')")
    assert cluster.settle(10), cluster.backlog()


def test_ready_means_that_nothing_is_missing(cluster):
    """A cluster that was handed out has no problem and no backlog, and every node answers for itself."""
    assert cluster.problems() == []
    assert cluster.backlog() == []
    assert [node.query("SELECT @@port")[0][0] for node in cluster.nodes] == [node.port for node in cluster.nodes]


def test_every_node_knows_the_whole_cluster(cluster):
    """Each Galera node is Synced, in the primary component, and sees as many nodes as were asked for."""
    if cluster.spec.topology != "galera":
        pytest.skip("only Galera nodes say this")
    for node in cluster.nodes:
        status = node.status("wsrep%")
        assert status["wsrep_ready"] == "ON"
        assert status["wsrep_local_state_comment"] == "Synced"
        assert status["wsrep_cluster_status"] == "Primary"
        assert status["wsrep_cluster_size"] == str(cluster.spec.nodes)


def test_a_start_needs_no_state_transfer(cluster):
    """All nodes start from one template, so none has to be sent the data of another."""
    for node in cluster.nodes:
        log = node.host.pull(node.log).decode()
        assert "Running: 'wsrep_sst_" not in log
        assert "Receiving IST" not in log


def test_a_write_on_any_node_arrives_on_all(cluster):
    """What one node has committed is on every node once the cluster is settled."""
    for node in cluster.nodes:
        written(cluster, node, node.name)

        assert value_everywhere(cluster) == [[(1, node.name)]] * cluster.spec.nodes


def test_a_check_of_equal_tables_passes(cluster):
    """Nodes that are ready and hold the same rows fail no check."""
    written(cluster, cluster.nodes[0], "equal")

    cluster.check(["contract.words"])

    assert cluster.dirty == ""


def test_a_killed_node_is_named_and_comes_back(cluster):
    """Its death is told from slowness; started again it is ready with all that was committed, not sent it whole."""
    written(cluster, cluster.nodes[0], "before")
    victim = cluster.nodes[-1]
    victim.kill()
    with pytest.raises(NodeDied, match=rf"^node {victim.name} was ended by SIGKILL; the last lines of its error log"):
        cluster.problems()

    offset = len(victim.host.pull(victim.log))
    cluster.topology.rejoin(victim, cluster.nodes)

    wait.until(cluster.problems, "the cluster", seconds=60)
    written(cluster, victim, "back")
    assert value_everywhere(cluster) == [[(1, "back")]] * cluster.spec.nodes
    assert "xtrabackup_sst" not in victim.host.pull(victim.log, offset=offset).decode()


def test_close_leaves_no_process(cluster, provisioner):
    """After close none of the servers exists, and nobody's other servers were touched."""
    pids = {node.process.pid for node in cluster.nodes}
    others = {process.pid for process in Run(provisioner.directory, 0, 0.0, kept=False).processes()} - pids
    cluster.close()

    assert {process.pid for process in Run(provisioner.directory, 0, 0.0, kept=False).processes()} & pids == set()
    assert all(psutil.pid_exists(pid) for pid in others)


def test_an_unknown_topology_lists_the_known_ones():
    """A misspelt name is answered with all names, and with the one that was probably meant."""
    with pytest.raises(ConfigError) as caught:
        topology("galara")

    known = ", ".join(sorted([*NAMES, *PLANNED]))
    assert str(caught.value) == f"unknown topology 'galara'; known: {known}; did you mean galera?"


@pytest.mark.parametrize("name", [name for name in PLANNED if name not in NAMES])
def test_a_planned_topology_says_so(name):
    """What is planned is not unknown."""
    with pytest.raises(Unsupported) as caught:
        topology(name)

    assert str(caught.value) == f"topology {name!r} is planned and not built yet; built: {', '.join(NAMES)}"
