"""The contract of workloads where servers, proxy and loads are containers: two Galera nodes behind haproxy."""

from __future__ import annotations

import dataclasses
from collections import Counter

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.proxy import query_through
from pytest_dbcluster.clusters.servers.node import LOAD
from pytest_dbcluster.rounds import load_generator
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import round_runner
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.workload import Setting
from tests.contracts import test_workloads as contract
from tests.support.clusters import bring_up

SPEC = ClusterSpec("galera", nodes=2, proxy="haproxy")
LOADS = [
    MySQLSlap("mixed", concurrency=4, queries=40, quick_queries=40, rows=300),
    SysBench("oltp_insert", table_count=2, size=300, threads=2, seconds=0.1),
    *contract.LOADS["sqlfiles"],
    *contract.LOADS["luascript"],
]

test_a_run_says_how_long_it_took = contract.test_a_run_says_how_long_it_took
test_a_reset_brings_every_node_back_to_the_preload = contract.test_a_reset_brings_every_node_back_to_the_preload
test_clean_leaves_nothing = contract.test_clean_leaves_nothing


@pytest.fixture(scope="module")
def setting(containers, imaged):
    """The cluster, and a client in a container of its own."""
    release = imaged("mariadb:10.11")
    made = bring_up(SPEC, release, containers, options={})
    (host,) = containers.acquire(ClusterSpec("standalone", release=release.release_name, name="client"))
    yield Setting(made, host, release, "quick", lambda line: None)
    made.close()
    containers.give_back([host, *made.hosts])


@pytest.fixture(params=LOADS, ids=str)
def load(request, setting):
    """Each load, prepared on both nodes, to which the proxy leads it in turn, and cleaned up afterwards."""
    request.param.prepare(setting)
    assert setting.cluster.settle(60), setting.cluster.backlog()
    yield request.param
    request.param.clean(setting)


def landed(endpoint, times):
    """The nodes that so many new connections reached, by the names of their hosts."""
    return Counter(query_through("test", endpoint, "SELECT @@hostname")[0][0] for _ in range(times))


def test_servers_proxy_and_client_are_hosts_of_their_own(setting):
    """Each has an address of its own, so that all of them listen on the usual ports."""
    cluster, proxy = setting.cluster, setting.cluster.proxy.host
    hosts = [*cluster.hosts, proxy, setting.client]

    assert len({host.address for host in hosts}) == len(hosts) == 4
    assert [node.port for node in cluster.nodes] == [3306, 3306]
    assert (cluster.writer().host, cluster.writer().port) == (proxy.address, 3306)


def test_haproxy_leads_to_the_nodes_of_each_role(setting):
    """Its writer stays with one node, and its reader takes them in turn."""
    assert landed(setting.cluster.writer(), 6) == {"node1": 6}
    assert landed(setting.cluster.reader(), 6) == {"node1": 3, "node2": 3}


def test_haproxy_sees_what_a_node_may_be_used_for(setting):
    """The status port runs beside the containers, on this machine, and haproxy asks it from within its own."""
    node, proxy = setting.cluster.nodes[1], setting.cluster.proxy
    node.query("SET GLOBAL wsrep_desync = ON")
    try:
        wait.until(
            lambda: [] if "reader/node2 is DOWN" in f"{proxy.problems()}" else ["it is in"], "node2 out", seconds=10
        )
        assert landed(setting.cluster.reader(), 4) == {"node1": 4}
    finally:
        node.query("SET GLOBAL wsrep_desync = OFF")
    wait.until(setting.cluster.problems, "the cluster", seconds=30)


def test_loads_have_their_own_account(setting):
    """Through the proxy as well."""
    connected = dataclasses.replace(setting.cluster.reader(), tls=False)

    assert query_through("test", connected, "SELECT CURRENT_USER()")[0][0].startswith(f"{LOAD}@")


def test_a_round_counts_what_the_client_takes(setting, load):
    """CPU of the program in the client's container, which is no child of ours, and of each server in its own."""
    done = round_runner.run_round(load, setting, variant="contained", block=0, position=0)
    cores = done.samples

    assert 0 < load_generator.used_cores(done) <= cores["client_cores"]
    assert cores["cpu_client"] > 0
    assert [psutil.Process(node.process.pid).name() for node in setting.cluster.nodes] == ["mariadbd", "mariadbd"]
    for block in range(1, 50):  # in such short rounds both nodes may take less than a tick of 10 ms
        if cores["cpu_node1"] + cores["cpu_node2"] > 0:
            break
        load.reset(setting)
        assert setting.cluster.settle(60), setting.cluster.backlog()
        cores = round_runner.run_round(load, setting, variant="contained", block=block, position=0).samples
    assert cores["cpu_node1"] + cores["cpu_node2"] > 0
