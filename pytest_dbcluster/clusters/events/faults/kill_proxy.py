"""``KillProxy``: the process of the proxy ends at once (SIGKILL), and starts again."""

from __future__ import annotations

import dataclasses
import signal
import time
from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.events.event import ENDED_SECONDS, WHOLE_SECONDS, Event, Happened
from pytest_dbcluster.errors import ConfigError, NotReady

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.spec import ClusterSpec


@dataclasses.dataclass(frozen=True)
class KillProxy(Event):
    """End the process of the proxy with SIGKILL, and start it again at once, as a service manager does.

    All connections through the proxy are lost. Its health server goes on.
    """

    def __str__(self) -> str:
        return "kill proxy"

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a cluster without a proxy."""
        if spec.proxy is None:
            raise ConfigError(f'KillProxy(): cluster {spec} has no proxy; use ClusterSpec(..., proxy="haproxy")')

    def moves_writes(self, topology: Topology) -> bool:
        """No node loses its role."""
        return False

    def act(self, cluster: Cluster) -> Happened:
        """Kill the proxy and start it again. The proof is the signal in its exit status; the new one must answer."""
        proxy = cluster.proxy
        process = proxy.processes.get(proxy.name) if proxy else None
        if proxy is None or process is None or process.status() is not None:
            return Happened(time.time(), void="the proxy did not run before the event")
        happened = Happened(time.time())
        process.signal(signal.SIGKILL)
        try:
            wait.until(
                lambda: [] if process.status() is not None else ["it still runs"], proxy.name, seconds=ENDED_SECONDS
            )
            happened.mark("ended")
        except NotReady as error:
            happened.void = f"kill of the proxy: {error}"
            return happened
        if (status := process.status()) != -signal.SIGKILL:
            happened.void = f"{proxy.name} ended with {status}, not by our signal"
        proxy.launch_again(proxy.name)
        wait.until(proxy.problems, f"{proxy.name} of {cluster.spec}", seconds=WHOLE_SECONDS)
        happened.mark("whole")
        return happened
