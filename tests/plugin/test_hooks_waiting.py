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
COMMAND = [sys.executable, "-m", "pytest", *conftests.PLAIN]
HANG_SECONDS = 300


@pytest.fixture
def busy(pytester, monkeypatch):
    """A suite on a machine of its own, which another process measures on; yields that process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(HOME))
    monkeypatch.setenv("COLUMNS", "400")
    pytester.makeconftest(conftests.OWN_MACHINE)
    pytester.makepyfile(test_suite=SUITE)
    with measuring_in(pytester.path / "machine") as holder:
        yield holder


def ran(pytester, *more):
    """A run in a process of its own, with its output."""
    return subprocess.run(
        [*COMMAND, *more], cwd=pytester.path, capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )


@pytest.mark.parametrize("more", [(), ("-n2",)], ids=["alone", "workers"])
def test_a_machine_that_stays_busy_ends_the_run(busy, pytester, more):
    """The exit code is 2, and the process that has the machine is named; no test is red."""
    done = ran(pytester, "--db-wait=1s", *more)

    assert done.returncode == pytest.ExitCode.INTERRUPTED, done.stdout
    assert f"of pid {busy.pid} (" in done.stdout
    assert "(--db-wait)" in done.stdout
    assert "failed" not in done.stdout
    assert "INTERNALERROR" not in done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_ended_while_it_waits_says_what_it_did_not_measure(busy, pytester, number):
    """The summary has both tests and the signal, on the terminal and in the results."""
    with (pytester.path / "out").open("wb") as out:
        process = subprocess.Popen(COMMAND, cwd=pytester.path, stdout=out, stderr=subprocess.STDOUT)

    def problems():
        assert process.poll() is None, (pytester.path / "out").read_text()
        waits = [one for one in machine_lock.MachineLock(pytester.path / "machine").holders() if one.waits]
        return [] if waits else ["it does not wait"]

    try:
        wait.until(problems, "the run", seconds=HANG_SECONDS)
        process.send_signal(number)
        assert process.wait(HANG_SECONDS) == pytest.ExitCode.INTERRUPTED
    finally:
        process.kill()
        process.wait()
    shown = (pytester.path / "out").read_text()
    results = pytester.path / "reports" / "latest"

    assert f"the run was ended by {signal.Signals(number).name}" in shown
    for text in (shown, (results / "summary.md").read_text()):
        assert "test_first" in text
        assert "2 tests not ended" in text
    assert json.loads((results / "run.json").read_text())["cut_short"]


def test_a_time_that_is_none_is_refused_at_once(pytester):
    """The error shows what was given and an example."""
    pytester.makepyfile(test_suite=SUITE)
    done = ran(pytester, "--db-wait=soon")

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--db-wait 'soon'" in done.stderr
    assert "30min" in done.stderr
