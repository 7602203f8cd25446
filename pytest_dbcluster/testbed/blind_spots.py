"""What this machine cannot show, however many rounds are drawn: why claims about it stay open."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from pytest_dbcluster.clusters.servers.options import differences
from pytest_dbcluster.formatting import counted
from pytest_dbcluster.hosts.provisioner import own_cores
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import probes
from pytest_dbcluster.testbed.variants import Variant

FLUSHING = ("innodb_flush_log_at_trx_commit", "sync_binlog", "innodb_flush_method", "innodb_doublewrite")


def flushing(variants: Sequence[Variant], directory: str) -> str:
    """Variants that flush otherwise are alike where a flush costs nothing; empty where it costs something.

    Where a device may write so many times a second, a flush costs one of these times at the least.
    """
    pairs = itertools.combinations((variant.options for variant in variants), 2)
    if not any(name in FLUSHING for pair in pairs for name in differences(*pair)):
        return ""
    slowest = min(1 / variant.spec.needs.iops if variant.spec.needs.iops else 0.0 for variant in variants)
    if slowest >= probes.BLIND_FSYNC:
        return ""
    seconds = probes.fsync_seconds(directory)
    if seconds >= probes.BLIND_FSYNC:
        return ""
    return f"an fsync takes {seconds * 1e6:.0f} us in {directory}: this disk cannot show what flushing costs"


def scaling(kind: str, specs: Sequence[ClusterSpec], offers: frozenset[str]) -> str:
    """Nodes that share cores take them from each other; empty for claims in which their number plays no part.

    It plays one where clusters of one topology differ in it, where one server is compared with several, and in each
    claim that something scales. One node of a cluster has as many cores as a server alone.
    """
    usable = probes.usable_cores()
    for one, other in itertools.combinations(specs, 2):
        alike = one.topology == other.topology or 1 in (one.nodes, other.nodes)
        compared = one.nodes != other.nodes and (kind == "scales" or alike)
        if compared and not all(own_cores(offers, spec, usable) for spec in (one, other)):
            return (
                f"{probes.shared_cores(usable)} ({one} has {counted(one.nodes, 'node')}, "
                f"{other} {counted(other.nodes, 'node')}); "
                "it takes separate hosts, or cores= where the provisioner offers it and there are enough for all nodes"
            )
    return ""
