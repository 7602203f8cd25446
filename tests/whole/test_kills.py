"""Runs that are killed at each of their phases: they end soon, say why, and nothing of them stays."""

from __future__ import annotations

import os
import random
import secrets
import shutil
import signal

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.hosts.provisioners.ssh import access
from tests.support import guests, kills, stand_ins
from tests.support.stand_ins import StandIns

KINDS = ("TERM", "INT", "supervisor", "stop")
TIMES = int(os.environ.get("DBCLUSTER_CHAOS", "20"))
HANG = 15.0  # seconds after a kill, from which on a run counts as one that hangs
EACH = [
    pytest.param(phase, kind, id=f"{phase.replace(' ', '-')}-{kind}")
    for phase in kills.PHASES
    for kind in (KINDS if phase in kills.WITH_SERVERS else KINDS[:2])
]


def codes(phase, kind):
    """The exit statuses of a run that a signal has ended."""
    number = signal.Signals[f"SIG{kind}"]
    if phase == "collection":  # until a run knows that it measures, SIGTERM ends it as any process
        return (2,) if kind == "INT" else (-number,)
    return (0, 2, -number) if phase == "checks" else (2,)  # it may have just ended by itself


def check(place, phase, kind, words=(), locks=(), *, limit=kills.BUSY, seed=None):
    """Kill one run, and check its end. Returns the seconds that it took to end, and what it said."""
    with kills.killed(place, phase, words, locks) as run:
        seconds = run.ended(run.kill(kind, random.Random(seed)), limit)
        wait.until(run.left, f"the end of what a run killed by {kind} at {phase} has started", seconds=limit)
        said = run.said()
    for word in ("INTERNALERROR", "ResourceWarning", "Exception ignored", "Traceback (most recent call last)"):
        assert word not in said, said
    if kind in ("TERM", "INT"):
        assert run.process.returncode in codes(phase, kind), said
    if kind in ("TERM", "INT") and run.process.returncode == 2:
        assert ("the run was ended by SIGTERM" if kind == "TERM" else "KeyboardInterrupt") in said
    return seconds, said


@pytest.mark.parametrize(
    ("phase", "kind"),
    [
        ("collection", "TERM"),
        ("lock wait", "INT"),
        pytest.param("warm-up", "TERM", marks=pytest.mark.thorough),
        ("data load", "supervisor"),
        ("warm-up", "stop"),
    ],
    ids=lambda word: word.replace(" ", "-"),
)
def test_a_killed_run_ends_and_leaves_nothing(tmp_path, phase, kind):
    """No process, file or lock; its output has the reason."""
    _, said = check(tmp_path / "run", phase, kind)

    if kind == "stop":
        assert "a signal has stopped its server" in said
    if kind == "supervisor":
        assert "the supervisor of the local servers" in said, said


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_two_ctrl_c_end_a_run_with_workers(tmp_path, workers):
    """At a terminal all of its processes get both; no traceback, and nothing stays."""
    with kills.killed(tmp_path / "run", "warm-up", [f"-n{workers}"]) as run:
        for _ in range(2):
            began = run.kill("INT", random.Random(), group=True)
        run.ended(began, kills.BUSY)
        wait.until(run.left, "the end of what the run has started", seconds=kills.BUSY)
        said = run.said()

    assert (run.process.returncode, "Traceback" in said, "INTERNALERROR" in said) == (2, False, False), said


@pytest.fixture(scope="module")
def ssh():
    """Two stand-in hosts for servers, and one for loads: the options of a run on them, and the files of their locks."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    with StandIns(count=2, load=1) as made:
        locks = [host.root / access.BASE.strip("/") / "pytest-dbcluster.lock" for host in made]
        yield ["--db-provisioner", "ssh", *made.options], locks


@pytest.fixture
def words(request):
    """The options of a run with a provisioner, and the files of the locks of its machines elsewhere."""
    if request.param == "vm" and (reason := guests.missing()):
        pytest.skip(reason)
    return request.getfixturevalue("ssh") if request.param == "ssh" else (["--db-provisioner", request.param], [])


@pytest.mark.chaos
@pytest.mark.parametrize(("phase", "kind"), EACH)
@pytest.mark.parametrize("words", ["local", "vm", "ssh"], indirect=True)
def test_no_kill_makes_a_run_hang(tmp_path, words, phase, kind):
    """Killed many times, at random moments of the phase, the run always ends within HANG seconds."""
    slowest = 0.0
    for number in range(TIMES):
        seed, place = secrets.randbits(32), tmp_path / f"run{number}"
        try:
            seconds, _ = check(place, phase, kind, *words, limit=HANG, seed=seed)
        except BaseException as error:
            error.add_note(f"kill {number + 1} of {TIMES}, delay of random.Random({seed})")
            raise
        slowest = max(slowest, seconds)
        shutil.rmtree(place)
    print(f"{TIMES} kills, slowest end {slowest:.1f} s")
