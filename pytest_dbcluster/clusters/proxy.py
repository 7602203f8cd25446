"""Proxy: what stands between a load and the nodes."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import importlib
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_dbcluster import registry
from pytest_dbcluster.clusters.servers.connection import Connection, Endpoint, SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import DBClusterError, ProvisionError
from pytest_dbcluster.hosts.host import Host, Process
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec

PLANNED: tuple[str, ...] = ()
MOST_CONNECTIONS = 1500  # at once; published loads have 1000. HAProxy counts those of both endpoints together

END_SECONDS = 5.0
ANSWER_SECONDS = 5.0


class Proxy(abc.ABC):
    """One proxy before a cluster, whose programs run on a host of their own.

    It is started after the nodes and closed before them. ``name`` is that of the program whose log is shown first.
    """

    name = ""

    def __init__(self, provisioner: Provisioner, topology: Topology, nodes: Sequence[Node]) -> None:
        self.provisioner = provisioner
        self.topology = topology
        self.nodes = list(nodes)
        self.host: Host | None = None
        self.processes: dict[str, Process] = {}

    @classmethod
    def lacks(cls, release: Release) -> str:
        """Why it cannot stand before servers of this release, such as a program that is missing; empty when it can."""
        return ""

    @classmethod
    def remark(cls, topology: Topology, release: Release) -> str:
        """In which of several ways it will stand before such a cluster, and why; empty where there is one way."""
        return ""

    @abc.abstractmethod
    def start(self) -> None:
        """Start it; not yet ready. The nodes may not be ready either. Raises ProvisionError."""

    @abc.abstractmethod
    def problems(self) -> list[str]:
        """What keeps it from passing connections to the nodes that take them; empty means ready."""

    @abc.abstractmethod
    def writer(self) -> Endpoint:
        """The endpoint that always leads to one and the same node that takes writes while that node is well."""

    @abc.abstractmethod
    def reader(self) -> Endpoint:
        """The endpoint that leads to every node that takes reads, in turn."""

    def follow(self) -> None:  # noqa: B027  (an optional step, not a forgotten one)
        """Lead to the nodes that take writes and reads now; asked of nodes that are ready. Raises ProvisionError.

        By default the proxy finds them by itself. Nothing happens while they are those of before, otherwise the proxy
        is not ready afterwards.
        """

    @property
    def statistics_url(self) -> str:
        """A page on which people can look at what it does; empty for none."""
        return ""

    def acquire(self) -> Host:
        """The host, taken from the provisioner. Raises ProvisionError."""
        release = self.nodes[0].release.asked
        self.host = self.provisioner.acquire(ClusterSpec("standalone", release=release, name=self.name))[0]
        return self.host

    def spawn(
        self, name: str, settings: str, command: Sequence[str], environment: Mapping[str, str], host: Host | None = None
    ) -> None:
        """Start a program whose last argument is the file of its settings. Raises ProvisionError."""
        assert self.host
        file = f"{self.host.directory}/{name}.cfg"
        self.host.push(settings.encode(), file)
        self.launch(name, [*command, file], environment, host)

    def launch(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], host: Host | None = None
    ) -> None:
        """Start a program as it stands, on the proxy's own host or one beside it. Raises ProvisionError."""
        assert self.host
        self.processes[name] = (host or self.host).spawn(
            command, log=self.log(name), directory=self.host.directory, environment=environment
        )

    def log(self, name: str = "") -> str:
        """The file that a program of ours writes to."""
        return f"{self.host.directory if self.host else '.'}/{name or self.name}.log"

    def alive(self) -> None:
        """Raise ProvisionError with its last words for a program that has ended."""
        for name, process in self.processes.items():
            status = process.status()
            if status is not None:
                assert self.host
                words = self.host.pull(self.log(name)).decode("utf-8", "replace").strip()
                raise ProvisionError(
                    f"{name} before {len(self.nodes)} nodes ended with {status}; its last words "
                    f"({self.log(name)}): {words[-1500:] or '(it printed nothing)'}"
                )

    def roles(self) -> dict[str, list[Node]]:
        """The nodes that take writes now, the preferred one first, and those that take reads; never empty."""
        writing = list(self.topology.writers(self.nodes))
        return {"writer": writing, "reader": list(self.topology.readers(self.nodes)) or writing}

    def endpoint(self, port: int, nodes: Sequence[Node]) -> Endpoint:
        """A listener of ours that leads to these nodes, with their account."""
        address = self.host.address if self.host else self.nodes[0].host.address
        names = tuple(node.name for node in nodes)
        user, password = self.account
        return Endpoint(address, port, user, password, nodes=names, tls=self.nodes[0].endpoint.tls)

    @property
    def account(self) -> tuple[str, str]:
        """Name and password of the account that every node has."""
        return self.nodes[0].endpoint.user, self.nodes[0].endpoint.password

    def end(self) -> None:
        """End every program, the one that was started last first. Never raises for what is gone already."""
        for process in reversed(self.processes.values()):
            with contextlib.suppress(DBClusterError):
                process.signal(signal.SIGKILL)
                limit = time.monotonic() + END_SECONDS
                while process.status() is None and time.monotonic() < limit:
                    time.sleep(0.005)
        self.processes = {}

    def close(self) -> None:
        """End every program and give the host back. Never raises for what is gone already."""
        self.end()
        if self.host:
            self.provisioner.give_back([self.host])
            self.host = None


def proxy_class(name: str) -> type[Proxy]:
    """The class of a proxy by its file's name. Raises ConfigError that lists the known names."""
    module = registry.find("proxy", name, planned=PLANNED)
    made: type[Proxy] = importlib.import_module(module).PROXY
    return made


def through(listener: str, endpoint: Endpoint, statement: str) -> list[tuple[Any, ...]]:
    """The rows that a server answers with over a new connection to a listener. Raises SQLError."""
    if endpoint.tls:  # not needed once the server knows the password, and loading the certificates takes 50 ms
        with contextlib.suppress(SQLError):
            return through(listener, dataclasses.replace(endpoint, tls=False), statement)
    connection = Connection(listener, endpoint, seconds=ANSWER_SECONDS)
    try:
        return connection.query(statement)
    finally:
        connection.close()
