"""``SwitchPrimary``: how it is written, and which clusters refuse it."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.events import SwitchPrimary
from pytest_dbcluster.spec import ClusterSpec

GROUP = ClusterSpec("group_replication", nodes=3, proxy="haproxy")


@pytest.mark.parametrize(
    "spec", [GROUP, ClusterSpec("async_replication", 2, proxy="haproxy"), ClusterSpec("semisync", 2, proxy="haproxy")]
)
def test_a_cluster_with_one_primary_can_switch(spec):
    """The load goes on through the proxy."""
    event, kind = SwitchPrimary(), topology(spec.topology)
    event.check(spec, kind)

    assert str(event) == "switch primary to other"
    assert event.leaves_load(spec, kind, only_writer=False)
    assert str(SwitchPrimary("node2", timeout=5)) == "switch primary to node2 within 5 s"


@pytest.mark.parametrize(
    ("event", "spec", "fact"),
    [
        (SwitchPrimary("node4"), GROUP, "has 3 nodes"),
        (SwitchPrimary(timeout=-1), GROUP, "it accepts whole seconds up to 3600"),
        (SwitchPrimary(timeout=2.5), GROUP, "it accepts whole seconds up to 3600"),
        (SwitchPrimary(timeout=2), ClusterSpec("semisync", 2, proxy="haproxy"), "accepts no timeout="),
        (SwitchPrimary("writer"), GROUP, "is the primary at the begin of each repetition"),
        (SwitchPrimary("node1"), GROUP, "is the primary at the begin of each repetition"),
        (SwitchPrimary(), ClusterSpec("group_replication", 3), 'use proxy="haproxy"'),
        (SwitchPrimary(), ClusterSpec("galera", 3, proxy="haproxy"), "no primary that another node can replace"),
        (SwitchPrimary("node2"), ClusterSpec("drbd", 2), "use FailOver()"),
        (
            SwitchPrimary(),
            GROUP.with_options(group_replication_single_primary_mode="OFF"),
            "all members write with group_replication_single_primary_mode=OFF",
        ),
    ],
)
def test_a_switch_that_cannot_be_is_refused(event, spec, fact):
    """Before anything starts."""
    with pytest.raises(ConfigError) as caught:
        event.check(spec, topology(spec.topology))
    assert fact in str(caught.value)
