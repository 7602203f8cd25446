"""A host whose agent runs its programs, and whose files are in a directory that it shares with this machine."""

from __future__ import annotations

import contextlib
import itertools
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts import agent
from pytest_dbcluster.hosts.agent import Agent
from pytest_dbcluster.hosts.host import IS_STOPPED, TELL_SECONDS, Completed, EndsCommands, Host, Process, result_of
from pytest_dbcluster.hosts.local_host import LocalHost


class AgentProcess(Process):
    """A program that the agent of a host started."""

    def __init__(self, host: AgentHost, number: int) -> None:
        self._host = host
        self._agent = host.agent  # a host that starts again has a new one
        self._number = number
        self._inside = self._agent.pid(number)
        self._pid = 0

    @property
    def pid(self) -> int:
        """The process id on this machine; 0 if this machine cannot see the process."""
        if not self._pid:
            self._pid = self._host.pid_here(self._inside)
        return self._pid

    def status(self) -> int | None:
        """The exit status: None while the program runs, negative for the signal that ended the program."""
        return self._agent.status(self._number)

    def is_stopped(self) -> bool:
        """Whether a signal has stopped the program. Raises ProvisionError if the host does not answer."""
        if self.pid:
            return super().is_stopped()
        return self._agent.holds(IS_STOPPED.format(self._inside), TELL_SECONDS)

    def signal(self, number: int) -> None:
        """Send a signal to the program's process group."""
        self._agent.signal(self._number, signal.Signals(number).name.removeprefix("SIG"))


class AgentHost(Host, EndsCommands):
    """A host with an agent. It sees the directory of ``files`` under the same path as this machine."""

    agent: Agent
    """Our connection to the program that starts programs on the host."""

    def __init__(self, name: str, address: str, files: LocalHost) -> None:
        self.name = name
        self.address = address
        self.directory = files.directory
        self._files = files
        self._numbers = itertools.count(1)
        self._numbering = threading.Lock()

    def look(self) -> None:
        """Find out why the agent is gone. Raises ProvisionError if there is a better reason than the agent's."""

    def begin(self, script: str) -> int:
        """Start a script of ``agent.script`` on the host; returns its number. Raises ProvisionError."""
        return self.agent.begin(script)

    def pid_here(self, inside: int) -> int:
        """The process id on this machine for a process id on the host; 0 if we do not see it."""
        return 0

    def run(
        self,
        command: Sequence[str],
        *,
        seconds: float = 60.0,
        environment: Mapping[str, str] | None = None,
        text: str = "",
    ) -> Completed:
        """Run a command on the host. When the wait ends for any reason, it kills the command."""
        began = time.monotonic()
        with self._numbering:
            prefix = f"{self.directory}/.command-{next(self._numbers)}"
        files = {kind: f"{prefix}.{kind}" for kind in ("in", "out", "err")}
        if text:
            self.push(text.encode(), files["in"])
        script = agent.script(
            command, directory=self.directory, environment=environment or {}, output=files["out"], errors=files["err"],
            text=files["in"] if text else "",
        )  # fmt: skip
        try:
            with self._reason():
                number = self.begin(script)
                status = self.agent.wait_for_command(number, seconds)
            stdout, stderr = self._text(files["out"]), self._text(files["err"])
        finally:
            for file in files.values():
                Path(file).unlink(missing_ok=True)
        return result_of(command, status, stdout, stderr, host=self.name, timeout=seconds, began=began)

    def end_commands(self) -> None:
        """Kill the commands that ``run`` has begun."""
        self.agent.end_commands()

    def _text(self, path: str) -> str:
        try:
            return self._files.pull(path).decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def spawn(
        self,
        command: Sequence[str],
        *,
        log: str,
        directory: str,
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a program, which ends with the host at the latest. Raises ProvisionError."""
        script = agent.script(command, directory=directory, environment=environment or {}, output=log)
        with self._reason():
            return AgentProcess(self, self.begin(script))

    @contextlib.contextmanager
    def _reason(self) -> Iterator[None]:
        """If the host ended, raise an error with a better reason than the agent's, if there is one."""
        try:
            yield
        except ProvisionError:
            if self.agent.gone:
                self.look()
            raise

    def push(self, content: bytes, path: str, *, mode: int = 0o600) -> None:
        """Write a file into the shared directory."""
        self._files.push(content, path, mode=mode)

    def pull(self, path: str, *, offset: int = 0) -> bytes:
        """The content of a file in the shared directory from byte ``offset`` (0-based) to its end."""
        return self._files.pull(path, offset=offset)

    def copy_tree(self, source: str, target: str, *, durable: bool = False) -> None:
        """Copy a directory of this machine into the shared directory."""
        self._files.copy_tree(source, target, durable=durable)

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it."""
        self._files.remove_tree(path)
