"""Rounds in which a pair loses something: they are void and say what it was, and the next round counts."""

from __future__ import annotations

import dataclasses
import os
import re
import signal

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.topologies.drbd import resource
from pytest_dbcluster.errors import NotReady
from pytest_dbcluster.network import REST, NetworkNeeds
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from tests.support.drbd_pairs import NEAR, SENT, Commits
from tests.support.testbeds import source

pytestmark = pytest.mark.guests

BARE = dataclasses.replace(NEAR, needs=NEAR.needs.without_network).named("bare")


@pytest.fixture(scope="module")
def pool(guests, tmp_path_factory):
    """A pool of guests, whose clusters the tests of this module share while they can be used."""
    made = Pool(Resolution(guests, fragments=tmp_path_factory.mktemp("cnf"), below={}, progress=lambda line: None))
    yield made
    made.close()


def connection_is(cluster, wanted):
    """Wait until the host of the server is connected, or is not."""
    device = cluster.topology._resource

    def unlike():
        state = device.state(cluster.nodes[0].host)
        return [] if (state.connection == "Connected") == wanted else [str(state)]

    wait.until(unlike, "the connection", seconds=300)


def test_a_link_that_flaps_voids_the_round(pool):
    """The server's host gives its peer up after 10 s without an answer; the round goes on, and all is copied later."""
    load = Commits()
    testbed = source(pool, load, NEAR, SENT)
    assert testbed.round(0, block=0, position=0).void == ""
    (cluster,) = pool.clusters

    def flap():
        cluster.hosts[1].partition()
        cluster.nodes[0].query("INSERT INTO mysql.kept VALUES (100)")
        connection_is(cluster, False)
        cluster.hosts[1].heal()
        connection_is(cluster, True)

    load.halfway.append(flap)
    flapped = testbed.round(0, block=0, position=1)
    load.halfway.clear()
    after = testbed.round(1, block=0, position=2)
    testbed.check()

    assert re.search(r"changes on node1 changed from '\d+, the last: .*' to '\d+, the last: ", flapped.void)
    assert after.void == ""
    assert pool.clusters == [cluster]


def test_a_resync_that_does_not_end_is_named(pool, monkeypatch):
    """With what is left to copy. The server answers meanwhile, and the next round waits for the end of the resync."""
    testbed = source(pool, Commits(), NEAR)
    testbed.round(0, block=0, position=0)
    (cluster,) = pool.clusters
    node, topology = cluster.nodes[0], cluster.topology
    topology.apply({"drbd_connected": "OFF"}, cluster.nodes)
    node.host.run(["dd", "if=/dev/urandom", f"of={node.data}/filling", "bs=1M", "count=64", "conv=fsync"], seconds=300)
    cluster.path.shape(NetworkNeeds(rate=5e6))
    with monkeypatch.context() as patch:
        patch.setattr(resource, "RESYNC_SECONDS", 3.0)

        with pytest.raises(NotReady) as caught:
            topology.apply({}, cluster.nodes)

    assert re.match(r"the resync of node1 and node2 not ready after 3 s: node1: DRBD is .* to copy", str(caught.value))
    assert node.query("SELECT COUNT(*) FROM mysql.kept")
    cluster.path.shape(REST)
    assert testbed.round(0, block=0, position=1).void == ""
    assert topology.backlog(cluster.nodes) == []
    node.host.run(["rm", f"{node.data}/filling"])


@pytest.mark.parametrize("spec", [SENT, BARE], ids=lambda spec: spec.name)
def test_a_standby_that_loses_its_power_voids_the_round_and_comes_back(pool, spec):
    """It comes back into the protocol of the variant, with what it lacks copied to it."""
    load = Commits()
    testbed = source(pool, load, spec)
    testbed.round(0, block=0, position=0)
    (cluster,) = (one for one in pool.clusters if one.spec.name in ({"bare"} if spec is BARE else {"near", "sent"}))
    standby = cluster.members[1]

    load.halfway.append(standby.host.kill)
    lost = testbed.round(0, block=0, position=1)
    load.halfway.clear()
    cluster.topology.rejoin(standby, cluster.members)
    after = testbed.round(0, block=0, position=2)
    testbed.check()

    assert "DRBD on node2 changed from 'Connected, Secondary/Primary, UpToDate/UpToDate" in lost.void
    assert lost.void.endswith("to 'gone'") or "to 'gone';" in lost.void
    assert after.void == ""


@pytest.mark.parametrize("spec", [NEAR, BARE], ids=lambda spec: spec.name)
def test_a_standby_that_ends_voids_the_round_and_another_pair_serves_the_next(pool, spec):
    """A guest that has ended does not come back. The void round names it."""
    load = Commits()
    testbed = source(pool, load, spec)
    testbed.round(0, block=0, position=0)
    before = [*pool.clusters]
    cluster = testbed._used

    load.halfway.append(lambda: os.kill(cluster.hosts[1]._guest.pid, signal.SIGKILL))
    lost = testbed.round(0, block=0, position=1)
    load.halfway.clear()
    after = testbed.round(0, block=0, position=2)
    testbed.check()

    assert "node2" in lost.void
    assert "has ended" in lost.void
    assert after.void == ""
    assert cluster not in pool.clusters
    assert len(pool.clusters) == len(before)
