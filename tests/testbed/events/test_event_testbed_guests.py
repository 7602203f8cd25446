"""Repetitions of events in guests, which have a kernel and a disk that only they use."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.events import FailOver, FillDisk, PowerCut
from pytest_dbcluster.testbed.events.event_testbed import EventTestbed
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from pytest_dbcluster.workloads.tpcc import TPCC
from tests.support.drbd_pairs import NEAR
from tests.support.guests import servers_in
from tests.support.testbeds import ONE


@pytest.fixture(scope="module")
def in_guests(guests, tmp_path_factory):
    """As ``shared``, in guests."""
    fragments = tmp_path_factory.mktemp("fragments")
    made = Pool(Resolution(guests, fragments=fragments, below={}, progress=lambda line: None))
    yield made
    made.close()


@pytest.mark.guests
def test_a_power_cut_and_a_full_disk_lose_no_flushed_order(in_guests):
    """The log is flushed at each commit. The load goes on when the host has booted, and when the disk has room."""
    events = {"cut": PowerCut(), "full": FillDisk("writer", 3)}
    variants = [in_guests.resolution.resolve(ONE)] * 2
    made = EventTestbed(TPCC(threads=2), events, variants, in_guests, "quick", lambda line: None, seed=5)
    cut, full = (made.round(number, block=0, position=number) for number in (0, 1))
    made.check()
    print([(done.void, done.wall, done.outage) for done in (cut, full)])

    assert (cut.void, full.void) == ("", "")
    assert cut.outage.marks["booted"] < cut.outage.marks["whole"]
    assert cut.outage.stall > 1
    assert full.outage.marks["full"] + 3 <= full.outage.marks["emptied"]
    for done in (cut, full):
        assert not done.outage.censored
        assert done.outage.books.acknowledged > 10
        assert (done.outage.books.lost, done.outage.books.invented) == (0, 0)


@pytest.mark.guests
def test_a_standby_takes_over_with_each_acknowledged_order(in_guests):
    """There and back again: HAProxy leads the load to the new server, and the old host is the standby afterwards."""
    pair = in_guests.resolution.resolve(dataclasses.replace(NEAR, proxy="haproxy").with_needs(rtt=0.02))
    made = EventTestbed(TPCC(threads=4), FailOver(), [pair], in_guests, "quick", lambda line: None, seed=6)
    rounds = []
    for block in (0, 1):
        rounds.append(made.round(0, block=block, position=0))
        (cluster,) = (one for one in in_guests.clusters if one.spec.topology == "drbd")
        rounds_on = [node.name for node in cluster.nodes]
        assert rounds_on == ["node1" if block else "node2"], rounds
        assert sorted(servers_in(host) for host in cluster.hosts) == [0, 1]
    made.check()
    print([(done.void, done.wall, done.outage) for done in rounds])

    assert [done.void for done in rounds] == ["", ""]
    for done in rounds:
        marks = done.outage.marks
        assert list(marks) == ["fenced", "promoted", "mounted", "answers", "routed", "whole"]
        assert sorted(marks.values()) == list(marks.values())
        assert marks["answers"] - 1 < done.outage.stall
        assert not done.outage.censored
        assert done.outage.books.acknowledged > 10
        assert (done.outage.books.lost, done.outage.books.invented) == (0, 0)
        assert done.outage.returned.seconds > 0
