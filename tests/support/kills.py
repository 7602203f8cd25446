"""Runs of pytest that are killed at a named phase: what they say of their phases, and what is left of them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from pytest_dbcluster import wait
from pytest_dbcluster.hosts import runs, supervisor
from pytest_dbcluster.system.machine_lock import NEXT, WORK, MachineLock
from tests.support import conftests

PHASES = ("collection", "lock wait", "server start", "data load", "warm-up", "round", "checks")
WITH_SERVERS = PHASES[2:]
REACH_SECONDS = 300.0  # to reach a phase, on a busy machine
BUSY = 100.0  # seconds until a killed run is gone, on a busy machine
DELAY_SECONDS = 0.3  # the kill comes at random so long after the phase has begun
SUITE = """\
import os
import time
from pathlib import Path

from pytest_dbcluster import ClusterSpec, MySQLSlap

if "SLOW_COLLECTION" in os.environ:
    Path(__file__).with_name("phase-collection").touch()
    time.sleep(600)
PAIR = ClusterSpec("async_replication", nodes=2, release="mariadb:10.11")


def test_claim(measure):
    load = MySQLSlap("write", concurrency=2, queries=400, quick_queries=400, rows=300)
    one, other = measure(load, on=[PAIR.named("one"), PAIR.with_options(lock_wait_timeout=40).named("other")])
    one.against(other)
"""
# Each phase makes a file when it begins. A node is stopped by the run itself: this machine sees no process of a guest.
PLUGIN = """
import functools
import signal
import threading
import time

from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.testbed import round_runner
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap

HERE = Path(__file__).parent
nodes = []


def marked(owner, name, phase, before=lambda *given: None):
    kept = getattr(owner, name)

    @functools.wraps(kept)
    def wrapped(*given, **named):
        before(*given)
        if reached := phase(*given, **named):
            (HERE / f"phase-{reached}").touch()
        return kept(*given, **named)

    setattr(owner, name, wrapped)


def stop_when_told():
    while not (HERE / "stop").exists():
        time.sleep(0.01)
    while not (started := [node for node in nodes if node.process]):
        time.sleep(0.01)
    started[int((HERE / "stop").read_text()) % len(started)].process.signal(signal.SIGSTOP)


marked(Node, "start", lambda node, *_: "server start", before=lambda node, *_: nodes.append(node))
marked(MySQLSlap, "prepare", lambda *_: "data load")
marked(round_runner, "run_round", lambda *_, block, **__: "round" if block >= 0 else "warm-up")
marked(Testbed, "_check_one", lambda *_: "checks")
threading.Thread(target=stop_when_told, daemon=True).start()
"""
HOLD = """
import sys
from pathlib import Path
from pytest_dbcluster.system.machine_lock import MEASURING, MachineLock

with MachineLock(Path(sys.argv[1])).turn(MEASURING):
    print("held", flush=True)
    sys.stdin.read()
"""


class KilledRun:
    """A run of pytest in a place of its own, which is killed at a phase. words: more of its command line.

    locks: the files of the locks of the machines that it uses elsewhere; a run without such machines uses this one.
    """

    def __init__(self, place: Path, phase: str, words: Sequence[str] = (), locks: Sequence[Path] = ()) -> None:
        place.mkdir(parents=True)
        self.place, self.phase, self.data = place, phase, place / "runs"
        self._elsewhere = contextlib.ExitStack()
        (place / "test_claim.py").write_text(SUITE)
        (place / "conftest.py").write_text(conftests.OWN_MACHINE + conftests.NO_CHARTS + PLUGIN)
        self._ids: set[str] = set()
        self._held: subprocess.Popen[str] | None = None
        if phase == "lock wait" and locks:
            self._hold(locks)
        elif phase == "lock wait":
            self._held = self._holder()
        slow = {"SLOW_COLLECTION": "yes"} if phase == "collection" else {}
        plain = ["-p", "no:cacheprovider", "-W", "error", "--override-ini=addopts="]
        own = {**conftests.ONLY_OURS, "DBCLUSTER_DATA_DIR": str(self.data), "COLUMNS": "400", **slow}
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *plain, "--db-max-pairs=1", *words],
                cwd=place,
                env={**os.environ, **own},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> Path:
        """The file with what the run printed."""
        return self.place / "out"

    def said(self) -> str:
        """What the run printed so far."""
        return self.output.read_text(errors="replace")

    def _hold(self, locks: Sequence[Path]) -> None:
        """Use machines elsewhere, as another run does."""
        for path in locks:
            path.touch()
            file = self._elsewhere.enter_context(path.open())
            fcntl.flock(file, fcntl.LOCK_EX)

    def _holder(self) -> subprocess.Popen[str]:
        """Another process, which has the machine."""
        command = [sys.executable, "-c", HOLD, str(self.place / "machine")]
        made = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert made.stdout
        assert made.stdout.readline() == "held\n"
        return made

    def reach(self) -> None:
        """Wait until the phase has begun; a run that ends before has failed."""

        def problems() -> list[str]:
            assert self.process.poll() is None, self.said()
            if self.phase == "lock wait" and self._held is None:
                reached = "waiting for machines: another run uses" in self.said()
            elif self.phase == "lock wait":
                holders = MachineLock(self.place / "machine").holders()
                reached = any(one.waits and one.pid == self.process.pid for one in holders)
            else:
                reached = (self.place / f"phase-{self.phase}").exists()
            return [] if reached else [f"the phase {self.phase} has not begun: {self.said()[-2000:]}"]

        wait.until(problems, f"the phase {self.phase}", seconds=REACH_SECONDS, poll=0.005)

    def kill(self, kind: str, chance: random.Random, *, group: bool = False) -> float:
        """Kill it a moment after the phase has begun, and return when, by ``time.monotonic``.

        kind: ``TERM``, ``INT``, ``supervisor`` (kill -9) or ``stop`` (SIGSTOP to a server). ``ended`` waits.
        group: its workers get the signal too, as at a terminal.
        """
        time.sleep(chance.uniform(0, DELAY_SECONDS))
        began = time.monotonic()
        if kind == "stop":
            (self.place / "stop.part").write_text(str(chance.randrange(2)))
            (self.place / "stop.part").rename(self.place / "stop")
        elif kind == "supervisor":
            for child in self._supervisors():
                child.kill()
        elif not group:
            self.process.send_signal(signal.Signals[f"SIG{kind}"])
        elif self.process.poll() is None:
            os.killpg(self.process.pid, signal.Signals[f"SIG{kind}"])
        return began

    def ended(self, began: float, limit: float) -> float:
        """The seconds from then until the end of the run, which has to come within ``limit``."""
        try:
            self.process.wait(max(0.1, began + limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the run has not ended within {limit:g} s; it said: {self.said()[-4000:]}") from None
        return time.monotonic() - began

    def _supervisors(self) -> list[psutil.Process]:
        found = []
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.Error):
                if supervisor.__file__ in child.cmdline():
                    found.append(child)
        return found

    def left(self) -> list[str]:
        """What is left of it: programs with its mark, files, and locks that somebody still has."""
        self._ids |= {entry.name for entry in self.data.glob("*")}
        wanted = {f"{runs.RUN_VARIABLE}={one}".encode() for one in self._ids}
        found = [str(path) for path in self.data.glob("*")]
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if wanted & set((process / "environ").read_bytes().split(b"\0")):
                    found.append((process / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")[:200])
        if self._held is None:
            found += [name for name in (NEXT, WORK) if not self._free(name)]
        return found

    def _free(self, name: str) -> bool:
        with contextlib.closing(MachineLock(self.place / "machine")._lock(name)) as file:
            return file.try_lock(fcntl.LOCK_EX)

    def close(self) -> None:
        """End it, when nobody has, and whoever held the machine."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(100)
        self._elsewhere.close()
        if self._held:
            self._held.communicate("", timeout=100)


@contextlib.contextmanager
def killed(place: Path, phase: str, words: Sequence[str] = (), locks: Sequence[Path] = ()) -> Iterator[KilledRun]:
    """A run that has reached a phase. Parameters as those of ``KilledRun``."""
    run = KilledRun(place, phase, words, locks)
    try:
        run.reach()
        run.left()  # while its files are there: they have the id by which its programs are known
        yield run
    finally:
        run.close()
