"""What was done to a warm pair before does not show in it: a failover, and another sync_binlog."""

from __future__ import annotations

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from tests.support.drbd_pairs import APART, FAR, NEAR, SENT, Commits
from tests.support.testbeds import evidence, source

pytestmark = pytest.mark.guests


@pytest.fixture
def pool(guests, tmp_path):
    """A pool of guests."""
    made = Pool(Resolution(guests, fragments=tmp_path, below={}, progress=lambda line: None))
    yield made
    made.close()


def test_variants_alternate_after_a_failover_as_before(pool):
    """The host that was fenced has lost its delays with its power, and comes back with those of all variants."""
    load = Commits()
    testbed = source(pool, load, NEAR, FAR, SENT, APART)
    testbed.round(2, block=0, position=0)
    (cluster,) = pool.clusters
    old, new = cluster.members

    cluster.topology.fail_over(cluster.members)
    cluster.topology.rejoin(old, cluster.members)
    wait.until(cluster.problems, "the pair with the old host", seconds=300)
    load.shortest.clear()
    rounds = [testbed.round(number, block=1, position=number) for number in range(4)]
    testbed.check()

    assert [done.void for done in rounds] == [""] * 4
    assert pool.clusters == [cluster]
    assert cluster.nodes == [new]
    near, far, sent, apart = load.shortest
    assert max(near, sent, apart) < 0.095 < far


def test_sync_binlog_is_switched_while_the_server_runs(pool):
    """Variants that flush the binlog and that do not share one pair and one server, also beside those of DRBD.

    After a failover the new server has started without what was switched, and is switched too.
    """
    lazy = NEAR.with_options(log_bin="bin", sync_binlog=0).named("lazy")
    eager = lazy.with_options(sync_binlog=1).named("eager")
    far = eager.with_needs(rtt=0.1).with_options(drbd_protocol="B").named("eager_far")
    testbed = source(pool, Commits(), lazy, eager, far)
    servers, values = [], []

    def rounds(*numbers):
        for number in numbers:
            assert testbed.round(number, block=0, position=len(values)).void == ""
            (cluster,) = pool.clusters
            (node,) = cluster.nodes
            servers.append(f"{node.name} {node.process.pid}")
            values.append(node.query("SELECT @@sync_binlog")[0][0])
        return cluster

    cluster = rounds(0, 1, 2, 1)
    old = cluster.nodes[0]
    cluster.topology.fail_over(cluster.members)
    cluster.topology.rejoin(old, cluster.members)
    rounds(0, 1)
    testbed.check()

    assert values == [0, 1, 1, 1, 0, 1]
    assert servers == [servers[0]] * 4 + [servers[4]] * 2
    assert servers[4].startswith("node2 ")
    found = evidence(testbed, 1, 0)
    assert ["sync_binlog=1" in label for label in found.durability.values()] == [True, False]
    assert list(found.differences.values()) == [{"sync_binlog": ("0", "1")}]
