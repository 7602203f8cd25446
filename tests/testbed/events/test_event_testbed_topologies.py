"""A killed writer of each replicated topology: how long its load waits, and how the node comes back.

A group also elects another writer.
"""

from __future__ import annotations

import pytest

from pytest_dbcluster.events import Kill, SwitchPrimary
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.testbed.events import event_runner
from pytest_dbcluster.testbed.events.event_testbed import EventTestbed
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.support.testbeds import ONE

MYSQL = ReleaseName("mysql", "9.7")
GROUP = ClusterSpec("group_replication", nodes=3, release=MYSQL, proxy="haproxy")
QUICK = GROUP.with_options(group_replication_member_expel_timeout=0).named("quick")
ASYNC = ClusterSpec("async_replication", nodes=2, release=ONE.release)
SEMISYNC = ClusterSpec("semisync", nodes=2, release=ONE.release)
PAUSE = 0.15  # seconds between two transactions of a terminal: the servers have CPU time left


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """The load runs for two seconds before the event."""
    monkeypatch.setattr(event_runner, "BASELINE_SECONDS", 2.2)
    monkeypatch.setattr(event_runner, "JITTER_SECONDS", 0.5)


def repeated(pool, spec, load, *events):
    """One repetition of each event, whose figures are printed. Each begins with node1 as the primary."""
    variants = [pool.resolution.resolve(spec)] * len(events)
    of = {str(event): event for event in events}
    made = EventTestbed(load, of, variants, pool, "quick", lambda line: None, seed=5)
    rounds = [made.round(number, block=0, position=number) for number in range(len(events))]
    made.check()
    for done in rounds:
        print(done.void, done.wall, done.outage)
        assert (done.void, done.outage.node, done.outage.censored) == ("", "node1", False)
        assert list(done.outage.marks.values()) == sorted(done.outage.marks.values())
    return [done.outage for done in rounds]


def test_a_group_elects_a_primary_that_it_is_told_to_and_one_after_a_kill(pool):
    """Each member shows the new primary, and the proxy follows. A killed primary is expelled before the load goes on.

    Suspicion takes 5 s, and without an expel timeout the group elects another primary then.
    """
    load = SysBench("oltp_write_only", size=1000, threads=4, pause=PAUSE)
    killed, switched = repeated(pool, QUICK, load, Kill(), SwitchPrimary("node2", timeout=5))

    assert list(switched.marks) == ["elected", "returned", "routed"]
    assert switched.stall < 120
    assert 4 < killed.stall < 40
    assert 4 < killed.marks["detected"] <= killed.marks["evicted"] < 40
    assert killed.marks["evicted"] - 2 < killed.marks["new writer"]
    assert killed.marks["rejoin begun"] <= killed.marks["synced"]
    assert {"node2", "node3"} & {route.to for route in killed.routes}
    assert killed.returned.how == "incremental"


@pytest.mark.thorough
@pytest.mark.parametrize("spec", [ASYNC, SEMISYNC], ids=str)
def test_a_killed_source_starts_again_under_load(pool, spec):
    """No replica takes over, so the stall is the restart; a crash of the process loses nothing."""
    [found] = repeated(pool, spec, TPCC(threads=4, pause=PAUSE), Kill())

    assert 0.05 < found.stall < 60
    assert found.marks["ended"] < found.marks["whole"]
    assert found.without_redundancy == found.marks["whole"]
    assert found.books.acknowledged > 10
    assert (found.books.lost, found.books.invented) == (0, 0)
    assert (found.returned.how, found.returned.seconds > 0) == ("", True)
