"""SIGTERM and SIGHUP: a run ends as after Ctrl-C, with its summary and its results."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.plugin import signals
from pytest_dbcluster.plugin.signals import EndingSignals, RunEnded
from tests.support import conftests

FAKE = Path(__file__).parents[1] / "support" / "fake_session.py"
SUITE = """
    import time
    from pathlib import Path
    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")

    def test_first(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one)

    def test_second(measure):
        one, other = measure("mysqlslap read", on=[ONE, OTHER])
        try:
            Path("waiting").touch()
            time.sleep(600)
        finally:
            Path("interrupted").touch()
"""
COMMAND = [sys.executable, "-m", "pytest", "--db-seed=5", "-p", "no:cacheprovider"]
ALLURE = ["-p", "allure_pytest"]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def usual():
    """A new process group with the usual handlers; a shell or nohup may have set some of them to be ignored."""
    os.setsid()
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def suite(pytester, monkeypatch):
    """A suite on made-up rounds whose second test waits; no charts."""
    monkeypatch.setenv("COLUMNS", "120")
    pytester.makeconftest(FAKE.read_text() + conftests.NO_CHARTS)
    pytester.makepyfile(test_suite=SUITE)
    return pytester.path


@contextlib.contextmanager
def running(place, *words):
    """A run that waits in its second test."""
    with (place / "out").open("wb") as out:
        process = subprocess.Popen(
            [*COMMAND, *words],
            cwd=place,
            stdout=out,
            stderr=subprocess.STDOUT,
            preexec_fn=usual,  # noqa: PLW1509  (no threads here)
        )

    def problems():
        assert process.poll() is None, (place / "out").read_text()
        return [] if (place / "waiting").exists() else ["it has not begun to wait"]

    try:
        wait.until(problems, "the run", seconds=120)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(180)


def kept(place):
    """What the run has kept: its claims, whether it has a summary, and the names of Allure's results."""
    latest = place / "reports" / "latest"
    lines = (latest / "claims.jsonl").read_text().splitlines()
    results = [json.loads(path.read_text()) for path in (latest / "allure-results").glob("*-result.json")]
    named = (latest / "allure-results" / "environment.properties").exists()
    return [json.loads(line)["text"] for line in lines], (latest / "summary.md").exists(), len(results), named


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.thorough)],
    ids=lambda number: number.name,
)
def test_a_signal_ends_a_run_as_ctrl_c_does(suite, number):
    """Exit status, summary and results are the same; the signal is named."""
    with running(suite, *ALLURE) as process:
        process.send_signal(number)
        assert process.wait(180) == pytest.ExitCode.INTERRUPTED

    out = (suite / "out").read_text()
    assert "KeyboardInterrupt" in out if number == signal.SIGINT else f"the run was ended by {number.name}" in out
    assert "\n1 holds" in out
    assert "\nresults: reports/latest/" in out
    claims, *others = kept(suite)
    assert claims == ["other.beats(galera3)"]
    assert others == [True, 2, True]  # Allure's: of both tests, with the one that was interrupted


@pytest.mark.parametrize(
    ("to", "number", "workers"),
    [
        pytest.param("the controller", signal.SIGTERM, 2, marks=pytest.mark.thorough),
        ("the controller", signal.SIGHUP, 1),
        ("all", signal.SIGTERM, 2),
        pytest.param("all", signal.SIGHUP, 1, marks=pytest.mark.thorough),
    ],
)
def test_a_signal_ends_the_workers_too(suite, number, to, workers):
    """Whether the first process alone gets it or its whole group: each worker ends its test, and nothing is lost.

    Of two workers one has no test.
    """
    with running(suite, f"-n{workers}") as process:
        os.kill(process.pid, number) if to == "the controller" else os.killpg(process.pid, number)
        assert process.wait(180) == pytest.ExitCode.INTERRUPTED
        assert (suite / "interrupted").exists()

    out = (suite / "out").read_text()
    assert "\n1 holds" in out
    assert "INTERNALERROR" not in out
    claims, summary, *_ = kept(suite)
    assert (claims, summary) == (["other.beats(galera3)"], True)


def sleep_with(thread):
    """Start a thread, and sleep."""
    thread.start()
    time.sleep(90)


def work(handlers, done, number):
    """A signal arrives in the middle of it."""
    with handlers.hold():
        os.kill(os.getpid(), number)
        done.append("whole")


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.thorough), signal.SIGTERM])
def test_a_signal_at_the_end_of_another_plugins_hook_ends_the_run(suite, number):
    """Of a wrapper of the old style, of which pluggy warns there: with warnings as errors the run would break."""
    with (suite / "conftest.py").open("a") as conftest:
        conftest.write(f"""
import os
import time
from pytest_dbcluster.plugin import signals

signals.AGAIN_SECONDS = 2  # until it comes again, the first test has been counted

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        os.kill(os.getpid(), {int(number)})
        time.sleep(0.01)
    outcome.get_result()
""")
    done = subprocess.run(
        [*COMMAND, "-W", "error"], cwd=suite, capture_output=True, text=True, check=False, preexec_fn=usual, timeout=300
    )

    assert "INTERNALERROR" not in done.stdout
    assert done.returncode == 2, done.stdout
    assert "1 passed" in done.stdout


@pytest.mark.parametrize(
    ("hook", "workers"),
    [
        ("pytest_keyboard_interrupt", 0),
        pytest.param("pytest_keyboard_interrupt", 1, marks=pytest.mark.thorough),
        ("pytest_sessionfinish", 0),
        pytest.param("pytest_sessionfinish", 1, marks=pytest.mark.thorough),
        pytest.param("pytest_unconfigure", 0, marks=pytest.mark.thorough),
        ("pytest_unconfigure", 1),
    ],
)
def test_a_second_ctrl_c_shows_no_traceback(suite, hook, workers):
    """Whatever pytest does after the first one, in workers too. It may interrupt the end of the session alone."""
    with (suite / "conftest.py").open("a") as conftest:
        conftest.write(f"""
import os
import time

@pytest.hookimpl(tryfirst=True)
def {hook}():
    os.kill(os.getpid(), {int(signal.SIGINT)})
    time.sleep(0.01)
""")
    words = (f"-n{workers}",) if workers else ()
    with running(suite, *words) as process:
        os.killpg(process.pid, signal.SIGINT)
        status = process.wait(180)

    out = (suite / "out").read_text()
    assert (status, "Traceback" in out, "INTERNALERROR" in out) == (2, False, False), out
    if hook != "pytest_sessionfinish":
        assert "\n1 holds" in out


def test_ctrl_c_just_after_the_end_of_an_interrupted_run_is_for_the_run(handlers, monkeypatch):
    """Later it interrupts whoever has called pytest, as before."""
    monkeypatch.setattr(signals, "AFTERWARDS_SECONDS", 0.2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    handlers.install()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    handlers.remove()
    signal.raise_signal(signal.SIGINT)

    wait.until(lambda: [] if interrupted() else ["it does not"], "Ctrl-C to interrupt", seconds=60)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_does_nothing_in_a_worker_that_has_ended(handlers):
    """It may have had no test, and Python would show a traceback of its end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    handlers.install()
    handlers.remove(ends=True)

    assert not interrupted()


def interrupted():
    """Whether Ctrl-C interrupts this process."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return True
    return False


@pytest.mark.parametrize(("number", "error"), [(signal.SIGTERM, RunEnded), (signal.SIGINT, KeyboardInterrupt)])
def test_work_that_must_be_whole_is_not_interrupted(handlers, number, error):
    """A signal within it ends the run right after it, once; work after the end of the run is not stopped again."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    done = []
    handlers.install()
    with pytest.raises(error):
        work(handlers, done, number)
    with handlers.hold():
        done.append("after")

    assert done == ["whole", "after"]


def test_a_terminal_that_is_gone_loses_no_result(suite):
    """The kernel sends SIGHUP and refuses every further write; the results are written, and the run ends."""
    child, terminal = pty.fork()
    if child == 0:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.chdir(suite)
        os.execv(COMMAND[0], [*COMMAND, *ALLURE])
    try:
        os.set_blocking(terminal, False)

        def problems():
            with contextlib.suppress(BlockingIOError):
                os.read(terminal, 65536)  # else the terminal's buffer would fill, and the run wait for a reader
            return [] if (suite / "waiting").exists() else ["it has not begun to wait"]

        wait.until(problems, "the run", seconds=120)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.close(terminal)
        _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == pytest.ExitCode.INTERRUPTED
    assert kept(suite) == (["other.beats(galera3)"], True, 2, True)


@pytest.fixture
def handlers():
    """The handlers of a made-up run."""
    made = EndingSignals()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield made
    made.remove()
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_that_is_ignored_stays_ignored(handlers):
    """A run under nohup does not end with its terminal."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    handlers.install()

    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    handlers.remove()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_that_another_thread_received_interrupts_the_main_thread(handlers):
    """The kernel chooses a thread of the process; the main thread may sleep in a system call that nothing else ends."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    handlers.install()
    main = Path(f"/proc/self/task/{threading.get_native_id()}/stat")

    def send():
        wait.until(lambda: [] if ") S " in main.read_text() else ["the main thread runs"], "its sleep", seconds=30)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    sender = threading.Thread(target=send)
    began = time.monotonic()
    with pytest.raises(RunEnded):
        sleep_with(sender)
    sender.join()
    handlers.remove()

    assert time.monotonic() - began < 60
    assert signal.set_wakeup_fd(-1) == -1


class Finalized:
    """A signal arrives while it is finalized: an exception that is raised there goes nowhere."""

    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)


def finalize_and_sleep(count):
    """Finalize objects, then sleep."""
    for _ in range(count):
        Finalized()
    time.sleep(90)


@pytest.mark.parametrize("count", [1, 3])
def test_a_signal_in_a_finalizer_ends_the_run_all_the_same(handlers, count):
    """Python drops what a finalizer raises; the run would not end, and ignore all later signals."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    before = sys.unraisablehook
    handlers.install()
    began = time.monotonic()
    with pytest.raises(RunEnded, match="the run was ended by SIGTERM"):
        finalize_and_sleep(count)
    handlers.remove()

    assert time.monotonic() - began < 60
    assert sys.unraisablehook == before


def test_the_second_signal_does_not_interrupt_the_end(handlers):
    """The servers are being stopped then; a second one must not leave some of them."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    handlers.install()
    with pytest.raises(RunEnded, match="the run was ended by SIGTERM"):
        os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)

    assert handlers.name == "SIGTERM"
