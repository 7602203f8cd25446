"""Event: the base class of what happens to a cluster under load, and which node it happens to."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import re
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.topology import REFUSAL, JoinsByClone, Promotes, Rejoins, RestartsAtOnce, Topology
from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.rounds.outages.outage import Returned

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.hosts.provisioner import Provisioner
    from pytest_dbcluster.releases.release import Release
    from pytest_dbcluster.spec import ClusterSpec

WRITER, OTHER = "writer", "other"
NUMBERED = re.compile(r"node([1-9][0-9]*)")
# What replicas of MariaDB and MySQL log while their source does not answer.
WITHOUT_SOURCE = (r"Error reading packet from server", r"[Ee]rror reconnecting to (master|source)")
ENDED_SECONDS = 10.0  # until a process must have ended
WHOLE_SECONDS = 300.0  # until a cluster must be whole again
UNSEEN_SECONDS = 120.0  # until the peers of a lost node no longer count it
SELF_SECONDS = 120.0  # a node that does not come back by itself within this time starts again
NAP = 0.1


@dataclasses.dataclass
class Happened:
    """What an event has done."""

    at: float
    """When it began, in seconds since 1970 (UTC)."""

    node: str = ""
    """The name of the node; empty for an event without a node."""

    marks: dict[str, float] = dataclasses.field(default_factory=dict)
    """By name of a step, the seconds since the event when it was seen."""

    void: str = ""
    """Why it is not proven that the event happened; empty if it is."""

    returned: Returned | None = None
    """How the node came back, if it did so under load."""

    before: Any = None
    """What ``restore`` brings back; None for nothing."""

    waited: float = 0.0
    """For how many seconds we have waited under load for a node that comes back by itself."""

    seconds_before: float = 0.0
    """For how many seconds before the event its node was already gone."""

    def mark(self, step: str) -> None:
        """Note that a step is seen now."""
        self.marks[step] = time.time() - self.at


@dataclasses.dataclass(frozen=True)
class Stage:
    """The servers of a cluster, before an event or because of it."""

    releases: Sequence[Release]
    """The release of each node."""

    options: Mapping[str, str]
    """The user's server options, by name."""


class Event(abc.ABC):
    """Something that happens to a cluster under load: a frozen dataclass with a short text."""

    errors: ClassVar[Sequence[str]] = WITHOUT_SOURCE
    """Patterns of the [ERROR] lines that it causes; they may come after the repetition, and no check fails on them."""

    @property
    def reusable(self) -> bool:
        """Whether ``restore`` brings everything back, so that the cluster can have the next repetition."""
        return True

    @abc.abstractmethod
    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a cluster that cannot have the event. It is called before anything starts."""

    def check_hosts(self, spec: ClusterSpec, provisioner: Provisioner) -> None:  # noqa: B027  (most need no power)
        """Raise ConfigError with the name of the power that the hosts lack. It is called before anything starts."""

    def stages(self, spec: ClusterSpec) -> Sequence[ClusterSpec]:
        """Return the specs that the event gives the cluster, in order; empty if the servers stay as they are."""
        return ()

    def equip(self, start: Stage, stages: Sequence[Stage]) -> Self:
        """Return the event with what its stages need. It is called before anything starts.

        start: the cluster before the event. Raises ConfigError for a release without a program that the event needs.
        """
        return self

    def prepare(self, cluster: Cluster) -> None:  # noqa: B027 (most events need nothing)
        """Make what the event needs, before the load starts. Raises ConfigError and ProvisionError."""

    @abc.abstractmethod
    def act(self, cluster: Cluster) -> Happened:
        """Let it happen, and prove it. The load runs meanwhile. Raises ProvisionError."""

    def restore(self, cluster: Cluster, happened: Happened) -> Returned | None:
        """Make the cluster whole again, after the load has ended. Returns how the node came back.

        None for a node that did not leave. Raises ProvisionError if the cluster does not become whole.
        """
        wait.until(cluster.problems, f"cluster {cluster.spec} after {self}", seconds=WHOLE_SECONDS)
        return happened.returned

    def expected_seconds(self, spec: ClusterSpec, topology: Topology) -> float:
        """Return about how many seconds pass from the event until the cluster is whole, with small tables.

        The expected time of a run counts with it until the first repetition has shown it. The default: none.
        """
        return 0.0

    def moves_writes(self, topology: Topology) -> bool:
        """Whether another node may accept the writes afterwards. The default: if the topology elects one."""
        return topology.elects_writers

    def leaves_load(self, spec: ClusterSpec, topology: Topology, *, only_writer: bool) -> bool:
        """Whether a load that connects to the writer alone still commits, or does so again during the event.

        only_writer: whether the load has no other endpoint than the first node that accepts writes.
        """
        return True


def check_node(node: object, event: str, spec: ClusterSpec, topology: Topology) -> None:
    """Raise ConfigError for a node that the cluster does not have, and for a topology without this power."""
    number = NUMBERED.fullmatch(str(node))
    if node not in (WRITER, OTHER) and not number:
        raise ConfigError(f'{event}: the node is "{WRITER}", "{OTHER}" or a name such as "node2", not {node!r}')
    if (number and int(number[1]) > spec.nodes) or (node == OTHER and spec.nodes < 2):
        raise ConfigError(f"{event}: cluster {spec} has {quantity(spec.nodes, 'node')}")
    check_restarts(event, spec, topology)


def check_restarts(event: str, spec: ClusterSpec, topology: Topology) -> None:
    """Raise ConfigError for a topology whose servers we cannot start again one by one."""
    if not isinstance(topology, Rejoins) or topology.servers(spec.nodes) != spec.nodes:
        raise ConfigError(
            f"{event}: we cannot start one node of the topology {spec.topology} again; for drbd use FailOver()"
        )


def check_seconds(name: str, value: object) -> None:
    """Raise ConfigError for anything but seconds above 0 and up to 300."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= WHOLE_SECONDS:
        raise ConfigError(f"{name}={value!r}: it accepts seconds above 0 and up to {WHOLE_SECONDS:g}")


def target(name: str, cluster: Cluster) -> Node:
    """The node of this name; ``writer`` is the first that accepts writes, ``other`` the last other node."""
    if name == WRITER:
        return cluster.writers[0]
    if name == OTHER:
        writer = cluster.writers[0]
        return next(node for node in reversed(cluster.nodes) if node is not writer)
    return next(node for node in cluster.nodes if node.name == name)


def others(node: Node, cluster: Cluster) -> Sequence[Node]:
    """The running nodes beside this one."""
    return [peer for peer in cluster.nodes if peer is not node and peer.running]


def wait_uncounted(node: Node, cluster: Cluster, happened: Happened | None = None) -> None:
    """Wait until the other nodes do not count a lost node as a member any more. Raises NotReady."""
    living, topology = others(node, cluster), cluster.topology

    def counting() -> list[str]:
        if happened and "detected" not in happened.marks and topology.suspects(node, living):
            happened.mark("detected")
        return topology.counting(node, living)

    wait.until(counting, f"the others' view of {node.name}", seconds=UNSEEN_SECONDS)
    evicts = topology.elects_writers and (topology.minority_evicts or 2 * len(living) > len(cluster.nodes))
    if happened and living and evicts:
        happened.mark("evicted")


def has_left(node: Node, cluster: Cluster) -> bool:
    """Whether the other members, which are a majority, no longer count a node that still runs."""
    living, topology = others(node, cluster), cluster.topology
    if not topology.elects_writers or 2 * len(living) <= len(cluster.nodes):
        return False
    with contextlib.suppress(ProvisionError, SQLError):
        return not topology.counting(node, living)
    return False


def notice_return(node: Node, cluster: Cluster, happened: Happened, log: int) -> None:
    """Wait under load until a node that has left is back by itself, and note how. ``restore`` starts it otherwise.

    log: the size of its error log before the event.
    """
    began = time.monotonic()
    with contextlib.suppress(ProvisionError):
        wait.until(cluster.problems, f"cluster {cluster.spec} with {node.name}", seconds=SELF_SECONDS)
        seconds = time.monotonic() - began
        happened.mark("whole")
        happened.returned = Returned(seconds, cluster.topology.how_joined(node.log_text(log)))
    happened.waited = time.monotonic() - began


def sleep(seconds: float) -> None:
    """Sleep, unless this thread must end. Raises KeyboardInterrupt."""
    limit = time.monotonic() + seconds
    while (left := limit - time.monotonic()) > 0:
        wait.raise_if_interrupted()
        time.sleep(min(NAP, left))


def come_back(node: Node, cluster: Cluster, waited: float = 0.0) -> Returned | None:
    """Wait until a node is back by itself; otherwise start it again. None if it came back. Raises ProvisionError.

    waited: seconds for which we have waited already.
    """
    if node.running:
        try:
            wait.until(cluster.problems, f"cluster {cluster.spec}", seconds=max(1.0, SELF_SECONDS - waited))
        except ProvisionError:
            node.kill()
        else:
            return None
    return rejoin(node, cluster)


def writer_last(cluster: Cluster) -> Sequence[Node]:
    """The nodes in the order in which people change them: the last one first, and the writer at the end."""
    writer = cluster.writers[0]
    return [*(node for node in reversed(cluster.nodes) if node is not writer), writer]


def rejoin(node: Node, cluster: Cluster, *, at_once: bool = False, by_clone: bool = False) -> Returned:
    """Start a node again, and wait until the cluster is whole. Raises ProvisionError.

    A topology may shorten the eviction of the node, so this waits for the eviction first. at_once: it does not wait,
    and the topology does not help. by_clone: the node gets the data of another one. A node that is refused is rebuilt
    after that, because the next repetition needs a whole cluster.
    """
    topology = cluster.topology
    assert isinstance(topology, Rejoins), "``check_node`` refuses others"
    if not at_once:
        wait_uncounted(node, cluster)
    began, seen = time.monotonic(), node.log_size()
    if at_once and isinstance(topology, RestartsAtOnce):
        topology.restart_at_once(node, cluster.members)
    elif by_clone and isinstance(topology, JoinsByClone):
        topology.join_by_clone(node, cluster.members)
    else:
        topology.rejoin(node, cluster.members)
    refused = None
    if isinstance(topology, Promotes) and cluster.topology.how_joined("") == REFUSAL:
        refused = Returned(time.monotonic() - began, REFUSAL, cluster.topology.errant())
        topology.rebuild(node, cluster.members)  # the next repetition needs a whole cluster
    wait.until(cluster.problems, f"cluster {cluster.spec} with {node.name}", seconds=WHOLE_SECONDS)
    seconds, how = time.monotonic() - began, cluster.topology.how_joined(node.log_text(seen))
    return refused or Returned(seconds, how, cluster.topology.errant())


def restart_seconds(spec: ClusterSpec, topology: Topology) -> float:
    """About how many seconds ``restart`` needs: nodes of a cluster that elects its writers join one by one."""
    return topology.busy_return_seconds * (spec.nodes if topology.elects_writers else 1)


def restart(cluster: Cluster) -> Returned:
    """Start all servers again after all have ended, and wait until the cluster is whole. Raises ProvisionError.

    A topology that elects its writers starts with the node that has the most transactions.
    """
    began, seen = time.monotonic(), {node: node.log_size() for node in cluster.nodes}
    topology = cluster.topology
    assert isinstance(topology, Rejoins), "``check_restarts`` refuses others"
    for node in cluster.nodes:
        if not node.running:
            topology.rejoin(node, cluster.members)
        if topology.elects_writers:  # two joiners at once disturb each other
            members = [member for member in cluster.nodes if member.running]
            wait.until(partial(topology.problems, members), f"{node.name} of {cluster.spec}", seconds=WHOLE_SECONDS)
    wait.until(cluster.problems, f"cluster {cluster.spec}", seconds=WHOLE_SECONDS)
    hows = [topology.how_joined(node.log_text(offset)) for node, offset in seen.items()]
    return Returned(time.monotonic() - began, ", ".join(dict.fromkeys(filter(None, hows))))
