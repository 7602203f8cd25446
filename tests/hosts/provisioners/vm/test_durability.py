"""What servers in guests keep when the guest loses its power."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.hosts.provisioners.vm.host import GuestHost
from pytest_dbcluster.hosts.runs import Run
from tests.support.guests import servers_in

ROWS = 20


@pytest.fixture(scope="module")
def server(guest, guests):
    """A server with a table, whose log goes through the page cache of its guest."""
    made = guest(
        "standalone", 1, "mariadb:10.11", innodb_flush_log_at_trx_commit="2", innodb_flush_log_at_timeout="2700"
    )
    made.nodes[0].query("CREATE TABLE mysql.kept (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB")
    yield made
    made.close()
    guests.give_back(made.hosts)


def test_the_programs_run_in_the_guest_alone(server):
    """They are those of the cache, unchanged; this machine sees the kernel of the guest, and no server."""
    assert servers_in(server.hosts[0]) == 1
    assert server.nodes[0].process.pid == 0
    run = Run(Path(server.hosts[0].directory).parents[1], 0, 0.0, kept=False)
    assert [one.name() for one in run.processes() if one.name() in ("mariadbd", "mysqld")] == []


def commit(cluster: Cluster, flush: int) -> None:
    """Acknowledged commits, each flushed as said."""
    (node,) = cluster.nodes
    node.query(f"SET GLOBAL innodb_flush_log_at_trx_commit = {flush}")
    for _ in range(ROWS):
        node.query("INSERT INTO mysql.kept VALUES ()")


def start_again(cluster: Cluster) -> int:
    """How many rows the server has after its recovery."""
    (node,) = cluster.nodes
    node.start()
    node.wait_answering(120)
    return int(node.query("SELECT COUNT(*) FROM mysql.kept")[0][0])


def test_flushed_commits_survive_a_power_cut(server):
    """Each acknowledged commit had been flushed to the disk; so many flushes were asked of this machine."""
    (host,) = server.hosts
    assert isinstance(host, GuestHost)
    before = host.counters().flushes
    commit(server, 1)
    assert host.counters().flushes - before >= ROWS

    host.kill()

    assert start_again(server) == ROWS


def test_commits_that_are_only_written_survive_a_crash_and_no_power_cut(server):
    """The kernel of the guest has them, until its power ends. The server recovers both times."""
    (node,), (host,) = server.nodes, server.hosts
    host.run(["sh", "-c", "echo 0 >/proc/sys/vm/dirty_writeback_centisecs"])
    before = int(node.query("SELECT COUNT(*) FROM mysql.kept")[0][0])
    commit(server, 2)
    node.kill()
    assert start_again(server) == before + ROWS
    commit(server, 2)

    host.kill()

    assert before + ROWS <= start_again(server) < before + 2 * ROWS


def replicated(cluster: Cluster, number: int) -> None:
    """Write a row, and wait until all nodes have it with those before."""
    cluster.writers[0].query(f"INSERT INTO mysql.kept VALUES ({number})")
    assert cluster.settle(60), cluster.backlog()
    rows = [(one,) for one in range(1, number + 1)]
    assert [node.query("SELECT id FROM mysql.kept ORDER BY id") for node in cluster.nodes] == [rows] * 3


@pytest.mark.guests
@pytest.mark.parametrize(
    ("topology", "release", "victim", "options"),
    [
        ("galera", "mariadb:10.11", 2, {}),
        ("group_replication", "mysql:9.7", 2, {}),
        ("group_replication", "mysql:9.7", 0, {}),
        ("async_replication", "mariadb:10.11", 0, {"sync_binlog": "1"}),
        ("semisync", "mysql:9.7", 0, {}),
    ],
)
def test_a_node_without_power_comes_back_into_its_cluster(guest, guests, topology, release, victim, options):
    """It recovers its own data, and gets what was committed meanwhile; replicas find a primary that was away."""
    cluster = guest(topology, 3, release, **options)
    cluster.writers[0].query("CREATE TABLE mysql.kept (id INT PRIMARY KEY) ENGINE=InnoDB")
    replicated(cluster, 1)
    lost = cluster.nodes[victim]
    lost.host.kill()

    cluster.topology.rejoin(lost, cluster.nodes)
    wait.until(cluster.problems, "the cluster with all nodes", seconds=120)

    replicated(cluster, 2)
    cluster.close()
    guests.give_back(cluster.hosts)


@pytest.mark.guests
def test_a_node_that_was_away_gets_the_rest_alone(guest, guests):
    """What the others have committed while it had no power; it is not sent all data."""
    cluster = guest("galera", 3, "mariadb:10.11")
    first, _, last = cluster.nodes
    first.query("CREATE TABLE mysql.kept (id INT PRIMARY KEY) ENGINE=InnoDB")
    replicated(cluster, 1)
    last.host.kill()
    first.query("INSERT INTO mysql.kept VALUES (2)")

    cluster.topology.rejoin(last, cluster.nodes)
    wait.until(cluster.problems, "the cluster with all nodes", seconds=120)

    replicated(cluster, 3)
    assert "IST received" in last.host.pull(last.log).decode()
    cluster.close()
    guests.give_back(cluster.hosts)
