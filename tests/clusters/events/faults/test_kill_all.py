"""``KillAll``: all servers end at once, and the cluster starts again with what was committed."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.events import KillAll
from pytest_dbcluster.spec import ClusterSpec


def test_all_servers_of_galera_start_again(briefly):
    """The exit statuses are the signal's. One node bootstraps the group, the other one joins it, and no row is lost."""
    cluster = briefly("galera", 2)
    cluster.nodes[1].query("CREATE TABLE mysql.kept (id INT PRIMARY KEY) ENGINE=InnoDB")
    cluster.nodes[1].query("INSERT INTO mysql.kept VALUES (1)")
    killed = [node.process for node in cluster.nodes]
    happened = KillAll().act(cluster)

    assert (happened.void, happened.node) == ("", "")
    assert [process.status() for process in killed] == [-9, -9]
    assert 0 < happened.marks["ended"] < happened.marks["whole"]
    assert happened.returned.seconds > 0
    assert KillAll().restore(cluster, happened) == happened.returned
    assert [node.query("SELECT id FROM mysql.kept") for node in cluster.nodes] == [[(1,)], [(1,)]]


def test_a_server_that_ended_before_makes_it_void(briefly):
    """Nothing is killed then."""
    cluster = briefly("standalone")
    cluster.nodes[0].kill()

    assert KillAll().act(cluster).void == "node1 did not run before the event"


def test_a_topology_that_starts_its_servers_itself_is_refused():
    """DRBD starts its server on the host that has the disk."""
    with pytest.raises(ConfigError, match=r"^KillAll\(\): we cannot start one node of the topology drbd again"):
        KillAll().check(ClusterSpec("drbd", nodes=2), topology("drbd"))
