"""One pair of guests: its server, rounds at several distances, a connection that is lost, and a failover."""

from __future__ import annotations

import contextlib
import dataclasses
import threading

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import Connection, SQLError
from pytest_dbcluster.clusters.servers.node import ADMIN
from pytest_dbcluster.hosts.host import replication_address
from pytest_dbcluster.network import REST
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.resolution import Resolution
from tests.support.drbd_pairs import APART, FAR, NEAR, SENT, Commits
from tests.support.guests import servers_in
from tests.support.testbeds import differing, evidence, source

LOAD = Commits()


@pytest.fixture(scope="module")
def pool(guests, tmp_path_factory):
    """A pool of guests, whose cluster the tests of this module share."""
    made = Pool(Resolution(guests, fragments=tmp_path_factory.mktemp("cnf"), below={}, progress=lambda line: None))
    yield made
    made.close()


@pytest.fixture(scope="module")
def testbed(pool):
    """Four variants, which share one pair."""
    return source(pool, LOAD, NEAR, FAR, SENT, APART)


@pytest.fixture(scope="module")
def cluster(testbed, pool):
    """The pair, after a round of the first variant."""
    testbed.round(0, block=0, position=0)
    (made,) = pool.clusters
    return made


def test_one_host_has_a_server_and_the_other_one_its_disk(cluster):
    """Both disks were equal from the start, so nothing had to be copied."""
    assert [node.name for node in cluster.nodes] == ["node1"]
    assert [host.name for host in cluster.hosts] == ["node1", "node2"]
    assert [servers_in(host) for host in cluster.hosts] == [1, 0]
    assert cluster.problems() == []
    mounts = cluster.hosts[0].run(["cat", "/proc/mounts"]).stdout
    assert f"/dev/drbd0 {cluster.hosts[0].directory}/data ext4 rw,noatime" in mounts
    before, wrote, _ = cluster.hosts[0].run(["dmesg"]).stdout.partition("role( Secondary -> Primary )")
    assert wrote
    assert "Began resync" not in before


def test_the_device_is_replicated_over_a_link_of_its_own(cluster):
    """Clients and our own commands stay on the other one, which delays nothing."""
    first, second = cluster.hosts
    said = first.run(["/bin/sh", "-c", "cat drbd.conf; netstat -tn; /sbin/tc qdisc"]).stdout
    of_device = [line.split()[3:5] for line in said.splitlines() if ":7788" in line and "ESTABLISHED" in line]

    assert replication_address(first) != first.address
    assert all(f"address {replication_address(host)}:7788;" in said for host in (first, second))
    ends = {end.rpartition(":")[0] for ends in of_device for end in ends}
    assert ends == {replication_address(first), replication_address(second)}
    assert "dev vec1" in said
    assert not any("netem" in line for line in said.splitlines() if "dev vec0" in line)


def test_variants_differ_by_distance_protocol_and_connection(testbed, pool, cluster):
    """A commit waits for the round trip, but not with protocol A, and not without a connection. All share the pair."""
    LOAD.shortest.clear()
    rounds = [testbed.round(number, block=0, position=number) for number in range(4)]
    testbed.check()
    near, far, sent, apart = LOAD.shortest

    assert [done.void for done in rounds] == [""] * 4
    assert pool.clusters == [cluster]
    assert max(near, sent, apart) < 0.095 < far
    label = [*evidence(testbed, 0, 1, 2, 3).durability.values()]
    assert label[1].startswith("flush=1, binlog off, on the disks of both hosts, DRBD 8.4.")
    assert "sent towards the standby, DRBD 8.4." in label[2]
    assert label[3].endswith(" disconnected")
    assert differing(testbed, 2, 1) == {"drbd_protocol": ("C", "A")}


def test_a_round_in_which_the_connection_was_lost_is_void(cluster):
    """Also where it is back before the end of the round, with everything copied."""
    topology = cluster.topology
    cluster.path.shape(REST)
    topology.apply({}, cluster.nodes)
    before = topology.watch(cluster.nodes)
    assert topology.void(before, topology.watch(cluster.nodes)) == ""

    topology.apply({"drbd_connected": "OFF"}, cluster.nodes)
    cluster.nodes[0].query("REPLACE INTO mysql.kept VALUES (100)")
    topology.apply({}, cluster.nodes)

    after = topology.watch(cluster.nodes)
    assert {name: value for name, value in after.items() if name.startswith("DRBD")} == {
        name: value for name, value in before.items() if name.startswith("DRBD")
    }
    assert topology.void(before, after).startswith("changes on node1 changed from ")
    assert cluster.problems() == []


def test_a_failover_loses_no_acknowledged_commit(cluster):
    """The old host is fenced under load, the standby takes over, and the old host comes back as its standby."""
    topology, (old, new) = cluster.topology, cluster.members
    old.query("DELETE FROM mysql.kept")
    writing = Writer(old)
    wait.until(lambda: [] if len(writing.acknowledged) > 20 else ["too few"], "commits", seconds=120)

    steps: list[str] = []
    topology.fail_over(cluster.members, steps.append)

    assert steps == ["fenced", "promoted", "mounted", "answers"]
    assert cluster.nodes == [new]
    assert cluster.writers == [new]
    found = {number for (number,) in new.query("SELECT id FROM mysql.kept")}
    assert set(writing.end()) - found == set()
    assert len(found - set(writing.acknowledged)) <= 1  # the one that was not answered
    topology.rejoin(old, cluster.members)
    wait.until(cluster.problems, "the pair with the old host", seconds=300)
    assert [servers_in(host) for host in cluster.hosts] == [0, 1]
    new.query("INSERT INTO mysql.kept VALUES (1000000)")


class Writer:
    """Commits one row after the other on a node, until that fails. ``acknowledged``: those that it has confirmed."""

    def __init__(self, node):
        self.acknowledged = []
        self._connection = Connection(node.name, dataclasses.replace(node.endpoint, user=ADMIN), seconds=60)
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self):
        with contextlib.suppress(SQLError):
            for number in range(100_000):
                self._connection.query(f"INSERT INTO mysql.kept VALUES ({number})")
                self.acknowledged.append(number)

    def end(self):
        """What was acknowledged, once the server is lost to us."""
        self._connection.close()
        self._thread.join(120)
        assert not self._thread.is_alive()
        return self.acknowledged
