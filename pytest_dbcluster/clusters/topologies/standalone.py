"""Standalone: one server, no replication. The baseline of every cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import ConfigError


class Standalone(Topology):
    """One server."""

    replicates = False

    def options(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """Nothing beyond what every server gets. Raises ConfigError for more than one node."""
        if len(peers) != 1:
            raise ConfigError(f"a standalone server is one node, not {len(peers)}; for more take another topology")
        return {}

    def form(self, nodes: Sequence[Node]) -> None:
        """Start it."""
        nodes[0].start()

    def rejoin(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start it again."""
        node.start()

    def problems(self, nodes: Sequence[Node]) -> list[str]:
        """Whether it answers."""
        return nodes[0].problems()


TOPOLOGY = Standalone
