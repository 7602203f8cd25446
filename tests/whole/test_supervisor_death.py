"""A run of pytest whose supervisor is killed in the middle of a round."""

from __future__ import annotations

import contextlib

import psutil

from pytest_dbcluster.hosts import supervisor
from tests.whole.test_leaks import ENDLESS, Run

SUITE = """\
from pytest_dbcluster.rounds import round_length
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap

ONE = ClusterSpec("standalone")


def test_first(measure):
    load = MySQLSlap("read", concurrency=2, queries={queries}, quick_queries={queries}, rows={rows})
    default, other = measure(load, on=[ONE, ONE.with_options(lock_wait_timeout=40)])
    default.against(other)


def test_next(measure):
    round_length.STEPS = 20  # shorter rounds than usual
    load = MySQLSlap("read", concurrency=2, queries=4, quick_queries=4, rows=100)
    default, other = measure(load, on=[ONE, ONE.with_options(lock_wait_timeout=40)])
    default.against(other)
"""


def supervisors(run):
    """The supervisors of a run."""
    found = []
    for child in psutil.Process(run.process.pid).children():
        with contextlib.suppress(psutil.Error):  # a tool that has ended
            if supervisor.__file__ in child.cmdline():
                found.append(child)
    return found


def test_the_next_test_has_another_supervisor_and_new_clusters(tmp_path):
    """The running test is an error that says why; the next one measures; nothing stays at the end of the run."""
    run = Run(tmp_path, ENDLESS, {}, "-v", suite=SUITE)
    try:
        run.reach(run.running("slap", "--query"))
        (first,) = supervisors(run)
        first.kill()
        run.process.wait(300)
        output = (tmp_path / "out").read_text()
    finally:
        run.end()

    assert f"the supervisor of the local servers (pid {first.pid}) is gone; its servers ended with it" in output
    assert "test_claim.py::test_first FAILED" in output
    assert "test_claim.py::test_next PASSED" in output
    assert "Traceback" not in output
    assert "1 failed, 1 passed" in output
    assert run.programs() == []
    assert list(run.data.glob("*")) == []
