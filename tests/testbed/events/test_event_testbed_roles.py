"""Repetitions in which another node becomes the primary, on real servers behind HAProxy."""

from __future__ import annotations

import pytest

from pytest_dbcluster.events import Kill, Promote, SwitchPrimary
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.events import event_runner
from pytest_dbcluster.testbed.events.event_testbed import EventTestbed
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.support.testbeds import ONE

ASYNC = ClusterSpec("async_replication", nodes=2, release=ONE.release, proxy="haproxy")
SEMISYNC = ClusterSpec("semisync", nodes=3, release=ONE.release, proxy="haproxy")
# Terminals pause between their transactions: the servers have CPU time left, and an event is seen as well.
ORDERS = TPCC(threads=4, pause=0.15)
KILL = Kill("writer", then=Promote(after=0.3))


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """The load runs for two seconds before the event."""
    monkeypatch.setattr(event_runner, "BASELINE_SECONDS", 2.2)
    monkeypatch.setattr(event_runner, "JITTER_SECONDS", 0.5)


def source(pool, load, event, spec):
    """The round source of these repetitions."""
    several = len(event) if isinstance(event, dict) else 1
    variants = [pool.resolution.resolve(spec)] * several
    return EventTestbed(load, event, variants, pool, "quick", lambda line: None, seed=5)


def repeat(made, variant=0):
    """The figures of a repetition that counts. It begins and ends with node1 as primary."""
    done = made.round(variant, block=0, position=variant)
    found = done.outage
    print(done.void, done.wall, found.stall, found.marks, found.returned, found.books, found.logged)

    assert (done.void, found.node, found.censored) == ("", "node1", False)
    assert list(found.marks.values()) == sorted(found.marks.values())
    assert [node.name for node in made._used.writers] == ["node1"]
    return found


def check_orders(found, *, lost=0):
    """Some orders are acknowledged, at most so many of them are lost, and none is invented."""
    assert found.books.acknowledged > 20
    assert found.books.lost <= lost
    assert found.books.invented == 0


def test_a_replica_takes_over_from_a_killed_primary_and_from_a_running_one(shared):
    """Two events on one cluster; roles go back after each, so every repetition begins with the same roles."""
    made = source(shared, ORDERS, {"kill": KILL, "switch": SwitchPrimary()}, ASYNC)
    killed, switched = (repeat(made, variant) for variant in (0, 1))
    made.check()

    steps = [name for name in killed.marks if name not in ("rejoin begun", "synced")]
    assert steps == ["ended", "detected", "applied", "promoted", "routed", "whole"]
    assert killed.marks["routed"] < killed.marks["rejoin begun"] <= killed.marks["synced"]
    assert [route.to for route in killed.routes if route.to][-2:] == ["node2", "node1"]
    assert killed.marks["detected"] >= 0.3
    assert 0.3 < killed.stall < 60
    assert killed.returned.how in ("GTID", "rebuild")
    assert list(switched.marks) == ["read only", "caught up", "promoted", "routed"]
    assert switched.stall < 60
    check_orders(killed, lost=killed.returned.errant)  # the primary had not sent them yet
    check_orders(switched)
    assert switched.returned is None
    assert switched.events_before == killed.events_before + 1


@pytest.mark.thorough
def test_a_replica_takes_over_under_semi_synchronous_replication(shared):
    """The other replica acknowledges the commits of the new primary."""
    made = source(shared, ORDERS, KILL, SEMISYNC)
    found = repeat(made)
    made.check()

    assert found.marks["promoted"] < found.marks["routed"]
    assert 0.3 < found.stall < 60
    check_orders(found)
    assert found.returned.how in ("GTID", "rebuild")
