"""The runs on this machine: their owners, directories and servers, and how a dead run is removed.

A run's directory holds ``run.json``. It also holds ``cleanup.json`` when the provisioner made something outside of the
directory. A run is dead when its owner process has ended and nobody asked to keep the run.
Servers carry the id of their run in their environment, so we find them without trusting a process id.

Several users may share the parent directory, and each of them may write what he likes into a directory of his own. So a
run belongs to the owner of its directory: only processes, control groups and files of this user are the run's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shlex
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import psutil

from pytest_dbcluster.hosts import cleanup, supervisor
from pytest_dbcluster.hosts.supervisor import RUN_VARIABLE
from pytest_dbcluster.system import cache, cgroups, owned_files, processes

FILE = "run.json"
RUN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")  # ours have 8 digits; messages show ids, and users paste them
PID = Annotated[int, msgspec.Meta(gt=0, lt=2**31)]
TIME = Annotated[float, msgspec.Meta(ge=0, lt=2**40)]  # seconds since the epoch


@dataclasses.dataclass(frozen=True)
class _Record:
    """The content of ``run.json``; the fields are those of ``Run``."""

    owner: PID
    born: TIME
    kept: bool
    began: TIME


@dataclasses.dataclass(frozen=True)
class Run:
    """One run.

    owner, born: process id and start time of the owner; together they identify a process even after its id is reused.
    """

    directory: Path
    owner: int
    born: float
    kept: bool
    """The run stays alive after its owner."""

    began: float = 0.0
    """Start of the run. Times are in seconds since the epoch."""

    uid: int = dataclasses.field(default_factory=os.getuid)
    """The user who owns the directory."""

    @property
    def mine(self) -> bool:
        """Whether the run belongs to this user."""
        return self.uid == os.getuid()

    @property
    def user(self) -> str:
        """The name of the user to whom the run belongs."""
        return processes.user_name(self.uid)

    @property
    def run_id(self) -> str:
        """The id that the servers of the run carry in their environment."""
        return self.directory.name

    @property
    def alive(self) -> bool:
        """Whether the owner process still runs."""
        return processes.is_running(self.owner, self.born)

    @property
    def ending(self) -> bool:
        """Whether the supervisor of a run whose owner has ended still ends its programs and cleans up after it."""
        words = [supervisor.__file__, self.run_id]
        return any(words == (one.info["cmdline"] or [])[2:4] for one in psutil.process_iter(["cmdline"]))

    def processes(self) -> list[psutil.Process]:
        """The processes of the run's user that carry its id. The supervisor does not carry it.

        Any user can give a program of his own any id. Empty where we may not see the processes of that user.
        """
        return [process for process, run_id, uid in _marked() if (run_id, uid) == (self.run_id, self.uid)]


def directory() -> Path:
    """The parent of all run directories: DBCLUSTER_DATA_DIR, or ``runs`` in the cache. Choose a real disk."""
    chosen = os.environ.get("DBCLUSTER_DATA_DIR")
    return Path(chosen).absolute() if chosen else cache.root() / "runs"


def _marked() -> list[tuple[psutil.Process, str, int]]:
    """Every running process with the id of its run, and its real user id, which set-user-id programs keep."""
    marked = []
    for process in psutil.process_iter():
        try:  # a process may end between two of these calls
            run_id = process.environ().get(RUN_VARIABLE)
            if run_id and process.status() != psutil.STATUS_ZOMBIE:
                marked.append((process, run_id, process.uids().real))
        except (psutil.Error, OSError):
            continue
    return marked


def orphans() -> list[psutil.Process]:
    """Our processes whose run directory was removed while they ran. No file records them any more."""
    orphaned = []
    for process, _, uid in _marked():
        try:
            # The kernel marks a removed working directory with this suffix (proc_pid_cwd(5)).
            if uid == os.getuid() and str(Path(f"/proc/{process.pid}/cwd").readlink()).endswith(" (deleted)"):
                orphaned.append(process)
        except (psutil.Error, OSError):
            continue
    return orphaned


def claim(directory: Path, *, keep: bool = False) -> None:
    """Record in ``directory`` that this process owns the run. Raises OSError."""
    owner = psutil.Process()
    text = json.dumps({"owner": owner.pid, "born": owner.create_time(), "kept": keep, "began": time.time()})
    owned_files.write(directory, FILE, text)


def known() -> list[Run]:
    """Every run of every user that has a directory, oldest first.

    A directory is no run when its name is no id, or when its record is incomplete, of another shape, or may be written
    by others than its owner.
    """
    runs = []
    for file in directory().glob(f"*/{FILE}"):
        if not RUN_ID.fullmatch(file.parent.name):
            continue
        try:
            content, uid = owned_files.read(file.parent, FILE)
            record = msgspec.json.decode(content, type=_Record)
        except (OSError, msgspec.DecodeError, RecursionError):
            continue
        runs.append(Run(file.parent, record.owner, record.born, record.kept, record.began, uid))
    return sorted(runs, key=lambda run: run.began)


def end(run: Run, *, clean_up: bool = True) -> int:
    """Kill the servers of a run, remove its control groups, run its clean-up commands and remove its directory.

    Only what belongs to the run's user is killed and removed. The directory stays when ``left_to_owner`` says so.
    clean_up: False where the commands have nothing to do any more.
    Returns the number of killed processes.
    """
    running, groups = run.processes(), cgroups.recorded_groups(run.directory)
    _kill(running)
    for group in groups:
        cgroups.remove(group, run.uid)
    if not left_to_owner(run):
        if clean_up:
            cleanup.run(run.directory)
        owned_files.remove_tree(run.directory, run.uid)
    return len(running)


def left_to_owner(run: Run) -> str:
    """What ``end`` leaves of another user's run, as a sentence with the command that cleans it up; empty for nothing.

    We run no commands that another user wrote, so what they clean up stays, and the directory with them.
    """
    if run.mine or not cleanup.exists(run.directory):
        return ""
    return (
        f"run {run.run_id} is not cleaned up: its containers and networks, if any, and {run.directory} are left. Only "
        f"{run.user} runs the commands in its {cleanup.FILE}; {as_owner(run, f'down {run.run_id}')}"
    )


def as_owner(run: Run, command: str) -> str:
    """How the user of a run gives this command of ``dbcluster``, for a message."""
    return f"as {run.user}: DBCLUSTER_DATA_DIR={shlex.quote(str(run.directory.parent))} dbcluster {command}"


def end_sessions(run_id: str, leaders: Collection[int]) -> None:
    """Kill the processes of this user's run that are in sessions of these process ids, which may have ended already.

    A process id is not given out again while its session has a process.
    """
    inside = []
    for process, marked, uid in _marked():
        with contextlib.suppress(OSError):
            if (marked, uid) == (run_id, os.getuid()) and os.getsid(process.pid) in leaders:
                inside.append(process)
    _kill(inside)


def _kill(running: Sequence[psutil.Process]) -> None:
    for process in running:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(running, timeout=10)


def reap() -> list[tuple[Run, int]]:
    """End every dead run of this user. Returns the runs, each with the number of killed processes."""
    _kill(orphans())
    ended = [(run, end(run)) for run in dead() if run.mine and run.directory.exists()]
    cgroups.reap()
    return ended


def dead() -> list[Run]:
    """The runs of every user whose owner process has ended, and that nobody asked to keep."""
    return [run for run in known() if not run.kept and not run.alive]
