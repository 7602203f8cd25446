"""Tests of the lines about variants that a claim's message has."""

from __future__ import annotations

from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed import comparability


def test_many_variables_that_differ_are_cut():
    """Twenty of them, and how many more; none is said too."""
    differ = {f"v{number:02}": ("0", "1") for number in range(23)}

    assert comparability.differing_line("a", "b", {}) == "variables that differ (a -> b): none"
    assert comparability.differing_line("a", "b", differ).startswith(
        "variables that differ (a -> b): v00: 0 -> 1, v01: 0 -> 1"
    )
    assert comparability.differing_line("a", "b", differ).endswith(", v19: 0 -> 1, and 3 more")


def test_clusters_of_other_shapes_are_shown():
    """A proxy is one more hop and a node one more server: a difference in speed may come from there."""
    group = ClusterSpec("group_replication", nodes=3, proxy="mysql_router")
    lone = ClusterSpec("standalone")

    assert comparability.shapes_line({"group": group, "tuned": group.with_options(max_connections=99)}) == []
    assert comparability.shapes_line({"group": group, "alone": lone}) == [
        "clusters: group 3 nodes behind mysql_router, alone 1 node behind no proxy"
    ]
