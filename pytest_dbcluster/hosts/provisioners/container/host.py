"""A host that is a container: its programs run there, its files lie in a directory of this machine that it shares."""

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
from pytest_dbcluster.hosts.provisioners.container.engine import DOCKER_SOCKET, SCHEME, Engine, remove, said
from pytest_dbcluster.system import cgroups

AGENT_SECONDS = 30.0
END_SECONDS = 1.0
LOOK_SECONDS = 5.0
DEFAULT = f"{SCHEME}{DOCKER_SOCKET}"
# Of cgroups of version 1 and 2; both files have a line "oom_kill N".
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
        """Its number among the processes of this machine; 0 when it cannot be seen from here."""
        if not self._pid:
            self._pid = self._host.pid_here(self._inside)
        return self._pid

    def status(self) -> int | None:
        """None while it runs, then its exit status."""
        return self._host.agent.status(self._number)

    def signal(self, number: int) -> None:
        """Send a signal to the program's process group."""
        self._host.agent.signal(self._number, signal.Signals(number).name.removeprefix("SIG"))


@dataclasses.dataclass(frozen=True)
class Way:
    """How a container is on its network (docker-py's): address, second name, round trip in seconds to a peer."""

    network: Any
    address: str
    alias: str
    rtt: float | None = None

    def delay(self, container: Any) -> None:
        """Delay what leaves a container by half of the round trip, if one is asked for. Raises Unsupported."""
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
            words = done.stderr.strip() or f"tc ended with {done.returncode}"
            raise Unsupported(
                f"rtt={self.rtt:g} needs root on this machine and a kernel with netem (its module sch_netem): {words}"
            )


class ContainerHost(Host, Pauses, Partitions, Falls):
    """A container, the directory that it shares with this machine under the same name, and its agent."""

    root = os.geteuid() == 0

    def __init__(self, name: str, way: Way, files: LocalHost, engine: Engine, container: Any) -> None:
        self.name = name
        self.address = way.address
        self.directory = files.directory
        self.container = container
        self._files = files
        self._engine = engine
        self._way = way
        self._numbers = itertools.count(1)
        self._numbering = threading.Lock()
        with said(f"attach to container {container.name}", engine):
            raw = container.attach_socket(params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        self._raw = raw  # the socket lives as long as the object that docker-py gave
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
        """Run a command in the container; whatever ends the wait for it ends the command."""
        began = time.monotonic()
        with self._numbering:
            place = f"{self.directory}/.command-{next(self._numbers)}"
        files = {kind: f"{place}.{kind}" for kind in ("in", "out", "err")}
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
        """Start a program; it ends with the container."""
        begin = agent.script(command, directory=directory, environment=environment or {}, output=log)
        with self._reason():
            return ContainerProcess(self, self.agent.begin(begin))

    @contextlib.contextmanager
    def _reason(self) -> Iterator[None]:
        """A host that has ended because its engine has says so."""
        try:
            yield
        except ProvisionError:
            if self.agent.gone:
                self._look()
            raise

    def _look(self) -> None:
        """Ask the engine what it knows of the container. Raises ProvisionError when one of them is gone."""
        with said(f"look at container {self.container.name}", self._engine):
            self.container.reload()

    def limit_reached(self) -> str:
        """Which limit has ended a program here, or that the whole host has ended; empty for neither."""
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
        # The engine says it of a container that has ended. Of one that goes on it may not: Docker 20.10 on cgroups of
        # version 1 is silent about a program that is not the first. Its kernel counts, and the container sees that.
        with contextlib.suppress(ProvisionError):
            seen = self.run(["/bin/sh", "-c", OOM_COUNTS], seconds=LOOK_SECONDS).stdout
            return any(int(line.split()[1]) for line in seen.splitlines() if line.startswith("oom_kill "))
        with contextlib.suppress(ProvisionError):
            self._look()
        return bool(self.container.attrs["State"].get("OOMKilled"))

    def push(self, content: bytes, path: str, *, mode: int = 0o600) -> None:
        """Write a file into the shared directory."""
        self._files.push(content, path, mode=mode)

    def pull(self, path: str, *, offset: int = 0) -> bytes:
        """Read a file of the shared directory from ``offset`` on."""
        return self._files.pull(path, offset=offset)

    def copy_tree(self, source: str, target: str, *, durable: bool = False) -> None:
        """Copy a directory of this machine into the shared one."""
        self._files.copy_tree(source, target, durable=durable)

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it."""
        self._files.remove_tree(path)

    def pid_here(self, inside: int) -> int:
        """The number among this machine's processes of the one that has this number in the container; 0 without any."""
        with contextlib.suppress(psutil.Error, OSError, ProvisionError):
            self._look()
            return agent.number_here(self.container.attrs["State"]["Pid"], inside)
        return 0

    def cpu_seconds(self) -> float | None:
        """The CPU time of everything in the container so far; None where it cannot be seen from here."""
        return cgroups.cpu_seconds(self.container.attrs["State"]["Pid"])

    def pause(self) -> None:
        """Freeze everything in the container, as a stalled machine would be. Raises ProvisionError."""
        with said(f"pause container {self.container.name}", self._engine):
            self.container.pause()

    def resume(self) -> None:
        """End a pause. Raises ProvisionError."""
        with said(f"resume container {self.container.name}", self._engine):
            self.container.unpause()

    def kill(self) -> None:
        """End everything in the container at once; it can be used again. Raises ProvisionError."""
        with self._reason():
            self.agent.fall()

    def typed(self, command: Sequence[str]) -> list[str]:
        """The words by which a person runs a command here from a shell; none without the engine's own program.

        Its program of either engine speaks with both.
        """
        address = ["--host", self._engine.url] if self._engine.url != DEFAULT else []
        if shutil.which("docker"):
            return ["docker", *address, "exec", "-it", self.container.name, *command]
        if shutil.which("podman"):
            return ["podman", "--url", self._engine.url, "exec", "-it", self.container.name, *command]
        return []

    def partition(self) -> None:
        """Take the container off its network: nobody reaches it, this machine neither. Raises ProvisionError."""
        with said(f"disconnect container {self.container.name}", self._engine):
            self._way.network.disconnect(self.container)

    def heal(self) -> None:
        """Put the container on its network again as it was. Raises ProvisionError."""
        with said(f"connect container {self.container.name}", self._engine):
            self._way.network.connect(self.container, ipv4_address=self.address, aliases=[self._way.alias])
        self._way.delay(self.container)  # it was the old interface's

    def close(self) -> None:
        """End the container and everything in it. Never raises for one that is gone already."""
        self.detach()
        with contextlib.suppress(ProvisionError):  # without its engine it has ended
            remove(self._engine, self.container)

    def detach(self) -> None:
        """Let go of the container, which ends with that unless it is to be kept."""
        self.agent.close()
        for part in filter(None, (getattr(self._raw, "_response", None), self._raw)):
            with contextlib.suppress(OSError, ValueError):
                part.close()
