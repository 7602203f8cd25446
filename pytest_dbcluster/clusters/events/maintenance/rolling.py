"""``Rolling``: one node after the other is stopped, changed and started while the load runs."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Self

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.events import event
from pytest_dbcluster.clusters.events.event import Event, Happened, Stage
from pytest_dbcluster.clusters.events.maintenance.steps import RollingStep
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.rounds.outages.outage import Returned

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.clusters.topology import Topology
    from pytest_dbcluster.spec import ClusterSpec

DRAINED_SECONDS = 60.0  # until the proxy leads nobody to a node
CLOCK_SECONDS = 1  # a server counts its uptime in whole seconds


@dataclasses.dataclass(frozen=True)
class Rolling(Event):
    """Shut down, change and start each node, and wait until the cluster is whole. The writer is the last one."""

    step: RollingStep
    """``Restart()``, ``SetOptions(...)`` or ``Upgrade(...)``."""

    drain: bool = False
    """Whether the proxy leads nobody to a node before its server stops."""

    _start: Stage | None = dataclasses.field(default=None, repr=False, compare=False)
    """The cluster before the event, set by ``equip``."""

    _end: Stage | None = dataclasses.field(default=None, repr=False, compare=False)
    """The cluster after the event, set by ``equip``; None if its servers stay as they are."""

    def __str__(self) -> str:
        return f"rolling {self.step}{' with drain' if self.drain else ''}"

    @property
    def reusable(self) -> bool:
        """Not after an upgrade, because no server goes back to an older release."""
        return self.step.comes_back

    def check(self, spec: ClusterSpec, topology: Topology) -> None:
        """Raise ConfigError for a topology without this power, and for ``drain`` without a proxy that does it."""
        if not isinstance(self.step, RollingStep):
            raise ConfigError(f"Rolling({self.step!r}): it accepts Restart(), SetOptions(...) or Upgrade(...)")
        event.check_node(event.WRITER, f"Rolling({self.step})", spec, topology)
        if self.drain not in (True, False):
            raise ConfigError(f"Rolling(drain={self.drain!r}): it accepts True or False")
        if self.drain and not (spec.proxy and _drains(spec.proxy)):
            raise ConfigError(f'Rolling(drain=True): only a cluster with proxy="haproxy" drains a node; {spec} has not')

    def expected_seconds(self, spec: ClusterSpec, topology: Topology) -> float:
        """Return the seconds of the event: the return of each node."""
        return spec.nodes * topology.busy_return_seconds

    def stages(self, spec: ClusterSpec) -> Sequence[ClusterSpec]:
        """Return the specs of the cluster after each node; empty if its servers stay as they are."""
        return self.step.stages(spec)

    def equip(self, start: Stage, stages: Sequence[Stage]) -> Self:
        """Return the event with its first and its last stage. Raises ConfigError for an older release."""
        if not stages:
            return self
        self.step.check_stages(start, stages[-1])
        return dataclasses.replace(self, _start=start, _end=stages[-1])

    def prepare(self, cluster: Cluster) -> None:
        """Copy the programs of the last stage to the hosts. Raises ProvisionError."""
        if self._end:
            from pytest_dbcluster.clusters import bringing

            for release in {one.key: one for one in self._end.releases}.values():
                bringing.bring(release, cluster.hosts)

    def act(self, cluster: Cluster) -> Happened:
        """Roll. The proof of each node: a clean exit status, a young server, and what the step shows."""
        happened = Happened(time.time())
        came: list[Returned] = []
        for node in event.writer_last(cluster):
            came.append(self._roll(node, cluster, self._end, happened))
            self.step.finish(node)
            happened.mark(f"{node.name} done")
            happened.void = happened.void or self.step.unproven(node)
        happened.mark("whole")
        how = ", ".join(dict.fromkeys(filter(None, (one.how for one in came))))
        happened.returned = Returned(sum(one.seconds for one in came), how)
        return happened

    def restore(self, cluster: Cluster, happened: Happened) -> Returned | None:
        """Give each node its earlier options, node after node, if the step allows it."""
        if self._start and self.step.comes_back:
            for node in event.writer_last(cluster):
                self._roll(node, cluster, self._start, Happened(time.time()))
        return super().restore(cluster, happened)

    def _roll(self, node: Node, cluster: Cluster, stage: Stage | None, happened: Happened) -> Returned:
        """Stop, change and start one node, and wait until the cluster is whole. Raises ProvisionError."""
        process = node.process
        with _out_of_proxy(node, cluster, happened, wanted=self.drain):
            stopped = time.monotonic()
            node.stop()
            happened.mark(f"{node.name} stopped")
            if process is None or process.status() != 0:
                ended = process.status() if process else "no process"
                happened.void = happened.void or f"{node.name} did not shut down cleanly: {ended}"
            if stage:
                _reconfigure(node, cluster, stage)
        returned = event.rejoin(node, cluster)
        happened.mark(f"{node.name} whole")
        uptime = int(node.status("uptime")["uptime"])
        if uptime > time.monotonic() - stopped + CLOCK_SECONDS:
            happened.void = happened.void or f"{node.name} is up for {uptime} s, so it did not restart"
        return returned


def _drains(proxy: str) -> bool:
    """Whether a proxy can drain a node."""
    from pytest_dbcluster.clusters.proxy import Drains, proxy_class

    return issubclass(proxy_class(proxy), Drains)


@contextlib.contextmanager
def _out_of_proxy(node: Node, cluster: Cluster, happened: Happened, *, wanted: bool) -> Iterator[None]:
    """A context in which the proxy leads nobody to a node, if that is wanted."""
    from pytest_dbcluster.clusters.proxy import Drains

    proxy = cluster.proxy
    if not wanted or not isinstance(proxy, Drains):
        yield
        return
    proxy.drain([node.name])
    try:
        wait.until(lambda: proxy.drain_problems(node.name), f"drained {node.name}", seconds=DRAINED_SECONDS)
        happened.mark(f"{node.name} drained")
        yield
    finally:
        proxy.drain([])


def _reconfigure(node: Node, cluster: Cluster, stage: Stage) -> None:
    """Give a stopped node the release and the options of a stage."""
    node.use(stage.releases[cluster.members.index(node)])
    options = {name: value for name, value in stage.options.items() if name not in node.dialect.implied}
    node.configure(cluster.topology.options(node, cluster.members), options)
