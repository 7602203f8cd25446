"""Standalone: one server, no replication. The baseline of every cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology


class Standalone(Topology):
    """One server."""

    replicates = False

    def wrong_size(self, nodes: int) -> str:
        """One server is one node."""
        return "" if nodes == 1 else f"a standalone server is one node, not {nodes}; for more take another topology"

    def options(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """Nothing beyond what every server gets."""
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
