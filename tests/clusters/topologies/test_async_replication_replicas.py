"""What every primary with replicas does, on real servers of both vendors: roles, backlog, errors, coming back."""

from __future__ import annotations

import contextlib
import dataclasses

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.connection import Connection, SQLError
from pytest_dbcluster.clusters.servers.node import LOAD, Node
from pytest_dbcluster.clusters.topologies.async_replication import PrimaryAndReplicas, status
from pytest_dbcluster.errors import ConfigError, NodeDied, ProvisionError, SeriesVoid
from pytest_dbcluster.hosts.provisioners.fake import FakeHost, FakeProvisioner
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.testbed.resolution import look_up

# MySQL under semisync is in contracts/test_topologies.py.
RELEASES = ("mariadb:10.11", pytest.param("mysql:9.7", marks=pytest.mark.thorough))


@pytest.fixture(scope="module", params=RELEASES)
def cluster(bring, request):
    """A primary and two replicas that tests share; all but the last two leave them equal and connected."""
    made = bring("async_replication", 3, find.find(request.param))
    made.nodes[0].query("CREATE DATABASE kept")
    made.nodes[0].query("CREATE TABLE kept.t (id INT PRIMARY KEY)")
    yield made
    made.close()


def rows(cluster):
    """What each node holds."""
    return [[row for (row,) in node.query("SELECT id FROM kept.t ORDER BY id")] for node in cluster.nodes]


@contextlib.contextmanager
def writable(replica):
    """A replica whose administrator writes on it, which the binlog does not see, unless it is told to."""
    names = replica.dialect.replication.read_only
    for name in names:
        replica.query(f"SET GLOBAL {name} = OFF")
    yield
    for name in names:
        replica.query(f"SET GLOBAL {name} = ON")


def unlogged(replica, statement):
    """A statement on one replica alone, which is no transaction of its own."""
    with writable(replica):
        replica.query("SET SESSION sql_log_bin = 0")
        replica.query(statement)
        replica.query("SET SESSION sql_log_bin = 1")


def test_the_first_node_writes_and_the_others_are_read(cluster):
    """Roles are fixed, and servers say who they are; a load that only reads meets a replica, without a proxy too."""
    primary, *replicas = cluster.nodes

    assert cluster.writers == [primary]
    assert cluster.topology.readers(cluster.nodes) == replicas
    assert [node.query("SELECT @@server_id")[0][0] for node in cluster.nodes] == [1, 2, 3]
    assert (cluster.writer().nodes, cluster.reader().nodes) == (("node1",), ("node2",))


def test_replicas_take_no_write_of_a_load(cluster):
    """The account of loads is refused everywhere but on the primary, so that no transaction can be errant."""
    for node in cluster.nodes:
        connection = Connection(node.name, dataclasses.replace(node.endpoint, user=LOAD))
        write = "REPLACE INTO kept.t VALUES (1)"
        if node is cluster.nodes[0]:
            connection.query(write)
        else:
            with pytest.raises(SQLError, match="read-only"):
                connection.query(write)
        connection.close()
    assert cluster.settle(60)
    assert cluster.topology.violations(cluster.nodes) == []


def test_every_node_says_what_it_may_be_used_for(cluster):
    """A proxy learns from one statement that the primary takes writes, and a replica that follows takes reads."""

    def well(node):
        health = cluster.topology.health(node, cluster.nodes)
        seen = node.pairs(health.statement)
        return [all(seen.get(name) == value for name, value in one.items()) for one in (health.reader, health.writer)]

    primary, replica, stopped = cluster.nodes
    assert [well(node) for node in cluster.nodes] == [[False, True], [True, False], [True, False]]

    stopped.query("STOP REPLICA SQL_THREAD")
    assert [well(node) for node in (primary, replica, stopped)] == [[False, True], [True, False], [False, False]]
    stopped.query("START REPLICA")
    wait.until(cluster.problems, "the cluster", seconds=60)


def test_what_a_replica_has_not_applied_is_a_backlog(cluster):
    """It is named with its transactions until it has caught up; the cluster does not settle before."""
    primary, _, late = cluster.nodes
    words = late.dialect.replication
    late.query("STOP REPLICA SQL_THREAD")
    primary.query("REPLACE INTO kept.t VALUES (7)")
    position = primary.query(words.executed)[0][0]

    assert not cluster.settle(0.2)
    wait.until(lambda: [one for one in cluster.backlog() if not one.startswith("node3 ")], "the other", seconds=60)
    (backlog,) = cluster.backlog()
    assert backlog.startswith("node3 must still apply ")
    assert position.rpartition("-")[2].rpartition(":")[2] in backlog
    assert f"{words.applying} is 'No', wanted 'Yes'" in backlog
    assert cluster.problems() == [f"node3: {words.applying} is 'No', wanted 'Yes'"]

    late.query("START REPLICA")
    assert cluster.settle(60), cluster.backlog()
    assert cluster.problems() == []
    assert rows(cluster)[0] == rows(cluster)[2]


def test_the_error_that_stops_a_replica_ends_the_waiting(cluster):
    """Its own words, the cause of a parallel applier included, come at once, and the cluster is not used again."""
    primary, replica, _ = cluster.nodes
    unlogged(replica, "INSERT INTO kept.t VALUES (100)")
    primary.query("INSERT INTO kept.t VALUES (100)")

    with pytest.raises(ProvisionError) as caught:
        cluster.settle(30)
    words = str(caught.value)
    assert words.startswith("replica node2 has stopped applying: error 1062: ")
    assert "Duplicate entry '100' for key" in words
    assert "Look for another program that wrote on node2" in words
    assert words.endswith(f"error log: {replica.log}")
    with pytest.raises(ProvisionError, match="Duplicate entry '100'"):
        cluster.check()
    assert "Duplicate entry '100'" in cluster.dirty

    unlogged(replica, "DELETE FROM kept.t WHERE id = 100")
    replica.query("START REPLICA")
    assert cluster.settle(60), cluster.backlog()
    cluster.dirty = ""


def test_the_error_that_keeps_a_replica_from_reading_ends_the_waiting(cluster):
    """A server that calls itself what the primary is called is refused by it, and will not try again."""
    replica = cluster.nodes[2]
    replica.query("STOP REPLICA")
    replica.query("SET GLOBAL server_id = 1")
    replica.query("START REPLICA")

    with pytest.raises(ProvisionError, match=r"^replica node3 has stopped reading from node1: error \d+: .*server ids"):
        wait.until(lambda: cluster.problems() or ["not yet refused"], "the error", seconds=60)

    replica.query("STOP REPLICA")
    replica.query("SET GLOBAL server_id = 3")
    replica.query("START REPLICA")
    wait.until(cluster.problems, "the cluster", seconds=60)


def test_a_primary_that_takes_no_writes_is_a_problem(cluster):
    """A replica that takes writes is a problem too."""
    primary, replica, _ = cluster.nodes
    primary.query("SET GLOBAL read_only = ON")
    assert "node1: read_only is 'ON', wanted 'OFF'" in cluster.problems()
    primary.query("SET GLOBAL read_only = OFF")

    with writable(replica):
        assert "node2: read_only is 'OFF', wanted 'ON'" in cluster.problems()
    assert cluster.problems() == []


def test_a_killed_replica_catches_up_by_gtid(cluster):
    """A replica that comes back applies everything written meanwhile, once."""
    primary, replica, _ = cluster.nodes
    replica.kill()
    primary.query("REPLACE INTO kept.t VALUES (20), (21)")
    cluster.topology.rejoin(replica, cluster.nodes)

    wait.until(cluster.problems, "the cluster", seconds=30)
    assert cluster.settle(60), cluster.backlog()
    assert rows(cluster)[1] == rows(cluster)[0]
    assert cluster.topology.violations(cluster.nodes) == []


def test_a_killed_primary_is_found_again_by_its_replicas(cluster):
    """The replicas reconnect by themselves and apply what the primary writes then."""
    primary = cluster.nodes[0]
    primary.query("REPLACE INTO kept.t VALUES (30)")
    primary.kill()
    with pytest.raises(NodeDied, match=r"^node node1 was ended by SIGKILL"):
        cluster.problems()
    cluster.topology.rejoin(primary, cluster.nodes)

    wait.until(cluster.problems, "the cluster", seconds=30)
    primary.query("REPLACE INTO kept.t VALUES (31)")
    assert cluster.settle(60), cluster.backlog()
    found = rows(cluster)
    assert {30, 31} <= set(found[0])
    assert found == [found[0]] * 3
    assert cluster.topology.violations(cluster.nodes) == []
    assert cluster.writers == [primary]


def test_transactions_that_only_one_has_are_violations(cluster):
    """A replica that lacks one of its primary's, and one that has one of its own, which voids the rounds."""
    primary, replica, _ = cluster.nodes
    replica.query("STOP REPLICA SQL_THREAD")
    primary.query("CREATE DATABASE late")
    assert cluster.topology.violations(cluster.nodes)[0].startswith("node2 lacks ")
    replica.query("START REPLICA")
    assert cluster.settle(60)
    cluster.new_errors()  # that the replicas went
    cluster.check()

    with writable(replica):
        replica.query("CREATE DATABASE errant")
    with pytest.raises(SeriesVoid, match=r"node2 has errant transactions, which its primary node1 lacks: \S+[-:]\d+$"):
        cluster.check()


def test_a_replica_that_follows_nobody_is_a_problem(cluster):
    """A server that was never told to follow, or was told to stop for good."""
    primary, replica, _ = cluster.nodes
    replica.query("STOP REPLICA")
    replica.query("RESET REPLICA ALL")

    assert status(replica, primary) == {}
    assert cluster.problems() == ["node2 follows no primary"]


class Ring(PrimaryAndReplicas):
    """A topology of this test."""

    name = "ring"


@pytest.fixture(params=["mariadb", "mysql"])
def idle(request):
    """Two nodes on hosts that do nothing."""
    release = request.getfixturevalue(request.param)
    return [Node(f"node{n}", FakeHost(f"node{n}", directory=f"/fake/{n}"), release, 3306, "secret") for n in (1, 2)]


def test_one_node_is_no_primary_with_replicas():
    """The error says what to ask for; a run refuses it before anything starts."""
    assert Ring().wrong_size(1).startswith("ring needs 2 nodes or more, a primary and its replicas, not 1")
    assert Ring().wrong_size(2) == ""
    with pytest.raises(ConfigError, match=r"^async_replication needs 2 nodes or more, .*, not 1: use nodes=2"):
        look_up(ClusterSpec("async_replication", nodes=1), FakeProvisioner())


@pytest.mark.parametrize(
    ("option", "value", "role"),
    [
        ("read_only", "ON", "primary node1 needs read_only=OFF"),
        ("read_only", "0", "replica node2 needs read_only=ON"),
    ],
)
def test_an_option_that_contradicts_is_refused_before_a_start(idle, option, value, role):
    """A primary that takes no writes is nobody's wish, and a replica that does makes errant transactions possible."""
    ring = Ring()
    for node in idle:
        node.configure({**ring.options(node, idle), option: value})
    with pytest.raises(ConfigError, match=f"^option {option}={value} contradicts ring: its {role}"):
        ring.form(idle)

    assert [node.host.spawned for node in idle] == [[], []]


def test_gtid_cannot_be_left_out(idle):
    """GTID cannot be turned off, because replicas use GTID positions."""
    ring = Ring()
    ((option, needed), *_) = idle[0].dialect.replication.every.items()
    for node in idle:
        node.configure({**ring.options(node, idle), option: "OFF"})

    with pytest.raises(ConfigError, match=f"^option {option}=OFF contradicts ring: .* needs {option}={needed};"):
        ring.refuse_contradictions(idle)


def test_an_option_that_says_the_same_or_is_a_choice_is_none(idle):
    """ON may be written as 1; a binlog may have another name, and relay logs be kept."""
    ring = Ring()
    for node in idle:
        every = dict.fromkeys(node.dialect.replication.every, "1")
        node.configure({**ring.options(node, idle), **every, "log_bin": "other", "relay_log_recovery": "OFF"})

    ring.refuse_contradictions(idle)
