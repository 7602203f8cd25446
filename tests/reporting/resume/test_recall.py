"""Curves that are drawn without a claim, in runs that continue an earlier one: kept, or drawn again."""

from __future__ import annotations

import json
import textwrap

import pytest

from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.documents.run_document import read_run
from tests.support import conftests
from tests.support.resumed import COUNTED, FAKE, RESUME, WORDS, Killed, drawn

SUITE = """
    import os
    import signal

    from pytest_dbcluster.spec import ClusterSpec
    from pytest_dbcluster.workloads.sysbench import SysBench

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=int(os.environ.get("TIMEOUT", "40"))).named("other")
    THREADS = [int(text) for text in os.environ.get("THREADS", "1 4").split()]

    def end(by):
        if by == "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
        raise KeyboardInterrupt

    def test_reads(measure):
        curve = measure.sweep(SysBench("oltp_read_only"), on=[ONE, OTHER], threads=THREADS)
        curve.draw(int(os.environ.get("BLOCKS", "8")))
        seen = [len(series.values("throughput")) for _, *both in curve for series in both]
        assert min(seen) >= 8

    def test_writes(measure):
        curve = measure.sweep(SysBench("oltp_write_only"), on=[ONE, ONE.with_options(port=1)], threads=(1, 4))
        if "KILL" in os.environ:
            curve.draw(1)
            end(os.environ["KILL"])
        curve.draw()

    def test_points(measure):
        curve = measure.sweep(SysBench("oltp_update_index"), on=[ONE, OTHER], threads=THREADS)
        if "KILLED_AT" in os.environ:
            source = curve.points[int(os.environ["KILLED_AT"])].measurement.source
            source.round = lambda *given, **named: end(os.environ["BY"])
        curve.draw(3, relative_to="other")
"""
READS = {f"sysbench oltp_read_only t{threads}" for threads in (1, 4)}
WRITES = {f"sysbench oltp_write_only t{threads}" for threads in (1, 4)}


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A suite on made-up rounds that draws two curves; the run was killed in the second one."""
    suite, conftest = textwrap.dedent(SUITE), textwrap.dedent(FAKE + conftests.NO_CHARTS + COUNTED)
    words = [*WORDS, "--deselect=test_suite.py::test_points"]
    return Killed(tmp_path_factory.mktemp("ended"), suite, conftest, words, KILL="SIGKILL")


@pytest.fixture
def suite(ended, pytester, monkeypatch):
    """A suite of which one curve is drawn, and a part of the other one."""
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--deselect=test_suite.py::test_points")
    suite = ended.copied(pytester)
    assert drawn(suite) == READS | WRITES
    return suite


@pytest.fixture
def latest(suite):
    """The results directory."""
    return suite.path / "reports" / "latest"


def loads(latest):
    """The load of each curve."""
    return [curve.load for curve in schema.read_curves(latest)]


@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["one process", "a worker"])
def test_a_curve_that_was_drawn_is_kept(suite, latest, workers):
    """Its record stays as it is, and the test sees its rounds; one that has too few rounds is drawn again."""
    before, _ = schema.read_curves(latest)
    result = suite.runpytest_inprocess(*RESUME, *workers)

    result.assert_outcomes(passed=2)
    assert drawn(suite) == WRITES
    assert schema.read_curves(latest)[0] == before
    assert loads(latest) == ["sysbench oltp_read_only", "sysbench oltp_write_only"]
    result.stdout.fnmatch_lines(
        ["*--db-resume: *reports/latest has 1 drawn curve, 2 points of 1 unfinished curve of the run of *"]
    )
    result.stdout.fnmatch_lines(["--db-resume: 0 answers taken over, 0 claims measured, 1 drawn curve kept"])

    assert len(list((latest / "curves").glob("*.csv"))) == 2
    assert [test.outcome for test in read_run(latest).tests] == ["passed", "passed"]

    if not workers:
        suite.runpytest_inprocess(*RESUME)
        assert drawn(suite) == set()
        assert len(list((latest / "curves").glob("*.csv"))) == 2


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
    ended, suite, latest, monkeypatch, changes, words, again, why
):
    """The line says what changed; the old one and its files are gone, and no other curve is touched."""
    ended.continued(suite, *RESUME)
    drawn(suite)
    for name, value in changes.items():
        monkeypatch.setenv(name, value)
    result = suite.runpytest_inprocess(*RESUME, *words)

    assert drawn(suite) == again
    assert sorted(loads(latest)) == ["sysbench oltp_read_only", "sysbench oltp_write_only"]
    named = {json.loads(line)["table_file"] for line in (latest / "curves.jsonl").read_text().splitlines()}
    assert {f"curves/{path.name}" for path in (latest / "curves").iterdir()} == named
    if why:
        result.stdout.fnmatch_lines([f"*drawn again ({why}*): sysbench oltp_read_only over threads"])


def test_a_curve_that_ctrl_c_interrupted_is_drawn_again(suite, latest, monkeypatch):
    """Its rounds so far are in the results, and are no whole curve."""
    monkeypatch.setenv("KILL", "Ctrl-C")
    suite.runpytest_inprocess(*RESUME, no_reraise_ctrlc=True)
    monkeypatch.delenv("KILL")
    assert loads(latest) == ["sysbench oltp_read_only", "sysbench oltp_write_only"]
    drawn(suite)
    suite.runpytest_inprocess(*RESUME)

    assert drawn(suite) == WRITES
    assert loads(latest) == ["sysbench oltp_read_only", "sysbench oltp_write_only"]


def test_another_release_keeps_the_curve_of_the_first(suite, latest):
    """Its test has another name then."""
    suite.runpytest_inprocess(*RESUME, "-k", "reads", "--db-release=mariadb:10.11", "--db-release=mariadb:11.8")

    names = ["test_suite.py::test_reads[mariadb:10.11]", "test_suite.py::test_reads[mariadb:11.8]"]
    assert [curve.test for curve in schema.read_curves(latest) if "reads" in curve.test] == names
    assert [test.test for test in read_run(latest).tests if "reads" in test.test] == names


def test_a_curve_is_kept_after_the_time_of_the_run(suite, latest):
    """A used --db-run-budget ends what has to be drawn, and takes nothing away."""
    result = suite.runpytest_inprocess(*RESUME, "--db-run-budget=0.001")

    assert drawn(suite) == set()
    assert loads(latest) == ["sysbench oltp_read_only", "sysbench oltp_write_only"]
    result.assert_outcomes(passed=1)


@pytest.fixture
def points(suite, monkeypatch):
    """``points(2, by)``: the test that draws a curve over four values, in a run that ends at the third one."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k test_points")
    monkeypatch.setenv("THREADS", "1 4 16 64")

    def killed(at, by, *words):
        monkeypatch.setenv("KILLED_AT", str(at))
        monkeypatch.setenv("BY", by)
        if by == "SIGKILL":
            suite.runpytest_subprocess(*WORDS, *words)
        else:
            suite.runpytest_inprocess(*WORDS, *words, no_reraise_ctrlc=True)
        monkeypatch.delenv("KILLED_AT")
        return {load.rpartition(" ")[2] for load in drawn(suite)}

    return killed


def test_a_curve_that_was_interrupted_goes_on_at_the_next_point(suite, latest, points):
    """Whatever ended the run. What it had drawn stays as it was; another interruption loses no more."""
    assert points(2, "SIGKILL") == {"t1", "t4"}
    (before,) = schema.read_curves(latest)
    assert before.values == [1, 4]
    assert before.drawn == 0
    assert points(3, "Ctrl-C", "--db-resume") == {"t16"}
    result = suite.runpytest_inprocess(*RESUME)

    assert drawn(suite) == {"sysbench oltp_update_index t64"}
    (whole,) = schema.read_curves(latest)
    assert whole.points[:4] == before.points
    assert whole.values == [1, 4, 16, 64]
    assert [len(point.rounds) for point in whole.points] == [3] * 8
    assert (whole.drawn, whole.baseline) == (3, "other")
    result.stdout.fnmatch_lines(["*--db-resume: *reports/latest has 3 points of 1 unfinished curve of the run of *"])
    result.stdout.fnmatch_lines(["*sysbench oltp_update_index over threads: 3 of 4 values were drawn before*"])
    named = {json.loads(line)["table_file"] for line in (latest / "curves.jsonl").read_text().splitlines()}
    assert {f"curves/{path.name}" for path in (latest / "curves").glob("*.csv")} == named


def test_workers_save_a_curve_when_its_test_ends(suite, latest, points):
    """What a killed worker had drawn is lost; one that is interrupted ends its test, so its points are there."""
    points(2, "Ctrl-C", "-n1")
    assert [curve.values for curve in schema.read_curves(latest)] in ([], [[1, 4]])
    suite.runpytest_inprocess(*RESUME)

    (whole,) = schema.read_curves(latest)
    assert whole.values == [1, 4, 16, 64]
    assert whole.drawn == 3
