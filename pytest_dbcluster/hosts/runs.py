"""The runs on this machine: their owners, directories and servers, and the removal of dead runs.

A run's directory contains ``run.json``. If the provisioner made something outside of the directory, it also contains
``cleanup.json``. A run is dead if its owner process has ended and nobody asked to keep the run. Servers have the id of
their run in their environment, so we find them without trusting a process id.

Several users may share the parent directory, and each of them may write anything into his directory. So a run belongs
to the owner of its directory: only processes, control groups and files of this user belong to the run.
"""

from __future__ import annotations

import contextlib
import dataclasses
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
TEST = "test"  # the file with the test that a run measures
RUN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")  # ours have 8 digits; messages show ids, and users copy them
PID = Annotated[int, msgspec.Meta(gt=0, lt=2**31)]
TIME = Annotated[float, msgspec.Meta(ge=0, lt=2**40)]  # seconds since the epoch
TICKS = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]


@dataclasses.dataclass(frozen=True)
class _Record:
    """The content of ``run.json``; the fields are those of ``Run``."""

    owner: PID
    born: TIME
    kept: bool
    began: TIME
    ticks: TICKS | None = None


@dataclasses.dataclass(frozen=True)
class Run:
    """One run."""

    directory: Path
    """The directory of the run."""

    owner: int
    """Process id of the owner."""

    born: float
    """Start time of the owner in seconds since the epoch, for a record without ``ticks``."""

    kept: bool
    """Whether the run outlives its owner."""

    began: float = 0.0
    """Start of the run, in seconds since the epoch."""

    uid: int = dataclasses.field(default_factory=os.getuid)
    """The user who owns the directory."""

    ticks: int | None = None
    """Start time of the owner in clock ticks since boot, which identifies it even if its process id is reused."""

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
        return processes.is_running(self.owner, self.born, self.ticks)

    @property
    def test(self) -> str:
        """The node id of the test that the run measures, as its user wrote it; empty if unknown."""
        try:
            content, uid = owned_files.read(self.directory, TEST)
        except OSError:
            return ""
        return content.decode(errors="replace") if uid == self.uid else ""

    @property
    def is_ending(self) -> bool:
        """Whether the owner has ended, and the supervisor is still ending the programs and cleaning up."""
        words = [supervisor.__file__, self.run_id]
        return any(words == (one.info["cmdline"] or [])[2:4] for one in psutil.process_iter(["cmdline"]))

    def processes(self) -> list[psutil.Process]:
        """The processes of the run's user with its id in their environment. The supervisor does not have it.

        Only the user counts, because any user can give a program any id. Empty if we may not see his processes.
        """
        return [process for process, run_id, uid in _marked_processes() if (run_id, uid) == (self.run_id, self.uid)]


def directory() -> Path:
    """The parent of all run directories: DBCLUSTER_DATA_DIR, or ``runs`` in the cache. Choose a real disk."""
    chosen = os.environ.get("DBCLUSTER_DATA_DIR")
    return Path(chosen).absolute() if chosen else cache.root() / "runs"


def _marked_processes() -> list[tuple[psutil.Process, str, int]]:
    """Every running process of a run, with the run's id and its real user id, which set-user-id programs keep."""
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
    for process, _, uid in _marked_processes():
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
    record = _Record(owner.pid, owner.create_time(), keep, time.time(), processes.start_ticks(owner.pid))
    owned_files.write(directory, FILE, msgspec.json.encode(record).decode())


def note_test(directory: Path, test: str) -> None:
    """Record in the directory of a run which test it measures; empty for none. A full disk does not end a run."""
    with contextlib.suppress(OSError):
        owned_files.write(directory, TEST, test)


def list_runs() -> list[Run]:
    """Every run of every user that has a directory, oldest first.

    The name of a run's directory is an id, and its record is complete and has our shape. A record that other users can
    write does not count.
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
        runs.append(Run(file.parent, record.owner, record.born, record.kept, record.began, uid, record.ticks))
    return sorted(runs, key=lambda run: run.began)


def end(run: Run, *, clean_up: bool = True) -> int:
    """Kill the servers of a run, remove its control groups, run its clean-up commands and remove its directory.

    It kills and removes only what belongs to the run's user. The directory stays if ``leftovers`` says so.
    clean_up: whether to run the commands. Returns the number of killed processes.
    """
    running, groups = run.processes(), cgroups.recorded_groups(run.directory)
    _kill(running)
    for group in groups:
        cgroups.remove(group, run.uid)
    if not leftovers(run):
        if clean_up:
            cleanup.run(run.directory)
        owned_files.remove_tree(run.directory, run.uid)
    return len(running)


def leftovers(run: Run) -> str:
    """What ``end`` leaves of another user's run, as a sentence with the command that cleans it up; or empty.

    We do not run commands that another user wrote, so what they clean up stays, and the directory too.
    """
    if run.mine or not cleanup.exists(run.directory):
        return ""
    return (
        f"run {run.run_id} is not cleaned up: its containers and networks, if any, and {run.directory} are left. Only "
        f"{run.user} runs the commands in its {cleanup.FILE}; {as_owner(run, f'down {run.run_id}')}"
    )


def as_owner(run: Run, command: str) -> str:
    """How the user of a run runs this command of ``dbcluster``, for a message."""
    return f"as {run.user}: DBCLUSTER_DATA_DIR={shlex.quote(str(run.directory.parent))} dbcluster {command}"


def end_sessions(run_id: str, leaders: Collection[int]) -> None:
    """Kill the processes of this user's run in the sessions of these process ids, which may have ended already.

    The kernel does not reuse a process id while its session has a process.
    """
    inside = []
    for process, marked, uid in _marked_processes():
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
    """The runs of all users whose owner process has ended and that nobody asked to keep."""
    return [run for run in list_runs() if not run.kept and not run.alive]
