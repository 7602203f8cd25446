"""A server that is lost under TPC-C: what its standby has of the orders that were acknowledged."""

from __future__ import annotations

import pytest

from pytest_dbcluster.clusters.topology import FailedOver
from pytest_dbcluster.errors import ConfigError, WorkloadError
from pytest_dbcluster.network import NetworkNeeds
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads.tpcc.conditions import SCHEMA
from pytest_dbcluster.workloads.tpcc.failover import LoadedFailover, fail_over
from pytest_dbcluster.workloads.tpcc.orders import WrongOrder
from pytest_dbcluster.workloads.tpcc.workload import TPCC
from pytest_dbcluster.workloads.workload import Setting
from tests.support import golden
from tests.support.clusters import bring_up
from tests.support.guests import servers_in

DONE = FailedOver("node1", "node2", {"fenced": 0.01, "server answers": 2.4})


def test_a_failover_under_load_is_told_in_one_line():
    """With the first orders that were lost, and what does not hold."""
    well = LoadedFailover(DONE, 310, [], [], 2, 1, [], 3.44)
    lost = [
        WrongOrder((1, 2, 3001)),
        WrongOrder((1, 2, 3002), "another one"),
        WrongOrder((2, 1, 7)),
        WrongOrder((2, 1, 8)),
    ]
    badly = LoadedFailover(DONE, 310, lost, lost[:1], 0, 0, ["condition 1 ..."], 3.0)

    assert well.seconds == pytest.approx(2.41)
    golden.compare("failover", {"no order is lost": str(well), "orders are lost": str(badly)})
    assert (
        "4 of them lost (warehouse 1, district 2, order 3001; warehouse 1, district 2, order 3002 (another one); "
        in str(badly)
    )
    assert "warehouse 2, district 1, order 7; ...)" in str(badly)
    assert "1 invented (warehouse 1, district 2, order 3001), and 0 more " in str(badly)
    assert "their COMMIT (0 of them there); condition 1 ...; the old host" in str(badly)


def test_a_cluster_without_a_standby_is_refused(standalone, mariadb):
    """Before the load begins."""
    with pytest.raises(ConfigError) as caught:
        fail_over(TPCC(), Setting(standalone, standalone.hosts[0], mariadb, "quick", lambda line: None))
    assert "cluster standalone1 has no standby" in str(caught.value)


@pytest.fixture(scope="module")
def pair(guests, tpcc_templates):
    """A pair with one warehouse, and a guest for the load."""
    release = find.find("mariadb:10.11")
    client = guests.acquire(ClusterSpec("standalone", name="client"))[0]
    spec = ClusterSpec("drbd", nodes=2).with_needs(rtt=0)
    made = bring_up(spec, release, guests, options={}, start=tpcc_templates("mariadb"))
    yield Setting(made, client, release, "quick", lambda line: None)
    made.close()
    guests.give_back([*made.hosts, client])


@pytest.mark.guests
@pytest.mark.parametrize(("old", "new", "rtt"), [("node1", "node2", 0.0), ("node2", "node1", 0.1)])
def test_no_acknowledged_order_is_lost_in_a_failover(pair, old, new, rtt):
    """There and back again: each time the pair is whole afterwards, and serves the load.

    A distance makes nearly all clients wait for an answer to their COMMIT when their server is lost.
    """
    cluster = pair.cluster
    cluster.path.shape(NetworkNeeds(rtt=rtt))

    done = fail_over(TPCC(threads=4), pair)

    print(done)
    assert (done.failover.old, done.failover.new) == (old, new)
    assert done.acknowledged + done.unknown >= 20
    assert done.lost == done.invented == done.violations == []
    assert cluster.problems() == []
    assert sum(servers_in(host) for host in cluster.hosts) == 1
    assert pair.cluster.settle(60)
    TPCC(threads=4, seconds=1.0).run(pair)


@pytest.mark.guests
def test_a_load_that_ends_too_early_is_refused(pair):
    """Nothing was taken away."""
    before = pair.cluster.nodes
    with pytest.raises(WorkloadError, match=r"orders? in 0.3 s, and needs 20 "):
        fail_over(TPCC(threads=1, seconds=0.3, thinking=True), pair)
    assert pair.cluster.nodes == before


@pytest.mark.guests
def test_orders_that_are_missing_are_seen(pair, monkeypatch):
    """Somebody deletes a line of each order on the new server before the comparison."""
    topology = pair.cluster.topology
    real = topology.fail_over

    def losing(nodes):
        done = real(nodes)
        pair.cluster.nodes[0].query(f"DELETE FROM {SCHEMA}.order_line WHERE ol_o_id > 3000 AND ol_number = 1")
        return done

    monkeypatch.setattr(topology, "fail_over", losing)

    done = fail_over(TPCC(threads=4), pair)

    assert len(done.lost) == done.acknowledged > 0
    assert any(line.startswith("condition 4 ") for line in done.violations)
