"""``KillAll``: the processes of all servers end at once (SIGKILL), and the cluster starts again."""

from __future__ import annotations

import dataclasses
import signal
import time
from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.events import event
from pytest_dbcluster.clusters.events.event import ENDED_SECONDS, Event, Happened
from pytest_dbcluster.errors import NotReady

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.spec import ClusterSpec


@dataclasses.dataclass(frozen=True)
class KillAll(Event):
    """End the processes of all servers with SIGKILL, and start the cluster again at once. Hosts and files stay.

    What a server has only written is safe, because the kernel still has it. ``PowerCut`` loses it too.
    """

    def __str__(self) -> str:
        return "kill all"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a topology whose servers we cannot start again."""
        event.check_restarts("KillAll()", spec, topology)

    def expected_seconds(self, spec: ClusterSpec, topology: Topology) -> float:
        """Return the seconds of the event: the returns of the nodes."""
        return event.restart_seconds(spec, topology)

    def act(self, cluster: Cluster) -> Happened:
        """Kill the servers and start them again. The proof is the signal in each exit status."""
        processes = {node.name: node.process for node in cluster.nodes if node.running}
        if ended := [node.name for node in cluster.nodes if node.name not in processes]:
            return Happened(time.time(), void=f"{', '.join(ended)} did not run before the event")
        for node in cluster.nodes:
            node.sql.close()
        happened = Happened(time.time())
        for process in processes.values():
            assert process
            process.signal(signal.SIGKILL)
        try:
            wait.until(
                lambda: [f"{node.name} still runs" for node in cluster.nodes if node.running],
                "the servers",
                seconds=ENDED_SECONDS,
            )
        except NotReady as error:
            happened.void = f"kill of all servers: {error}"
            return happened
        happened.mark("ended")
        statuses = {name: process.status() for name, process in processes.items() if process}
        if others := {name: status for name, status in statuses.items() if status != -signal.SIGKILL}:
            happened.void = f"not all servers ended by our signal; exit statuses: {others}"
        happened.returned = event.restart(cluster)
        happened.mark("whole")
        return happened
