"""A killed writer of each replicated topology: how long its load waits, and how the node comes back."""

from __future__ import annotations

import pytest

from pytest_dbcluster.events import Kill
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
PAUSE = 0.05  # seconds between two transactions of a terminal: the servers have CPU time left


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """The load runs for two seconds before the event."""
    monkeypatch.setattr(event_runner, "BASELINE_SECONDS", 2.2)
    monkeypatch.setattr(event_runner, "JITTER_SECONDS", 0.5)


def repeated(pool, spec, load):
    """One repetition of a killed writer, whose figures are printed; the clusters are as they should be."""
    made = EventTestbed(load, Kill(), [pool.resolution.resolve(spec)], pool, "quick", lambda line: None, seed=5)
    done = made.round(0, block=0, position=0)
    made.check()
    print(done.void, done.wall, done.outage)
    assert (done.void, done.outage.node, done.outage.censored) == ("", "node1", False)
    return done.outage


def test_a_killed_primary_of_a_group_is_expelled_before_the_load_goes_on(pool):
    """Suspicion takes 5 s, and without an expel timeout the group elects another primary then."""
    found = repeated(pool, QUICK, SysBench("oltp_write_only", size=1000, threads=4, pause=PAUSE))

    assert 4 < found.stall < 40
    assert 4 < found.marks["evicted"] < 40
    assert found.returned.how == "incremental"


@pytest.mark.parametrize("spec", [ASYNC, SEMISYNC], ids=str)
def test_a_killed_source_starts_again_under_load(pool, spec):
    """No replica takes over, so the stall is the restart; a crash of the process loses nothing."""
    found = repeated(pool, spec, TPCC(threads=4, pause=PAUSE))

    assert 0.2 < found.stall < 60
    assert found.marks["ended"] < found.marks["whole"]
    assert found.without_redundancy == found.marks["whole"]
    assert found.books.acknowledged > 10
    assert (found.books.lost, found.books.invented) == (0, 0)
    assert (found.returned.how, found.returned.seconds > 0) == ("", True)
