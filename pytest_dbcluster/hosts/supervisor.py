"""The supervisor: a small process that starts the servers, and ends them when its owner process ends.

It runs as a script that imports only the standard library: ``python supervisor.py RUN_ID [DESCRIPTOR]``. Requests and
answers are JSON lines on stdin and stdout; an answer repeats the number of its request. The end of stdin means that the
owner has ended. The supervisor then kills every child and removes the directories that the owner registered.
DESCRIPTOR is a Unix socket over which the owner sends open files for programs to inherit.

Children also get a parent-death signal, for the case that the supervisor itself dies. This signal depends on the thread
that forked (prctl(2), PR_SET_PDEATHSIG). Threads of a test run end early; the supervisor has only one thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1  # linux/prctl.h
RUN_VARIABLE = "DBCLUSTER_RUN"
LOADING_SECONDS = 0.1  # maximum time in which a process begins another program
CLEAN_SECONDS = 10  # maximum time for the removal of directories and control groups
AFTER_SECONDS = 60.0  # usual timeout of a clean-up command
END_SECONDS = 60  # maximum time for the end of all killed children
# Some programs allocate an entry for each allowed file, and the hard limit may be a thousand million.
MAX_FILES = 65_536
_libc = ctypes.CDLL(None, use_errno=True)


def before_exec(parent: int | None, joins: Sequence[str]) -> Callable[[], None]:
    """A function for the child to call before exec: it joins control groups and requests a death signal.

    ``joins``: the ``cgroup.procs`` files of the control groups. ``parent``: a process id; None requests no signal.
    """

    def prepare() -> None:
        for file in joins:
            descriptor = os.open(file, os.O_WRONLY)
            os.write(descriptor, str(os.getpid()).encode())
            os.close(descriptor)
        if parent is not None:
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)

    return prepare


class Supervisor:
    """The children of one run. ``keep`` leaves them alive when the owner ends. ``files`` brings open files."""

    def __init__(self, run: str, files: socket.socket | None = None) -> None:
        self.run = run
        self.files = files
        self.keep = False
        self.children: dict[int, subprocess.Popen[bytes]] = {}
        self.directories: list[str] = []
        self.commands: list[tuple[list[str], dict[str, str], float]] = []
        self.groups: list[str] = []

    def spawn(
        self,
        argv: list[str],
        environment: dict[str, str],
        directory: str,
        log: str,
        keep: bool,
        joins: Sequence[str] = (),
        inherits: int = 0,
        talks: bool = False,
    ) -> dict[str, Any]:
        """Start a program in its own process group and append its output to the file ``log``.

        ``joins``: the ``cgroup.procs`` files of control groups; the program joins these groups before it executes.
        ``inherits``: how many open files the owner has sent. ``{0}``, ``{1}`` ... in ``argv`` are then their numbers.
        ``talks``: the first of them is the program's input and output, and ``log`` gets its errors.
        """
        with contextlib.ExitStack() as ends:
            files = socket.recv_fds(self.files, 1, inherits)[1] if inherits and self.files else []
            for file in files:
                ends.callback(os.close, file)
            argv = [part.format(*files) for part in argv] if files else argv
            output = ends.enter_context(Path(log).open("ab"))
            try:
                child = subprocess.Popen(
                    argv,
                    env={**environment, RUN_VARIABLE: self.run},
                    cwd=directory,
                    stdin=files[0] if talks else subprocess.DEVNULL,
                    stdout=files[0] if talks else output,
                    stderr=output,
                    start_new_session=True,
                    pass_fds=files,
                    preexec_fn=before_exec(None if keep else os.getpid(), joins),  # noqa: PLW1509  (no threads here)
                )
            except subprocess.SubprocessError:  # Popen reports no details of an error before exec
                raise OSError(f"the program could not join its control groups, {', '.join(joins)}") from None
        self.children[child.pid] = child
        return {"pid": child.pid}

    def status(self, pid: int) -> dict[str, Any]:
        """The exit status of a child: None while it runs, negative for the signal that ended it."""
        return {"status": self.children[pid].poll()}

    def signal(self, pid: int, number: int) -> dict[str, Any]:
        """Send a signal to the process group of a child. The group includes the child's own children."""
        if self.children[pid].poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, number)
        return {}

    def own(self, directory: str) -> dict[str, Any]:
        """Remove this directory when the owner ends."""
        self.directories.append(directory)
        return {}

    def after(self, argv: list[str], environment: dict[str, str], seconds: float) -> dict[str, Any]:
        """Run this command when the owner ends, after the end of every child. seconds: its timeout."""
        self.commands.append((argv, environment, seconds))
        return {}

    def own_group(self, group: str) -> dict[str, Any]:
        """Remove this control group, and the groups inside it, when the owner ends."""
        self.groups.append(group)
        return {}

    def leave(self) -> dict[str, Any]:
        """Leave the servers and directories alive when the owner ends."""
        self.keep = True
        return {}

    def close(self) -> dict[str, Any]:
        """Kill every child and remove directories and groups, unless ``leave`` was called."""
        if self.keep:
            return {}
        for pid, child in self.children.items():
            # Another run's program may reuse the process id of an ended child; programs of the child have our mark.
            if child.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
        limit = time.monotonic() + END_SECONDS
        for child in self.children.values():
            with contextlib.suppress(subprocess.TimeoutExpired):  # it waits for a disk that does not answer
                child.wait(max(0.0, limit - time.monotonic()))
        for argv, environment, seconds in self.commands:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                quiet = subprocess.DEVNULL
                subprocess.run(
                    argv, env=environment, stdin=quiet, stdout=quiet, stderr=quiet, timeout=seconds, check=False
                )
        limit = time.monotonic() + CLEAN_SECONDS
        # A child's program in another session has the mark too, and may still write files.
        while kill_marked(self.run) + remove(self.directories) + ungroup(self.groups) and time.monotonic() < limit:
            time.sleep(0.01)
        return {}


def kill_marked(run: str) -> int:
    """Kill every process of this user with the mark of this run. Returns their number."""
    mark, killed = f"{RUN_VARIABLE}={run}".encode(), 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # Any user can give a program our mark.
            if mark in environment(process).split(b"\0") and real_user(process) == os.getuid():
                killed += 1
                os.kill(int(process.name), signal.SIGKILL)
    return killed


def environment(process: Path) -> bytes:
    """The environment of a process, by its directory in /proc. Raises OSError.

    It is empty for a moment while the process begins another program. So it is read again, for LOADING_SECONDS.
    Kernel threads and ended processes have no memory.
    """
    limit = time.monotonic() + LOADING_SECONDS
    while not (found := (process / "environ").read_bytes()) and time.monotonic() < limit:
        if not (process / "statm").read_bytes().split()[0].strip(b"0"):
            break
        time.sleep(0.001)
    return found


def real_user(process: Path) -> int:
    """The real user id of a process, by its directory in /proc. Raises OSError."""
    lines = (process / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Uid:"))


def remove(directories: list[str]) -> int:
    """Remove directories. Returns how many still exist because a process was writing into them."""
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
    return sum(map(os.path.exists, directories))


def ungroup(groups: list[str]) -> int:
    """Remove control groups. Returns how many still exist because a process in them has not ended completely."""
    for group in groups:
        for directory in (*(file.parent for file in Path(group).glob("*/cgroup.procs")), Path(group)):
            with contextlib.suppress(OSError):
                directory.rmdir()
    return sum(map(os.path.exists, groups))


def allow_files() -> None:
    """Raise the soft limit of open files to the hard limit, at most MAX_FILES; children inherit it.

    The 1024 files of a login shell suffice for only 500 connections of a proxy.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main() -> None:
    """Serve requests until stdin ends."""
    allow_files()
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, lambda *_: None)  # children would inherit SIG_IGN and ignore requests to end
    files = socket.socket(fileno=int(sys.argv[2])) if len(sys.argv) > 2 else None
    if files:
        files.set_inheritable(False)
    supervisor = Supervisor(sys.argv[1], files)
    for line in sys.stdin:
        request = json.loads(line)
        number = request.pop("request", None)
        try:
            answer = getattr(supervisor, request.pop("do"))(**request)
        except (OSError, KeyError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        try:
            print(json.dumps({**answer, "request": number}), flush=True)
        except BrokenPipeError:
            break
    supervisor.close()


if __name__ == "__main__":
    main()
