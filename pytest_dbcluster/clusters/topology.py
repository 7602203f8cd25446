"""Topology: the base class that makes servers a cluster, and decides when the cluster is ready.

A node's my.cnf comes from here: ``startup.bring_up`` merges ``Topology.options`` with the user's options and passes
the result to ``servers.node.Node.configure``, which writes the file. Each module in ``topologies/`` is one topology.
"""

from __future__ import annotations

import abc
import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from pytest_dbcluster import registry, wait
from pytest_dbcluster.clusters.servers.health import Health
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.dialects.release_mixes import NodeVersion
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.releases.release import Release
    from pytest_dbcluster.spec import ClusterSpec

PLANNED: tuple[str, ...] = ()
REFUSAL = "refusal"  # the way of a node that does not come back, because it has errant transactions


@dataclasses.dataclass(frozen=True)
class Pulse:
    """A cheap statement that reads a server's state every second."""

    statement: str
    """The statement; it returns rows (Variable_name, Value) or a single row."""

    values: Mapping[str, tuple[str, float]]
    """Name in the timeline -> (status or column in lower case, factor). The unit of ``flow_control_paused`` is seconds
    so far, that of ``flow_control_held`` seconds of all sessions so far. ``receive_queue`` and ``certification_queue``
    count transactions, and ``replica_lag`` has seconds.
    """


class Topology(abc.ABC):
    """One kind of cluster.

    Subclasses implement ``options``, ``form`` and ``problems``. All other methods have a default for a cluster of equal
    nodes. An object may have the state of one cluster, such as its group name and ports; ``for_cluster`` makes another.

    In all methods ``nodes`` (``peers``) are in order: ``nodes[0]`` is ``node1``. ``options``, ``place``, ``form`` and
    ``serving`` get all nodes of the cluster, other methods the nodes with a server.
    """

    needs: frozenset[str] = frozenset()
    """Names of the powers that the provisioner must have."""

    minimum_nodes: int = 1
    """The minimum number of nodes."""

    replicates: bool = True
    """Whether a node may lag behind another node."""

    settings: Mapping[str, Sequence[str]] = {}
    """Options of the topology that no server knows: name -> its values, the default first. Specs set them like server
    options; ``apply`` changes them while the servers run.
    """

    restarts_appliers: bool = False
    """Whether a switch may stop and start the appliers of its replicas, for options that they read at their start."""

    elects_writers: bool = False
    """Whether other nodes accept writes without our help when a node is lost."""

    minority_evicts: bool = True
    """Whether nodes without a majority no longer count a lost one as a member, although they accept no writes."""

    ways_back: Sequence[str] = ()
    """The ways in which a node can get what it missed, such as ``IST``; empty if unknown."""

    eviction_seconds: float = 0.0
    """About how many seconds the others count a dead node, with the default time-outs; 0 without members."""

    return_seconds: float = 5.0
    """About how many seconds a node needs from its start until the cluster is whole, without load and large tables."""

    busy_return_seconds: float = 8.0
    """The same under load."""

    replication_link: bool = False
    """Whether its hosts have a second network only for replication."""

    alike: str = ""
    """A topology whose servers have the same variables, with fewer hosts; empty for none."""

    donor: Mapping[str, str] = {}
    """Values of ``health`` on a node that still answers while it gives its data to another; empty for none."""

    adoption: Mapping[str, object] = {}
    """Options of MySQL Shell's dba.create_cluster. With them MySQL Shell adopts the running cluster. Then a router can
    query the cluster for the roles of its nodes. Empty if MySQL Shell cannot adopt this topology.
    """

    def has_primary(self, options: Mapping[str, str]) -> bool:
        """Return whether only one node accepts writes. options: the server options of the spec."""
        return False

    def for_cluster(self) -> Self:
        """Return a fresh object of this topology for one cluster; it shares no group name or port with another."""
        return type(self)()

    @abc.abstractmethod
    def options(self, node: Node, peers: Sequence[Node]) -> Mapping[str, str]:
        """Return the server options that this topology adds to the node's my.cnf, by name.

        ``peers`` are all nodes in order, and include ``node``. The user's options override these
        (``servers.node.merge``).
        """

    @abc.abstractmethod
    def form(self, nodes: Sequence[Node]) -> None:
        """Start the servers and make them a cluster. The cluster need not be ready yet when this returns."""

    def after_forming(self, nodes: Sequence[Node]) -> None:
        """Undo what ``form`` needed only until the cluster was ready. Called once it is ready. Raises SQLError."""
        return

    @abc.abstractmethod
    def problems(self, nodes: Sequence[Node]) -> list[str]:
        """Return the reasons why the cluster is not ready, one line each; empty if it is ready. Raises NodeDied."""

    def place(self, source: str, nodes: Sequence[Node], *, durable: bool = False) -> None:
        """Give every node a copy of a data directory of this machine; no server runs yet. Raises ProvisionError.

        ``durable``: the copies are on disk when this method returns.
        """
        with wait.threads(len(nodes)) as copies:
            list(copies.map(lambda node: node.host.copy_tree(source, node.data, durable=durable), nodes))

    def serving(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return the nodes with a server, of all nodes of the cluster; the default is all."""
        return nodes

    def servers(self, nodes: int) -> int:
        """Return how many of this number of nodes have a server at the same time; the default is all."""
        return nodes

    def wrong_size(self, nodes: int) -> str:
        """Return why this topology cannot have this number of nodes; empty if it can."""
        if nodes >= self.minimum_nodes:
            return ""
        return f"this topology has {quantity(self.minimum_nodes, 'node')} or more, not {nodes}"

    def apply(self, settings: Mapping[str, str], nodes: Sequence[Node]) -> None:  # noqa: B027 (most have no settings)
        """Change the running cluster to these settings; missing ones get their default.

        The cluster is ready for a round when this returns. Raises ProvisionError.
        """

    def facts(self) -> Mapping[str, str]:
        """Return facts about the running cluster besides the variables of its servers: settings and versions."""
        return {}

    def refuses_mix(self, nodes: Sequence[NodeVersion], options: Mapping[str, str]) -> str:
        """Return why nodes of different versions cannot be this cluster, in their order; empty if they can.

        options: the server options of the spec.
        """
        return "all nodes of such a cluster have one release"

    def mix_remark(self, nodes: Sequence[NodeVersion]) -> str:
        """Return what a user should know about nodes of different versions; empty for nothing."""
        return ""

    def lacks(self, release: Release) -> str:
        """Return why servers of this release cannot run this topology; empty if they can."""
        return ""

    def remark(self, release: Release, options: Mapping[str, str]) -> str:
        """Return a line about settings of ours that are not the vendor's defaults; empty for none.

        ``options`` are the user's server options by name; they override ours.
        """
        return ""

    def writers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return the nodes that accept writes; without a proxy, workloads use the first of them.

        The default is all nodes. A topology with roles must also override ``health``, because proxies check the roles
        through ``health``. Raises ProvisionError if no node accepts writes.
        """
        return nodes

    def readers(self, nodes: Sequence[Node]) -> Sequence[Node]:
        """Return the nodes over which a proxy spreads reads; the default is all nodes."""
        return nodes

    def health(self, node: Node, nodes: Sequence[Node]) -> Health:
        """Return the conditions under which this node accepts reads, and those under which it accepts writes.

        Called before the start of the node. By default every server that answers is healthy.
        """
        return Health()

    def backlog(self, nodes: Sequence[Node]) -> list[str]:
        """Return what nodes must still apply before a round may begin, one line each; empty if all are equal."""
        return []

    def pulse(self, node: Node, nodes: Sequence[Node]) -> Pulse | None:
        """Return the statement for every second of a round on this node; None for no statement."""
        return None

    def watch(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """Return statuses by name. ``void`` compares readings from before and after each round."""
        return {}

    def void(self, before: Mapping[str, str], after: Mapping[str, str]) -> str:
        """Return why the round between two readings of ``watch`` does not count; empty if it counts."""
        return ""

    def violations(self, nodes: Sequence[Node]) -> list[str]:
        """Return errors after the rounds, one line each, when every node has applied everything.

        Errors are missing transactions, and errant transactions (those that no primary wrote).
        """
        return []

    def counting(self, node: Node, living: Sequence[Node]) -> list[str]:
        """Return the living nodes that still count a lost node as a member, one line each; empty without members."""
        return []

    def suspects(self, node: Node, living: Sequence[Node]) -> bool:
        """Whether a living node says that a member does not answer, and still counts it."""
        return False

    def how_joined(self, log: str) -> str:
        """Return how a node got what it missed, one of ``ways_back``; empty if it does not say it.

        log: the lines of its error log since its start.
        """
        return ""

    def errant(self) -> int:
        """Return how many transactions only the node had that rejoined last. We have removed them from it."""
        return 0

    def acknowledgement(self, variables: Mapping[str, str], nodes: int) -> str:
        """Return which nodes have a transaction when its commit returns, such as ``certified on all nodes``.

        ``variables`` are a server's global variables; ``nodes`` is the number of nodes.
        """
        return "one server"

    def consistency(self, variables: Mapping[str, str]) -> str:
        """Return the vendor's setting for stale reads on other nodes (``wsrep_sync_wait=0``); empty for no choice.

        ``variables`` are a server's global variables.
        """
        return ""


@runtime_checkable
class Rejoins(Protocol):
    """An optional power of a topology: it can start one node again while the rest of the cluster runs.

    Every topology with a ``rejoin`` method has this power (runtime-checkable).
    """

    def rejoin(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start this one node again. The cluster need not be ready yet when this returns."""


@runtime_checkable
class RestartsAtOnce(Protocol):
    """An optional power of a topology with members: a dead node starts again while the others still count it."""

    def refuses_at_once(self, nodes: int) -> str:
        """Return why so many nodes cannot have a dead one back while they count it; empty if they can."""

    def restart_at_once(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start the server of a dead node, as a service manager does. Nothing tells the others that it is gone."""


@runtime_checkable
class JoinsByClone(Protocol):
    """An optional power of a topology: a node joins with a copy of another node's data, made by the clone plugin."""

    def join_by_clone(self, node: Node, nodes: Sequence[Node]) -> None:
        """Start a stopped node, let it clone, and start it again with the copy. All nodes have the plugin.

        The cluster need not be ready yet when this returns. Raises ProvisionError.
        """


Step = Callable[[str], None]  # notes that the step with this name is done


@runtime_checkable
class SwitchesRoles(Protocol):
    """An optional power of a topology: another node becomes its only writer while all nodes run."""

    def refuses_roles(self, options: Mapping[str, str]) -> str:
        """Return why a cluster with these options of the spec has no other writer; empty if it can have one."""

    def switch_over(self, new: Node, nodes: Sequence[Node], step: Step, timeout: int | None = None) -> None:
        """Make a node the writer in place of the one that is it now. No transaction is lost.

        timeout: seconds until running transactions are ended, if the servers can do that. Raises ProvisionError.
        """


@runtime_checkable
class Promotes(SwitchesRoles, Protocol):
    """An optional power of a topology: a replica becomes the writer after the loss of the writer."""

    def remember_roles(self, nodes: Sequence[Node]) -> None:
        """Read the variables of each node's role for ``take_over``, while the writer still answers. Raises SQLError."""

    def most_advanced(self, lost: Node, nodes: Sequence[Node]) -> Node:
        """Return the running replica that lacks no transaction of another one, after all have applied what they have.

        They receive nothing more from ``lost``. Raises ProvisionError.
        """

    def take_over(self, new: Node, nodes: Sequence[Node], *, refuses: bool = False) -> None:
        """Make this replica the writer in place of a lost one. Other running replicas follow it.

        refuses: when the lost writer rejoins with errant transactions, it stays out (``REFUSAL``), without a rebuild.
        Raises ProvisionError.
        """

    def rebuild(self, node: Node, nodes: Sequence[Node]) -> None:
        """Let a running node that was refused follow the writer, with a copy of its data. Raises ProvisionError."""


@runtime_checkable
class FailsOver(Rejoins, Protocol):
    """An optional power of a topology: a node without a server takes over if the host of the server is lost."""

    def refuses_failover(self, options: Mapping[str, str]) -> str:
        """Return why no node may take over with these options of the spec; empty if one may."""

    def fail_over(self, nodes: Sequence[Node], step: Step) -> None:
        """Fence the host of the server, and start a server on another node. ``nodes``: all nodes of the cluster.

        Raises ProvisionError.
        """


def topology(name: str) -> Topology:
    """Return a new topology object by name (``galera``).

    Raises ConfigError with the known names for an unknown name, and Unsupported for a planned topology.
    """
    module = registry.find("topology", name, planned=PLANNED)
    instance: Topology = importlib.import_module(module).TOPOLOGY()
    return instance


def refuse_mix(spec: ClusterSpec, made: Topology, nodes: Sequence[NodeVersion]) -> None:
    """Raise ConfigError for nodes of different versions that cannot be this cluster."""
    if reason := made.refuses_mix(nodes, dict(spec.options)):
        raise ConfigError(f"release={spec.release_text} of a {spec.topology} cluster: {reason}")


def usual_nodes(name: str) -> int:
    """Return the default number of nodes: 3, or the next smaller number that this topology can have."""
    return next(nodes for nodes in (3, 2, 1) if not topology(name).wrong_size(nodes))
