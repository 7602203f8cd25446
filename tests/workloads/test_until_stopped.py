"""A load that runs until we stop it: its options, and the times in the reports of its threads."""

from __future__ import annotations

import pytest

from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.sysbench import SysBench
from pytest_dbcluster.workloads.tpcc import TPCC
from pytest_dbcluster.workloads.until_stopped import RunsUntilStopped, UntilStopped, load_times, read_failures


class Files:
    """A host that notes the files that it gets."""

    def __init__(self):
        self.paths = []

    def push(self, content, path):
        """Note the path."""
        self.paths.append((content, path))


def report(began_at, **fields):
    """The report of a thread."""
    given = {"began_at": began_at, "begun": 50.0, "ended": 60.0, "commits": {}, "failures": []}
    return {**given, **fields}


def test_each_load_host_gets_the_file_that_stops_it():
    """Once, when it is told; a host that begins later stops at once."""
    until, one, late = UntilStopped(), Files(), Files()
    options = until.options(one, "/run/reports", "abc")
    assert one.paths == []
    until.stop()
    until.stop()
    until.options(late, "/run/reports", "abc")

    assert options == {"stop": "/run/reports/stop-abc", "times": True, "outlives": True}
    assert one.paths == late.paths == [(b"", "/run/reports/stop-abc")]


def test_the_times_of_all_threads_have_one_begin():
    """A thread that began later has later commits and errors."""
    reports = [
        report(1000.0, commits={"order": [10, 500], "look": [20]}, failures=[((3, 2013, True, "node1"), 2)]),
        report(1000.2, ended=61.0, commits={"order": [5]}, failures=[((1, 2013, True, "node1"), 1)]),
        report(1000.0, commits=[]),
    ]
    found = load_times(reports, reading=frozenset({"look"}))

    assert (found.began, found.seconds) == (1000.0, pytest.approx(11.2))
    assert found.commits == {"order": (10, 205, 500), "look": (20,)}
    assert found.moments(reading=False) == [0.01, 0.205, 0.5]
    assert found.moments(reading=True) == [0.02]
    assert [(one.seconds, one.number, one.node, one.committing, one.times) for one in found.errors] == [
        (0.3, 2013, "node1", True, 3)
    ]


def test_errors_have_the_names_of_nodes():
    """While connecting there is no node."""
    failures = [["12 1047 0 machine:3306:77", 4], ["13 2002 0 ", 1], ["14 2013 1 elsewhere", 1]]
    found = read_failures({"failures": failures}, {"machine:3306:77": "node2"})

    assert found == [((12, 1047, False, "node2"), 4), ((13, 2002, False, ""), 1), ((14, 2013, True, "elsewhere"), 1)]
    assert read_failures({}, {}) == []


def test_workloads_on_sysbench_outlive_events():
    """TPC-C knows what became of its orders; mysqlslap ends at the first error."""
    assert isinstance(TPCC(), RunsUntilStopped)
    assert isinstance(SysBench(), RunsUntilStopped)
    assert not isinstance(MySQLSlap("write"), RunsUntilStopped)
    assert (TPCC.keeps_books, SysBench.keeps_books) == (True, False)
