"""Curves that are drawn without a claim, in runs that continue an earlier one: kept, or drawn again."""

from __future__ import annotations

import json

import pytest

from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.documents.run_document import read_run
from tests.support import conftests
from tests.support.resumed import COUNTED, FAKE, RESUME, WORDS, drawn

SUITE = """
    import os
    import signal

    from pytest_dbcluster.spec import ClusterSpec
    from pytest_dbcluster.workloads.sysbench import SysBench

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=int(os.environ.get("TIMEOUT", "40"))).named("other")
    THREADS = [int(text) for text in os.environ.get("THREADS", "1 4").split()]

    def test_reads(measure):
        curve = measure.sweep(SysBench("oltp_read_only"), on=[ONE, OTHER], threads=THREADS)
        curve.draw(int(os.environ.get("BLOCKS", "8")))
        seen = [len(series.values("throughput")) for _, *both in curve for series in both]
        assert min(seen) >= 8

    def test_writes(measure):
        curve = measure.sweep(SysBench("oltp_write_only"), on=[ONE, ONE.with_options(port=1)], threads=(1, 4))
        if "KILL" in os.environ:
            curve.draw(1)
            os.kill(os.getpid(), getattr(signal, os.environ["KILL"]))
        curve.draw()
"""
READS = {f"sysbench oltp_read_only t{threads}" for threads in (1, 4)}
WRITES = {f"sysbench oltp_write_only t{threads}" for threads in (1, 4)}


@pytest.fixture
def suite(pytester, monkeypatch):
    """A suite on made-up rounds that draws two curves; the run was killed in the second one."""
    monkeypatch.setenv("COLUMNS", "400")
    pytester.makeconftest(FAKE + conftests.NO_CHARTS + COUNTED)
    pytester.makepyfile(test_suite=SUITE)
    monkeypatch.setenv("KILL", "SIGKILL")
    pytester.runpytest_subprocess(*WORDS)
    monkeypatch.delenv("KILL")
    assert drawn(pytester) == READS | WRITES
    return pytester


@pytest.fixture
def latest(suite):
    """The results directory."""
    return suite.path / "reports" / "latest"


def loads(latest):
    """The load of each curve."""
    return [curve.load for curve in schema.read_curves(latest)]


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["one process", "two workers"])
def test_a_curve_that_was_drawn_is_kept(suite, latest, workers):
    """Its record stays as it is, and the test sees its rounds; the one that was interrupted is drawn again."""
    (before,) = schema.read_curves(latest)
    result = suite.runpytest_subprocess(*RESUME, *workers)

    result.assert_outcomes(passed=2)
    assert drawn(suite) == WRITES
    assert schema.read_curves(latest)[0] == before
    assert loads(latest) == ["sysbench oltp_read_only", "sysbench oltp_write_only"]
    result.stdout.fnmatch_lines(["*--db-resume: *reports/latest has 1 drawn curve of the run of *"])
    result.stdout.fnmatch_lines(["--db-resume: 0 answers taken over, 0 claims measured, 1 drawn curve kept"])

    suite.runpytest_subprocess(*RESUME, *workers)
    assert drawn(suite) == set()
    assert len(list((latest / "curves").glob("*.csv"))) == 2
    assert [test.outcome for test in read_run(latest).tests] == ["passed", "passed"]


@pytest.mark.parametrize(
    ("changes", "words", "again", "why"),
    [
        ({"TIMEOUT": "41"}, [], READS, "its clusters or their my.cnf changed"),
        ({"THREADS": "4 16"}, [], {"sysbench oltp_read_only t4", "sysbench oltp_read_only t16"}, "its values*"),
        ({"VERSION": "1.2.4"}, [], READS | WRITES, "its release changed"),
        ({}, ["--db-budget=60"], READS | WRITES, "the run's options changed"),
        ({"BLOCKS": "12"}, [], READS, ""),
        ({"BLOCKS": "4"}, ["--db-seed=7", "--db-strict"], set(), ""),
    ],
    ids=["spec", "load", "release", "option", "more rounds", "fewer rounds"],
)
def test_a_curve_is_drawn_again_where_it_depends_on_what_has_changed(
    suite, latest, monkeypatch, changes, words, again, why
):
    """The line says what changed; the old one and its files are gone, and no other curve is touched."""
    suite.runpytest_subprocess(*RESUME)
    drawn(suite)
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    result = suite.runpytest_subprocess(*RESUME, *words)

    assert drawn(suite) == again
    assert sorted(loads(latest)) == ["sysbench oltp_read_only", "sysbench oltp_write_only"]
    named = {json.loads(line)["table_file"] for line in (latest / "curves.jsonl").read_text().splitlines()}
    assert {f"curves/{path.name}" for path in (latest / "curves").iterdir()} == named
    if why:
        result.stdout.fnmatch_lines([f"*drawn again ({why}*): sysbench oltp_read_only over threads"])


def test_a_curve_that_ctrl_c_interrupted_is_drawn_again(suite, latest, monkeypatch):
    """Its rounds so far are in the results, and are no whole curve."""
    monkeypatch.setenv("KILL", "SIGINT")
    suite.runpytest_subprocess(*RESUME)
    monkeypatch.delenv("KILL")
    assert loads(latest) == ["sysbench oltp_read_only", "sysbench oltp_write_only"]
    drawn(suite)
    suite.runpytest_subprocess(*RESUME)

    assert drawn(suite) == WRITES
    assert loads(latest) == ["sysbench oltp_read_only", "sysbench oltp_write_only"]


def test_another_release_keeps_the_curve_of_the_first(suite, latest):
    """Its test has another name then."""
    suite.runpytest_subprocess(*RESUME, "-k", "reads", "--db-release=mariadb:10.11", "--db-release=mariadb:11.8")

    names = ["test_suite.py::test_reads[mariadb:10.11]", "test_suite.py::test_reads[mariadb:11.8]"]
    assert [curve.test for curve in schema.read_curves(latest)] == names
    assert [test.test for test in read_run(latest).tests if "reads" in test.test] == names


def test_a_curve_is_kept_after_the_time_of_the_run(suite, latest):
    """A used --db-run-budget ends what has to be drawn, and takes nothing away."""
    result = suite.runpytest_subprocess(*RESUME, "--db-run-budget=0.001")

    assert drawn(suite) == set()
    assert loads(latest) == ["sysbench oltp_read_only"]
    result.assert_outcomes(passed=1)
