"""What every proxy of ours has: a host of its own with its programs, and endpoints with the account of the nodes."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_dbcluster.clusters.servers.connection import Connection, SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology, readers, writers
from pytest_dbcluster.errors import DBClusterError, ProvisionError
from pytest_dbcluster.hosts.host import Host, Process
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.spec import ClusterSpec, Endpoint

END_SECONDS = 5.0
ANSWER_SECONDS = 5.0


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
            self.provisioner.release([self.host])
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
