"""MySQL Router in front of a cluster: the writer stays with one node, the reader alternates nodes.

If MySQL Shell is available and can adopt the cluster, we bootstrap the router, which then follows role changes.
Otherwise its routes are static: after a role change we restart the router with new routes. The program comes from the
cluster's release, from PATH, or from a MySQL release in the cache, in this order. The routes pass traffic through
unchanged, so the router also works in front of MariaDB servers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

from pytest_dbcluster.clusters.bringing import copy_program
from pytest_dbcluster.clusters.proxies.mysql_router import innodb_cluster
from pytest_dbcluster.clusters.proxy import MOST_CONNECTIONS, RoutedProxy, query_through
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases import apt
from pytest_dbcluster.releases.find import find_program
from pytest_dbcluster.releases.release import Release

PROGRAM = "mysqlrouter"
BRINGS_ONE = "mysql:9.7"
PORTS = (6446, 6447)  # writer, reader; other ports if the proxy's host is shared
WHICH = "SELECT @@hostname, @@port"

# max_connections: the default for all routes together is 512. max_connect_errors: the maximum value, because by default
# the router blocks a client host after 100 broken connections.
LIMITS = {
    "connect_timeout": 5,
    "client_connect_timeout": 30,
    "max_connections": MOST_CONNECTIONS,
    "max_connect_errors": 4294967295,
}
# PASSTHROUGH: the router neither adds nor ends TLS; the client and the server negotiate it, as without a router.
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


class MySQLRouter(RoutedProxy):
    """One mysqlrouter on a separate host."""

    name = "mysql_router"
    usual_ports = MappingProxyType(dict(zip(STRATEGIES, PORTS, strict=True)))

    def __init__(self, provisioner: Provisioner, topology: Topology, nodes: Sequence[Node]) -> None:
        super().__init__(provisioner, topology, nodes)
        self._shell: Path | None = None
        self._router: Path | None = None

    @classmethod
    def lacks(cls, release: Release) -> str:
        """Return where we looked for a router and found none; empty if there is one."""
        if router(release):
            return ""
        elsewhere = "" if release.image else f", not on PATH ({os.environ.get('PATH', '')})"
        return (
            f"no {PROGRAM} for {release.name}: not among its programs ({release.bin}){elsewhere}, and no release of "
            f"MySQL in the cache has one; {_remedy()}"
        )

    @classmethod
    def remark(cls, topology: Topology, release: Release) -> str:
        """Return whether the router is bootstrapped or has static routes, and why; empty if only static is possible."""
        if not topology.adoption:
            return ""
        if shell := innodb_cluster.shell(release):
            return f"{PROGRAM} before {release.name}: bootstrapped, the group becomes an InnoDB Cluster by {shell}"
        return f"{PROGRAM} before {release.name}: static routes, because there is {_no_shell(release)}"

    @classmethod
    def misses_elections(cls, topology: Topology, release: Release) -> str:
        """Return that its routes are static, and why; empty if it is bootstrapped."""
        if topology.adoption and innodb_cluster.shell(release):
            return ""
        why = f", because there is {_no_shell(release)}" if topology.adoption else ""
        return f"{super().misses_elections(topology, release)}{why}"

    def start(self) -> None:
        """Take a host and ports. ``follow`` starts the router once the nodes are ready. Raises ProvisionError."""
        host = self.acquire()
        release = self.nodes[0].release
        self._router = copy_program(PROGRAM, "mysql", release, host) if host.machine else router(release)
        if self.topology.adoption and host.machine:
            self._shell = copy_program(innodb_cluster.SHELL, "mysql", release, host)
        elif self.topology.adoption:
            self._shell = innodb_cluster.shell(release)
        self._reserve_ports(host)

    def follow(self) -> None:
        """Start the router with the current routes, unless it has them or is bootstrapped. Raises ProvisionError."""
        routes = self.roles()
        if routes == self._routes or not self.host:
            return
        program = self._router
        if program is None:
            raise ProvisionError(
                f"no {PROGRAM} for host {self.host.name} on {self.host.machine}: neither "
                f"{self.nodes[0].release.name} nor a release of MySQL in the cache has one; {_remedy()}"
            )
        if not self._shell:
            self.end()
            text = configuration(program, self.host.directory, self.host.address, self._ports, routes)
            self.spawn(self.name, text, [str(program), "-c"], {})
        elif not self.processes:
            primary = routes["writer"][0]
            innodb_cluster.adopt(self.host, self._shell, primary, self.topology.adoption)
            path = innodb_cluster.bootstrap(self.host, program, primary, settings(program, self._ports))
            self.launch(self.name, [str(program), "-c", path], {})
        self._routes = routes

    def problems(self) -> list[str]:
        """Return routes that do not lead to the nodes of their role. Raises ProvisionError if the router has ended."""
        if not self.processes:
            return [f"{PROGRAM} does not run yet"]
        self.alive()
        try:
            if self._shell:
                self._prefer_writer()
            writers, readers = self._routes["writer"][:1], self._routes["reader"]
            return self._unreached_nodes("writer", writers) + self._unreached_nodes("reader", readers)
        except SQLError as error:
            return [str(error)]

    def _prefer_writer(self) -> None:
        """Put the router's choice of several nodes that accept writes first. Raises SQLError."""
        writers = self._routes["writer"]
        if len(writers) > 1:
            reached = query_through(f"{PROGRAM}'s writer", self.endpoint(self._ports["writer"], writers), WHICH)
            writers.sort(key=lambda node: node.query(WHICH) != reached)

    def _unreached_nodes(self, role: str, nodes: Sequence[Node]) -> list[str]:
        """Open one connection for each node; return the nodes that no connection reached, one line each."""
        endpoint = self.endpoint(self._ports[role], nodes)
        reached = [query_through(f"{PROGRAM}'s {role}", endpoint, WHICH) for _ in nodes]
        return [
            f"{PROGRAM}'s {role}: no connection of {len(nodes)} led to {node.name}"
            for node in nodes
            if node.query(WHICH) not in reached
        ]


def _no_shell(release: Release) -> str:
    return f"no {innodb_cluster.SHELL} among its programs ({release.bin}) or on PATH"


def _remedy() -> str:
    if apt.missing_program():
        return f"install MySQL Router, so that {PROGRAM} is on PATH"
    return f"`dbcluster fetch {BRINGS_ONE}` downloads one"


def router(release: Release) -> Path | None:
    """Return the path of mysqlrouter: of the release, on PATH, or of a cached MySQL release; None for none.

    Containers do not see the PATH of this machine.
    """
    return release.path_of(PROGRAM) or find_program(PROGRAM, "mysql", on_path=not release.image)


def plugins(program: Path) -> Path | None:
    """Return the directory of a router's plugins, for all known package layouts.

    None for an unknown layout: then the router must find its plugins.
    """
    prefix = program.resolve().parent.parent
    for pattern in ("lib*/mysqlrouter/plugin", "lib*/mysqlrouter", "lib/*/mysqlrouter/plugin"):
        for directory in sorted(prefix.glob(pattern)):
            if (directory / "routing.so").exists():
                return directory
    return None


def configuration(
    program: Path, directory: str, address: str, ports: dict[str, int], routes: dict[str, list[Node]]
) -> str:
    """Return the text of mysqlrouter.conf for static routes.

    program: the path of mysqlrouter. directory: its working directory on the host. ports, routes: the listeners' ports,
    and the nodes that they lead to, by role.
    """
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
    """Return the settings to pass to a router's bootstrap, as SECTION.OPTION: plugins, ports and limits."""
    options: dict[str, object] = {"DEFAULT.max_total_connections": MOST_CONNECTIONS * len(STRATEGIES)}
    if directory := plugins(program):
        options["DEFAULT.plugin_folder"] = directory
    for role, section in innodb_cluster.LISTENERS.items():
        options |= {f"{section}.{name}": value for name, value in {"bind_port": ports[role], **LIMITS}.items()}
    return options
