"""``Pause``: the process of a server is stopped for some seconds (SIGSTOP), as on a machine that hangs."""

from __future__ import annotations

import dataclasses
import signal
import time
from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.events import event
from pytest_dbcluster.clusters.events.event import Event, Happened
from pytest_dbcluster.errors import NotReady

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.rounds.outages.outage import Returned
    from pytest_dbcluster.spec import ClusterSpec

SIGNAL_SECONDS = 2.0  # until a signal must have an effect


@dataclasses.dataclass(frozen=True)
class Pause(Event):
    """Stop a server's process with SIGSTOP, and let it go on after some seconds. Its connections stay open."""

    node: str
    """``writer``, ``other`` (the last node that is not the writer), or a name such as ``node2``."""

    seconds: float
    """How long the process is stopped."""

    def __str__(self) -> str:
        return f"pause {self.node} {self.seconds:g} s"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a node that the cluster does not have, and for other seconds than 0 to 300."""
        event.check_node(self.node, f"Pause({self.node!r})", spec, topology)
        event.check_seconds("Pause(seconds)", self.seconds)

    def restore(self, cluster: Cluster, happened: Happened) -> Returned | None:
        """Wait until the cluster is whole. A node that has left and does not come back by itself starts again."""
        return happened.returned or event.come_back(event.target(happened.node, cluster), cluster, happened.waited)

    def expected_seconds(self, spec: ClusterSpec, topology: Topology) -> float:
        """Return the seconds of the event: those that the test sets."""
        return self.seconds

    def act(self, cluster: Cluster) -> Happened:
        """Stop the server and let it go on. The proof is the state of its process, as the kernel shows it."""
        node = event.target(self.node, cluster)
        process = node.process
        if process is None or process.status() is not None or process.is_stopped():
            return Happened(time.time(), node.name, void=f"{node.name} did not run before the event")
        node.sql.close()
        happened = Happened(time.time(), node.name)
        until, log, left = time.monotonic() + self.seconds, node.log_size(), False
        process.signal(signal.SIGSTOP)
        try:
            wait.until(lambda: [] if process.is_stopped() else ["its process runs"], node.name, seconds=SIGNAL_SECONDS)
            event.sleep(until - time.monotonic())
            if not process.is_stopped():
                happened.void = f"something let {node.name} go on before its {self.seconds:g} s were over"
            left = event.has_left(node, cluster)
        except NotReady as error:
            happened.void = f"pause of {node.name}: {error}"
        finally:
            process.signal(signal.SIGCONT)
        try:
            wait.until(lambda: ["it is stopped"] if process.is_stopped() else [], node.name, seconds=SIGNAL_SECONDS)
        except NotReady as error:
            happened.void = happened.void or f"pause of {node.name}: {error}"
        happened.mark("resumed")
        if left:
            event.notice_return(node, cluster, happened, log)
        return happened
