"""Maintenance under load on real servers: the cluster is whole afterwards, and no order is lost."""

from __future__ import annotations

import pytest

from pytest_dbcluster.errors import ConfigError, Unsupported
from pytest_dbcluster.events import Alter, LargeTransaction, Restart, Rolling, SetOptions, Upgrade
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.events import event_runner
from pytest_dbcluster.testbed.events.event_testbed import EventTestbed
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.support.testbeds import ONE, TWO

# Terminals pause between their transactions: the servers have CPU time left, and an event is seen as well.
WRITE = SysBench("oltp_write_only", size=1000, threads=2, pause=0.1)
ORDERS = TPCC(threads=2, pause=0.1)
COLUMN = "ALTER TABLE history ADD COLUMN more INT"
PROXIED = ClusterSpec("galera", nodes=2, release=ONE.release, proxy="haproxy")


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """The load runs for two seconds before the event."""
    monkeypatch.setattr(event_runner, "BASELINE_SECONDS", 2.2)
    monkeypatch.setattr(event_runner, "JITTER_SECONDS", 0.5)


def source(pool, load, event, *specs):
    """The round source of these repetitions."""
    several = len(event) if isinstance(event, dict) else 1
    variants = [pool.resolution.resolve(spec) for spec in specs] * several
    return EventTestbed(load, event, variants, pool, "quick", lambda line: None, seed=5)


def deeds(outage):
    """The marks of the event itself. A busy HAProxy also leads clients away from a node that is desynced for RSU."""
    return [name for name in outage.marks if name != "routed"]


def test_maintenance_leaves_the_cluster_as_it_was_and_loses_no_order(shared):
    """Each repetition is proven. HAProxy leads nobody to a node before it stops, and the writer is the last one."""
    events = {
        "rsu": Alter(COLUMN, method="RSU"),
        "large": LargeTransaction(3000),
        "rolling": Rolling(Restart(), drain=True),
    }
    made = source(shared, ORDERS, events, PROXIED)
    rounds = [made.round(number, block=0, position=number) for number in range(3)]
    made.check()
    rsu, large, rolling = (done.outage for done in rounds)

    assert [done.void for done in rounds] == ["", "", ""]
    assert [done.outage.event for done in rounds] == [str(event) for event in events.values()]
    assert [(done.outage.books.lost, done.outage.books.invented) for done in rounds] == [(0, 0)] * 3
    assert deeds(rsu) == ["node2 altered", "node1 altered", "altered on all nodes"]
    assert deeds(large) == ["committed", "on all nodes"]
    steps = [f"{node} {step}" for node in ("node2", "node1") for step in ("drained", "stopped", "whole", "done")]
    assert deeds(rolling) == [*steps, "whole"]
    assert "node2" in [route.to for route in rolling.routes]
    assert rolling.returned.how == "IST"
    assert rolling.connections_lost >= 2


def test_an_upgraded_server_serves_no_other_repetition(shared):
    """It keeps its data. The next repetition gets another cluster, because none goes back to the older release."""
    made = source(shared, WRITE, Rolling(Upgrade("mariadb:11.8")), ONE)
    done = made.round(0, block=0, position=0)
    made.check()
    [cluster] = [one for one in shared.clusters if one.spec.topology == "standalone"]

    assert done.void == ""
    assert list(done.outage.marks) == ["node1 stopped", "node1 whole", "node1 done", "whole"]
    assert cluster.nodes[0].query("SELECT VERSION()")[0][0].startswith("11.8")
    assert cluster.unusable == "the event rolling upgrade to mariadb:11.8 has changed it for good"


@pytest.mark.parametrize(
    ("event", "spec", "error", "fact"),
    [
        (Rolling(Upgrade("mariadb:10.5")), TWO, ConfigError, "is not newer"),
        (Rolling(Upgrade("mariadb:10.11")), TWO, ConfigError, "is not newer"),
        (Rolling(Upgrade("mysql:9.7")), TWO, Unsupported, "has no Galera library"),
        (Rolling(Upgrade("mysql:9.7")), ONE, ConfigError, "mysql 9.7"),
        (Rolling(Upgrade("mariadb")), ONE, ConfigError, "a release is written NAME:VERSION"),
        (Rolling(SetOptions(no_such_option=1)), ONE, ConfigError, "no_such_option"),
    ],
)
def test_what_the_servers_cannot_have_is_refused(shared, event, spec, error, fact):
    """Before any server starts."""
    with pytest.raises(error) as caught:
        source(shared, WRITE, event, spec)

    assert fact in str(caught.value)
