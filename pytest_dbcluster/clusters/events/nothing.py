"""``Nothing``: the control, in which nothing happens. Its stalls are the noise of the load and the machine."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from pytest_dbcluster.clusters.events import event
from pytest_dbcluster.clusters.events.event import Event, Happened

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.spec import ClusterSpec


@dataclasses.dataclass(frozen=True)
class Nothing(Event):
    """The control: the load runs as it does through an event, and nothing happens."""

    errors = ()

    seconds: float | None = None
    """How long nothing happens; None is as long as the other events of the measurement. A load that is observed for
    longer has longer gaps by chance.
    """

    def __str__(self) -> str:
        return "nothing"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for other seconds than 0 to 300."""
        if self.seconds is not None:
            event.check_seconds("Nothing(seconds)", self.seconds)

    def expected_seconds(self, spec: ClusterSpec, topology: Topology) -> float:
        """Return its seconds, if they are known."""
        return self.seconds or 0.0

    def moves_writes(self, topology: Topology) -> bool:
        """No node loses its role."""
        return False

    def act(self, cluster: Cluster) -> Happened:
        """Do nothing for these seconds."""
        happened = Happened(time.time())
        event.sleep(self.seconds or 0.0)
        return happened
