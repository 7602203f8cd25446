"""TPC-C with the connections of applications: no order is lost, and the checks of the specification pass."""

from __future__ import annotations

import pytest

from pytest_dbcluster.workloads.tpcc.workload import TPCC


@pytest.mark.parametrize(
    ("vendor", "fields"),
    [
        ("mariadb", {"reconnect": True, "idle": 10}),
        ("mariadb", {"pause": 0.01}),
        ("mysql", {"tls": True, "idle": 3}),
    ],
)
def test_every_order_is_kept(loaded, vendor, fields):
    """Each transaction is counted once, on whatever connection."""
    setting, load = loaded(vendor), TPCC(threads=3, seconds=0.6, **fields)
    node = setting.cluster.nodes[0]
    load.prepare(setting)
    before = int(node.status("Connections")["connections"])
    done = load.run(setting)
    made = int(node.status("Connections")["connections"]) - before
    total = done.ledger.total

    assert done.good > 5
    assert total.failed == total.unknown == 0
    own = done.good if load.reconnect else load.threads
    assert own + load.idle <= made <= own + load.idle + load.threads
    assert load.violations(setting.cluster) == []
