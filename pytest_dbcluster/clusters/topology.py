"""Topology: how servers become a cluster, and when that cluster is ready."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from pytest_dbcluster import registry
from pytest_dbcluster.clusters.servers.health import Health
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.releases.release import Release

PLANNED = ("drbd",)


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


class Divides(Protocol):
    """An extra power: not every node does everything. Without it every node takes writes and reads.

    A topology that divides also tells (``Tells``) which node may do what.
    """

    def writers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """The nodes that take writes now, the one that a load is sent to first. Raises ProvisionError for none."""

    def readers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """The nodes over which a proxy spreads reads."""


class Tells(Protocol):
    """An extra power: a server that answers may still be of no use. Without it every server that answers is well."""

    def health(self, node: Node, nodes: Sequence[Node]) -> Health:
        """What has to be true on this node for reads, and for writes; asked before it is started."""


class Several(Protocol):
    """An extra power: it is none with fewer nodes than this."""

    fewest: int


class Suits(Protocol):
    """An extra power: not every release can do it."""

    def lacks(self, release: Release) -> str:
        """Why a release cannot do it; empty when it can."""


class Adoptable(Protocol):
    """An extra power: MySQL Shell can take the running cluster over, and a router then asks it for its roles.

    ``adoption`` are the options of its dba.create_cluster.
    """

    adoption: Mapping[str, object]


class Watches(Protocol):
    """An extra power: something may happen in mid-round after which the round measured something else."""

    def watch(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """What is read before and after a round: statuses by their own names."""

    def void(self, before: Mapping[str, str], after: Mapping[str, str]) -> str:
        """Why the round between two readings does not count; empty when it does."""


class Verifies(Protocol):
    """An extra power: a promise of its own that can be checked on nodes that have drained."""

    def violations(self, nodes: Sequence[Node]) -> list[str]:
        """What is wrong after the rounds: transactions that others lack, or that no primary wrote."""


class Acknowledges(Protocol):
    """An extra power: says what a commit that has returned is worth. Without it one server has it."""

    def acknowledged(self, variables: Mapping[str, str], nodes: int) -> str:
        """Who has a commit when it returns: ``certified on all nodes``, ``received by 1 replica``."""

    def consistency(self, variables: Mapping[str, str]) -> str:
        """What a read on another node may miss, in the vendor's words; empty where there is no choice."""


def lacks(form: Topology, release: Release) -> str:
    """Why a release cannot be this topology; empty when it can."""
    return cast(Suits, form).lacks(release) if hasattr(form, "lacks") else ""


def writers(form: Topology, nodes: Sequence[Node]) -> Sequence[Node]:
    """The nodes of a topology that take writes; all of them where it makes no difference between them."""
    return cast(Divides, form).writers(nodes) if hasattr(form, "writers") else nodes


def readers(form: Topology, nodes: Sequence[Node]) -> Sequence[Node]:
    """The nodes of a topology over which reads are spread; all of them where it makes no difference."""
    return cast(Divides, form).readers(nodes) if hasattr(form, "readers") else nodes


def adoption(form: Topology) -> Mapping[str, object]:
    """How MySQL Shell takes a cluster of a topology over; empty when it cannot."""
    return cast(Adoptable, form).adoption if hasattr(form, "adoption") else {}


def health(form: Topology, node: Node, nodes: Sequence[Node]) -> Health:
    """How one node of a topology says what it may be used for."""
    return cast(Tells, form).health(node, nodes) if hasattr(form, "health") else Health()


def fewest(form: Topology) -> int:
    """The smallest number of nodes that a topology can be."""
    return cast(Several, form).fewest if hasattr(form, "fewest") else 1


def topology(name: str) -> Topology:
    """The topology of this name. Raises ConfigError that lists the known ones, Unsupported for planned ones."""
    module = registry.find("topology", name, planned=PLANNED)
    made: Topology = importlib.import_module(module).TOPOLOGY()
    return made
