"""A small process that starts the servers, and ends them when the process that asked for them is gone.

Run as a script, with the standard library alone: ``python supervisor.py RUN_ID``. Requests and answers are
JSON lines on stdin and stdout; an answer repeats its request's number. The end of stdin means that the owner has
ended, however it did: every child is killed and the directories that were handed over are removed.

A parent-death signal belongs to the thread that forked (prctl(2), PR_SET_PDEATHSIG), and a test run has
threads that come and go; this process has one. The signal covers the death of the supervisor itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1  # linux/prctl.h
RUN_VARIABLE = "DBCLUSTER_RUN"
CLEAN_SECONDS = 10
AFTER_SECONDS = 60
MOST_FILES = 65_536  # some programs make a table of all that are allowed, and the hard limit may be a thousand million
_libc = ctypes.CDLL(None, use_errno=True)


def before_exec(parent: int | None, joins: Sequence[str]) -> Callable[[], None]:
    """A function for the child to call before exec: join the control groups, and die when ``parent`` is gone.

    ``joins`` are files of the groups that a process writes its number into; None is no parent to die with.
    """

    def ask() -> None:
        for file in joins:
            descriptor = os.open(file, os.O_WRONLY)
            os.write(descriptor, str(os.getpid()).encode())
            os.close(descriptor)
        if parent is not None:
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGKILL)

    return ask


class Supervisor:
    """The children of one run. ``keep`` leaves them alive when the owner goes."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.keep = False
        self.children: dict[int, subprocess.Popen[bytes]] = {}
        self.directories: list[str] = []
        self.commands: list[tuple[list[str], dict[str, str]]] = []
        self.groups: list[str] = []

    def spawn(
        self,
        argv: list[str],
        environment: dict[str, str],
        directory: str,
        log: str,
        keep: bool,
        joins: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Start a program in a process group of its own; its output is added to the file ``log``.

        ``joins`` are the ``cgroup.procs`` files of the control groups that it is in from its first instruction on.
        """
        with Path(log).open("ab") as output:
            try:
                child = subprocess.Popen(
                    argv,
                    env={**environment, RUN_VARIABLE: self.run},
                    cwd=directory,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=before_exec(None if keep else os.getpid(), joins),  # noqa: PLW1509  (no threads here)
                )
            except subprocess.SubprocessError:  # all that is said of an error before exec
                raise OSError(f"it could not join its control groups, {', '.join(joins)}") from None
        self.children[child.pid] = child
        return {"pid": child.pid}

    def status(self, pid: int) -> dict[str, Any]:
        """The exit status of a child, None while it runs; negative for a signal."""
        return {"status": self.children[pid].poll()}

    def signal(self, pid: int, number: int) -> dict[str, Any]:
        """Send a signal to a child's process group, which its own children share."""
        if self.children[pid].poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, number)
        return {}

    def own(self, directory: str) -> dict[str, Any]:
        """Remove this directory at the end."""
        self.directories.append(directory)
        return {}

    def after(self, argv: list[str], environment: dict[str, str]) -> dict[str, Any]:
        """Run this command at the end, when every child has ended."""
        self.commands.append((argv, environment))
        return {}

    def own_group(self, group: str) -> dict[str, Any]:
        """Remove this control group, and those inside of it, at the end."""
        self.groups.append(group)
        return {}

    def leave(self) -> dict[str, Any]:
        """From now on the end of the owner ends nothing: the servers and directories stay."""
        self.keep = True
        return {}

    def close(self) -> dict[str, Any]:
        """Kill what still runs and remove what was handed over, unless it is to be kept."""
        if self.keep:
            return {}
        for pid in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        for child in self.children.values():
            child.wait()
        for argv, environment in self.commands:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                quiet = subprocess.DEVNULL
                subprocess.run(
                    argv, env=environment, stdin=quiet, stdout=quiet, stderr=quiet, timeout=AFTER_SECONDS, check=False
                )
        limit = time.monotonic() + CLEAN_SECONDS
        # What a server or a command has started in a session of its own carries the mark too, and may still write.
        while kill_marked(self.run) + remove(self.directories) + ungroup(self.groups) and time.monotonic() < limit:
            time.sleep(0.01)
        return {}


def kill_marked(run: str) -> int:
    """Kill every process that carries this run's mark; how many there were."""
    mark, found = f"{RUN_VARIABLE}={run}".encode(), 0
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (place / "environ").read_bytes().split(b"\0"):
                found += 1
                os.kill(int(place.name), signal.SIGKILL)
    return found


def remove(directories: list[str]) -> int:
    """Remove directories; how many could not be removed whole, because somebody still wrote into them."""
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
    return sum(map(os.path.exists, directories))


def ungroup(groups: list[str]) -> int:
    """Remove control groups; how many could not be removed, because a process in them is not quite gone."""
    for group in groups:
        for place in (*(file.parent for file in Path(group).glob("*/cgroup.procs")), Path(group)):
            with contextlib.suppress(OSError):
                place.rmdir()
    return sum(map(os.path.exists, groups))


def allow_files() -> None:
    """Let children open as many files as the hard limit allows: a login shell's 1024 are 500 connections of a proxy."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def main() -> None:
    """Serve requests until stdin ends."""
    allow_files()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # SIG_IGN would be inherited, and no child could be asked to end
    supervisor = Supervisor(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line)
        asked = request.pop("request", None)
        try:
            answer = getattr(supervisor, request.pop("do"))(**request)
        except (OSError, KeyError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        try:
            print(json.dumps({**answer, "request": asked}), flush=True)
        except BrokenPipeError:
            break
    supervisor.close()


if __name__ == "__main__":
    main()
