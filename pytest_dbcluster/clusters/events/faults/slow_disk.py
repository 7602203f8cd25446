"""``SlowDisk``: the kernel allows a server fewer writes a second, for some seconds."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from pytest_dbcluster.clusters.events import event, powers
from pytest_dbcluster.clusters.events.event import Event, Happened
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.host import LimitsWrites

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.hosts.provisioner import Provisioner
    from pytest_dbcluster.spec import ClusterSpec


@dataclasses.dataclass(frozen=True)
class SlowDisk(Event):
    """Limit the write operations of a server's host for some seconds, as a disk that degrades."""

    node: str
    """``writer``, ``other`` (the last node that is not the writer), or a name such as ``node2``."""

    iops: int
    """Write operations/s, fewer than the cluster's hosts have (``with_needs(iops=)``)."""

    seconds: float
    """How long the limit is in force."""

    def __str__(self) -> str:
        return f"slow disk of {self.node} {self.iops} iops {self.seconds:g} s"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a node that the cluster does not have, and for a limit that is not lower."""
        event.check_node(self.node, f"SlowDisk({self.node!r})", spec, topology)
        event.check_seconds("SlowDisk(seconds)", self.seconds)
        if not isinstance(self.iops, int) or isinstance(self.iops, bool) or self.iops < 1:
            raise ConfigError(f"SlowDisk(iops={self.iops!r}): it accepts whole operations a second, from 1")
        usual = spec.needs.iops
        if usual is None or usual <= self.iops:
            limit = f"the limit iops={usual}" if usual else "no limit on writes"
            raise ConfigError(
                f"SlowDisk(iops={self.iops}): the hosts of cluster {spec} have {limit}; "
                "use ClusterSpec(...).with_needs(iops=) with more operations than the event"
            )

    def check_hosts(self, spec: ClusterSpec, provisioner: Provisioner) -> None:
        """Raise ConfigError for hosts whose writes cannot be limited."""
        name = f"SlowDisk({self.node!r})"
        powers.require(LimitsWrites, name, spec, provisioner)
        powers.require_offer("iops", name, spec, provisioner)

    def expected_seconds(self, spec: ClusterSpec, topology: Topology) -> float:
        """Return the seconds of the event: those that the test sets."""
        return self.seconds

    def moves_writes(self, topology: Topology) -> bool:
        """No node loses its role."""
        return False

    def act(self, cluster: Cluster) -> Happened:
        """Lower the limit and raise it again. The proof is the limit that the kernel shows."""
        node = event.target(self.node, cluster)
        host = node.host
        assert isinstance(host, LimitsWrites), "``powers.require`` refuses others"
        usual = host.write_limit()
        if usual is None:
            return Happened(time.time(), node.name, void=f"the host of {node.name} had no limit before the event")
        happened = Happened(time.time(), node.name)
        host.limit_writes(self.iops)
        try:
            happened.mark("slow")
            limits = [host.write_limit()]
            event.sleep(self.seconds)
            limits.append(host.write_limit())
        finally:
            host.limit_writes(usual)
        happened.mark("usual")
        if set(limits) != {self.iops} or host.write_limit() != usual:
            happened.void = f"limits of {node.name} in force: {usual}, {limits}, {host.write_limit()}"
        return happened
