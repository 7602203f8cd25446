"""The runs on this machine: their owners, directories and servers, and how a dead run is removed.

A run's directory holds ``run.json``. It also holds ``cleanup.json`` when the provisioner made something outside of the
directory. A run is dead when its owner process has ended and nobody asked to keep the run.
Servers carry the id of their run in their environment, so we find them without trusting a process id.
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
    """One run.

    owner, born: process id and start time of the owner; together they identify a process even after its id is reused.
    kept: the run stays alive after its owner. began: start of the run. Times are in seconds since the epoch.
    """

    directory: Path
    owner: int
    born: float
    kept: bool
    began: float = 0.0

    @property
    def run_id(self) -> str:
        """The id that the servers of the run carry in their environment."""
        return self.directory.name

    @property
    def alive(self) -> bool:
        """Whether the owner process still runs."""
        return processes.is_running(self.owner, self.born)

    def processes(self) -> list[psutil.Process]:
        """The processes that carry this run's id. The supervisor does not carry it."""
        return [process for process, run_id in _marked() if run_id == self.run_id]


def directory() -> Path:
    """The parent of all run directories: DBCLUSTER_DATA_DIR, or ``runs`` in the cache. Choose a real disk."""
    chosen = os.environ.get("DBCLUSTER_DATA_DIR")
    return Path(chosen).absolute() if chosen else cache.root() / "runs"


def _marked() -> list[tuple[psutil.Process, str]]:
    """Every running process with the id of its run."""
    marked = []
    for process in psutil.process_iter():
        try:  # a process may end between two of these calls
            run_id = process.environ().get(RUN_VARIABLE)
            if run_id and process.status() != psutil.STATUS_ZOMBIE:
                marked.append((process, run_id))
        except (psutil.Error, OSError):
            continue
    return marked


def orphans() -> list[psutil.Process]:
    """Our processes whose run directory was removed while they ran. No file records them any more."""
    orphaned = []
    for process, _ in _marked():
        try:
            # The kernel marks a removed working directory with this suffix (proc_pid_cwd(5)).
            if process.uids().real == os.getuid() and str(Path(f"/proc/{process.pid}/cwd").readlink()).endswith(
                " (deleted)"
            ):
                orphaned.append(process)
        except (psutil.Error, OSError):
            continue
    return orphaned


def claim(directory: Path, *, keep: bool = False) -> None:
    """Record in ``directory`` that this process owns the run. Raises OSError."""
    owner = psutil.Process()
    text = json.dumps({"owner": owner.pid, "born": owner.create_time(), "kept": keep, "began": time.time()})
    (directory / FILE).write_text(text)


def known() -> list[Run]:
    """Every run that has a directory, oldest first."""
    runs = []
    for file in directory().glob(f"*/{FILE}"):
        try:
            record = json.loads(file.read_text())
            runs.append(Run(file.parent, record["owner"], record["born"], record["kept"], record["began"]))
        except (OSError, ValueError, KeyError):
            continue
    return sorted(runs, key=lambda run: run.began)


def end(run: Run) -> int:
    """Kill the servers of a run, remove its control groups, run its clean-up commands and remove its directory.

    Returns the number of killed processes.
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
    """End every dead run. Returns the runs, each with the number of killed processes."""
    _kill(orphans())
    uid = os.getuid()
    dead = [run for run in known() if not run.kept and not run.alive]
    ended = []
    for run in dead:
        with contextlib.suppress(FileNotFoundError):  # another process has just removed the run
            if run.directory.stat().st_uid == uid:
                ended.append((run, end(run)))
    cgroups.reap()
    return ended
