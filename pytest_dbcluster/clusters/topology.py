"""Topology: how servers become a cluster, and when that cluster is ready."""

from __future__ import annotations

import abc
import importlib
from collections.abc import Mapping, Sequence
from typing import Protocol, Self, runtime_checkable

from pytest_dbcluster import registry
from pytest_dbcluster.clusters.servers.health import Health
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.releases.release import Release

PLANNED = ("drbd",)


class Topology(abc.ABC):
    """One way for servers to be a cluster. What most topologies do alike is a default that others override.

    An object may hold what belongs to one cluster, such as its group name and its ports: see ``for_cluster``.

    needs: powers of a provisioner that it cannot do without. minimum_nodes: the minimum number of nodes.
    replicates: whether a node may still have to apply what was committed on another one.
    adoption: options of MySQL Shell's dba.create_cluster, by which it takes the running cluster over so that a router
    can ask it for the roles of its nodes; empty where it cannot.
    """

    needs: frozenset[str] = frozenset()
    minimum_nodes: int = 1
    replicates: bool = True
    adoption: Mapping[str, object] = {}

    def for_cluster(self) -> Self:
        """The same topology for one cluster, without the group name and ports of another one."""
        return type(self)()

    @abc.abstractmethod
    def options(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """What this node's my.cnf needs; ``peers`` are all nodes, this one included, in order."""

    @abc.abstractmethod
    def form(self, nodes: Sequence[Node]) -> None:
        """Start the servers and make them a cluster; not yet ready."""

    @abc.abstractmethod
    def problems(self, nodes: Sequence[Node]) -> list[str]:
        """What keeps the cluster from being ready; empty means ready. Raises NodeDied."""

    def wrong_size(self, nodes: int) -> str:
        """Why it cannot be a cluster of so many nodes; empty when it can."""
        if nodes >= self.minimum_nodes:
            return ""
        return f"this topology has {self.minimum_nodes} nodes or more, not {nodes}"

    def lacks(self, release: Release) -> str:
        """Why servers of this release cannot be this topology; empty when they can."""
        return ""

    def writers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """The nodes that take writes now, the one that a load is sent to first. Raises ProvisionError for none.

        A topology in which not every node takes writes and reads also says by ``health`` which node may do what.
        """
        return nodes

    def readers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """The nodes over which a proxy spreads reads."""
        return nodes

    def health(self, node: Node, nodes: Sequence[Node]) -> Health:
        """What has to be true on this node for reads, and for writes; asked before it is started.

        By default every server that answers is healthy.
        """
        return Health()

    def backlog(self, nodes: Sequence[Node]) -> list[str]:
        """What the nodes have still to apply before a round may begin; empty when all are equal."""
        return []

    def watch(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """What is read before and after a round, because it tells whether the round counts: statuses by name."""
        return {}

    def void(self, before: Mapping[str, str], after: Mapping[str, str]) -> str:
        """Why the round between two readings of ``watch`` does not count; empty when it does."""
        return ""

    def violations(self, nodes: Sequence[Node]) -> list[str]:
        """What is wrong on drained nodes after the rounds: transactions that others lack, or that no primary wrote."""
        return []

    def acknowledged(self, variables: Mapping[str, str], nodes: int) -> str:
        """Who has a commit when it returns: ``certified on all nodes``, ``received by 1 replica``."""
        return "one server"

    def consistency(self, variables: Mapping[str, str]) -> str:
        """What a read on another node may miss, in the vendor's words; empty where there is no choice."""
        return ""


@runtime_checkable
class Rejoins(Protocol):
    """An optional power: one node can be started again into a cluster that lives."""

    def rejoin(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start this one node again; not yet ready."""


def topology(name: str) -> Topology:
    """The topology of this name. Raises ConfigError that lists the known ones, Unsupported for planned ones."""
    module = registry.find("topology", name, planned=PLANNED)
    made: Topology = importlib.import_module(module).TOPOLOGY()
    return made
