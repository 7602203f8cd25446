"""Topology: how servers become a cluster, and when that cluster is ready."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Protocol

from pytest_dbcluster import registry
from pytest_dbcluster.node import Node

PLANNED = ("async_replication", "drbd", "group_replication", "semisync")


class Topology(Protocol):
    """One way for servers to be a cluster.

    ``needs`` are powers of a provisioner that it cannot do without.
    """

    needs: frozenset[str]

    def options(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """What this node's my.cnf needs; ``peers`` are all nodes, this one included, in order."""

    def form(self, nodes: Sequence[Node]) -> None:
        """Start the servers and make them a cluster; not yet ready."""

    def problems(self, nodes: Sequence[Node]) -> list[str]:
        """What keeps the cluster from being ready; empty means ready. Raises NodeDied."""


class Settles(Protocol):
    """An extra power: nodes may still have work from others, which has to be done before a round."""

    def backlog(self, nodes: Sequence[Node]) -> list[str]:
        """What the nodes have still to apply; empty when all are equal."""


class Rejoins(Protocol):
    """An extra power: one node can be started again into a cluster that lives."""

    def rejoin(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start this one node again; not yet ready."""


def topology(name: str) -> Topology:
    """The topology of this name. Raises ConfigError that lists the known ones, Unsupported for planned ones."""
    module = registry.find("topology", "pytest_dbcluster.topologies", name, planned=PLANNED)
    made: Topology = importlib.import_module(module).TOPOLOGY()
    return made
