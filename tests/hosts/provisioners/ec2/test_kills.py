"""A run that is killed at any moment leaves nothing in the account: the supervisor, or else the reaper, ends it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.hosts.provisioners.ec2.aws import Account
from pytest_dbcluster.hosts.provisioners.ec2.reaper import Reaper

KILLS = 20
SECONDS = 60.0
# A run that launches, grows, works and ends; it says where it is.
RUN = """
import sys
from pytest_dbcluster.hosts.provisioners.ec2 import fleet, provisioner, reaper
from pytest_dbcluster.hosts.provisioners.ec2.settings import EC2Settings
from pytest_dbcluster.spec import ClusterSpec, ReleaseName

fleet.POLL_SECONDS = reaper.POLL_SECONDS = provisioner.POLL_SECONDS = 0.1
settings = EC2Settings.parse(max_cost=5, source="192.0.2.1/32", prices=["ipv4=0.005"])
run = provisioner.Ec2Provisioner(settings=settings, keep=KEEP)
run.progress = lambda line: print(line, flush=True)
print("begun", flush=True)
release = ReleaseName("mariadb", "10.11")
for nodes in (1, 2):
    for host in run.acquire(ClusterSpec("galera", nodes=nodes, release=release)):
        host.run(["true"])
print("used", flush=True)
run.close()
print("closed", flush=True)
"""


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A directory of runs of its own, in which nobody else looks for dead ones."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path))
    return tmp_path


def begun(log: Path, *, keep: bool = False) -> subprocess.Popen[bytes]:
    """A run in a process of its own. keep: it may be left at its end."""
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-c", f"KEEP = {keep}\n{RUN}"], stdout=output, stderr=subprocess.STDOUT
        )


def supervisors(data: Path) -> list[int]:
    """The processes that began in the runs of this directory, which outlive a killed run."""
    runs = {path.name for path in data.iterdir() if path.is_dir()}
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if runs & set(words) and any("supervisor.py" in word for word in words):
                found.append(int(process.name))
    return found


@pytest.mark.remote
def test_a_run_killed_at_twenty_random_moments_leaves_nothing(machines, data, tmp_path):
    """Of launch, use and end. Every other time its supervisor is killed with it, so that only the tags are left."""
    draws, log, took = random.Random(), tmp_path / "log", None
    began = time.monotonic()
    whole = begun(log)
    assert whole.wait(SECONDS) == 0, log.read_text()
    took = time.monotonic() - began
    assert machines.left() == {}
    moments = [draws.uniform(0.2, took) for _ in range(KILLS)]
    found = []
    for number, moment in enumerate(sorted(moments)):
        run = begun(log)
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(moment)
        helpers = supervisors(data)
        run.kill()
        run.wait()
        if number % 2:
            for helper in helpers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(helper, signal.SIGKILL)
        else:
            wait.until(lambda: [str(one) for one in supervisors(data)], "the end of the supervisor", seconds=SECONDS)
            assert machines.left() == {}, f"killed after {moment:.2f} s: {log.read_text()}"
        left = machines.left()
        found.append(left)
        for id_ in {one.run_id for one in Reaper(Account()).look()}:
            assert Reaper(Account()).end(id_).left == []
        assert machines.left() == {}, f"killed after {moment:.2f} s: {log.read_text()}"

    assert any(found), "no kill came while something was there: the test has shown nothing"


@pytest.mark.remote
@pytest.mark.parametrize("keep", [False, True])
def test_what_a_killed_run_has_is_ended_by_its_supervisor(machines, data, tmp_path, keep):
    """Within seconds, without a later command, also of one with --db-keep that has not come to its end."""
    log = tmp_path / "log"
    run = begun(log, keep=keep)
    wait.until(lambda: [] if "used" in log.read_text() else [log.read_text()], "the use of the hosts", seconds=SECONDS)
    before = machines.left()
    run.kill()
    run.wait()
    wait.until(lambda: [str(machines.left())] if machines.left() else [], "an empty account", seconds=SECONDS)

    assert before["instances"] == before["machines"] == 3
