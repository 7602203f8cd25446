"""Data sets in containers: the tables are filled in one, kept, and run on by another."""

from __future__ import annotations

import shutil

import pytest

from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import datasets
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc.workload import SCHEMA, TPCC
from pytest_dbcluster.workloads.workload import Setting
from tests.support.clusters import bring_up


@pytest.fixture
def own_store(tmp_path, monkeypatch):
    """A place for loaded tables that nobody else uses; a third of a GB, which pytest would keep for three runs."""
    monkeypatch.setattr(datasets, "datasets_directory", lambda: tmp_path / "stored")
    yield
    shutil.rmtree(tmp_path / "stored", ignore_errors=True)


@pytest.fixture
def served(containers, imaged, own_store):
    """``served(load, table)``: a server that starts from what another one was filled with, and the rows of a table."""
    hosts, release = [], imaged("mariadb:10.11")

    def served(load, table):
        (client,) = containers.acquire(ClusterSpec("standalone", release=release.release_name, name="client"))
        made = datasets.dataset_template(load, release, containers, client, {})
        cluster = bring_up(ClusterSpec("standalone"), release, containers, options={}, start=made)
        hosts.extend([client, *cluster.hosts])
        setting = Setting(cluster, client, release, "quick", lambda line: None)
        return setting, lambda: cluster.nodes[0].query(f"SELECT COUNT(*) FROM {table}")[0][0]

    yield served
    containers.give_back(hosts)


def test_tables_that_were_filled_in_a_container_serve_another(served):
    """The next server holds them from its start, and every transaction commits there."""
    load = SysBench("oltp_insert", size=500, threads=2, seconds=0.3)
    setting, rows = served(load, load.tables[0])

    assert rows() == 500
    load.prepare(setting)
    done = load.run(setting)
    assert done.commits > 0
    assert done.ledger.total.failed == done.ledger.total.unknown == 0
    assert rows() == 500 + done.commits
    setting.cluster.close()


@pytest.mark.thorough
def test_a_warehouse_that_was_filled_in_a_container_serves_another(served):
    """As other tables; every condition is true."""
    load = TPCC(seconds=1.0)
    setting, orders = served(load, f"{SCHEMA}.orders")

    assert orders() == 30_000
    load.prepare(setting)
    done = load.run(setting)
    committed = done.ledger.entries["new_order"].committed
    assert committed > 0
    assert done.ledger.total.failed == done.ledger.total.unknown == 0
    assert orders() == 30_000 + committed
    assert load.violations(setting.cluster) == []
    setting.cluster.close()
