"""``Nothing``: the control, in which nothing happens. Its stalls are the noise of the load and the machine."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from pytest_dbcluster.clusters.events.event import Event, Happened

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.spec import ClusterSpec


@dataclasses.dataclass(frozen=True)
class Nothing(Event):
    """The control: the load runs as it does through an event, and nothing happens."""

    errors = ()

    def __str__(self) -> str:
        return "nothing"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Every cluster can have it."""

    def moves_writes(self, topology: Topology) -> bool:
        """No node loses its role."""
        return False

    def act(self, cluster: Cluster) -> Happened:
        """Do nothing."""
        return Happened(time.time())
