"""``Kill``: the process of a server ends at once, as in a crash (SIGKILL)."""

from __future__ import annotations

import dataclasses
import signal
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.events import event
from pytest_dbcluster.clusters.events.event import ENDED_SECONDS, WITHOUT_SOURCE, Happened
from pytest_dbcluster.clusters.events.roles.loss import Loss
from pytest_dbcluster.clusters.events.roles.promote import Promote
from pytest_dbcluster.clusters.topology import RestartsAtOnce, Topology
from pytest_dbcluster.errors import ConfigError, NotReady

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.rounds.outages.outage import Returned
    from pytest_dbcluster.spec import ClusterSpec

# What a member of a group logs while the others count its former self.
STILL_COUNTED = (r"Member join failed", r"The member was unable to join the group", r"group communication engine")
AT_ONCE, AFTER_EVICTION = "at once", "after eviction"


@dataclasses.dataclass(frozen=True)
class Kill(Loss):
    """End a server's process with SIGKILL, as a crash does. Its host and its files stay."""

    errors: ClassVar[Sequence[str]] = (*WITHOUT_SOURCE, *STILL_COUNTED)

    node: str = event.WRITER
    """``writer``, ``other`` (the last node that is not the writer), or a name such as ``node2``."""

    restart: str | bool | None = None
    """When the server starts again. ``at once``: while the others still count it, as a service manager does.
    ``after eviction``: when they no longer do, while the load runs. False: after the load has ended.
    None: at once if no other node takes over its writes, otherwise after the load has ended.
    """

    then: Promote | None = None
    """What a failover manager does then: ``Promote()`` makes a replica the primary. The server starts after the load
    has ended.
    """

    def __str__(self) -> str:
        restart = f" and restart {self.restart}" if self.restart else ""
        return f"kill {self.node}{restart}{f', {self.then}' if self.then else ''}"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a node that the cluster does not have."""
        self.check_loss(f"Kill({self.node!r})", spec, topology)
        if self.restart not in (AT_ONCE, AFTER_EVICTION, None) and self.restart is not False:
            raise ConfigError(
                f'Kill(restart={self.restart!r}): it accepts "{AT_ONCE}", "{AFTER_EVICTION}", False or None'
            )
        why = topology.refuses_at_once(spec.nodes) if isinstance(topology, RestartsAtOnce) else ""
        if self.restart == AT_ONCE and why:
            raise ConfigError(f'Kill(restart="{AT_ONCE}") on {spec}: {why}; use "{AFTER_EVICTION}"')
        if self.then is not None and self.restart:
            raise ConfigError(f"Kill(restart={self.restart!r}, then={self.then}): the server starts after the load")

    def returns(self, topology: Topology) -> bool:
        """Whether the server starts again while the load runs."""
        return not topology.elects_writers if self.restart is None else bool(self.restart)

    def expected_seconds(self, spec: ClusterSpec, topology: Topology) -> float:
        """Return the seconds of the event: the eviction and the return of the node."""
        back = topology.busy_return_seconds if self.restart else topology.return_seconds
        return topology.eviction_seconds + back

    def act(self, cluster: Cluster) -> Happened:
        """Kill the server. The proof is the signal in its exit status, and that its peers no longer count it.

        A restart at once cannot wait for the second.
        """
        node = event.target(self.node, cluster)
        alone = node in cluster.writers and not cluster.topology.elects_writers
        restart = (AT_ONCE if alone and not self.then else False) if self.restart is None else self.restart
        if self.then:
            self.then.prepare(cluster)
        happened = _kill(node, cluster, evicted=restart != AT_ONCE)
        if self.then and not happened.void:
            self.then.act(node, cluster, happened)
        elif restart and not happened.void:
            happened.returned = event.rejoin(node, cluster, at_once=restart == AT_ONCE)
            happened.mark("whole")
        return happened

    def restore(self, cluster: Cluster, happened: Happened) -> Returned | None:
        """Start the server again, if it did not start under load. A former primary becomes the primary again."""
        node = event.target(happened.node, cluster)
        returned = super().restore(cluster, happened) if node.running else event.rejoin(node, cluster)
        self.give_back(node, cluster, happened)
        return returned


def _kill(node: Node, cluster: Cluster, *, evicted: bool) -> Happened:
    process = node.process
    if process is None or process.status() is not None:
        return Happened(time.time(), node.name, void=f"{node.name} did not run before the event")
    node.sql.close()
    happened = Happened(time.time(), node.name)
    process.signal(signal.SIGKILL)
    try:
        wait.until(lambda: [] if process.status() is not None else ["it still runs"], node.name, seconds=ENDED_SECONDS)
        happened.mark("ended")
    except NotReady as error:
        happened.void = f"kill of {node.name}: {error}"
    if process.status() not in (None, -signal.SIGKILL):
        happened.void = f"{node.name} ended with {process.status()}, not by our signal"
    if evicted and not happened.void:
        event.wait_uncounted(node, cluster, happened)  # an error here is an outcome of the event
    return happened
