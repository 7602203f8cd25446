"""``Join``: nodes that were shut down join again, in each way."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_dbcluster.clusters.events import event as events
from pytest_dbcluster.clusters.events.event import Stage
from pytest_dbcluster.clusters.events.maintenance import clone_plugin, join
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.events import Join
from pytest_dbcluster.rounds.outages.outage import Returned
from pytest_dbcluster.spec import ClusterSpec

TABLE = "CREATE TABLE join_tests.written (id INT PRIMARY KEY)"


@pytest.mark.parametrize(
    ("event", "kind", "fact"),
    [
        (Join("ist"), "galera", "a node of galera joins by 'IST' or 'SST'"),
        (Join("incremental"), "galera", "a node of galera joins by"),
        (Join("SST"), "semisync", "a node of semisync joins by 'GTID'"),
        (Join("rebuild"), "semisync", "a node of semisync joins by 'GTID'"),
        (Join("clone"), "galera", "a node of galera joins by"),
        (Join("IST", "writer"), "galera", "the load needs the first node before the event"),
        (Join("IST", "node1"), "galera", "the load needs the first node before the event"),
        (Join("IST", "node4"), "galera", "has 3 nodes"),
    ],
)
def test_a_wrong_join_is_refused(event, kind, fact):
    """Before anything starts."""
    with pytest.raises(ConfigError) as caught:
        event.check(ClusterSpec(kind, nodes=3), topology(kind))
    assert fact in str(caught.value)


def join_again(cluster, event):
    """What happened when a node missed a table, and joined."""
    first, leave = cluster.nodes[0], Join._leave

    def leave_and_write(of, node, among):
        leave(of, node, among)
        first.query("CREATE DATABASE join_tests")
        first.query(TABLE)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "MISSED_SECONDS", 0)
        patch.setattr(Join, "_leave", leave_and_write)
        happened = event.act(cluster)
    assert cluster.settle(30)
    assert cluster.nodes[1].query("SELECT COUNT(*) FROM join_tests.written") == [(0,)]
    first.query("DROP DATABASE join_tests")
    cluster.new_errors()
    assert (happened.node, list(happened.marks)) == ("node2", ["whole"])
    assert event.restore(cluster, happened) == happened.returned
    return happened


def test_a_node_of_galera_gets_what_it_missed(galera2):
    """It joins from its position."""
    happened = join_again(galera2, Join("IST"))

    assert (happened.void, happened.returned.how) == ("", "IST")


@pytest.mark.parametrize("how", ["IST", "SST"])
def test_a_node_without_a_position_needs_a_full_copy(galera2, how, monkeypatch):
    """For an SST the node forgets its position, once its server has ended."""
    node, did = galera2.nodes[1], []
    monkeypatch.setattr(join, "MISSED_SECONDS", 0)
    monkeypatch.setattr(node, "stop", lambda: did.append("stopped"))
    monkeypatch.setattr(events, "wait_uncounted", lambda *of: did.append("evicted"))
    monkeypatch.setattr(node.host, "run", lambda command: did.append(command[-1].rpartition("/")[2]))
    Join(how)._leave(node, galera2)

    assert did == ["stopped", "evicted", *(["grastate.dat"] if how == "SST" else [])]


def test_a_replica_reads_the_binary_log_again(briefly):
    """It continues at its position."""
    happened = join_again(briefly("async_replication", 2), Join("GTID"))

    assert (happened.void, happened.returned.how) == ("", "GTID")


def test_a_member_of_a_group_clones_another_one(briefly, mysql):
    """It replaces its data, starts again, and joins. Afterwards no server has the plugin."""
    cluster = briefly("group_replication", 2, mysql)
    event = Join("clone").equip(Stage([mysql], {}), [])
    event.prepare(cluster)
    happened = join_again(cluster, event)

    assert (happened.void, happened.returned.how) == ("", "clone")
    for node in cluster.nodes:
        assert node.query("SELECT 1 FROM information_schema.plugins WHERE plugin_name = 'clone'") == []


def test_a_clone_needs_the_plugin_and_its_own_proof(mariadb):
    """A release without it is refused, and a server that has cloned nothing proves nothing."""
    with pytest.raises(ConfigError, match=r"join of other by clone: .* has no clone plugin"):
        Join("clone").equip(Stage([mariadb], {}), [])
    assert Join("IST").equip(Stage([mariadb], {}), []) == Join("IST")
    for row, why in (
        ([], "node2 has cloned nothing"),
        ([("Completed", 0, "", "LOCAL INSTANCE")], "the clone of LOCAL INSTANCE to node2 is Completed: 0 "),
        ([("Failed", 3862, "no plugin", "h:1")], "the clone of h:1 to node2 is Failed: 3862 no plugin"),
        ([("Completed", 0, "", "h:1")], ""),
    ):
        assert clone_plugin.not_cloned(SimpleNamespace(name="node2", query=lambda statement, row=row: row)) == why
    itself = SimpleNamespace(name="node2", query=lambda statement: [("Completed", 0, "", "LOCAL INSTANCE")])
    assert clone_plugin.not_cloned(itself, local=True) == ""


def test_another_way_than_the_one_asked_for_proves_nothing(standalone, monkeypatch):
    """The reason has both. A node that does not run does not leave."""
    ended = SimpleNamespace(name="node2", running=False)
    monkeypatch.setattr(events, "target", lambda *of: ended)
    assert Join("IST").act(standalone).void == "node2 did not run before the event"

    ended.running = True
    monkeypatch.setattr(Join, "_leave", lambda *of: None)
    monkeypatch.setattr(events, "rejoin", lambda *of, **by: Returned(1.0, "SST"))
    assert Join("IST").act(standalone).void == "node2 joined by SST"
