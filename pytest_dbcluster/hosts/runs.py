"""The runs on this machine: whose directory and servers are whose, and what a dead run left behind.

A run's directory holds ``run.json``, and ``cleanup.json`` when its provisioner has made something elsewhere. A run is
dead when its owner is gone and it was not kept on purpose.
Servers carry the run's id in their environment, so they are found without trusting a process number.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from pytest_dbcluster.hosts import cleanup
from pytest_dbcluster.hosts.supervisor import RUN_VARIABLE
from pytest_dbcluster.system import cache, cgroups, processes

FILE = "run.json"


@dataclasses.dataclass(frozen=True)
class Run:
    """One run. ``owner`` and ``born`` together name a process for good, ``kept`` outlives it; ``began`` is a time."""

    directory: Path
    owner: int
    born: float
    kept: bool
    began: float = 0.0

    @property
    def run_id(self) -> str:
        """The id that its servers carry."""
        return self.directory.name

    @property
    def alive(self) -> bool:
        """Whether its owner still runs."""
        return processes.is_running(self.owner, self.born)

    def processes(self) -> list[psutil.Process]:
        """The processes that carry this run's id, its supervisor not among them."""
        return [process for process, run_id in _marked() if run_id == self.run_id]


def directory() -> Path:
    """Where runs keep their data: DBCLUSTER_DATA_DIR, or ``runs`` in the cache; it should be a real disk."""
    chosen = os.environ.get("DBCLUSTER_DATA_DIR")
    return Path(chosen).absolute() if chosen else cache.root() / "runs"


def _marked() -> list[tuple[psutil.Process, str]]:
    found = []
    for process in psutil.process_iter():
        try:  # a process may end between any two questions about it
            run_id = process.environ().get(RUN_VARIABLE)
            if run_id and process.status() != psutil.STATUS_ZOMBIE:
                found.append((process, run_id))
        except (psutil.Error, OSError):
            continue
    return found


def orphans() -> list[psutil.Process]:
    """Processes of ours whose run's directory was removed under them: no file tells of them any more."""
    found = []
    for process, _ in _marked():
        try:
            # The kernel marks a working directory that is gone (proc_pid_cwd(5)).
            if process.uids().real == os.getuid() and str(Path(f"/proc/{process.pid}/cwd").readlink()).endswith(
                " (deleted)"
            ):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def claim(directory: Path, *, keep: bool = False) -> None:
    """Write down that this process owns the run in ``directory``."""
    owner = psutil.Process()
    text = json.dumps({"owner": owner.pid, "born": owner.create_time(), "kept": keep, "began": time.time()})
    (directory / FILE).write_text(text)


def known() -> list[Run]:
    """Every run with a directory, the oldest first."""
    runs = []
    for file in directory().glob(f"*/{FILE}"):
        try:
            said = json.loads(file.read_text())
            runs.append(Run(file.parent, said["owner"], said["born"], said["kept"], said["began"]))
        except (OSError, ValueError, KeyError):
            continue
    return sorted(runs, key=lambda run: run.began)


def end(run: Run) -> int:
    """Kill the servers of a run, remove its groups, run its clean-up commands and remove its directory.

    Returns the number of processes that were ended.
    """
    running, groups = run.processes(), cgroups.recorded(run.directory)
    _kill(running)
    for group in groups:
        cgroups.remove(group)
    cleanup.run(run.directory)
    shutil.rmtree(run.directory, ignore_errors=True)
    return len(running)


def _kill(running: Sequence[psutil.Process]) -> None:
    for process in running:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(running, timeout=10)


def reap() -> list[tuple[Run, int]]:
    """End every run whose owner is gone and that was not kept; each with the number of processes ended."""
    _kill(orphans())
    uid = os.getuid()
    dead = [run for run in known() if not run.kept and not run.alive]
    found = []
    for run in dead:
        with contextlib.suppress(FileNotFoundError):  # it was removed in the meantime
            if run.directory.stat().st_uid == uid:
                found.append((run, end(run)))
    cgroups.reap()
    return found
