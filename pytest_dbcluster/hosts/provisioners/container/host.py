"""A host that is a container. Its programs run in the container; its files lie in a directory of this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from pytest_dbcluster import formatting
from pytest_dbcluster.errors import CommandFailed, ProvisionError, Unsupported
from pytest_dbcluster.hosts.host import Completed, Falls, Host, Partitions, Pauses, Process
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.provisioners.container import agent
from pytest_dbcluster.hosts.provisioners.container.agent import Agent
from pytest_dbcluster.hosts.provisioners.container.engine import DOCKER_SOCKET, SCHEME, Engine, engine_errors, remove
from pytest_dbcluster.system import cgroups

AGENT_SECONDS = 30.0  # timeout for the first answer of the agent
END_SECONDS = 1.0  # to wait for the end of a killed command
LOOK_SECONDS = 5.0  # timeout for reading the counters of the kernel
DEFAULT = f"{SCHEME}{DOCKER_SOCKET}"
# The files of cgroup version 1 and 2; both have a line "oom_kill N".
OOM_COUNTS = "cat /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events 2>/dev/null || true"


class ContainerProcess(Process):
    """A program that the host's agent started."""

    def __init__(self, host: ContainerHost, number: int) -> None:
        self._host = host
        self._number = number
        self._inside = host.agent.pid(number)
        self._pid = 0

    @property
    def pid(self) -> int:
        """The process id on this machine; 0 when this machine cannot see the process."""
        if not self._pid:
            self._pid = self._host.pid_here(self._inside)
        return self._pid

    def status(self) -> int | None:
        """The exit status: None while the program runs, negative for the signal that ended the program."""
        return self._host.agent.status(self._number)

    def signal(self, number: int) -> None:
        """Send a signal to the program's process group."""
        self._host.agent.signal(self._number, signal.Signals(number).name.removeprefix("SIG"))


@dataclasses.dataclass(frozen=True)
class Attachment:
    """The connection of a container to its network.

    network: docker-py's network. address: IPv4 address. alias: second name on the network. rtt: the round-trip time
    to another container, in seconds; None adds no delay.
    """

    network: Any
    address: str
    alias: str
    rtt: float | None = None

    def delay(self, container: Any) -> None:
        """Delay outgoing packets of a container by half of ``rtt``. Raises Unsupported without nsenter, tc or netem."""
        if not self.rtt:
            return
        container.reload()
        line = ["nsenter", "--target", str(container.attrs["State"]["Pid"]), "--net"]
        line += ["tc", "qdisc", "add", "dev", "eth0", "root", "netem", "delay", f"{self.rtt / 2 * 1e6:.0f}us"]
        try:
            done = subprocess.run(line, capture_output=True, text=True, check=False)
        except OSError as error:
            raise Unsupported(f"rtt={self.rtt:g} needs the programs nsenter and tc of this machine: {error}") from None
        if done.returncode:
            reason = done.stderr.strip() or f"tc ended with {done.returncode}"
            raise Unsupported(
                f"rtt={self.rtt:g} needs root on this machine and a kernel with netem (its module sch_netem): {reason}"
            )


class ContainerHost(Host, Pauses, Partitions, Falls):
    """A container, its agent, and the directory that it shares with this machine under the same path."""

    root = os.geteuid() == 0

    def __init__(self, name: str, attachment: Attachment, files: LocalHost, engine: Engine, container: Any) -> None:
        self.name = name
        self.address = attachment.address
        self.directory = files.directory
        self.container = container
        self._files = files
        self._engine = engine
        self._attachment = attachment
        self._numbers = itertools.count(1)
        self._numbering = threading.Lock()
        with engine_errors(f"attach to container {container.name}", engine):
            raw = container.attach_socket(params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        self._raw = raw  # keep docker-py's object: the socket closes when the object is deleted
        stream = getattr(raw, "_sock", raw)
        stream.settimeout(None)
        self.agent = Agent(stream, f"container {container.name}")
        self.agent.wait_ready(AGENT_SECONDS)

    def run(
        self,
        command: Sequence[str],
        *,
        seconds: float = 60.0,
        environment: Mapping[str, str] | None = None,
        text: str = "",
    ) -> Completed:
        """Run a command in the container. The command is killed when waiting for it ends, for any reason."""
        began = time.monotonic()
        with self._numbering:
            prefix = f"{self.directory}/.command-{next(self._numbers)}"
        files = {kind: f"{prefix}.{kind}" for kind in ("in", "out", "err")}
        if text:
            self.push(text.encode(), files["in"])
        try:
            with self._reason():
                status = self._ended(command, files, seconds, environment or {}, bool(text))
            stdout, stderr = self._text(files["out"]), self._text(files["err"])
        finally:
            for file in files.values():
                Path(file).unlink(missing_ok=True)
        if status is None:
            raise CommandFailed(command, None, stdout, stderr, host=self.name, seconds=seconds)
        if status:
            raise CommandFailed(command, status, stdout, stderr, host=self.name)
        return Completed(stdout, stderr, time.monotonic() - began)

    def _ended(
        self,
        command: Sequence[str],
        files: Mapping[str, str],
        seconds: float,
        environment: Mapping[str, str],
        text: bool,
    ) -> int | None:
        number = self.agent.begin(
            agent.script(
                command,
                directory=self.directory,
                environment=environment,
                output=files["out"],
                errors=files["err"],
                text=files["in"] if text else "",
            )
        )
        status = None
        try:
            status = self.agent.wait(number, seconds)
        finally:
            if status is None:
                with contextlib.suppress(ProvisionError):
                    self.agent.signal(number, "KILL")
                    self.agent.wait(number, END_SECONDS)
        return status

    def _text(self, path: str) -> str:
        try:
            return self.pull(path).decode("utf-8", "replace")
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
        """Start a program, which ends with the container at the latest. Raises ProvisionError."""
        begin = agent.script(command, directory=directory, environment=environment or {}, output=log)
        with self._reason():
            return ContainerProcess(self, self.agent.begin(begin))

    @contextlib.contextmanager
    def _reason(self) -> Iterator[None]:
        """If the host ended because its engine did, raise an error that says so."""
        try:
            yield
        except ProvisionError:
            if self.agent.gone:
                self._look()
            raise

    def _look(self) -> None:
        """Read the state of the container from the engine. Raises ProvisionError when either of them is gone."""
        with engine_errors(f"look at container {self.container.name}", self._engine):
            self.container.reload()

    def limit_reached(self) -> str:
        """Which limit ended a program of this host, or why the whole host ended; empty for neither."""
        limit = self.container.attrs["HostConfig"]["Memory"]
        if limit and self._killed_for_memory():
            return f"the host's memory limit of {formatting.mebibytes(limit)} was reached"
        if not self.agent.gone:
            return ""
        try:
            self._look()
        except ProvisionError as error:
            return str(error)
        return self.agent.gone

    def _killed_for_memory(self) -> bool:
        # The engine reports an out-of-memory kill for a container that has ended. For a running container it may not:
        # Docker 20.10 on cgroup version 1 reports only the first program. The kernel counts the kills, and the
        # container can read the counter.
        with contextlib.suppress(ProvisionError):
            counters = self.run(["/bin/sh", "-c", OOM_COUNTS], seconds=LOOK_SECONDS).stdout
            return any(int(line.split()[1]) for line in counters.splitlines() if line.startswith("oom_kill "))
        with contextlib.suppress(ProvisionError):
            self._look()
        return bool(self.container.attrs["State"].get("OOMKilled"))

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

    def pid_here(self, inside: int) -> int:
        """The process id on this machine for a process id in the container; 0 when we do not see the process."""
        with contextlib.suppress(psutil.Error, OSError, ProvisionError):
            self._look()
            return agent.number_here(self.container.attrs["State"]["Pid"], inside)
        return 0

    def cpu_seconds(self) -> float | None:
        """The CPU time of all programs in the container so far, in seconds; None when we cannot read it."""
        return cgroups.cpu_seconds(self.container.attrs["State"]["Pid"])

    def pause(self) -> None:
        """Freeze every process in the container, as on a machine that stalls. Raises ProvisionError."""
        with engine_errors(f"pause container {self.container.name}", self._engine):
            self.container.pause()

    def resume(self) -> None:
        """Let the processes continue after a pause. Raises ProvisionError."""
        with engine_errors(f"resume container {self.container.name}", self._engine):
            self.container.unpause()

    def kill(self) -> None:
        """Kill every program in the container at once. The host stays usable. Raises ProvisionError."""
        with self._reason():
            self.agent.fall()

    def typed(self, command: Sequence[str]) -> list[str]:
        """The command line with which a user runs a command in the container; empty without ``docker`` and ``podman``.

        Both client programs work with both engines.
        """
        address = ["--host", self._engine.url] if self._engine.url != DEFAULT else []
        if shutil.which("docker"):
            return ["docker", *address, "exec", "-it", self.container.name, *command]
        if shutil.which("podman"):
            return ["podman", "--url", self._engine.url, "exec", "-it", self.container.name, *command]
        return []

    def partition(self) -> None:
        """Disconnect the container from its network, and so from this machine too. Raises ProvisionError."""
        with engine_errors(f"disconnect container {self.container.name}", self._engine):
            self._attachment.network.disconnect(self.container)

    def heal(self) -> None:
        """Connect the container to its network again, with address, alias and delay. Raises ProvisionError."""
        with engine_errors(f"connect container {self.container.name}", self._engine):
            self._attachment.network.connect(
                self.container, ipv4_address=self.address, aliases=[self._attachment.alias]
            )
        self._attachment.delay(self.container)  # the new network interface has no delay yet

    def close(self) -> None:
        """End the container and every program in it. A container that is already gone is no error."""
        self.detach()
        with contextlib.suppress(ProvisionError):  # without its engine the container has already ended
            remove(self._engine, self.container)

    def detach(self) -> None:
        """Close our connection to the container. The container ends then, unless the run is kept."""
        self.agent.close()
        for part in filter(None, (getattr(self._raw, "_response", None), self._raw)):
            with contextlib.suppress(OSError, ValueError):
                part.close()
