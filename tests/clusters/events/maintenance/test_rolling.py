"""``Rolling``: nodes restart one after the other, with other options, and behind a proxy."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.events.event import Stage
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.events import Restart, Rolling, SetOptions, Upgrade
from pytest_dbcluster.spec import ClusterSpec

GALERA = ClusterSpec("galera", nodes=3)


@pytest.mark.parametrize(
    ("event", "text", "reusable"),
    [
        (Rolling(Restart()), "rolling restart", True),
        (Rolling(Restart(), drain=True), "rolling restart with drain", True),
        (Rolling(SetOptions(sync_binlog=0)), "rolling set sync_binlog=0", True),
        (Rolling(Upgrade("mariadb:11.8")), "rolling upgrade to mariadb:11.8", False),
    ],
)
def test_its_text_has_the_step(event, text, reusable):
    """After an upgrade, no other repetition uses the cluster."""
    assert (str(event), event.reusable) == (text, reusable)


@pytest.mark.parametrize(
    ("event", "spec", "fact"),
    [
        (Rolling("restart"), GALERA, "it accepts Restart(), SetOptions(...) or Upgrade(...)"),
        (Rolling(Restart(), drain=1.5), GALERA, "it accepts True or False"),
        (Rolling(Restart(), drain=True), GALERA, 'only a cluster with proxy="haproxy" drains a node'),
        (Rolling(Restart(), drain=True), ClusterSpec("galera", nodes=3, proxy="proxysql"), "galera3"),
        (Rolling(Restart()), ClusterSpec("drbd", nodes=2), "use FailOver()"),
    ],
)
def test_a_wrong_event_is_refused(event, spec, fact):
    """Before anything starts."""
    with pytest.raises(ConfigError) as caught:
        event.check(spec, topology(spec.topology))
    assert fact in str(caught.value)


def test_a_node_restarts_with_other_options_and_gets_its_own_back(briefly, mariadb):
    """Each step has a mark, and the second restart has the options from before."""
    cluster = briefly("standalone")
    stages = [Stage((mariadb,), options) for options in ({}, {"innodb_io_capacity": "321"})]
    event = Rolling(SetOptions(innodb_io_capacity=321)).equip(stages[0], stages[1:])
    [node] = cluster.nodes
    usual, process = node.variables()["innodb_io_capacity"], node.process
    event.prepare(cluster)
    happened = event.act(cluster)

    assert happened.void == ""
    assert list(happened.marks) == ["node1 stopped", "node1 whole", "node1 done", "whole"]
    assert happened.returned.seconds > 0
    assert process.status() == 0
    assert node.variables()["innodb_io_capacity"] == "321"
    assert event.restore(cluster, happened) == happened.returned
    assert node.variables()["innodb_io_capacity"] == usual != "321"
    cluster.new_errors()


def test_options_that_a_server_changes_prove_nothing(briefly):
    """The reason has both values."""
    cluster = briefly("standalone")
    event = Rolling(SetOptions(max_connections=321))
    happened = event.act(cluster)

    assert "max_connections=321 and runs with 151" in happened.void
    cluster.new_errors()
