"""Proxy: the base class of programs between clients and the nodes. Each module in ``proxies/`` is one proxy."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import importlib
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

from pytest_dbcluster import registry
from pytest_dbcluster.clusters.proxy_options import ProxyOption, read_options
from pytest_dbcluster.clusters.servers.connection import Connection, Endpoint, SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import DBClusterError, ProvisionError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.hosts.host import Host, Process
from pytest_dbcluster.hosts.network.path import path_of
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.network import PROXY
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec

PLANNED: tuple[str, ...] = ()
# Connections open at the same time; published workloads use 1000. HAProxy counts both endpoints together.
MOST_CONNECTIONS = 1500

END_SECONDS = 5.0
ANSWER_SECONDS = 5.0


class Proxy(abc.ABC):
    """One proxy in front of a cluster. The proxy's programs run on a separate host.

    ``bring_up`` starts the proxy after the nodes, and the cluster closes the proxy before the nodes.

    - name: the main program's name; ``log()`` without a name is the log of this program.
    - host: None until ``acquire``.
    - processes: the running programs by name, in start order.
    - places: the host of each program.
    - untried: whether we have never run it.
    - option_values: the value of each of its options, by name.
    """

    name = ""
    untried = False
    options: ClassVar[Sequence[ProxyOption]] = ()
    """The options that a spec may set."""

    def __init__(self, provisioner: Provisioner, topology: Topology, nodes: Sequence[Node]) -> None:
        self.provisioner = provisioner
        self.topology = topology
        self.nodes = list(nodes)
        self.option_values: Mapping[str, float] = read_options(self.name, self.options, {})
        self.host: Host | None = None
        self.processes: dict[str, Process] = {}
        self.places: dict[str, Host] = {}
        self._started: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {}  # name -> command, environment

    @classmethod
    def lacks(cls, release: Release) -> str:
        """Return why this proxy cannot serve this release, such as a missing program; empty if it can."""
        return ""

    @classmethod
    def remark(cls, topology: Topology, release: Release) -> str:
        """Return the mode that the proxy chooses for this topology, and why; empty if it has only one mode."""
        return ""

    @classmethod
    def read_settings(cls, spec: ClusterSpec, topology: Topology) -> dict[str, float]:
        """Return the value of each option in a spec, by name. Raises ConfigError for options that it cannot have."""
        return read_options(cls.name, cls.options, dict(spec.proxy_options))

    @classmethod
    def misses_elections(cls, topology: Topology, release: Release) -> str:
        """Return why the proxy does not notice itself that another node accepts the writes; empty if it does."""
        return ""

    @abc.abstractmethod
    def start(self) -> None:
        """Start the proxy. Neither the proxy nor the nodes need be ready when this returns. Raises ProvisionError."""

    @abc.abstractmethod
    def problems(self) -> list[str]:
        """Return why the proxy does not lead to the right nodes, one line each; empty if it is ready."""

    @abc.abstractmethod
    def writer(self) -> Endpoint:
        """Return the endpoint for writes: it always leads to the same node while that node is healthy."""

    @abc.abstractmethod
    def reader(self) -> Endpoint:
        """Return the endpoint for reads: it alternates over all nodes that accept reads."""

    def follow(self) -> None:  # noqa: B027  (an optional step, not a forgotten one)
        """Update the routes to the nodes that now accept writes and reads. The nodes are ready. Raises ProvisionError.

        The default does nothing, for proxies that notice role changes. An override does nothing while the roles are
        unchanged. After a change, the proxy is not ready until ``problems`` is empty.
        """

    def writes_to(self) -> str | None:
        """Return the name of the node that a new connection for writes reaches; empty for none.

        None for a proxy that does not say it. Raises ProvisionError, OSError and HTTPException.
        """
        return None

    @property
    def statistics_url(self) -> str:
        """The URL of the proxy's statistics page; empty for none."""
        return ""

    def acquire(self) -> Host:
        """Take a host for the proxy from the provisioner, and return it. Raises ProvisionError.

        If the proxy is an end of the nodes' network, the network has its host.
        """
        path = path_of([node.host for node in self.nodes])
        if path and path.has_host(PROXY):
            self.host = path.host(PROXY)
            return self.host
        release = self.nodes[0].release.release_name
        self.host = self.provisioner.acquire(ClusterSpec("standalone", release=release, name=self.name))[0]
        return self.host

    def spawn(
        self, name: str, settings: str, command: Sequence[str], environment: Mapping[str, str], host: Host | None = None
    ) -> None:
        """Write ``settings`` to a file of the program's host, and start the program with the file as last argument.

        host: the default is the proxy's host. Raises ProvisionError.
        """
        place = self._place(host)
        path = f"{place.directory}/{name}.cfg"
        place.push(settings.encode(), path)
        self.launch(name, [*command, path], environment, place)

    def _place(self, host: Host | None) -> Host:
        place = host or self.host
        assert place
        return place

    def launch(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], host: Host | None = None
    ) -> None:
        """Start a program on ``host``; the default is the proxy's host. Raises ProvisionError."""
        self.places[name] = place = self._place(host)
        self._started[name] = command, environment
        self.processes[name] = place.spawn(
            command, log=self.log(name), directory=place.directory, environment=environment
        )

    def launch_again(self, name: str) -> None:
        """Start a program that has ended again, with its last command line. Raises ProvisionError."""
        self.launch(name, *self._started[name], self.places[name])

    def log(self, name: str = "") -> str:
        """Return the path of a program's log on its host; the default is the main program."""
        place = self.places.get(name or self.name, self.host)
        return f"{place.directory if place else '.'}/{name or self.name}.log"

    def alive(self) -> None:
        """Raise ProvisionError if a program has ended, with the end of its log (1500 characters)."""
        for name, process in self.processes.items():
            status = process.status()
            if status is not None:
                output = self.places[name].pull(self.log(name)).decode("utf-8", "replace").strip()
                raise ProvisionError(
                    f"{name} in front of {quantity(len(self.nodes), 'node')} ended with {status}; the "
                    f"end of its log ({self.log(name)}): {output[-1500:] or '(empty)'}"
                )

    def roles(self) -> dict[str, list[Node]]:
        """Return the nodes by role, ``writer`` (preferred node first) and ``reader``; neither list is empty.

        Without nodes only for reads, the writers are also the readers. Raises ProvisionError if no node accepts writes.
        """
        writers = list(self.topology.writers(self.nodes))
        return {"writer": writers, "reader": list(self.topology.readers(self.nodes)) or writers}

    def endpoint(self, port: int, nodes: Sequence[Node]) -> Endpoint:
        """Return the endpoint of the proxy's listener on this port, which leads to these nodes with their account."""
        host = self.host or self.nodes[0].host
        names = tuple(node.name for node in nodes)
        user, password = self.account
        tls = self.nodes[0].endpoint.tls
        return Endpoint(host.address, port, user, password, nodes=names, tls=tls, connects=host.connects)

    @property
    def account(self) -> tuple[str, str]:
        """User name and password of the control account, the same on every node."""
        return self.nodes[0].endpoint.user, self.nodes[0].endpoint.password

    def end(self) -> None:
        """Kill every program, in reverse start order. An ended program is not an error."""
        for process in reversed(self.processes.values()):
            with contextlib.suppress(DBClusterError):
                process.signal(signal.SIGKILL)
                limit = time.monotonic() + END_SECONDS
                while process.status() is None and time.monotonic() < limit:
                    time.sleep(0.005)
        self.processes = {}

    def close(self) -> None:
        """Kill every program and release the host. An ended program is not an error."""
        self.end()
        if self.host:
            self.provisioner.give_back([self.host])
            self.host = None
        self.places = {}


@runtime_checkable
class Drains(Protocol):
    """An optional power of a proxy: it leads nobody to a node whose server still runs."""

    def drain(self, names: Sequence[str]) -> None:
        """Drain these nodes, and no others. Connections to them end."""

    def drain_problems(self, name: str) -> list[str]:
        """Return why the proxy still leads to a node, one line each; empty if it does not. Raises ProvisionError."""


class RoutedProxy(Proxy):
    """A proxy with static routes: after a role change its program starts again with new routes."""

    usual_ports: ClassVar[Mapping[str, int]]
    """The usual port of each listener: ``writer``, ``reader`` and further ones."""

    @classmethod
    def misses_elections(cls, topology: Topology, release: Release) -> str:
        """Return that its routes are static."""
        return f"{cls.name} has static routes, and knows only the primary at its start"

    def __init__(self, provisioner: Provisioner, topology: Topology, nodes: Sequence[Node]) -> None:
        super().__init__(provisioner, topology, nodes)
        self._ports = dict(self.usual_ports)
        self._routes: dict[str, list[Node]] = {}

    def _reserve_ports(self, host: Host) -> None:
        """Take a port of the host for each listener."""
        self._ports = {role: host.port(usual) for role, usual in self.usual_ports.items()}

    def writer(self) -> Endpoint:
        """Return the writer: it leads to the first node that accepts writes."""
        return self.endpoint(self._ports["writer"], (self._routes or self.roles())["writer"][:1])

    def reader(self) -> Endpoint:
        """Return the reader: it spreads connections over all nodes that accept reads."""
        return self.endpoint(self._ports["reader"], (self._routes or self.roles())["reader"])

    def close(self) -> None:
        """Kill the proxy and release the host. An ended proxy is not an error."""
        super().close()
        self._routes = {}


def proxy_class(name: str) -> type[Proxy]:
    """Return the class of a proxy by its module's name (``haproxy``). Raises ConfigError with the known names."""
    module = registry.find("proxy", name, planned=PLANNED)
    implementation: type[Proxy] = importlib.import_module(module).PROXY
    return implementation


def query_through(listener: str, endpoint: Endpoint, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement over a new connection to a listener, and return the rows. Raises SQLError.

    ``listener`` is the name that errors show.
    """
    # Try without TLS first: the server needs no TLS once it knows the password, and loading certificates takes 50 ms.
    if endpoint.tls:
        with contextlib.suppress(SQLError):
            return query_through(listener, dataclasses.replace(endpoint, tls=False), statement)
    connection = Connection(listener, endpoint, seconds=ANSWER_SECONDS)
    try:
        return connection.query(statement)
    finally:
        connection.close()
