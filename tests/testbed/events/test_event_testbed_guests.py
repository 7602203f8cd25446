"""Repetitions of events in guests, which have a kernel and a disk that only they use."""

from __future__ import annotations

import pytest

from pytest_dbcluster.events import FillDisk, PowerCut
from pytest_dbcluster.testbed.events.event_testbed import EventTestbed
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from pytest_dbcluster.workloads.tpcc import TPCC
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
