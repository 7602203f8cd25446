"""A host that is a directory of this machine with the address 127.0.0.1, and our connection to its supervisor.

The supervisor starts the programs. When our process ends, it ends them and removes the directories of the run.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster.errors import CommandFailed, ProvisionError
from pytest_dbcluster.hosts import supervisor
from pytest_dbcluster.hosts.host import Completed, EndsCommands, Host, LimitsWrites, Process
from pytest_dbcluster.system import direct_copy, processes
from pytest_dbcluster.system.cgroups import Group
from pytest_dbcluster.system.ports import PortLocks

# Added to the supervisor's timeouts: killed servers end slowly on a busy disk.
SLACK_SECONDS = 20
ANSWER_SECONDS = 60.0  # until the supervisor answers; SILENT_SECONDS once it did not
SILENT_SECONDS = 1.0
KILLED_SECONDS = 10.0  # to wait for the output of a killed program
OTHER_DIRECTORY = "set DBCLUSTER_DATA_DIR to another directory"
COPY = ("cp", "-a", "--reflink=auto")  # of a directory, through the page cache


class SupervisorClient:
    """Our end of the pipes to the supervisor."""

    def __init__(self, run: str, *, keep: bool = False) -> None:
        self.run = run
        self.keep = keep
        self.started: set[int] = set()  # process ids of its programs
        self._closed = self._died = False
        self._sent = 0
        self._read = b""  # what the supervisor has written beyond its last whole line
        self._patience = ANSWER_SECONDS
        self._after = 0.0  # timeouts of the clean-up commands of the supervisor, in seconds
        # Several threads send requests. A signal handler may send one while its thread waits for an answer.
        self._asking = threading.RLock()
        self._files, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", supervisor.__file__, run, str(theirs.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
                pass_fds=[theirs.fileno()],
            )

    @property
    def pid(self) -> int:
        """The process id of the supervisor."""
        return self._process.pid

    @property
    def lost(self) -> str:
        """A clause for a message if the supervisor has ended unexpectedly; otherwise empty."""
        if not self._closed and self._process.poll() is not None:
            self._died = True
        return self._gone if self._died else ""

    @property
    def _gone(self) -> str:
        return f"the supervisor of the local servers (pid {self._process.pid}) is gone; its servers ended with it"

    def ask(self, do: str, files: Sequence[int] = (), **what: Any) -> dict[str, Any]:
        """Send one request and return its answer. ``files``: descriptors of our open files to send with the request.

        Raises ProvisionError with the error text of the supervisor, and if it does not answer in time.
        """
        try:
            with self._asking:
                if files:
                    socket.send_fds(self._files, [b"\0"], files)
                number = self._send(do, **what)
                line = self._read_line(do)
                # After Ctrl-C between a request and its answer, an old answer is in the pipe.
                while line and json.loads(line)["request"] != number:
                    line = self._read_line(do)
        except (BrokenPipeError, ValueError):
            line = b""
        if not line:
            raise ProvisionError(self._gone)
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ProvisionError(f"could not {do} {what.get('argv', what)}: {answer['error']}")
        self._after += what["seconds"] if do == "after" else 0
        if do == "spawn":
            self.started.add(answer["pid"])
        return answer

    def _read_line(self, do: str) -> bytes:
        """The next line of the supervisor; empty after its end. Raises ProvisionError if there is none in time."""
        assert self._process.stdout
        limit, poll = time.monotonic() + self._patience, select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        while b"\n" not in self._read:
            if not poll.poll(1e3 * max(0.0, limit - time.monotonic())):
                waited, self._patience = self._patience, SILENT_SECONDS
                raise ProvisionError(
                    f"the supervisor of the local servers (pid {self.pid}) did not answer {do!r} within {waited:g} s: "
                    "it is stopped, or waits for a disk"
                )
            part = os.read(self._process.stdout.fileno(), 2**16)
            if not part:
                return b""
            self._read += part
        line, _, self._read = self._read.partition(b"\n")
        self._patience = ANSWER_SECONDS
        return line

    def _send(self, do: str, **what: object) -> int:
        assert self._process.stdin
        self._sent += 1
        self._process.stdin.write(json.dumps({"do": do, "request": self._sent, **what}) + "\n")
        self._process.stdin.flush()
        return self._sent

    def close(self) -> None:
        """End the supervisor and its programs. Raises ProvisionError if the supervisor does not end in time."""
        self._closed = True
        if self._process.stdin and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):  # the supervisor was killed before it read the last request
                self._process.stdin.close()
        limit = self._after + supervisor.CLEAN_SECONDS + SLACK_SECONDS
        try:
            self._process.wait(limit)
        except subprocess.TimeoutExpired:
            raise ProvisionError(
                f"the supervisor of the local servers (pid {self._process.pid}) has not ended them within {limit} s; "
                f"it continues: `dbcluster ps` lists run {self.run}, `dbcluster reap` removes what is left"
            ) from None
        finally:
            self._files.close()
            if self._process.stdout:
                self._process.stdout.close()


def rest_of(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The output of a killed program, as far as it comes within KILLED_SECONDS.

    A program that waits for a disk does not end. One outside of its group may keep its pipes open.
    """
    try:
        return process.communicate(timeout=KILLED_SECONDS)
    except subprocess.TimeoutExpired as error:
        process.poll()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()
        texts = (part.decode("utf-8", "replace") if part else "" for part in (error.output, error.stderr))
        return next(texts), next(texts)


class LocalProcess(Process):
    """A program that the supervisor started."""

    def __init__(self, client: SupervisorClient, pid: int) -> None:
        self._client = client
        self._pid = pid

    @property
    def pid(self) -> int:
        """The process id on this machine."""
        return self._pid

    def status(self) -> int | None:
        """The exit status: None while the program runs, negative for the signal that ended the program."""
        status: int | None = self._client.ask("status", pid=self._pid)["status"]
        return status

    def signal(self, number: int) -> None:
        """Send a signal to the program's process group."""
        self._client.ask("signal", pid=self._pid, number=number)


class LocalHost(Host, LimitsWrites, EndsCommands):
    """A directory on this machine with the address 127.0.0.1. ``group``: the control group of its programs, or None."""

    address = "127.0.0.1"
    root = os.geteuid() == 0

    def __init__(self, name: str, directory: Path, client: SupervisorClient, ports: PortLocks) -> None:
        self.name = name
        self.directory = str(directory)
        self._client = client
        self._ports = ports
        self.group: Group | None = None
        self._commands: set[subprocess.Popen[str]] = set()  # running ones
        self.enters: list[str] = []  # the beginning of the command line of this host's programs
        directory.mkdir(parents=True, exist_ok=True)

    def run(
        self,
        command: Sequence[str],
        *,
        seconds: float = 60.0,
        environment: Mapping[str, str] | None = None,
        text: str = "",
    ) -> Completed:
        """Run a command in its own process group, so that Ctrl-C reaches us first and we end the command.

        If we are killed, the supervisor finds the command by the mark of the run and ends it.
        """
        start = time.monotonic()
        process = self._begin(command, environment or {})
        self._commands.add(process)
        try:
            stdout, stderr = process.communicate(text, timeout=seconds)
        except BaseException as error:
            # After Ctrl-C, communicate waits for a command that may end by itself; then its process group is gone.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = rest_of(process)
            if isinstance(error, subprocess.TimeoutExpired):
                raise CommandFailed(command, None, stdout, stderr, host=self.name, seconds=seconds) from None
            raise
        finally:
            self._commands.discard(process)
        if process.returncode:
            raise CommandFailed(command, process.returncode, stdout, stderr, host=self.name)
        return Completed(stdout, stderr, time.monotonic() - start)

    def end_commands(self) -> None:
        """Kill the commands that ``run`` has begun."""
        for process in tuple(self._commands):
            if process.poll() is None:  # until then no other program can have its process id
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def _begin(self, command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
        try:
            return subprocess.Popen(
                [*self.enters, *command],
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
            reason = f"{error.strerror}: {error.filename}"
            raise CommandFailed(command, 127, stderr=reason, host=self.name) from None

    def spawn(
        self,
        command: Sequence[str],
        *,
        log: str,
        directory: str,
        environment: Mapping[str, str] | None = None,
        inherits: Sequence[int] = (),
        talks: bool = False,
    ) -> LocalProcess:
        """Start a program through the supervisor, under the limits of this host. It ends when our process ends.

        ``inherits``: descriptors of our open files for the program; ``{0}``, ``{1}`` ... in ``command`` become its
        descriptors. Without such files, braces have no meaning in a command. ``talks``: the first file is the program's
        input and output.
        """
        answer = self._client.ask(
            "spawn",
            files=inherits,
            inherits=len(inherits),
            talks=talks,
            argv=[*self.enters, *command],
            environment={**os.environ, **(environment or {})},
            directory=directory,
            log=log,
            keep=self._client.keep,
            joins=self.group.joins if self.group else [],
        )
        return LocalProcess(self._client, answer["pid"])

    def why_lost(self) -> str:
        """Why no program can start here any more, if the supervisor is gone; otherwise empty."""
        return self._client.lost

    def limit_reached(self) -> str:
        """Which limit ended a program of this host; empty if no limit did."""
        return self.group.limit_reached() if self.group else ""

    def write_limit(self) -> int | None:
        """The write operations/s of this host's programs; None without a limit."""
        return self.group.write_limit() if self.group else None

    def limit_writes(self, iops: int) -> None:
        """Change the limit on writes of a host that has one. Raises ProvisionError."""
        if not self.group:
            raise ProvisionError(f"host {self.name} has no limit on writes that could change")
        self.group.limit_writes(iops)

    def push(self, content: bytes, path: str, *, mode: int = 0o600) -> None:
        """Write a new file with these permissions from the start, so that no other user can open it early."""
        target = Path(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content)
        except OSError as error:
            raise ProvisionError(f"cannot write {path}: {error.strerror}; {OTHER_DIRECTORY}") from None

    def pull(self, path: str, *, offset: int = 0) -> bytes:
        """The content of a file from byte ``offset`` (0-based) to its end."""
        with Path(path).open("rb") as file:
            file.seek(offset)
            return file.read()

    def cpu_seconds(self) -> float | None:
        """The CPU time of this process's ended commands, in seconds, summed over all local hosts."""
        times = os.times()
        return times.children_user + times.children_system

    def running_cpu_seconds(self) -> float | None:
        """As ``cpu_seconds``, with the running commands, if the kernel lists the children of a process.

        Programs of the supervisor, such as servers and proxies, are not commands.
        """
        times = os.times()
        running = processes.running_children_seconds(without=self._client.pid)
        return times.children_user + times.children_system + running

    def port(self, usual: int) -> int:
        """A free port on 127.0.0.1; ``usual`` is ignored."""
        return self._ports.take()

    def copy_tree(self, source: str, target: str, *, durable: bool = False) -> None:
        """Copy a directory. The copy shares blocks with the source on file systems that support reflinks."""
        if not durable:
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            self.run([*COPY, f"{source}/.", target])
            return
        try:
            direct_copy.copy_tree(Path(source), Path(target))
        except OSError as error:
            raise ProvisionError(f"cannot copy {source} to {target}: {error.strerror}; {OTHER_DIRECTORY}") from None

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it."""
        shutil.rmtree(path, ignore_errors=True)
