"""A host that is a container. Its programs run in the container; its files are in a directory of this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from pytest_dbcluster import formatting
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.agent import Agent
from pytest_dbcluster.hosts.agent_host import AgentHost
from pytest_dbcluster.hosts.host import Falls, LimitsWrites, Partitions, Pauses
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.network.path import NetworkPath
from pytest_dbcluster.hosts.provisioners.container.engine import DOCKER_SOCKET, SCHEME, Engine, engine_errors, remove
from pytest_dbcluster.spec import NO_LIMITS
from pytest_dbcluster.system import cgroups

AGENT_SECONDS = 30.0  # timeout for the first answer of the agent
# A container without a terminal sends its streams in frames: the header has the stream and the length
# (https://docs.docker.com/reference/api/engine/version/v1.41/#operation/ContainerAttach).
FRAME = struct.Struct(">BxxxI")
OUTPUT = 1
ENDED = "has ended, or its engine has"
LOOK_SECONDS = 5.0  # timeout for reading the counters of the kernel
DEFAULT = f"{SCHEME}{DOCKER_SOCKET}"
# The files of cgroup version 1 and 2; both have a line "oom_kill N".
OOM_COUNTS = "cat /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events 2>/dev/null || true"


def frames(stream: socket.socket) -> Iterator[tuple[bool, bytes]]:
    """The parts of a container's stream: whether each is output, and its content."""
    while header := _exactly(stream, FRAME.size):
        kind, length = FRAME.unpack(header)
        yield kind == OUTPUT, _exactly(stream, length)


def _exactly(stream: socket.socket, length: int) -> bytes:
    """Read ``length`` bytes; fewer only at the end of the stream."""
    content = bytearray()
    while len(content) < length and (part := stream.recv(length - len(content))):
        content += part
    return bytes(content)


def number_here(agent: int, inside: int) -> int:
    """The process id on this machine for process id ``inside`` of a container; 0 if there is no such process.

    ``agent``: the agent's process id on this machine. Raises OSError or psutil.Error if a process ends meanwhile.
    """
    for process in psutil.Process(agent).children(recursive=True):
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        ids = next((line.split()[1:] for line in lines if line.startswith("NSpid:")), [])
        if ids[-1:] == [str(inside)]:
            return process.pid
    return 0


@dataclasses.dataclass(frozen=True)
class Attachment:
    """The connection of a container to its network."""

    network: Any
    """The network, as a docker-py object."""

    address: str
    """The IPv4 address of the container."""

    alias: str
    """The second name of the container on the network."""


class ContainerHost(AgentHost, Pauses, Partitions, Falls, LimitsWrites):
    """A container, its agent, and the directory that it shares with this machine under the same path."""

    root = os.geteuid() == 0

    def __init__(self, name: str, attachment: Attachment, files: LocalHost, engine: Engine, container: Any) -> None:
        super().__init__(name, attachment.address, files)
        self.container = container
        self._engine = engine
        self._attachment = attachment
        self.path: NetworkPath | None = None  # the network to the other hosts of the cluster, if it can be delayed
        with engine_errors(f"attach to container {container.name}", engine):
            raw = container.attach_socket(params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        self._raw = raw  # keep docker-py's object: the socket closes when the object is deleted
        stream = getattr(raw, "_sock", raw)
        stream.settimeout(None)
        self.agent = Agent(stream, f"container {container.name}", parts=frames, ended=ENDED)
        self.agent.wait_ready(AGENT_SECONDS)

    def look(self) -> None:
        """Read the state of the container from the engine. Raises ProvisionError if either is gone."""
        with engine_errors(f"look at container {self.container.name}", self._engine):
            self.container.reload()

    def limit_reached(self) -> str:
        """Which limit ended a program of this host, or why the whole host ended; otherwise empty."""
        limit = self.container.attrs["HostConfig"]["Memory"]
        if limit and self._ran_out_of_memory():
            return f"the host's memory limit of {formatting.mebibytes(limit)} was reached"
        if not self.agent.gone:
            return ""
        try:
            self.look()
        except ProvisionError as error:
            return str(error)
        return self.agent.gone

    def _ran_out_of_memory(self) -> bool:
        # The engine reports an out-of-memory kill for an ended container. For a running one it may not: Docker 20.10 on
        # cgroup version 1 reports only the first kill. The container can read the kernel's counter of kills.
        with contextlib.suppress(ProvisionError):
            counters = self.run(["/bin/sh", "-c", OOM_COUNTS], seconds=LOOK_SECONDS).stdout
            return any(int(line.split()[1]) for line in counters.splitlines() if line.startswith("oom_kill "))
        with contextlib.suppress(ProvisionError):
            self.look()
        return bool(self.container.attrs["State"].get("OOMKilled"))

    def pid_here(self, inside: int) -> int:
        """The process id on this machine for a process id in the container; 0 if we do not see it."""
        with contextlib.suppress(psutil.Error, OSError, ProvisionError):
            self.look()
            return number_here(self.container.attrs["State"]["Pid"], inside)
        return 0

    def cpu_seconds(self) -> float | None:
        """The CPU time of all programs in the container so far, in seconds; None if we cannot read it."""
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

    def write_limit(self) -> int | None:
        """The write operations/s of the container; None without a limit. Raises ProvisionError."""
        return self._group().write_limit()

    def limit_writes(self, iops: int) -> None:
        """Change the limit on writes of a container that has one. Raises ProvisionError."""
        self._group().limit_writes(iops)

    def _group(self) -> cgroups.Group:
        return cgroups.of_process(self.first_process, NO_LIMITS)

    def command_line(self, command: Sequence[str]) -> list[str]:
        """The command line with which a user runs a command in the container; empty without ``docker`` and ``podman``.

        Both client programs work with both engines.
        """
        address = ["--host", self._engine.url] if self._engine.url != DEFAULT else []
        if shutil.which("docker"):
            return ["docker", *address, "exec", "-it", self.container.name, *command]
        if shutil.which("podman"):
            return ["podman", "--url", self._engine.url, "exec", "-it", self.container.name, *command]
        return []

    @property
    def first_process(self) -> int:
        """The process id on this machine of the container's first process. Raises ProvisionError."""
        self.look()
        return int(self.container.attrs["State"]["Pid"])

    def why_lost(self) -> str:
        """Why the host cannot be used any more; empty while it can be used."""
        return self.path.why_lost() if self.path else ""

    def partition(self) -> None:
        """Disconnect the container from its network and so from this machine. Raises ProvisionError."""
        if self.path:
            self.path.cut(self.name)
        with engine_errors(f"disconnect container {self.container.name}", self._engine):
            self._attachment.network.disconnect(self.container)

    def heal(self) -> None:
        """Connect the container to its network again, with address, alias and path. Raises ProvisionError."""
        with engine_errors(f"connect container {self.container.name}", self._engine):
            self._attachment.network.connect(
                self.container, ipv4_address=self.address, aliases=[self._attachment.alias]
            )
        if self.path:
            self.path.join(self.name)

    def close(self) -> None:
        """End the container and every program in it. A missing container is not an error."""
        self.detach()
        with contextlib.suppress(ProvisionError):  # without its engine, the container has ended too
            remove(self._engine, self.container)

    def detach(self) -> None:
        """Close our connection to the container. The container then ends, unless the run is kept."""
        self.agent.close()
        for part in filter(None, (getattr(self._raw, "_response", None), self._raw)):
            with contextlib.suppress(OSError, ValueError):
                part.close()
