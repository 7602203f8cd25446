"""``--db-trace`` in a run of one process and of several, and in one that ends early."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import conftests

FAKE = Path(__file__).parents[1] / "support" / "fake_session.py"
WORDS = [*conftests.PLAIN, "--db-seed=5", "--db-trace=trace.json"]
MODULE = """
    import os, signal, time
    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes={nodes})
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")

    def test_faster(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one)
        {then}
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """Makes a suite on made-up rounds: two modules that share no cluster."""
    monkeypatch.setenv("COLUMNS", "250")
    pytester.makeconftest(FAKE.read_text() + conftests.NO_CHARTS)

    def make(then=""):
        pytester.makepyfile(test_a=MODULE.format(nodes=3, then=then), test_b=MODULE.format(nodes=2, then=""))
        return pytester

    return make


def spans(path):
    """The names of the spans in a file, by the name of their process."""
    events = json.loads((path / "trace.json").read_text())
    names = {one["pid"]: one["args"]["name"] for one in events if one["name"] == "process_name"}
    return {
        name: [one["name"] for one in events if one["ph"] == "X" and one["pid"] == pid] for pid, name in names.items()
    }


def test_a_run_writes_its_phases(suite):
    """The file is whole when pytest has ended. A later run replaces it."""
    place = suite()
    for _ in range(2):
        place.runpytest_inprocess(*WORDS).assert_outcomes(passed=2)
        assert spans(place.path) == {"pytest": ["chart", "chart", "close", "page"]}


def test_the_spans_of_all_workers_are_in_one_file(suite):
    """Each process is one, also that of the user, which makes the page."""
    place = suite()
    place.runpytest_inprocess(*WORDS, "-n2").assert_outcomes(passed=2)

    assert spans(place.path) == {"pytest": ["page"], "gw0": ["chart", "close"], "gw1": ["chart", "close"]}


@pytest.mark.parametrize(
    ("how", "then"),
    [
        ("inprocess", "raise KeyboardInterrupt"),
        pytest.param("subprocess", "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", marks=pytest.mark.thorough),
    ],
    ids=["Ctrl-C", "SIGTERM"],
)
def test_an_interrupted_run_has_a_whole_file(suite, how, then):
    """Its servers stop, and its page is made."""
    place = suite(then)
    if how == "inprocess":
        place.runpytest_inprocess(*WORDS, no_reraise_ctrlc=True)
    else:
        place.runpytest_subprocess(*WORDS)

    assert spans(place.path) == {"pytest": ["chart", "close", "page"]}


@pytest.mark.parametrize(("name", "why"), [("no/trace.json", "No such file or directory"), (" ", "it accepts a file")])
def test_a_file_that_cannot_be_written_ends_the_run_before_its_tests(suite, name, why):
    """With pytest's exit status for a wrong option."""
    result = suite().runpytest_inprocess(*WORDS, f"--db-trace={name}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --db-trace*{why}*"])


def test_a_run_that_measures_nothing_writes_no_file(pytester):
    """Its tests have no phases."""
    pytester.makepyfile("def test_plain(): pass")
    pytester.runpytest_inprocess(*WORDS).assert_outcomes(passed=1)

    assert not (pytester.path / "trace.json").exists()
