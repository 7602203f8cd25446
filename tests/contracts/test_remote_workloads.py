"""The contract of workloads where servers, proxy and loads are on machines of their own, which ssh reaches."""

from __future__ import annotations

import dataclasses
import shutil
from collections import Counter

import pytest

from pytest_dbcluster.clusters.proxy import query_through
from pytest_dbcluster.clusters.servers.node import LOAD
from pytest_dbcluster.releases import find
from pytest_dbcluster.rounds import load_generator
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import datasets, round_runner
from pytest_dbcluster.workloads.tpcc.workload import SCHEMA, TPCC
from pytest_dbcluster.workloads.workload import Setting
from tests.contracts import test_workloads as contract
from tests.support.clusters import bring_up

ONE = ClusterSpec("standalone")
PROXIED = ClusterSpec("galera", nodes=2, proxy="haproxy")
QUICK = next(load for load in contract.LOADS["sysbench"] if "insert" in str(load))
CASES = [
    (ONE, QUICK),
    *(pytest.param((spec, load), marks=pytest.mark.remote) for spec in (ONE, PROXIED) for load in contract.ALL
      if (spec, load) != (ONE, QUICK)),
]  # fmt: skip

test_a_run_says_how_long_it_took = contract.test_a_run_says_how_long_it_took
test_a_reset_brings_every_node_back_to_the_preload = contract.test_a_reset_brings_every_node_back_to_the_preload
test_a_second_prepare_changes_nothing = contract.test_a_second_prepare_changes_nothing
test_clean_leaves_nothing = contract.test_clean_leaves_nothing


@pytest.fixture(scope="module")
def settings(machines):
    """``settings(spec)``: a cluster, and a client on the machine of the load; each is made once."""
    release, made = find.find("mariadb:10.11"), {}

    def settings(spec):
        if spec not in made:
            cluster = bring_up(spec, release, machines, options={})
            made[spec] = Setting(cluster, machines.client(ONE), release, "quick", lambda line: None)
        return made[spec]

    yield settings
    for setting in made.values():
        setting.cluster.close()
        machines.give_back([setting.client, *setting.cluster.hosts])


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].topology}-{case[1]}")
def case(request):
    """A cluster and a load on it."""
    return request.param


@pytest.fixture
def setting(case, settings):
    """The cluster of the case."""
    return settings(case[0])


@pytest.fixture
def load(case, setting):
    """The load of the case, prepared, and cleaned up afterwards."""
    case[1].prepare(setting)
    assert setting.cluster.settle(60), setting.cluster.backlog()
    yield case[1]
    case[1].clean(setting)


def test_the_load_runs_on_a_machine_of_its_own(setting, load):
    """Its program starts there, and meets the servers at the addresses of their machines; so do other clients."""
    nodes = [node.host for node in setting.cluster.nodes]

    assert setting.client.machine == "load"
    assert len({host.machine for host in nodes} - {"load"}) == len(nodes)
    assert setting.client.run(["hostname"]).stdout == "load\n"
    connected = dataclasses.replace(setting.cluster.writer(), tls=False)
    assert query_through("test", connected, "SELECT CURRENT_USER()")[0][0].startswith(f"{LOAD}@")
    assert connected.host in {host.address for host in nodes}


def test_a_round_counts_what_the_client_takes(setting, load):
    """CPU of the program on the load's machine, and of each server on its own; this machine sees neither."""
    servers = used = 0.0
    for block in range(50):  # in a short round a program may take less than a tick of 10 ms
        cores = round_runner.run_round(load, setting, variant="remote", block=block, position=0)
        names = [f"cpu_node{number}" for number in range(1, len(setting.cluster.nodes) + 1)]
        servers = max(servers, *(cores.samples.get(name, 0) for name in names))
        used = max(used, load_generator.used_cores(cores))
        if servers and used:
            break
        load.reset(setting)
    assert servers > 0
    assert 0 < used <= cores.samples["client_cores"]
    assert all(node.process.pid == 0 for node in setting.cluster.nodes)


@pytest.mark.remote
def test_haproxy_leads_to_the_nodes_of_each_role(settings):
    """Over the network of the machines; its status is asked through ssh."""
    cluster = settings(PROXIED).cluster

    def landed(endpoint, times):
        return Counter(query_through("test", endpoint, "SELECT @@hostname")[0][0] for _ in range(times))

    first, second = (node.host.machine for node in cluster.nodes)
    assert landed(cluster.writer(), 4) == {first: 4}
    assert landed(cluster.reader(), 4) == {first: 2, second: 2}
    assert cluster.proxy.problems() == []


@pytest.mark.remote
def test_a_warehouse_that_was_filled_here_serves_a_server_there(machines, tmp_path, monkeypatch):
    """It is sent to the machine; every transaction commits there, and every condition is true."""
    monkeypatch.setattr(datasets, "datasets_directory", lambda: tmp_path / "stored")
    release, load = find.find("mariadb:10.11"), TPCC(seconds=1.0)
    client = machines.client(ONE)
    template = datasets.dataset_template(load, release, machines, client, {})
    cluster = bring_up(ONE, release, machines, options={}, start=template)
    setting = Setting(cluster, client, release, "quick", lambda line: None)
    try:
        load.prepare(setting)
        done = load.run(setting)

        committed = done.ledger.entries["new_order"].committed
        assert committed > 0
        assert done.ledger.total.failed == done.ledger.total.unknown == 0
        assert cluster.nodes[0].query(f"SELECT COUNT(*) FROM {SCHEMA}.orders") == [(30_000 + committed,)]
        assert load.violations(cluster) == []
    finally:
        cluster.close()
        machines.give_back([client, *cluster.hosts])
        shutil.rmtree(tmp_path / "stored", ignore_errors=True)
