"""Ctrl-C and SIGKILL at each stage of a run: no server stays, and nothing of the run's files."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.system import cache
from tests.support import conftests
from tests.support.kills import BUSY

SUITE = """\
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap

ONE = ClusterSpec("standalone")


def test_claim(measure):
    load = MySQLSlap("read", concurrency=2, queries={queries}, quick_queries={queries}, rows={rows})
    default, other = measure(load, on=[ONE, ONE.with_options(lock_wait_timeout=40)])
    assert default.against(other)
"""
# The first cluster that is ended at the end of the run waits until somebody interrupts.
SLOW_END = """\
import time
from pathlib import Path
from pytest_dbcluster.clusters.cluster import Cluster

close = Cluster.close

def slow(self):
    if not Path("ending").exists():
        Path("ending").touch()
        time.sleep(600)
    close(self)

def pytest_sessionfinish():
    Cluster.close = slow
"""
ENDLESS, SHORT = 4_000, 4


class Run:
    """A run of pytest in a place of its own, as a process of its own."""

    def __init__(self, place, queries, environment, *further, suite=SUITE):
        (place / "test_claim.py").write_text(suite.format(queries=queries, rows=5000 if queries == ENDLESS else 100))
        with (place / "conftest.py").open("a") as conftest:
            conftest.write(conftests.OWN_MACHINE + conftests.NO_CHARTS)
            conftest.write(conftests.SHORT_ROUNDS if queries == SHORT else "")
        self.place = place
        self.data = place / "runs"
        self.ids: set[str] = set()
        words = ["-p", "no:cacheprovider", "--db-max-pairs=1", "-W", "error", "--override-ini=addopts=", *further]
        own = {**conftests.ONLY_OURS, "DBCLUSTER_DATA_DIR": str(self.data), "COLUMNS": "400", **environment}
        with (place / "out").open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "test_claim.py", *words],  # place/cache has tests of others
                cwd=place,
                env={**os.environ, **own},
                stdout=out,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # noqa: PLW1509  (nohup ignores it)
                start_new_session=True,
            )

    def end(self):
        """End it, when nobody has."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(100)

    def programs(self):
        """The command lines of what carries the mark of this run."""
        self.ids |= {entry.name for entry in self.data.glob("*")}
        if not self.ids:
            return []  # it has not begun, and /proc has hundreds of programs
        wanted = {f"{runs.RUN_VARIABLE}={one}".encode() for one in self.ids}
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if wanted & set((process / "environ").read_bytes().split(b"\0")):
                    found.append((process / "cmdline").read_bytes().decode().replace("\0", " "))
        return found

    def reach(self, stage):
        """Wait until ``stage()`` is true; a run that ends before has failed."""

        def problems():
            assert self.process.poll() is None, (self.place / "out").read_text()
            return [] if stage() else ["not there yet"]

        wait.until(problems, "the stage", seconds=300, poll=0.1)

    def running(self, word, where=""):
        """Whether a program of the run has both words in its command line."""
        return lambda: any(word in line and where in line for line in self.programs())


def at_template(place, begin):
    """A run in the middle of making its data template."""
    own = place / "cache" / "pytest-dbcluster"
    own.mkdir(parents=True)
    (own / "releases").symlink_to(cache.releases())
    run = begin(SHORT, {"XDG_CACHE_HOME": str(place / "cache")})
    run.reach(run.running("mariadbd", "1-template"))
    return run


def at_bring_up(place, begin):
    """A run whose server has just been started."""
    run = begin(SHORT, {})
    run.reach(run.running("mariadbd", "-standalone1"))
    return run


def at_round(place, begin):
    """A run in the middle of a round that takes very long."""
    run = begin(ENDLESS, {})
    run.reach(run.running("slap", "--query"))
    return run


def at_teardown(place, begin):
    """A run that is about to end its servers."""
    (place / "conftest.py").write_text(SLOW_END)
    run = begin(SHORT, {})
    run.reach((place / "ending").exists)
    assert run.programs()
    return run


STAGES = [at_template, at_bring_up, at_round, at_teardown]


@pytest.fixture
def run(request, tmp_path):
    """A run at each of its stages."""

    def begin(queries, environment):
        made = Run(tmp_path, queries, environment)
        request.addfinalizer(made.end)
        return made

    return request.param(tmp_path, begin)


@pytest.mark.parametrize("run", STAGES, ids=lambda stage: stage.__name__, indirect=True)
def test_ctrl_c_ends_every_server_at_once(run):
    """When the prompt is back nothing of the run is there: no process, no directory."""
    run.process.send_signal(signal.SIGINT)
    run.process.wait(100)

    assert run.programs() == []
    assert list(run.data.glob("*")) == []
    assert "KeyboardInterrupt" in (run.place / "out").read_text()


@pytest.mark.parametrize(
    ("stage", "number", "more"),
    [
        pytest.param(at_template, signal.SIGTERM, [], marks=pytest.mark.thorough),
        (at_round, signal.SIGHUP, []),
        pytest.param(at_teardown, signal.SIGTERM, [], marks=pytest.mark.thorough),
        (at_round, signal.SIGTERM, ["-n1"]),
    ],
    ids=["SIGTERM at_template", "SIGHUP at_round", "SIGTERM at_teardown", "SIGTERM at_round with a worker"],
)
def test_a_signal_to_end_leaves_nothing(tmp_path, request, stage, number, more):
    """As Ctrl-C: when the run has ended nothing of it is there, with pytest-xdist too."""

    def begin(queries, environment):
        made = Run(tmp_path, queries, environment, *more)
        request.addfinalizer(made.end)
        return made

    run = stage(tmp_path, begin)
    run.process.send_signal(number)
    run.process.wait(100)

    assert run.programs() == []
    assert list(run.data.glob("*")) == []
    assert f"the run was ended by {number.name}" in (run.place / "out").read_text()


@pytest.mark.parametrize(
    "run",
    [*STAGES[:3], pytest.param(at_teardown, marks=pytest.mark.thorough)],
    ids=lambda stage: stage.__name__,
    indirect=True,
)
def test_sigkill_ends_every_server_within_seconds(run):
    """Nobody is asked to clean up, and still nothing of the run stays."""
    run.process.kill()
    run.process.wait(100)

    wait.until(run.programs, "the end of the servers", seconds=BUSY)
    wait.until(lambda: [str(path) for path in run.data.glob("*")], "the end of the files", seconds=BUSY)
