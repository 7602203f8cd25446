"""Proxy: what stands between a load and the nodes."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from pytest_dbcluster import registry
from pytest_dbcluster.clusters.servers.connection import Connection, Endpoint, SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology, readers, writers
from pytest_dbcluster.errors import DBClusterError, ProvisionError
from pytest_dbcluster.hosts.host import Host, Process
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec

PLANNED: tuple[str, ...] = ()
MOST_CONNECTIONS = 1500  # at once; published loads have 1000. HAProxy counts those of both endpoints together

END_SECONDS = 5.0
ANSWER_SECONDS = 5.0


class Proxy(Protocol):
    """One proxy before a cluster: started after its nodes, closed before them."""

    def start(self) -> None:
        """Start it; not yet ready. The nodes may not be ready either. Raises ProvisionError."""

    def problems(self) -> list[str]:
        """What keeps it from passing connections to the nodes that take them; empty means ready."""

    def writer(self) -> Endpoint:
        """The endpoint that always leads to one and the same node that takes writes while that node is well."""

    def reader(self) -> Endpoint:
        """The endpoint that leads to every node that takes reads, in turn."""

    def close(self) -> None:
        """End it. Never raises for one that is gone already."""


class MakesProxy(Protocol):
    """A proxy's class: how one is made."""

    def __call__(self, provisioner: Provisioner, form: Topology, nodes: Sequence[Node]) -> Proxy:
        """A proxy before these nodes of this topology; nothing is started yet."""


class Watchable(Protocol):
    """An extra power: people can look at what the proxy does."""

    statistics_url: str

    def log(self) -> str:
        """The file that it writes to."""


class Follows(Protocol):
    """An extra power: other nodes may take writes and reads than did before, and the proxy can be told."""

    def follow(self) -> None:
        """Lead to the nodes that take writes and reads now; asked of nodes that are ready. Raises ProvisionError.

        Nothing happens while they are those of before, otherwise the proxy is not ready afterwards.
        """


class Suits(Protocol):
    """An extra power of a proxy's class: its programs may be missing."""

    def lacks(self, release: Release) -> str:
        """Why it cannot stand before servers of this release; empty when it can."""


class Remarks(Protocol):
    """An extra power of a proxy's class: it can stand before a cluster in more than one way."""

    def remark(self, form: Topology, release: Release) -> str:
        """In which way it will, and why; empty where there is no choice."""


def proxy_class(name: str) -> MakesProxy:
    """The class of a proxy by its file's name. Raises ConfigError that lists the known names."""
    module = registry.find("proxy", name, planned=PLANNED)
    made: MakesProxy = importlib.import_module(module).PROXY
    return made


def lacks(name: str, release: Release) -> str:
    """Why the proxy of this name cannot stand before servers of a release; empty when it can. Raises ConfigError."""
    made = proxy_class(name)
    return cast(Suits, made).lacks(release) if hasattr(made, "lacks") else ""


def remark(name: str, form: Topology, release: Release) -> str:
    """In which of several ways the proxy of this name will stand before a cluster. Raises ConfigError."""
    made = proxy_class(name)
    return cast(Remarks, made).remark(form, release) if hasattr(made, "remark") else ""


class ProxyHost:
    """The programs of one proxy on a host of their own; ``name`` is that of the program whose log is shown first."""

    name = ""

    def __init__(self, provisioner: Provisioner, form: Topology, nodes: Sequence[Node]) -> None:
        self.provisioner = provisioner
        self.form = form
        self.nodes = list(nodes)
        self.host: Host | None = None
        self.processes: dict[str, Process] = {}

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
        writing = list(writers(self.form, self.nodes))
        return {"writer": writing, "reader": list(readers(self.form, self.nodes)) or writing}

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
