"""TPC-C on several nodes: conflicts between them, and a node that dies in mid-run."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads.tpcc.conditions import violations_of_equal
from pytest_dbcluster.workloads.tpcc.orders import from_reports
from pytest_dbcluster.workloads.tpcc.workload import SCHEMA, TPCC

CONFLICTS = {1020, 1047, 1180, 1205, 1213, 1317}


def test_nodes_do_not_share_fewer_warehouses_than_they_are(loaded):
    """Each needs one at least."""
    with pytest.raises(ConfigError, match="3 nodes divide the warehouses: use warehouses=3 or more"):
        TPCC(to="all", partitioned=True).run(loaded("mariadb", "galera", 3))


def test_conflicts_between_nodes_leave_every_condition_true(loaded):
    """All terminals of all nodes on one district: the ledger has the conflicts, and every node the same rows."""
    setting = loaded("mariadb", "galera", 3)
    load = TPCC(threads=6, seconds=0.6, to="all", terminals_on="district")
    load.prepare(setting)
    outcome = load.run(setting)
    ledger, total = outcome.ledger, outcome.ledger.total

    assert {number for number, _ in ledger.errors} <= CONFLICTS
    assert {node for _, node in ledger.errors} <= {"node1", "node2", "node3"}
    assert sum(ledger.errors.values()) == total.tried - total.good > 0
    assert max(total.attempts) > 1
    assert ledger.abort_share > 0.05
    assert setting.cluster.settle(60)
    assert load.violations(setting.cluster) == []
    setting.cluster.check(load.tables)


def test_orders_of_several_load_hosts_are_those_that_the_servers_have(loaded, provisioner):
    """Terminals of three hosts on three nodes: each acknowledged order is there once, on every node."""
    setting = loaded("mariadb", "galera", 3)
    cluster = setting.cluster
    others = provisioner.acquire(ClusterSpec("galera", nodes=2, name="clients"))
    assert cluster.settle(60)
    before = cluster.nodes[0].query(f"SELECT COUNT(*) FROM {SCHEMA}.orders")[0][0]
    load = TPCC(threads=7, seconds=0.3, to="all")
    outcome, reports = load.observe(dataclasses.replace(setting, others=tuple(others)))
    provisioner.give_back(others)
    committed, entry = from_reports(reports, "committed"), outcome.ledger.entries["new_order"]

    assert cluster.settle(60)
    assert len(outcome.load_hosts) == 3
    assert [one["nodes"] for one in reports] == [[f"node{number % 3 + 1}"] for number in range(7)]
    assert len(committed) == entry.committed > 0
    assert entry.unknown == 0
    for node in cluster.nodes:
        assert node.query(f"SELECT COUNT(*) FROM {SCHEMA}.orders")[0][0] == before + entry.committed
        assert committed.missing_on(node) == []
    assert violations_of_equal(cluster.nodes) == []


def test_no_acknowledged_order_is_lost_with_a_node(loaded):
    """One of three nodes is killed in mid-run: the others have each order that was acknowledged, on any node.

    What was lost at its COMMIT is counted apart, and no order is there that nobody sent.
    """
    setting = loaded("mariadb", "galera", 3)
    cluster = setting.cluster
    cluster.settle(30)
    before = cluster.nodes[0].query(f"SELECT COUNT(*) FROM {SCHEMA}.orders")[0][0]
    victim, survivors = cluster.nodes[2], cluster.nodes[:2]
    watcher = Connection("watcher", victim.endpoint)

    def kill_in_the_middle():
        def few():
            there = watcher.query(f"SELECT COUNT(*) FROM {SCHEMA}.orders")[0][0] - before
            return [] if there >= 20 else [f"{there} orders"]

        wait.until(few, "orders", seconds=60)
        watcher.close()
        os.kill(victim.process.pid, signal.SIGKILL)

    killed = threading.Thread(target=kill_in_the_middle)
    killed.start()
    load = TPCC(threads=6, seconds=1.2, to="all")
    outcome, reports = load.observe(setting, outlive=True)
    killed.join()
    committed, entry = from_reports(reports, "committed"), outcome.ledger.entries["new_order"]

    def apart():
        seen = {node.status("wsrep_last_committed")["wsrep_last_committed"] for node in survivors}
        return [] if len(seen) == 1 else [f"they are at {seen}"]

    wait.until(apart, "the survivors", seconds=30)
    assert len(committed) == entry.committed > 0
    unknown = from_reports(reports, "unknown")
    assert len(unknown) == entry.unknown
    # The number of an order that was lost is given to the next one of its district.
    doubtful = set(unknown) - set(committed)
    for node in survivors:
        assert committed.missing_on(node) == []
        there = node.query(f"SELECT COUNT(*) FROM {SCHEMA}.orders")[0][0] - before
        assert there == entry.committed + len(doubtful - {lost.order for lost in unknown.missing_on(node)})
    assert violations_of_equal(survivors) == []
