"""Claims that separate clusters cannot answer, found before any test runs.

Their margin is one that equal clusters can differ by, or their counter depends on what a cluster did before.

Only what the code of a test shows is known here: its clusters, its workload and the number that is the margin. The same
check is made again when a claim is asked, before anything starts: ``measuring.decision``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_dbcluster.claims import claim as claims
from pytest_dbcluster.claims.cluster_difference import ClusterDifference, together
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.plugin.collection.code_of_test import Call, code_of
from pytest_dbcluster.plugin.collection.expected_clusters import OfRun
from pytest_dbcluster.rounds import counters, metrics
from pytest_dbcluster.spec import ClusterSpec, ReleaseName

if TYPE_CHECKING:
    from pytest_dbcluster.plugin.settings import Settings


def refuse(items: Sequence[Any], settings: Settings) -> None:
    """Raise ConfigError for the first test with a margin, or a counter, that equal clusters can differ by.

    A test with several calls of ``measure`` is left to the check of each claim, and so are variants that may share a
    cluster.
    """
    expected = OfRun(settings, lambda item: False)
    for item in items:
        code = code_of(item)
        if len(code.calls) != 1 or not code.margins:
            continue
        for kind, margin, metric in code.margins:
            if metric and not (metric in counters.NAMES or metric.partition(":")[0] in metrics.NAMES):
                continue  # the test itself will refuse it
            difference = _difference(code.calls[0], item, settings, expected, metric)
            if difference is None:
                break
            on_separate = f"{kind} on separate clusters: "
            why = on_separate + counters.not_across(metric) if metric in counters.STATES else ""
            if why := why or difference.refuses(kind, _margins(kind, margin)):
                raise ConfigError(f"{item.nodeid}: {why}")


def _margins(kind: str, margin: float) -> list[float]:
    """The margins of a claim as absolute log ratios; none for one that the test itself will refuse."""
    try:
        claim: claims.Claim = getattr(claims, kind)(margin)
    except ConfigError:
        return []
    return claim.margins


def _difference(call: Call, item: Any, settings: Settings, expected: OfRun, metric: str) -> ClusterDifference | None:
    """The smallest difference of two neighbours, where all variants certainly run on separate clusters; else None."""
    from pytest_dbcluster.hosts.provisioner import provisioner_class
    from pytest_dbcluster.testbed import cluster_differences
    from pytest_dbcluster.testbed.cluster_differences import Key
    from pytest_dbcluster.workloads.workload import Workload

    specs = [spec for spec in call.on if isinstance(spec, ClusterSpec)]
    loads = [load for load in call.workloads if isinstance(load, Workload)]
    keys = next(iter(expected.of(item)), [])
    if len(loads) != 1 or len(specs) != len(call.on) or len(specs) < 2 or len(set(keys)) < len(keys):
        return None
    params: Mapping[str, ReleaseName] = getattr(getattr(item, "callspec", None), "params", {})
    release = params.get("db_release", settings.releases[0])
    with contextlib.closing(provisioner_class(settings.provisioner)()) as provisioner:
        own = [
            cluster_differences.known(
                Key.of_spec(spec, str(spec.release or release), loads[0], provisioner),
                provisioner.offers,
                metric if metric and metric not in counters.STATES else loads[0].metric,
            )
            for spec in specs
        ]
    both = min((together(*pair) for pair in itertools.pairwise(own)), key=lambda known: known.log_ratio)
    return dataclasses.replace(both, instances=len(keys) // len(specs))
