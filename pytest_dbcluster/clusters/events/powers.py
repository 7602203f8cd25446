"""Powers of hosts that events need: clusters without them are refused by the name of the power."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.host import Falls, LimitsWrites, Partitions

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node
    from pytest_dbcluster.hosts.provisioner import Provisioner
    from pytest_dbcluster.spec import ClusterSpec

BOOT = "/proc/sys/kernel/random/boot_id"  # random(4): another one after each boot
ANSWER_SECONDS = 1.0  # until a host that is connected accepts a connection
NETWORK = "processes have it with ClusterSpec(...).with_needs(rtt=0)"
ADVICE: Mapping[type[object], str] = MappingProxyType({
    Partitions: f"use --db-provisioner container or vm; {NETWORK}",
    Falls: "use --db-provisioner vm",
    LimitsWrites: "use --db-provisioner local, container or vm",
})  # fmt: skip


def require(power: type[object], event: object, spec: ClusterSpec, provisioner: Provisioner) -> None:
    """Raise ConfigError if the hosts of a cluster lack a power of ``hosts.host``."""
    if not issubclass(provisioner.host_type(spec), power):
        raise ConfigError(f"{event}: {_hosts(spec, provisioner)} lack the power {power.__name__}; {ADVICE[power]}")


def require_offer(name: str, event: object, spec: ClusterSpec, provisioner: Provisioner) -> None:
    """Raise ConfigError if a provisioner does not offer a power, such as ``block-devices``."""
    if name not in provisioner.offers:
        why = provisioner.missing.get(name, "")
        raise ConfigError(f"{event}: {_hosts(spec, provisioner)} lack the power {name}{': ' if why else ''}{why}")


def require_path(event: object, spec: ClusterSpec, provisioner: Provisioner) -> None:
    """Raise ConfigError for a cluster that asks for no network, which alone can change between its nodes."""
    require_offer("netem", event, spec, provisioner)
    if spec.needs.network is None:
        raise ConfigError(
            f"{event}: {_hosts(spec, provisioner)} lack the power netem without a separate network; "
            "use ClusterSpec(...).with_needs(rtt=0)"
        )


def flush_disks(cluster: Cluster) -> None:
    """Flush the disks of hosts whose power can be cut, before the load. Raises ProvisionError.

    A node that joined a moment ago got files that no server flushes. On a cluster that has run for a minute they are on
    disk, because its kernel has written them.
    """
    falling = [node for node in cluster.members if isinstance(node.host, Falls)]
    with wait.threads(max(1, len(falling))) as flushing:
        list(flushing.map(lambda node: node.host.run(["sync", "-f", node.data]), falling))


def boot(node: Node) -> str:
    """Return the id of the boot of a host's kernel. Raises ProvisionError."""
    return node.host.run(["cat", BOOT]).stdout.strip()


def _hosts(spec: ClusterSpec, provisioner: Provisioner) -> str:
    from pytest_dbcluster.hosts.provisioner import name_of

    return f"the hosts of cluster {spec} (--db-provisioner {name_of(provisioner)})"


def answers(node: Node) -> bool:
    """Whether a connection of this machine reaches the server. The server need not accept statements."""
    host = node.host
    try:
        if host.connects:
            made = host.connects(host.address, node.port, ANSWER_SECONDS)
        else:
            made = socket.create_connection((host.address, node.port), ANSWER_SECONDS)
    except OSError:
        return False
    with contextlib.closing(made):
        return True
