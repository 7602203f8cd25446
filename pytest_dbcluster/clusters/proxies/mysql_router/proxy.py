"""MySQL Router before a cluster: a writer that stays with one node, a reader that takes turns.

Where MySQL Shell is to be had and can adopt the cluster, the router is bootstrapped and follows the cluster's roles by
itself. Otherwise its routes are static: when other nodes take writes, it is started anew with other routes. It comes
with the cluster's own release, or from PATH, or with a release of MySQL in the cache; its routes pass on what they get,
so that it stands before servers of MariaDB just as well.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.clusters.proxies.mysql_router import innodb_cluster
from pytest_dbcluster.clusters.proxy import MOST_CONNECTIONS, Proxy, through
from pytest_dbcluster.clusters.servers.connection import Endpoint, SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.find import elsewhere
from pytest_dbcluster.releases.release import Release

PROGRAM = "mysqlrouter"
BRINGS_ONE = "mysql:9.7"
PORTS = (6446, 6447)  # writer, reader, on a host of its own
WHICH = "SELECT @@hostname, @@port"

# Of all routes together 512 connections are the default. Without the highest number of errors a host that broke 100
# connections is blocked.
LIMITS = {
    "connect_timeout": 5,
    "client_connect_timeout": 30,
    "max_connections": MOST_CONNECTIONS,
    "max_connect_errors": 4294967295,
}
# PASSTHROUGH: no TLS is added or ended, what client and server agree on is what is measured.
CONFIGURATION = """\
[DEFAULT]
{folders}
logging_folder =
unknown_config_option = error
max_total_connections = {total}

[logger]
level = INFO
"""
ROUTE = """
[routing:{name}]
bind_address = {address}
bind_port = {port}
destinations = {destinations}
routing_strategy = {strategy}
protocol = classic
client_ssl_mode = PASSTHROUGH
server_ssl_mode = AS_CLIENT
{limits}
"""
STRATEGIES = {"writer": "first-available", "reader": "round-robin"}


class MySQLRouter(Proxy):
    """One mysqlrouter on a host of its own."""

    name = "mysql_router"

    def __init__(self, provisioner: Provisioner, topology: Topology, nodes: Sequence[Node]) -> None:
        super().__init__(provisioner, topology, nodes)
        self._ports = dict(zip(STRATEGIES, PORTS, strict=True))
        self._routes: dict[str, list[Node]] = {}
        self._shell: Path | None = None

    @classmethod
    def lacks(cls, release: Release) -> str:
        """Where a router was looked for in vain."""
        if router(release):
            return ""
        return (
            f"no {PROGRAM} for {release.name}: not among its programs ({release.bin}), not on PATH "
            f"({os.environ.get('PATH', '')}), and no release of MySQL in the cache has one; "
            f"`dbcluster fetch {BRINGS_ONE}` brings one"
        )

    @classmethod
    def remark(cls, topology: Topology, release: Release) -> str:
        """Whether its routes before a cluster that could be adopted are its own or static, and why."""
        if not topology.adoption:
            return ""
        if shell := innodb_cluster.shell(release):
            return f"{PROGRAM} before {release.name}: bootstrapped, the group becomes an InnoDB Cluster by {shell}"
        missing = f"no {innodb_cluster.SHELL} among its programs ({release.bin}) or on PATH"
        return f"{PROGRAM} before {release.name}: static routes, because there is {missing}"

    def start(self) -> None:
        """Take a host and ports; routes can be made when the nodes are ready. Raises ProvisionError."""
        self._shell = innodb_cluster.shell(self.nodes[0].release) if self.topology.adoption else None
        host = self.acquire()
        self._ports = {role: host.port(usual) for role, usual in zip(STRATEGIES, PORTS, strict=True)}

    def follow(self) -> None:
        """Start the router with the routes of now, unless it runs with them or finds them. Raises ProvisionError."""
        routes = self.roles()
        if routes == self._routes or not self.host:
            return
        program = router(self.nodes[0].release)
        assert program
        if not self._shell:
            self.end()
            text = configuration(program, self.host.directory, self.host.address, self._ports, routes)
            self.spawn(self.name, text, [str(program), "-c"], {})
        elif not self.processes:
            primary = routes["writer"][0]
            innodb_cluster.adopt(self.host, self._shell, primary, self.topology.adoption)
            file = innodb_cluster.bootstrap(self.host, program, primary, settings(program, self._ports))
            self.launch(self.name, [str(program), "-c", file], {})
        self._routes = routes

    def problems(self) -> list[str]:
        """Routes that do not lead to the nodes of their role. Raises ProvisionError for a dead process."""
        if not self.processes:
            return [f"{PROGRAM} has not been started"]
        self.alive()
        try:
            if self._shell:
                self._prefer_writer()
            return self._missed("writer", self._routes["writer"][:1]) + self._missed("reader", self._routes["reader"])
        except SQLError as error:
            return [str(error)]

    def _prefer_writer(self) -> None:
        """Put the node first that the router itself has chosen among several that take writes. Raises SQLError."""
        writers = self._routes["writer"]
        if len(writers) > 1:
            reached = through(f"{PROGRAM}'s writer", self.endpoint(self._ports["writer"], writers), WHICH)
            writers.sort(key=lambda node: node.query(WHICH) != reached)

    def _missed(self, role: str, nodes: Sequence[Node]) -> list[str]:
        """Nodes that as many connections as there are nodes did not reach."""
        endpoint = self.endpoint(self._ports[role], nodes)
        reached = [through(f"{PROGRAM}'s {role}", endpoint, WHICH) for _ in nodes]
        return [
            f"{PROGRAM}'s {role}: none of {len(nodes)} connections led to {node.name}"
            for node in nodes
            if node.query(WHICH) not in reached
        ]

    def writer(self) -> Endpoint:
        """Leads to the first node that takes writes; to the next one while that does not answer."""
        return self.endpoint(self._ports["writer"], (self._routes or self.roles())["writer"][:1])

    def reader(self) -> Endpoint:
        """Leads to every node that takes reads and answers, in turn."""
        return self.endpoint(self._ports["reader"], (self._routes or self.roles())["reader"])

    def close(self) -> None:
        """End the router and give the host back. Never raises for what is gone already."""
        super().close()
        self._routes = {}


def router(release: Release) -> Path | None:
    """The program: of the release itself, else on PATH, else of a release of MySQL in the cache."""
    return release.beside(PROGRAM) or elsewhere(PROGRAM, "mysql")


def plugins(program: Path) -> Path | None:
    """The folder of a router's plugins in the layouts that it comes in; None where it finds them by itself."""
    prefix = program.resolve().parent.parent
    for pattern in ("lib*/mysqlrouter/plugin", "lib*/mysqlrouter", "lib/*/mysqlrouter/plugin"):
        for folder in sorted(prefix.glob(pattern)):
            if (folder / "routing.so").exists():
                return folder
    return None


def configuration(
    program: Path, directory: str, address: str, ports: dict[str, int], routes: dict[str, list[Node]]
) -> str:
    """The text of mysqlrouter.conf."""
    folders = {"runtime": directory, "data": directory, "config": directory, "plugin": plugins(program)}
    text = CONFIGURATION.format(
        folders="\n".join(f"{name}_folder = {folder}" for name, folder in folders.items() if folder),
        total=MOST_CONNECTIONS * len(STRATEGIES),
    )
    for role, strategy in STRATEGIES.items():
        text += ROUTE.format(
            name=role,
            address=address,
            port=ports[role],
            destinations=",".join(f"{node.host.address}:{node.port}" for node in routes[role]),
            strategy=strategy,
            limits="\n".join(f"{name} = {value}" for name, value in LIMITS.items()),
        )
    return text


def settings(program: Path, ports: dict[str, int]) -> dict[str, object]:
    """What a bootstrapped router is told beside what it finds out, as SECTION.OPTION."""
    found: dict[str, object] = {"DEFAULT.max_total_connections": MOST_CONNECTIONS * len(STRATEGIES)}
    if folder := plugins(program):
        found["DEFAULT.plugin_folder"] = folder
    for role, section in innodb_cluster.LISTENERS.items():
        found |= {f"{section}.{name}": value for name, value in {"bind_port": ports[role], **LIMITS}.items()}
    return found
