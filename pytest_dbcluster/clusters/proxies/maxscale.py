"""MaxScale: it logs clients in itself, and gives each connection one server of the service of its port. Untried.

Its settings come from the Configuration Guide of MaxScale 23.08 and from the page about its router readconnroute:
https://mariadb.com/kb/en/mariadb-maxscale-2308-mariadb-maxscale-configuration-guide/
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pytest_dbcluster.clusters.installed_proxy import InstalledProxy, Routes

ROLES = ("writer", "reader")
CONFIGURATION = """\
[maxscale]
threads = auto
admin_enabled = false
logdir = {directory}
datadir = {directory}
cachedir = {directory}
piddir = {directory}
persistdir = {directory}

[monitor]
type = monitor
module = mariadbmon
servers = {servers}
user = {user}
password = {password}
monitor_interval = 1000ms
"""
SERVER = """
[{name}]
type = server
address = {address}
port = {port}
"""
# running: the monitor decides whether a server runs; we choose the servers by role.
SERVICE = """
[{role}]
type = service
router = readconnroute
router_options = running
servers = {servers}
user = {user}
password = {password}

[{role}-listener]
type = listener
service = {role}
address = {address}
port = {port}
"""


class MaxScale(InstalledProxy):
    """One maxscale."""

    name = "maxscale"
    usual_ports: ClassVar[Mapping[str, int]] = {"writer": 4006, "reader": 4008}

    def settings(self, address: str, directory: str, routes: Routes) -> str:
        """Return the text of maxscale.cnf: the servers, a monitor, and a service with its listener for each role."""
        user, password = self.account
        account = {"user": user, "password": password}
        names = ",".join(node.name for node in self.nodes)
        parts = [CONFIGURATION.format(directory=directory, servers=names, **account)]
        parts += [SERVER.format(name=node.name, address=node.host.address, port=node.port) for node in self.nodes]
        chosen = {"writer": routes["writer"][:1], "reader": routes["reader"]}
        parts += [
            SERVICE.format(
                role=role,
                servers=",".join(node.name for node in chosen[role]),
                address=address,
                port=self._ports[role],
                **account,
            )
            for role in ROLES
        ]
        return "".join(parts)

    def command(self, program: Path, directory: str) -> list[str]:
        """Return the command: in the foreground, its log to us. Only with ``--user`` it runs as root."""
        root = ["--user=root"] if self.host and self.host.root else []
        return [str(program), "--nodaemon", "--log=stdout", *root, "--config"]


PROXY = MaxScale
