"""What is asynchronous replication's own: nobody but the primary has a commit when it returns."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.topologies.async_replication import AsyncReplication
from pytest_dbcluster.releases import find


def test_a_commit_is_worth_one_server():
    """The answer does not depend on variables or on the number of nodes."""
    form = AsyncReplication()

    assert form.acknowledgement({"rpl_semi_sync_master_wait_point": "AFTER_SYNC"}, 3) == "one server, replicas later"
    assert form.consistency({}) == ""


@pytest.mark.parametrize("release", ["mariadb:10.11", pytest.param("mysql:9.7", marks=pytest.mark.thorough)])
def test_a_commit_waits_for_no_replica(bring, release):
    """A commit returns while all replicas are stopped; they apply it when they start again."""
    cluster = bring("async_replication", 2, find.find(release), innodb_lock_wait_timeout="7")
    primary, replica = cluster.nodes
    replica.query("STOP REPLICA")
    primary.query("CREATE DATABASE kept")
    primary.query("CREATE TABLE kept.t (id INT PRIMARY KEY)")
    assert cluster.backlog() != []

    replica.query("START REPLICA")
    assert cluster.settle(60), cluster.backlog()
    cluster.check(["kept.t"])
    assert [node.query("SELECT @@global.innodb_lock_wait_timeout")[0][0] for node in cluster.nodes] == [7, 7]
    cluster.close()
