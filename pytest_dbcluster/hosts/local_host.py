"""A host that is a directory of this machine and 127.0.0.1, and the supervisor that starts its programs.

The supervisor ends them, and removes what was handed over to it, when the process that asked for them is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster.errors import CommandFailed, ProvisionError
from pytest_dbcluster.hosts import supervisor
from pytest_dbcluster.hosts.host import Completed, Host, Process
from pytest_dbcluster.system import direct_copy
from pytest_dbcluster.system.cgroups import Group
from pytest_dbcluster.system.ports import PortLocks

SLACK_SECONDS = 20  # beyond what a supervisor allows itself: killed servers are waited for, on a busy disk
OTHER_PLACE = "DBCLUSTER_DATA_DIR chooses another place"


class SupervisorClient:
    """Our end of the pipe to the supervisor."""

    def __init__(self, run: str, *, keep: bool = False) -> None:
        self.run = run
        self.keep = keep
        self._sent = 0
        self._after = 0  # commands that the supervisor runs at its end
        # Nodes are asked from several threads; one that a signal interrupts may ask again.
        self._asking = threading.RLock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", supervisor.__file__, run],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def ask(self, do: str, **what: object) -> dict[str, Any]:
        """One request and its answer. Raises ProvisionError with the supervisor's own words."""
        assert self._process.stdout
        try:
            with self._asking:
                number = self._send(do, **what)
                line = self._process.stdout.readline()
                # Ctrl-C between a request and its answer leaves that answer in the pipe.
                while line and json.loads(line)["request"] != number:
                    line = self._process.stdout.readline()
        except (BrokenPipeError, ValueError):
            line = ""
        if not line:
            raise ProvisionError(
                f"the supervisor of the local servers (pid {self._process.pid}) is gone; its servers ended with it"
            )
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ProvisionError(f"could not {do} {what.get('argv', what)}: {answer['error']}")
        self._after += do == "after"
        return answer

    def _send(self, do: str, **what: object) -> int:
        assert self._process.stdin
        self._sent += 1
        self._process.stdin.write(json.dumps({"do": do, "request": self._sent, **what}) + "\n")
        self._process.stdin.flush()
        return self._sent

    def close(self) -> None:
        """End the supervisor, and with it everything that it still has. Raises ProvisionError when it does not end."""
        if self._process.stdin and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):  # it was killed, and a request is still on its way
                self._process.stdin.close()
        limit = self._after * supervisor.AFTER_SECONDS + supervisor.CLEAN_SECONDS + SLACK_SECONDS
        try:
            self._process.wait(limit)
        except subprocess.TimeoutExpired:
            raise ProvisionError(
                f"the supervisor of the local servers (pid {self._process.pid}) still ends them after {limit} s; "
                f"run {self.run} is left to it: see dbcluster ps, and dbcluster reap ends what it leaves"
            ) from None
        finally:
            if self._process.stdout:
                self._process.stdout.close()


class LocalProcess(Process):
    """A program that the supervisor started."""

    def __init__(self, client: SupervisorClient, pid: int) -> None:
        self._client = client
        self._pid = pid

    @property
    def pid(self) -> int:
        """Its number among the processes of this machine."""
        return self._pid

    def status(self) -> int | None:
        """None while it runs, then its exit status."""
        status: int | None = self._client.ask("status", pid=self._pid)["status"]
        return status

    def signal(self, number: int) -> None:
        """Send a signal to the program's process group."""
        self._client.ask("signal", pid=self._pid, number=number)


class LocalHost(Host):
    """A directory on this machine, and 127.0.0.1. What it spawns is in its control group, where it has one."""

    address = "127.0.0.1"
    root = os.geteuid() == 0

    def __init__(self, name: str, directory: Path, client: SupervisorClient, ports: PortLocks) -> None:
        self.name = name
        self.directory = str(directory)
        self._client = client
        self._ports = ports
        self.group: Group | None = None
        directory.mkdir(parents=True, exist_ok=True)

    def run(
        self,
        command: Sequence[str],
        *,
        seconds: float = 60.0,
        environment: Mapping[str, str] | None = None,
        text: str = "",
    ) -> Completed:
        """Run a command in a process group of its own, so that Ctrl-C reaches us first and we end it.

        When we are killed the supervisor ends it, which knows it by the run's mark.
        """
        start = time.monotonic()
        process = self._begin(command, environment or {})
        try:
            stdout, stderr = process.communicate(text, timeout=seconds)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise CommandFailed(command, None, stdout, stderr, host=self.name, seconds=seconds) from None
            raise
        if process.returncode:
            raise CommandFailed(command, process.returncode, stdout, stderr, host=self.name)
        return Completed(stdout, stderr, time.monotonic() - start)

    def _begin(self, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
        try:
            return subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env={**os.environ, **environment, supervisor.RUN_VARIABLE: self._client.run},
                cwd=self.directory,
                start_new_session=True,
            )
        except OSError as error:
            words = f"{error.strerror}: {error.filename}"
            raise CommandFailed(command, 127, stderr=words, host=self.name) from None

    def spawn(
        self,
        command: Sequence[str],
        *,
        log: str,
        directory: str,
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a program through the supervisor, which ends it when this run is gone; limits hold for it."""
        answer = self._client.ask(
            "spawn",
            argv=list(command),
            environment={**os.environ, **(environment or {})},
            directory=directory,
            log=log,
            keep=self._client.keep,
            joins=self.group.joins if self.group else [],
        )
        return LocalProcess(self._client, answer["pid"])

    def limit_reached(self) -> str:
        """Which limit has ended a program here; empty for none."""
        return self.group.limit_reached() if self.group else ""

    def push(self, content: bytes, path: str, *, mode: int = 0o600) -> None:
        """Write a file, readable by nobody else from its first byte on."""
        target = Path(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content)
        except OSError as error:
            raise ProvisionError(f"cannot write {path}: {error.strerror}; {OTHER_PLACE}") from None

    def pull(self, path: str, *, offset: int = 0) -> bytes:
        """Read a file from ``offset`` on."""
        with Path(path).open("rb") as file:
            file.seek(offset)
            return file.read()

    def cpu_seconds(self) -> float | None:
        """The CPU time of commands of this process that have ended, in seconds: those of all hosts of this machine."""
        times = os.times()
        return times.children_user + times.children_system

    def port(self, usual: int) -> int:
        """A free port on 127.0.0.1, whatever the usual one is."""
        return self._ports.take()

    def copy_tree(self, source: str, target: str, *, durable: bool = False) -> None:
        """Copy a directory; blocks are shared where the file system can."""
        if not durable:
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            self.run(["cp", "-a", "--reflink=auto", f"{source}/.", target])
            return
        try:
            direct_copy.copy_tree(Path(source), Path(target))
        except OSError as error:
            raise ProvisionError(f"cannot copy {source} to {target}: {error.strerror}; {OTHER_PLACE}") from None

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it."""
        shutil.rmtree(path, ignore_errors=True)
