"""A run that waits for another one: how it ends when that one keeps the machine, and when it is told to end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.system import cache, machine_lock
from tests.support import conftests
from tests.support.command import measuring_in
from tests.support.facts import missing
from tests.support.suites import refusal

HOME = cache.root().parent  # read before pytester gives its runs a home of their own
SUITE = """
    from pytest_dbcluster import ClusterSpec, MySQLSlap

    ONE = ClusterSpec("standalone")

    def test_first(measure):
        one, other = measure(MySQLSlap("write"), on=[ONE, ONE.with_options(max_connections=200).named("other")])
        assert other.same_as(one, within=0.2)

    def test_second(measure):
        one, other = measure(MySQLSlap("read"), on=[ONE, ONE.with_options(max_connections=200).named("other")])
        assert other.same_as(one, within=0.2)
"""
# As conftests.OWN_MACHINE, until the run ends: some of these runs share the process of their test.
OWN_MACHINE = """
from pathlib import Path

import pytest
from pytest_dbcluster.system import machine_lock


def pytest_configure(config):
    own = machine_lock.MachineLock(Path(__file__).with_name("machine"))
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    patch.setattr(machine_lock, "this", lambda: own)

"""
COMMAND = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
HANG_SECONDS = 300


@pytest.fixture
def busy(pytester, monkeypatch):
    """A suite on a machine of its own, which another process measures on; yields that process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(HOME))
    monkeypatch.setenv("COLUMNS", "400")
    for name, value in conftests.ONLY_OURS.items():
        monkeypatch.setenv(name, value)
    pytester.makeconftest(OWN_MACHINE + conftests.NO_CHARTS)
    pytester.makepyfile(test_suite=SUITE)
    with measuring_in(pytester.path / "machine") as holder:
        yield holder


@pytest.mark.parametrize("more", [(), ("-n1",)], ids=["alone", "a worker"])
def test_a_machine_that_stays_busy_ends_the_run(busy, pytester, more):
    """The exit code is 2, and the process that has the machine is named; no test is red."""
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--db-wait=1s", *more)
    shown = done.stdout.str()

    assert done.ret == pytest.ExitCode.INTERRUPTED, shown
    assert f"of pid {busy.pid} (" in shown
    assert "(--db-wait)" in shown
    assert "failed" not in shown
    assert "INTERNALERROR" not in shown


def test_a_run_that_is_ended_while_it_waits_says_what_it_did_not_measure(busy, pytester):
    """The summary has both tests and the signal, on the terminal and in the results."""
    with (pytester.path / "out").open("wb") as out:
        process = subprocess.Popen(COMMAND, cwd=pytester.path, stdout=out, stderr=subprocess.STDOUT)

    def problems():
        assert process.poll() is None, (pytester.path / "out").read_text()
        waits = [one for one in machine_lock.MachineLock(pytester.path / "machine").holders() if one.waits]
        return [] if waits else ["it does not wait"]

    try:
        wait.until(problems, "the run", seconds=HANG_SECONDS)
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_SECONDS) == pytest.ExitCode.INTERRUPTED
    finally:
        process.kill()
        process.wait()
    shown = (pytester.path / "out").read_text()
    results = pytester.path / "reports" / "latest"

    assert "the run was ended by SIGTERM" in shown
    for text in (shown, (results / "summary.md").read_text()):
        assert "test_first" in text
        assert "2 tests not ended" in text
    assert json.loads((results / "run.json").read_text())["cut_short"]


def test_a_time_that_is_none_is_refused_at_once(pytester, monkeypatch):
    """The error shows what was given and an example."""
    monkeypatch.setenv("COLUMNS", "400")
    pytester.makepyfile(test_suite=SUITE)
    line = refusal(pytester.runpytest_inprocess(*conftests.PLAIN, "--db-wait=soon"))

    assert missing(line, "--db-wait 'soon'", "30min") == []
