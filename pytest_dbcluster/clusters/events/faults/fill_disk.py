"""``FillDisk``: the disk with the data of a server is full for some seconds."""

from __future__ import annotations

import dataclasses
import shlex
import time
from typing import TYPE_CHECKING

from pytest_dbcluster.clusters.events import event, powers
from pytest_dbcluster.clusters.events.event import Event, Happened

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.hosts.provisioner import Provisioner
    from pytest_dbcluster.rounds.outages.outage import Returned
    from pytest_dbcluster.spec import ClusterSpec

SCRIPT_SECONDS = 120.0
FULL = "No space left on device"
LAST = 2**25  # bytes that we write; the rest is only allocated, because a large disk would take minutes
FILL = f"""\
free=$(( $(stat -f -c %f .) * $(stat -f -c %S .) ))
[ $free -le {LAST} ] || fallocate -l $(( free - {LAST} )) .dbcluster-full
dd if=/dev/zero of=.dbcluster-last bs=65536
"""
LOOK = "dd if=/dev/zero of=.dbcluster-look bs=65536 count=1; rm -f .dbcluster-look"
EMPTY = f"rm -f .dbcluster-full .dbcluster-last; {LOOK}"


@dataclasses.dataclass(frozen=True)
class FillDisk(Event):
    """Fill the disk with the data of a server, and make room again after some seconds."""

    node: str
    """``writer``, ``other`` (the last node that is not the writer), or a name such as ``node2``."""

    seconds: float
    """How long the disk is full."""

    def __str__(self) -> str:
        return f"fill disk of {self.node} {self.seconds:g} s"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a node that the cluster does not have, and for other seconds than 0 to 300."""
        event.check_node(self.node, f"FillDisk({self.node!r})", spec, topology)
        event.check_seconds("FillDisk(seconds)", self.seconds)

    def check_hosts(self, spec: ClusterSpec, provisioner: Provisioner) -> None:
        """Raise ConfigError for hosts that share their disk with others."""
        powers.require_offer("block-devices", f"FillDisk({self.node!r})", spec, provisioner)

    def expected_seconds(self, spec: ClusterSpec, topology: Topology) -> float:
        """Return the seconds of the event: those that the test sets."""
        return self.seconds

    def act(self, cluster: Cluster) -> Happened:
        """Fill the disk and empty it again. The proof is the error of a write, as the kernel gives it."""
        node = event.target(self.node, cluster)
        if _is_full(node, LOOK):
            return Happened(time.time(), node.name, void=f"the disk of {node.name} was full before the event")
        happened = Happened(time.time(), node.name)
        try:
            full = _is_full(node, FILL)
            happened.mark("full")
            event.sleep(self.seconds)
            full = full and _is_full(node, LOOK)
        finally:
            still = _is_full(node, EMPTY)
        happened.mark("emptied")
        if not full or still:
            happened.void = f"the disk of {node.name} {'is still full after' if still else 'was not full in'} the event"
        return happened

    def restore(self, cluster: Cluster, happened: Happened) -> Returned | None:
        """Wait until the node is back by itself; otherwise start it again."""
        return event.come_back(event.target(happened.node, cluster), cluster)


def _is_full(node: Node, script: str) -> bool:
    """Run a script in the data directory of a node, and return whether its last write found no space."""
    text = f"cd {shlex.quote(node.data)} || exit\nexec 2>&1\n{script}\ntrue"
    return FULL in node.host.run(["sh", "-c", text], seconds=SCRIPT_SECONDS).stdout
