"""Terminals that run until we stop them, through errors that would end another run."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import time

from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.workloads import sysbench_driver
from pytest_dbcluster.workloads.until_stopped import UntilStopped, load_times
from tests.workloads.sysbench_driver.calls import SCHEMA, call, in_the_middle

MISSING_TABLE = 1146


def run(setting, event, until):
    """The result and the reports of a load that somebody stops."""
    made = dataclasses.replace(call(setting, event), until=until)
    return sysbench_driver.run(made, setting, seconds=0.5, outlive=True)


def rename_table(node, seconds):
    """The table of the load has another name for a while."""
    with contextlib.closing(Connection("renamer", node.endpoint)) as own:
        own.query(f"RENAME TABLE {SCHEMA}.sbtest1 TO {SCHEMA}.hidden")
        time.sleep(seconds)
        own.query(f"RENAME TABLE {SCHEMA}.hidden TO {SCHEMA}.sbtest1")


def test_a_load_runs_until_it_is_told_to_stop(standalone, filled):
    """Its length is not that of a round, and it ends within a second."""
    setting, until = filled(standalone), UntilStopped()
    told = []

    def stop():
        time.sleep(0.8)
        until.stop()
        told.append(time.time())

    began = time.time()
    stopper = in_the_middle(stop, standalone.nodes[0])
    result, reports = run(setting, "oltp_update_index", until)
    ended = time.time()
    stopper.join()
    times = load_times(reports, reading=frozenset())

    assert ended - told[0] < 5
    assert 0.7 < result.seconds < ended - began
    assert began <= times.began <= ended
    assert sum(map(len, times.commits.values())) == result.ledger.total.committed > 0
    assert max(max(moments) for moments in times.commits.values()) / 1000 <= times.seconds
    assert result.seconds < 100


def test_a_load_outlives_errors_that_end_others(standalone, filled):
    """A table is gone for half a second: the errors have their time, and commits follow."""
    setting, node, until = filled(standalone), standalone.nodes[0], UntilStopped()

    def disturb():
        rename_table(node, 0.5)
        time.sleep(0.7)
        until.stop()

    disturbing = in_the_middle(disturb, node)
    result, reports = run(setting, "oltp_update_index", until)
    disturbing.join()
    times = load_times(reports, reading=frozenset())
    seen = [one.seconds for one in times.errors if one.number == MISSING_TABLE]
    commits = times.moments(reading=False)

    assert result.ledger.errors[MISSING_TABLE, "node1"] > 0
    assert result.ledger.total.unknown > 0  # the statement commits by itself
    assert seen
    assert max(commits) > max(seen)
    assert max(later - earlier for earlier, later in itertools.pairwise(commits)) > 0.3
