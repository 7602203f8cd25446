"""Standalone: one server without replication, the baseline for every cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology


class Standalone(Topology):
    """One server."""

    replicates = False

    def wrong_size(self, nodes: int) -> str:
        """Return why this number of nodes is wrong: a standalone server is one node."""
        return (
            "" if nodes == 1 else f"a standalone server is one node, not {nodes}; for more nodes use another topology"
        )

    def options(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """Return no options: a standalone server needs only those of every node."""
        return {}

    def form(self, nodes: Sequence[Node]) -> None:
        """Start the server."""
        nodes[0].start()

    def rejoin(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start the server again."""
        node.start()

    def problems(self, nodes: Sequence[Node]) -> list[str]:
        """Return why the server does not answer; empty if it answers."""
        return nodes[0].problems()


TOPOLOGY = Standalone
