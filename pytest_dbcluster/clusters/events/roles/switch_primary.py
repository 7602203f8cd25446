"""``SwitchPrimary``: another node becomes the primary while all nodes run, as before maintenance of a host."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from pytest_dbcluster.clusters.events import event
from pytest_dbcluster.clusters.events.event import Event, Happened
from pytest_dbcluster.clusters.events.roles.hand_over import check_roles, hand_over
from pytest_dbcluster.errors import ConfigError

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.rounds.outages.outage import Returned
    from pytest_dbcluster.spec import ClusterSpec

LONGEST = 3600  # seconds that group_replication_set_as_primary accepts


@dataclasses.dataclass(frozen=True)
class SwitchPrimary(Event):
    """Make another node the primary while all nodes run. After the load has ended, the roles go back."""

    to: str = event.OTHER
    """``other`` (the last node that is not the primary), or a name such as ``node2``."""

    timeout: int | None = None
    """With Group Replication: the seconds until the group disconnects clients whose transactions still run, from 0 to
    3600. None: it waits until they have ended.
    """

    def __str__(self) -> str:
        timeout = "" if self.timeout is None else f" within {self.timeout} s"
        return f"switch primary to {self.to}{timeout}"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a node that the cluster does not have, and for a cluster whose roles are fixed."""
        own = f"SwitchPrimary({self.to!r})"
        event.check_node(self.to, own, spec, topology)
        if self.to in (event.WRITER, "node1"):
            raise ConfigError(f"{own}: {self.to} is the primary at the begin of each repetition")
        if self.timeout is not None:
            if isinstance(self.timeout, bool) or not isinstance(self.timeout, int) or not 0 <= self.timeout <= LONGEST:
                raise ConfigError(f"SwitchPrimary(timeout={self.timeout!r}): it accepts whole seconds up to {LONGEST}")
            if not topology.elects_writers:
                raise ConfigError(f"{own}: a cluster of topology {spec.topology} accepts no timeout=")
        check_roles(own, spec, topology)

    def moves_writes(self, topology: Topology) -> bool:
        """Whether another node accepts the writes: always."""
        return True

    def act(self, cluster: Cluster) -> Happened:
        """Switch. The proof is that every server has its new role, and that the proxy leads to the new primary.

        Raises ProvisionError.
        """
        old, new = cluster.writers[0], event.target(self.to, cluster)
        happened = Happened(time.time(), old.name)
        if new is old:
            happened.void = f"{new.name} was the primary before the event"
        else:
            hand_over(new, cluster, happened.mark, self.timeout)
        return happened

    def restore(self, cluster: Cluster, happened: Happened) -> Returned | None:
        """Make the old primary the primary again."""
        super().restore(cluster, happened)
        old = event.target(happened.node, cluster)
        if cluster.writers[0] is not old:
            hand_over(old, cluster)
        return None
