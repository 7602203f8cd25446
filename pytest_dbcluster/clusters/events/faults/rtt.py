"""``Rtt``: the nodes are farther apart for some seconds."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import TYPE_CHECKING

from pytest_dbcluster.clusters.events import event, powers
from pytest_dbcluster.clusters.events.event import Event, Happened
from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.formatting import milliseconds
from pytest_dbcluster.network import MOST_SECONDS, NODE, Links

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.hosts.network.path import NetworkPath
    from pytest_dbcluster.hosts.provisioner import Provisioner
    from pytest_dbcluster.spec import ClusterSpec

PINGS = 3
NEARLY = 0.95  # share of the round trip that a ping must take


@dataclasses.dataclass(frozen=True)
class Rtt(Event):
    """Lengthen the round trip between all nodes for some seconds. Clients and the proxy stay as near as they are."""

    milliseconds: float
    """The round trip between two nodes, longer than that of the cluster."""

    seconds: float
    """How long the nodes are so far apart."""

    def __str__(self) -> str:
        return f"rtt {self.milliseconds:g} ms {self.seconds:g} s"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a round trip that is not longer, for wrong seconds, and for one node."""
        event.check_seconds("Rtt(seconds)", self.seconds)
        most = 1000 * MOST_SECONDS
        given = self.milliseconds
        if not isinstance(given, int | float) or isinstance(given, bool) or not 0 < given <= most:
            raise ConfigError(f"Rtt(milliseconds={given!r}): it accepts milliseconds above 0 and up to {most:g}")
        if spec.nodes < 2:
            raise ConfigError(f"Rtt({given:g}): cluster {spec} has 1 node")
        between = [seconds for pair, seconds in spec.needs.links if all(map(NODE.fullmatch, pair))]
        if (usual := 1000 * max([spec.needs.rtt or 0.0, *between])) >= given:
            raise ConfigError(f"Rtt({given:g}): the nodes of cluster {spec} are {usual:g} ms apart already")

    def check_hosts(self, spec: ClusterSpec, provisioner: Provisioner) -> None:
        """Raise ConfigError for hosts whose network cannot be delayed."""
        powers.require_path(f"Rtt({self.milliseconds:g})", spec, provisioner)

    def expected_seconds(self, spec: ClusterSpec, topology: Topology) -> float:
        """Return the seconds of the event: those that the test sets."""
        return self.seconds

    def moves_writes(self, topology: Topology) -> bool:
        """No node loses its role."""
        return False

    def act(self, cluster: Cluster) -> Happened:
        """Delay the packets between nodes, and let them go.

        The proof is the time of pings between two nodes before, during and after the event.
        """
        path = cluster.path
        assert path, "``powers.require_path`` refuses others"
        one, other = [end for end in path.ends if NODE.fullmatch(end)][:2]
        before, pings = path.needs, [_ping(path, one, other)]
        happened = Happened(time.time())
        path.shape(dataclasses.replace(before, rtt=self.milliseconds / 1000, links=_of_others(before.links)))
        try:
            happened.mark("far")
            until = time.monotonic() + self.seconds
            pings.append(_ping(path, one, other))
            event.sleep(until - time.monotonic())
        finally:
            path.shape(before)
        happened.mark("usual")
        pings.append(_ping(path, one, other))
        if not (pings[1] >= NEARLY * self.milliseconds / 1000 and pings[0] < pings[1] > pings[2]):  # a nan is void
            took = ", ".join(map(milliseconds, pings))
            happened.void = f"pings from {one} to {other} took {took} before, during and after the event"
        return happened


def _ping(path: NetworkPath, one: str, other: str) -> float:
    """The seconds of the shortest of some pings between two nodes; nan if none comes back."""
    try:
        return path.round_trips((one, other), PINGS).ping
    except ProvisionError:
        return math.nan


def _of_others(links: Links) -> Links:
    """The links of the client and the proxy, which keep their round trips."""
    return tuple((pair, seconds) for pair, seconds in links if not all(map(NODE.fullmatch, pair)))
