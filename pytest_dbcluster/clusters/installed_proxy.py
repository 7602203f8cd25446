"""InstalledProxy: the base class of proxies that we cannot fetch. Their program has to be on PATH.

Such a proxy is untried until somebody has run it: we know its settings only from its documentation.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster.clusters.proxy import RoutedProxy, query_through
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.releases.find import program_on_path
from pytest_dbcluster.releases.release import Release

Routes = Mapping[str, Sequence[Node]]


class InstalledProxy(RoutedProxy):
    """One process on a separate host. ``name`` is the name of its program."""

    untried = True

    @classmethod
    def lacks(cls, release: Release) -> str:
        """Return that the program is not on PATH; empty if it is."""
        if program_on_path(cls.name):
            return ""
        path = os.environ.get("PATH", "")
        return f"no {cls.name} on PATH ({path}): install it, because we cannot fetch it; we have never run it"

    @classmethod
    def remark(cls, topology: Topology, release: Release) -> str:
        """Return that the proxy is untried."""
        return f"{cls.name} before {release.name}: untried, we know it only from its documentation; static routes"

    @abc.abstractmethod
    def settings(self, address: str, directory: str, routes: Routes) -> str:
        """Return the text of its configuration. address: of the listeners. directory: for its own files."""

    @abc.abstractmethod
    def command(self, program: Path, directory: str) -> list[str]:
        """Return the command that starts it in the foreground; the path of its configuration is appended."""

    def start(self) -> None:
        """Take a host and ports. ``follow`` starts the proxy once the nodes are ready. Raises ProvisionError."""
        host = self.acquire()
        if host.machine:
            raise ProvisionError(f"{self.name} is installed on this machine, and its host is on {host.machine}")
        self._reserve_ports(host)

    def follow(self) -> None:
        """Start the proxy with the current routes, unless it has them. Raises ProvisionError."""
        routes = self.roles()
        if routes == self._routes or not self.host:
            return
        program = program_on_path(self.name)
        if program is None:
            raise ProvisionError(self.lacks(self.nodes[0].release))
        self.end()
        text = self.settings(self.host.address, self.host.directory, routes)
        self.spawn(self.name, text, self.command(program, self.host.directory), {})
        self._routes = routes

    def problems(self) -> list[str]:
        """Return the listeners that do not answer. Raises ProvisionError if the proxy has ended."""
        if not self.processes:
            return [f"{self.name} does not run yet"]
        self.alive()
        try:
            for role, endpoint in (("writer", self.writer()), ("reader", self.reader())):
                query_through(f"{self.name}'s {role}", endpoint, "SELECT 1")
        except SQLError as error:
            return [str(error)]
        return []
