"""What others do on this machine: CPU time that is not this run's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.system import probes, processes
from pytest_dbcluster.system.probes import CpuReading

SPIN = "while True: pass"
# A program that is no child of ours: its parent has ended. It prints its id.
DETACHED = f"import os, sys\nif os.fork(): os._exit(0)\nos.setsid()\nprint(os.getpid(), flush=True)\n{SPIN}"
ENOUGH = 0.3  # seconds of CPU time that a program takes before it is looked at


def until_it_has_run(pid, seconds=ENOUGH):
    """Returns when a process has taken so much CPU time."""
    process = psutil.Process(pid)
    begun = sum(process.cpu_times()[:2])
    wait.until(
        lambda: [] if sum(process.cpu_times()[:2]) - begun >= seconds else ["too little"], "CPU time", seconds=120
    )


def test_cores_of_others_are_what_is_left_over():
    """Of 8 busy seconds in 4 s this run took 3."""
    before, after = CpuReading(10.0, 100.0, 50.0), CpuReading(14.0, 108.0, 53.0)

    assert after.others_since(before) == pytest.approx(1.25)
    assert before.others_since(before) == 0.0
    assert CpuReading(14.0, 102.0, 53.0).others_since(before) == 0.0


def test_a_program_of_others_counts_as_theirs():
    """It is no child of this process, nor of one that this process has started."""
    words = [sys.executable, "-c", DETACHED]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as started:
        pid = int(started.stdout.readline())
        try:
            before = CpuReading.now()
            until_it_has_run(pid)
            after = CpuReading.now()
        finally:
            os.kill(pid, signal.SIGKILL)

    assert after.others_since(before) * (after.at - before.at) >= ENOUGH - 0.1


def test_a_program_of_this_run_counts_as_its_own_while_it_runs_and_after_its_end():
    """So do the children of its children."""
    child = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {SPIN!r}])"
    before = processes.run_seconds()
    with subprocess.Popen([sys.executable, "-c", child]) as started:
        wait.until(lambda: [] if psutil.Process(started.pid).children() else ["no child yet"], "a child", seconds=60)
        (spins,) = psutil.Process(started.pid).children()
        until_it_has_run(spins.pid)
        running = processes.run_seconds()
        spins.kill()
    ended = processes.run_seconds()

    assert running - before >= ENOUGH - 0.05
    assert ended >= running - 0.05


def test_only_cpus_that_may_be_used_count(monkeypatch):
    """In a container with one CPU of many, what runs on the others disturbs nobody."""
    usable = os.sched_getaffinity(0)
    parts = []
    for cpu in usable:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cpu=cpu: {cpu})
        parts.append(probes.busy_seconds())
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: usable)

    assert min(parts) > 0
    assert sum(parts) == pytest.approx(probes.busy_seconds(), abs=60.0 * len(parts))
