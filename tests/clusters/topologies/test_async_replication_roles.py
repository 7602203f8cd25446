"""Roles of a primary and its replicas, on real servers of both vendors: a planned switch, a promotion, a return."""

from __future__ import annotations

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.releases import find


@pytest.fixture(scope="module", params=["mariadb:10.11", pytest.param("mysql:9.7", marks=pytest.mark.thorough)])
def cluster(bring, request):
    """A primary and two replicas that the tests share, in this order."""
    made = bring("async_replication", 3, find.find(request.param))
    made.nodes[0].query("CREATE DATABASE kept")
    made.nodes[0].query("CREATE TABLE kept.t (id INT PRIMARY KEY)")
    assert made.settle(60)
    yield made
    made.close()


def write(node, number):
    """One row."""
    node.query(f"INSERT INTO kept.t VALUES ({number})")


def agree(cluster):
    """Wait until the cluster is whole and equal; return the ids of the rows."""
    wait.until(cluster.problems, "the cluster", seconds=60)
    assert cluster.settle(60), cluster.backlog()
    assert cluster.topology.violations(cluster.nodes) == []
    rows = [[row for (row,) in node.query("SELECT id FROM kept.t ORDER BY id")] for node in cluster.nodes]
    assert rows == [rows[0]] * len(rows)
    return rows[0]


def received(node):
    """The position up to which a replica has received."""
    replication = node.dialect.replication
    return node.records(replication.status)[0][replication.received]


def read_only(node):
    """The setting in the node's my.cnf."""
    text = node.host.pull(f"{node.host.directory}/my.cnf").decode()
    return [line.split(" = ")[1] for line in text.splitlines() if line.startswith("read_only = ")]


def test_a_planned_switch_moves_the_role_there_and_back(cluster):
    """The old primary follows the new one, my.cnf has the new roles, and no transaction is lost or errant."""
    first, second, _ = cluster.nodes
    steps, topology = [], cluster.topology
    write(first, 1)
    topology.switch_over(second, cluster.nodes, steps.append)
    assert steps == ["read only", "caught up", "promoted"]
    assert (topology.writers(cluster.nodes), topology.readers(cluster.nodes)) == ([second], [first, cluster.nodes[2]])
    assert (read_only(first), read_only(second)) == (["ON"], ["OFF"])
    write(second, 2)
    assert agree(cluster) == [1, 2]

    topology.switch_over(first, cluster.nodes, steps.append)
    write(first, 3)
    assert agree(cluster) == [1, 2, 3]
    assert (read_only(first), read_only(second)) == (["OFF"], ["ON"])


def test_a_replica_takes_over_and_the_lost_primary_returns_by_gtid(cluster):
    """The most advanced replica applies what it has received; the other one follows it."""
    first, second, third = cluster.nodes
    topology = cluster.topology
    second.query("STOP REPLICA")
    write(first, 4)
    wait.until(lambda: topology.backlog([first, third]), "node3", seconds=60)
    third.query("STOP REPLICA SQL_THREAD")
    before = received(third)
    write(first, 5)
    wait.until(lambda: ["the same"] if received(third) == before else [], "the relay log of node3", seconds=60)
    topology.remember_roles(cluster.nodes)
    first.kill()
    third.query("START REPLICA SQL_THREAD")

    assert topology.most_advanced(first, cluster.nodes) is third
    topology.take_over(third, cluster.nodes)
    write(third, 6)
    topology.rejoin(first, cluster.nodes)
    assert (topology.how_joined(""), topology.errant()) == ("GTID", 0)
    assert read_only(first) == ["ON"]
    assert agree(cluster) == [1, 2, 3, 4, 5, 6]
    assert topology.writers(cluster.nodes) == [third]


@pytest.mark.parametrize("cluster", ["mariadb:10.11"], indirect=True)
def test_a_lost_primary_with_errant_transactions_is_refused_or_rebuilt(cluster):
    """Nobody else has its last transactions. It stays out, or the data of the new primary replace its own."""
    first, second, third = cluster.nodes
    topology = cluster.topology
    for node in (first, second):
        node.query("STOP REPLICA")
    for number in (7, 8):
        write(third, number)
    topology.remember_roles(cluster.nodes)
    third.kill()
    topology.take_over(topology.most_advanced(third, cluster.nodes), cluster.nodes, refuses=True)
    assert topology.writers(cluster.nodes) == [first]
    write(first, 9)
    topology.rejoin(third, cluster.nodes)
    assert (topology.how_joined(""), topology.errant()) == ("refusal", 2)
    assert "node3 follows no primary" in cluster.problems()

    third.stop()
    topology._refuses = False
    topology.rejoin(third, cluster.nodes)
    assert (topology.how_joined(""), topology.errant()) == ("rebuild", 2)
    assert agree(cluster) == [1, 2, 3, 4, 5, 6, 9]
    write(first, 10)
    topology.switch_over(third, cluster.nodes, [].append)
    write(third, 11)
    assert agree(cluster)[-2:] == [10, 11]
    cluster.new_errors()


@pytest.mark.guests
def test_in_guests_the_data_of_a_primary_are_copied_as_its_disk(guest):
    """A guest's disk shows this machine no directory. The row that only the lost primary had is gone."""
    cluster = guest("async_replication", 2, "mariadb:10.11")
    (first, second), topology = cluster.nodes, cluster.topology
    first.query("CREATE DATABASE kept")
    first.query("CREATE TABLE kept.t (id INT PRIMARY KEY)")
    write(first, 1)
    assert cluster.settle(60), cluster.backlog()
    second.query("STOP REPLICA")
    write(first, 100)
    topology.remember_roles(cluster.nodes)
    first.kill()
    topology.take_over(topology.most_advanced(first, cluster.nodes), cluster.nodes)
    write(second, 2)

    topology.rejoin(first, cluster.nodes)
    assert (topology.how_joined(""), topology.errant()) == ("rebuild", 1)
    assert agree(cluster) == [1, 2]
    cluster.new_errors()
    cluster.close()
