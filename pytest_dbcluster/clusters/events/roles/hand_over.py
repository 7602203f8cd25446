"""Hand over: another node becomes the writer as planned, and clients reach it through the proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.events.event import WHOLE_SECONDS
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.topology import Step, SwitchesRoles, Topology
from pytest_dbcluster.errors import ConfigError, ProvisionError

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.spec import ClusterSpec

ROUTED_SECONDS = 60.0  # until the proxy must lead to the new writer
WHICH = "SELECT @@server_id"


def check_roles(event: str, spec: ClusterSpec, topology: Topology) -> None:
    """Raise ConfigError for a cluster whose roles cannot change, or whose clients would not follow."""
    if not isinstance(topology, SwitchesRoles):
        raise ConfigError(f"{event}: the topology {spec.topology} has no primary that another node can replace")
    if reason := topology.refuses_roles(dict(spec.options)):
        raise ConfigError(f"{event}: {reason}")
    if isinstance(spec.release, tuple):
        raise ConfigError(f"{event}: the nodes of cluster {spec} have different releases, so their roles are fixed")
    if spec.proxy is None:
        raise ConfigError(f'{event}: clients without a proxy do not follow the writer: use proxy="haproxy"')


def hand_over(new: Node, cluster: Cluster, step: Step = lambda name: None, timeout: int | None = None) -> None:
    """Make a node the writer, and prove it. step: called with the name of each step that is done.

    timeout: that of ``SwitchesRoles.switch_over``. Raises ProvisionError.
    """
    topology = cluster.topology
    assert isinstance(topology, SwitchesRoles), "``check_roles`` refuses others"
    try:
        topology.switch_over(new, cluster.members, step, timeout)
    except SQLError as error:
        raise ProvisionError(f"{new.name} did not become the writer: {error}") from error
    wait_routed(new, cluster)
    step("routed")
    wait.until(cluster.problems, f"cluster {cluster.spec} with the writer {new.name}", seconds=WHOLE_SECONDS)
    if (writer := cluster.writers[0]) is not new:
        raise ProvisionError(f"the writer is {writer.name} and not {new.name}")


def wait_routed(new: Node, cluster: Cluster) -> None:
    """Wait until a new connection through the proxy reaches the writer. Raises NotReady."""
    from pytest_dbcluster.clusters.proxy import query_through

    def problems() -> list[str]:
        if cluster.proxy is None:
            return []
        try:
            ((number,),) = query_through(cluster.proxy.name, cluster.proxy.writer(), WHICH)
        except (SQLError, ProvisionError) as error:
            return [str(error)]
        wanted = new.options.get("server_id", str(number))  # without it the cluster has only one server
        return [] if str(number) == wanted else [f"it leads to the server with server_id={number}"]

    wait.until(problems, f"the route to {new.name}", seconds=ROUTED_SECONDS)
