"""Terminals that several load hosts divide between them: nothing is lost, nothing is doubled, all begin at one time."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads import sysbench_driver
from tests.workloads.sysbench_driver.calls import SCHEMA, call


@pytest.fixture(scope="module")
def others(provisioner):
    """Two more hosts for the load."""
    hosts = provisioner.acquire(ClusterSpec("galera", nodes=2, name="clients"))
    yield tuple(hosts)
    provisioner.give_back(hosts)


def test_threads_have_the_numbers_and_endpoints_of_one_host(galera2, filled, others):
    """Five threads on two hosts go round the nodes as they do on one, and each has a number of its own."""
    setting = dataclasses.replace(filled(galera2), others=others[:1])
    outcome, reports = sysbench_driver.run(call(setting, "oltp_point_select", threads=5), setting, seconds=0.1)

    assert [one["id"] for one in reports] == [0, 1, 2, 3, 4]
    assert [one["nodes"] for one in reports] == [["node1"], ["node2"], ["node1"], ["node2"], ["node1"]]
    assert 0.1 <= outcome.seconds < 1
    assert [one.name for one in outcome.load_hosts] == ["node1", "node1"]


def test_what_the_hosts_did_is_what_the_server_counted(standalone, filled, others):
    """Each insert has an id of its own: the ledger's commits, and the rows, are those of all hosts together."""
    setting = dataclasses.replace(filled(standalone), others=others)
    inserting = call(setting, "oltp_insert", threads=7)
    outcome, reports = sysbench_driver.run(inserting, setting, seconds=0.4)
    ((rows,),) = standalone.nodes[0].query(f"SELECT COUNT(*) FROM {SCHEMA}.sbtest1")
    committed = [one["kinds"]["oltp_insert"]["committed"] for one in reports]

    assert rows == 1000 + outcome.commits
    assert outcome.commits == sum(committed)
    assert min(committed) > 0
    assert outcome.ledger.errors == {}
    assert sum(outcome.by_tenth) == outcome.good == outcome.ledger.total.latencies.total
    assert outcome.client_seconds == pytest.approx(sum(one.client_seconds for one in outcome.load_hosts))
