"""``FailOver``: the host of the server is lost, and a host without a server takes over, as with DRBD."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.events import event, powers
from pytest_dbcluster.clusters.events.event import WHOLE_SECONDS, Event, Happened
from pytest_dbcluster.clusters.events.roles.hand_over import wait_routed
from pytest_dbcluster.clusters.topology import FailsOver
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.host import Falls
from pytest_dbcluster.rounds.outages.outage import Returned

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.hosts.provisioner import Provisioner
    from pytest_dbcluster.spec import ClusterSpec

EXPECTED_SECONDS = 20.0


@dataclasses.dataclass(frozen=True)
class FailOver(Event):
    """Fence the host of the server, and let its standby take over. The old host comes back as the standby.

    The next repetition begins on the new host.
    """

    def __str__(self) -> str:
        return "fail over"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a cluster without a standby, and for one whose clients would not follow."""
        if not isinstance(topology, FailsOver):
            raise ConfigError(
                f"FailOver(): a cluster of topology {spec.topology} has no standby for its server; use drbd, or "
                "LoseHost(then=Promote()) for a replica that takes over"
            )
        if reason := topology.refuses_failover(dict(spec.options)):
            raise ConfigError(f"FailOver() on {spec}: {reason}")
        if spec.proxy != "haproxy":
            raise ConfigError(f'FailOver() on {spec}: clients do not follow the server: use proxy="haproxy"')

    def check_hosts(self, spec: ClusterSpec, provisioner: Provisioner) -> None:
        """Raise ConfigError for hosts whose power we cannot cut."""
        powers.require(Falls, "FailOver()", spec, provisioner)

    def expected_seconds(self, spec: ClusterSpec, topology: Topology) -> float:
        """Return the seconds of the takeover, and of the boot of the old host."""
        return EXPECTED_SECONDS

    def moves_writes(self, topology: Topology) -> bool:
        """Whether another node accepts the writes: always."""
        return True

    def act(self, cluster: Cluster) -> Happened:
        """Fail over. The proof is that the old host does not answer, and that the proxy leads to the new server.

        After the load, its kernel must have booted. Raises ProvisionError.
        """
        (old,), topology = cluster.nodes, cluster.topology
        assert isinstance(topology, FailsOver), "``check`` refuses others"
        if not powers.answers(old):
            return Happened(time.time(), old.name, void=f"{old.name} did not answer before the event")
        boot = powers.boot(old)
        happened = Happened(time.time(), old.name, before=boot)
        topology.fail_over(cluster.members, happened.mark)
        (new,) = cluster.nodes
        wait_routed(new, cluster)
        happened.mark("routed")
        if new is old or powers.answers(old):
            happened.void = f"{old.name} answers after it was fenced"
        return happened

    def restore(self, cluster: Cluster, happened: Happened) -> Returned | None:
        """Boot the old host, and attach it as the standby with all data. Raises ProvisionError."""
        old = next(node for node in cluster.members if node.name == happened.node)
        assert isinstance(cluster.topology, FailsOver), "``check`` refuses others"
        if old in cluster.nodes:
            return event.come_back(old, cluster)
        began = time.monotonic()
        cluster.topology.rejoin(old, cluster.members)
        if powers.boot(old) == happened.before:
            happened.void = f"the host of {old.name} did not boot"
        wait.until(cluster.problems, f"cluster {cluster.spec} with the host of {old.name}", seconds=WHOLE_SECONDS)
        return Returned(time.monotonic() - began, "")
