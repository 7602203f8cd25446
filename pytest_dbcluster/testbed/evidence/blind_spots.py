"""Blind spots: claims that stay inconclusive on this machine for any number of rounds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from pytest_dbcluster.clusters.servers.options import differences
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioner import own_cores
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import probes
from pytest_dbcluster.testbed.variants import Variant

FLUSHING = ("innodb_flush_log_at_trx_commit", "sync_binlog", "innodb_flush_method", "innodb_doublewrite")


def flushing(variants: Sequence[Variant], hosts: Sequence[Host]) -> str:
    """Why claims about variants with different flush options are inconclusive; empty if a flush has a cost.

    hosts: one of each variant; the fastest of their disks counts. On a host with a limit of iops, one flush takes
    1 / iops seconds at least.
    """
    pairs = itertools.combinations((variant.options for variant in variants), 2)
    if not any(name in FLUSHING for pair in pairs for name in differences(*pair)):
        return ""
    slowest = min(1 / variant.spec.needs.iops if variant.spec.needs.iops else 0.0 for variant in variants)
    if slowest >= probes.BLIND_FSYNC:
        return ""
    seconds, directory = min((host.flush_seconds(), host.directory) for host in dict.fromkeys(hosts))
    if seconds >= probes.BLIND_FSYNC:
        return ""
    return (
        f"an fsync takes {seconds * 1e6:.0f} us in {directory}: this disk cannot show the cost of flushes; set "
        "DBCLUSTER_DATA_DIR to a directory on a real disk"
    )


def scaling(specs: Sequence[ClusterSpec], offers: frozenset[str], *, by_size: bool = False) -> str:
    """Why a claim that depends on the number of nodes is inconclusive: the nodes share cores. Empty for other claims.

    A claim depends on the number of nodes if clusters of one topology differ in it. It does so too if it compares one
    server with several, and with ``by_size``. One node of a cluster must have as many cores as a standalone server.
    """
    usable = probes.usable_cores()
    for first, second in itertools.combinations(specs, 2):
        servers = [topology(spec.topology).servers(spec.nodes) for spec in (first, second)]
        alike = first.topology == second.topology or 1 in servers
        compared = servers[0] != servers[1] and (by_size or alike)
        if compared and not all(own_cores(offers, spec, usable) for spec in (first, second)):
            return (
                f"{probes.shared_cores(usable)} ({first} has {quantity(first.nodes, 'node')}, "
                f"{second} {quantity(second.nodes, 'node')}); "
                "use separate hosts, or cores= if the provisioner offers it and this machine has enough for all nodes"
            )
    return ""
