"""Proxy: what stands between a load and the nodes."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Protocol, cast

from pytest_dbcluster import registry
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import Endpoint

PLANNED: tuple[str, ...] = ()
MOST_CONNECTIONS = 1500  # at once; published loads have 1000. HAProxy counts those of both endpoints together


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


class Made(Protocol):
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


def proxy_class(name: str) -> Made:
    """The class of a proxy by its file's name. Raises ConfigError that lists the known names."""
    module = registry.find("proxy", name, planned=PLANNED)
    made: Made = importlib.import_module(module).PROXY
    return made


def lacks(name: str, release: Release) -> str:
    """Why the proxy of this name cannot stand before servers of a release; empty when it can. Raises ConfigError."""
    made = proxy_class(name)
    return cast(Suits, made).lacks(release) if hasattr(made, "lacks") else ""


def remark(name: str, form: Topology, release: Release) -> str:
    """In which of several ways the proxy of this name will stand before a cluster. Raises ConfigError."""
    made = proxy_class(name)
    return cast(Remarks, made).remark(form, release) if hasattr(made, "remark") else ""
