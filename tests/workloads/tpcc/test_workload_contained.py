"""TPC-C in containers: the tables are filled in one, kept, and run on by another."""

from __future__ import annotations

import shutil

import pytest

from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import datasets
from pytest_dbcluster.workloads.tpcc.workload import SCHEMA, TPCC
from pytest_dbcluster.workloads.workload import Setting
from tests.support.clusters import bring_up


@pytest.fixture
def own_store(tmp_path, monkeypatch):
    """A place for loaded tables that nobody else uses; a third of a GB, which pytest would keep for three runs."""
    monkeypatch.setattr(datasets, "datasets_directory", lambda: tmp_path / "stored")
    yield
    shutil.rmtree(tmp_path / "stored", ignore_errors=True)


def test_a_warehouse_that_was_filled_in_a_container_serves_another(containers, imaged, own_store):
    """The next server holds it from its start, every transaction commits there, and every condition is true."""
    release, load = imaged("mariadb:10.11"), TPCC(seconds=1.0)
    (client,) = containers.acquire(ClusterSpec("standalone", release=release.release_name, name="client"))
    made = datasets.dataset_template(load, release, containers, client, {})
    cluster = bring_up(ClusterSpec("standalone"), release, containers, options={}, start=made)
    setting = Setting(cluster, client, release, "quick", lambda line: None)
    orders = f"SELECT COUNT(*) FROM {SCHEMA}.orders"

    assert cluster.nodes[0].query(orders) == [(30_000,)]
    load.prepare(setting)
    done = load.run(setting)
    committed = done.ledger.entries["new_order"].committed
    assert committed > 0
    assert done.ledger.total.failed == done.ledger.total.unknown == 0
    assert cluster.nodes[0].query(orders) == [(30_000 + committed,)]
    assert load.violations(cluster) == []

    cluster.close()
    containers.give_back([client, *cluster.hosts])
