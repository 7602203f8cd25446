"""Proxy: what stands between a load and the nodes."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Protocol

from pytest_dbcluster import registry
from pytest_dbcluster.node import Node
from pytest_dbcluster.provisioner import Provisioner
from pytest_dbcluster.spec import Endpoint

PLANNED = ("mysql_router",)


class Proxy(Protocol):
    """One proxy before a cluster: started after its nodes, closed before them."""

    def start(self) -> None:
        """Start it; not yet ready. Raises ProvisionError."""

    def problems(self) -> list[str]:
        """What keeps it from passing connections to every node; empty means ready."""

    def writer(self) -> Endpoint:
        """The endpoint that always leads to one and the same node while that node is well."""

    def reader(self) -> Endpoint:
        """The endpoint that leads to every node in turn."""

    def close(self) -> None:
        """End it. Never raises for one that is gone already."""


class Watchable(Protocol):
    """An extra power: people can look at what the proxy does."""

    statistics_url: str

    def log(self) -> str:
        """The file that it writes to."""


def proxy(name: str, provisioner: Provisioner, nodes: Sequence[Node]) -> Proxy:
    """The proxy of this name before these nodes. Raises ConfigError that lists the known names."""
    module = registry.find("proxy", "pytest_dbcluster.proxies", name, planned=PLANNED)
    made: Proxy = importlib.import_module(module).PROXY(provisioner, nodes)
    return made
