"""Connections of a load: new ones for each transaction, idle ones beside it, pauses, and TLS, on real servers."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.clusters.servers.node import LOAD
from pytest_dbcluster.errors import ConfigError, Unsupported
from pytest_dbcluster.releases import find
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc.workload import TPCC
from pytest_dbcluster.workloads.workload import Setting
from tests.support.facts import missing
from tests.workloads.sysbench_driver.calls import when

SMALL = SysBench("oltp_point_select", size=500, threads=4, seconds=0.3, prepared=False)


def setting_of(cluster, client):
    """What a load may use."""
    return Setting(cluster, client, cluster.nodes[0].release, "quick", lambda line: None)


@pytest.fixture
def setting(standalone, client):
    """The lone server; the load's schema is dropped afterwards."""
    made = setting_of(standalone, client)
    SMALL.prepare(made)
    yield made
    SMALL.clean(made)


def status(node, name):
    """A counter of the server."""
    return int(node.status(name)[name.lower()])


def sessions(node):
    """How many connections the load has."""
    ((count,),) = node.query(f"SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{LOAD}'")
    return count


def seen_while(node, deed, *, wanted):
    """The most connections that the load has while something is done; waits for so many of them."""
    watcher, seen = Connection("watcher", node.endpoint), []

    def too_few():
        ((count,),) = watcher.query(f"SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{LOAD}'")
        seen.append(count)
        return [] if count >= wanted else ["too few"]

    looking = when(too_few, "connections", watcher.close)
    done = deed()
    looking.join()
    return max(seen), done


def test_each_transaction_has_a_new_connection(setting):
    """Made in its time, also in an open loop; none is left, and none was cut."""
    node = setting.cluster.nodes[0]
    usual = SMALL.run(setting)
    for load in (dataclasses.replace(SMALL, reconnect=True), dataclasses.replace(SMALL, reconnect=True, rate=200.0)):
        before, aborted = status(node, "Connections"), status(node, "Aborted_clients")
        done = load.run(setting)
        total = done.ledger.total

        assert total.failed == total.unknown == 0
        assert done.good <= status(node, "Connections") - before <= done.good + 4
        assert status(node, "Aborted_clients") == aborted
        assert total.latencies.percentile(0.5) > 2 * usual.ledger.total.latencies.percentile(0.5)
        assert total.aborted_seconds == 0


def test_idle_connections_stay_beside_the_load(setting):
    """From before the first transaction until the end; the load's own threads have their usual endpoints."""
    node, load = setting.cluster.nodes[0], dataclasses.replace(SMALL, idle=50, seconds=2.0, rate=100.0)
    most, done = seen_while(node, lambda: load.run(setting), wanted=54)

    assert most == 54
    assert load.clients == 54
    assert done.good > 0
    wait.until(lambda: ["left"] if sessions(node) else [], "the end of its connections", seconds=60)


def test_idle_connections_are_divided_between_load_hosts(setting, others):
    """All of them together are as many as the test asks for; no host begins late."""
    node, load = setting.cluster.nodes[0], dataclasses.replace(SMALL, idle=50, seconds=2.0, rate=100.0)
    divided = dataclasses.replace(setting, others=others)
    most, done = seen_while(node, lambda: load.run(divided), wanted=54)

    assert most == 54
    assert done.void == ""
    assert len(done.load_hosts) == 3


def test_more_idle_connections_than_open_files_are_possible(briefly, client):
    """The usual limit of a process is 1024 files."""
    cluster = briefly("standalone", max_connections="1300")
    setting, load = setting_of(cluster, client), dataclasses.replace(SMALL, idle=1200, seconds=2.0, rate=100.0)
    load.prepare(setting)
    most, done = seen_while(cluster.nodes[0], lambda: load.run(setting), wanted=1204)

    assert most == 1204
    assert done.good > 0


def test_idle_connections_count_for_the_limits_of_a_node(setting):
    """The message has both numbers, and how many the node must accept."""
    with pytest.raises(ConfigError) as caught:
        dataclasses.replace(SMALL, idle=1000).run(setting)

    assert "4 threads beside 1000 idle connections are 1004 connections to node1, which accepts 151" in str(
        caught.value
    )


def test_threads_have_their_endpoints_beside_idle_connections(galera2, client):
    """The first to the first node, the second to the next one."""
    setting, load = setting_of(galera2, client), dataclasses.replace(SMALL, idle=5, seconds=0.05)
    load.prepare(setting)
    assert galera2.settle(60)
    try:
        _, reports = load.observe(setting)
    finally:
        load.clean(setting)

    assert [one["nodes"] for one in reports] == [["node1"], ["node2"]] * 2


def test_a_pause_comes_before_each_transaction(setting):
    """Around its mean; the latencies do not have it."""
    load = dataclasses.replace(SMALL, pause=0.1, threads=8, seconds=4.0)
    done = load.run(setting)

    assert done.good / 8 == pytest.approx(4.0 / 0.1005, rel=0.3)
    assert done.ledger.total.latencies.percentile(0.5) < 0.05


@pytest.fixture(scope="module", params=["mariadb:11.8", "mysql:9.7"])
def with_tls(request, bring):
    """A server that offers TLS, and one without: the workload decides."""
    options = {"ssl": "ON"} if request.param.startswith("mariadb") else {}
    cluster = bring("standalone", 1, find.find(request.param), **options)
    yield cluster
    cluster.close()


@pytest.mark.parametrize("reconnect", [False, True])
def test_connections_use_tls_if_the_load_asks_for_it(with_tls, client, reconnect):
    """Each of them, with TLS 1.2 or later; without it none does."""
    setting, node = setting_of(with_tls, client), with_tls.nodes[0]
    plain = dataclasses.replace(SMALL, reconnect=reconnect)
    load = dataclasses.replace(plain, tls=True)
    load.prepare(setting)
    counts = []
    for each in (plain, load):
        before = status(node, "Ssl_finished_accepts"), status(node, "Connections")
        done = each.run(setting)
        made = status(node, "Ssl_finished_accepts") - before[0], status(node, "Connections") - before[1]
        counts.append(made)
        assert done.good > 0
        assert done.ledger.errors == {}

    assert counts[0][0] == 0
    assert counts[1][0] == counts[1][1] >= 4


def test_nodes_with_different_certificates_are_reached_one_at_a_time(briefly, client):
    """MariaDB makes another one on each node; the message says how to connect to one node."""
    cluster = briefly("galera", 2, find.find("mariadb:11.8"), ssl="ON")
    setting, load = setting_of(cluster, client), dataclasses.replace(SMALL, tls=True)
    with pytest.raises(Unsupported, match=r"^node1 and node2 have different certificates, .* with to='writer'"):
        load.prepare(setting)
    alone = dataclasses.replace(load, to="writer")
    alone.prepare(setting)

    assert alone.run(setting).good > 0
    assert [status(node, "Ssl_finished_accepts") >= 4 for node in cluster.nodes] == [True, False]


def test_nodes_that_share_an_authority_are_all_reached(briefly, mysql, client):
    """The nodes of MySQL are copies of one template, with its certificates."""
    cluster = briefly("async_replication", 2, mysql)
    setting, load = setting_of(cluster, client), dataclasses.replace(SMALL, tls=True)
    load.prepare(setting)
    assert cluster.settle(60)
    before = [status(node, "Ssl_finished_accepts") for node in cluster.nodes]
    done = load.run(setting)

    assert done.good > 0
    assert all(status(node, "Ssl_finished_accepts") - n >= 2 for node, n in zip(cluster.nodes, before, strict=True))


def test_a_server_without_tls_is_refused(setting):
    """Before a round, with what to add to the spec."""
    with pytest.raises(Unsupported, match=r'^node1 does not offer TLS: MariaDB 11\.4 .*\.with_options\(ssl="ON"\)'):
        dataclasses.replace(SMALL, tls=True).prepare(setting)


def test_names_change_only_with_the_fields():
    """So the history of claims on other workloads continues."""
    all_set = {"reconnect": True, "idle": 1000, "pause": 0.05, "tls": True}

    assert str(SysBench()) == "sysbench oltp_read_write t16"
    assert str(TPCC()) == "tpcc w1 t4"
    assert str(SysBench(**all_set)) == (
        "sysbench oltp_read_write t16 pausing 0.05 s reconnecting beside 1000 idle with TLS"
    )
    assert str(TPCC(**all_set)) == "tpcc w1 t4 pausing 0.05 s reconnecting beside 1000 idle with TLS"


@pytest.mark.parametrize("load", [SysBench, TPCC])
@pytest.mark.parametrize(
    ("fields", "facts"),
    [
        ({"reconnect": "no"}, ("reconnect='no': ", "True or False")),
        ({"tls": 1}, ("tls=1: ", "True or False")),
        ({"idle": -1}, ("idle=-1: ", "0 or more")),
        ({"pause": 0}, ("pause=0: ", "a finite number of seconds", "above 0")),
        ({"pause": 1, "rate": 50}, ("pause=1 and rate=50: ", "when transactions start", "use one")),
    ],
)
def test_wrong_values_are_refused(load, fields, facts):
    """When the workload is made."""
    with pytest.raises(ConfigError) as caught:
        load(**fields)

    assert missing(caught.value, *facts) == []


def test_terminals_wait_in_one_way():
    """Keying and thinking times are pauses too."""
    with pytest.raises(ConfigError, match="thinking=True and pause=1: both let terminals wait"):
        TPCC(thinking=True, pause=1)
