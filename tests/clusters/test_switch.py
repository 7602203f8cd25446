"""Switching a running cluster from variant to variant, on real servers: arriving is proven each time."""

from __future__ import annotations

import types

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters import switch as switches
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.switch import WRITES_TABLE, Switch
from pytest_dbcluster.errors import ProvisionError
from tests.support.clusters import running

ASK, BATCH = Node.query, Node.batch


def appliers(cluster):
    """The applier threads that each node really has."""
    return [node.status("wsrep_applier_thread_count")["wsrep_applier_thread_count"] for node in cluster.nodes]


def test_surplus_appliers_are_drained(galera2):
    """From four appliers back to one: the count is exactly one on each node, not only the variable."""
    switch = Switch(galera2)
    switch.to({"wsrep_slave_threads": "4"})
    four = appliers(galera2)
    switch.to({})

    assert four == ["4", "4"]
    assert appliers(galera2) == ["1", "1"]
    assert running(galera2, "wsrep_slave_threads") == [1, 1]


def test_writes_of_a_switch_do_not_meet_those_of_other_nodes(galera2):
    """A statement on a row of another node, whose write is still being applied, ends with a deadlock."""
    switch = Switch(galera2)
    switch.to({"wsrep_slave_threads": "4"})
    try:
        for _ in range(25):
            switch._write(2)
        assert galera2.nodes[0].query(f"SELECT node FROM {WRITES_TABLE} ORDER BY node") == [(0,), (1,)]
    finally:
        switch.to({}, {"wsrep_slave_threads"})


@pytest.mark.parametrize(
    ("product", "name", "written"),
    [("pxc", "wsrep_slave_threads", True), ("pxc", "wsrep_applier_threads", True), ("mysql", "x", False)],
)
def test_appliers_are_counted_under_each_of_their_names(product, name, written, monkeypatch):
    """PXC shows their number under two names; a switch that sets one of them writes. MySQL has no Galera."""
    wrote = []
    status = {"wsrep_applier_thread_count": "4"}
    node = types.SimpleNamespace(name="node1", dialect=dialect(product, "8.4.6"), status=lambda pattern: status)
    switch = Switch.__new__(Switch)
    switch.cluster = types.SimpleNamespace(nodes=[node])
    switch._cold = {"node1": {"wsrep_provider": "/x.so", "wsrep_applier_threads": "1", "wsrep_slave_threads": "1"}}
    monkeypatch.setattr(switches, "of_each", lambda nodes, ask: [ask(node) for node in nodes])
    monkeypatch.setattr(switch, "_write", wrote.append)
    switch._match_appliers({"wsrep_applier_threads": "4", "wsrep_slave_threads": "4"}, {name})

    assert wrote == [4] * written


def test_a_node_that_has_no_table_yet_is_waited_for():
    """CREATE TABLE returns on one node of Galera before the others have the table."""

    class Late:
        def __init__(self, name, looks):
            self.name, self.looks = name, looks

        def query(self, statement):
            if "COUNT" in statement:
                self.looks -= 1
                return [(2 if self.looks < 0 else 0,)]
            return []

        def batch(self, statements):
            assert self.looks < 0, "the rows do not exist here yet"
            assert len(statements) == 4

    switch = Switch.__new__(Switch)
    switch.cluster, switch._has_table = types.SimpleNamespace(nodes=[Late("node1", 0), Late("node2", 2)]), False
    switch._write(4)

    assert [node.looks for node in switch.cluster.nodes] == [-3, -1]


def test_a_switch_writes_nothing_on_replicas(briefly):
    """SET GLOBAL is not in the binlog, so no replica has an errant transaction."""
    cluster = briefly("async_replication", 2)
    switch = Switch(cluster)
    switch.to({"lock_wait_timeout": "40"})
    switch.to({})

    assert cluster.topology.violations(cluster.nodes) == []
    assert [node.query("SELECT @@gtid_binlog_state")[0][0] for node in cluster.nodes] == ["", ""]


WORKERS = {  # running appliers of a replica, by vendor
    "mariadb": "information_schema.processlist WHERE user = 'system user' AND command = 'Slave_worker'",
    "mysql": "performance_schema.replication_applier_status_by_worker WHERE service_state = 'ON'",
}


@pytest.mark.parametrize("vendor", WORKERS)
def test_appliers_restart_for_what_their_start_reads(vendor, briefly, request):
    """The number of parallel appliers of each replica follows, and replication goes on."""
    cluster = briefly("async_replication", 3, request.getfixturevalue(vendor))
    primary, *replicas = cluster.nodes
    names = {primary.dialect.replication.workers, "slave_parallel_workers"}  # the latter is its former name
    switch = Switch(cluster)
    for count in (1, 5, 2):
        switch.to(dict.fromkeys(names, str(count)), names)

        assert [one.query(f"SELECT COUNT(*) FROM {WORKERS[vendor]}")[0][0] for one in replicas] == [count, count]
        assert cluster.topology.problems(cluster.nodes) == []
    primary.query("CREATE DATABASE goes_on")
    lacking = "SHOW DATABASES LIKE 'goes_on'"
    wait.until(lambda: [one.name for one in replicas if not one.query(lacking)], "the database", seconds=20)
    switch.to({}, names)

    assert cluster.new_errors() == []


def test_appliers_go_on_after_a_value_that_the_server_refuses(briefly, mariadb):
    """The error names the value, and the cluster can be used."""
    cluster = briefly("async_replication", 2, mariadb)
    switch = Switch(cluster)
    with pytest.raises(ProvisionError, match=r"could not switch node\d to slave_parallel_mode=never"):
        switch.to({"slave_parallel_mode": "never"})

    assert cluster.topology.problems(cluster.nodes) == []


def sent(cluster, switch, monkeypatch, changes, among):
    """The statements that a switch sends to each node, and how many of each kind the servers themselves count."""
    statements = []
    before = [node.status("Com_%") for node in cluster.nodes]
    with monkeypatch.context() as patch:
        patch.setattr(Node, "query", lambda node, text: (statements.append((node.name, text)), ASK(node, text))[1])
        patch.setattr(
            Node,
            "batch",
            lambda node, texts: (statements.extend((node.name, text) for text in texts), BATCH(node, texts))[1],
        )
        switch.to(changes, among)
    after = [node.status("Com_%") for node in cluster.nodes]
    counted = [
        {name: int(now[name]) - int(then[name]) for name in now if now[name] != then[name]}
        for then, now in zip(before, after, strict=True)
    ]
    return statements, counted


@pytest.mark.parametrize(
    ("name", "value", "shape"), [("lock_wait_timeout", "40", "standalone"), ("wsrep_slave_threads", "2", "galera2")]
)
def test_a_switch_sends_the_same_statements_whatever_was_there(name, value, shape, request, monkeypatch):
    """After its own variant and after another one a round begins alike, so what it costs is no carry-over."""
    cluster = request.getfixturevalue(shape)
    switch = Switch(cluster)
    for changes in ({name: value}, {}):
        other = {} if changes else {name: value}
        switch.to(changes, {name})
        stays, counted_stays = sent(cluster, switch, monkeypatch, changes, {name})
        switch.to(other, {name})
        comes, counted_comes = sent(cluster, switch, monkeypatch, changes, {name})

        sets = [(node, text) for node, text in stays if text.startswith("SET GLOBAL")]
        assert [node for node, _ in sets] == [node.name for node in cluster.nodes]
        assert sets == [(node, text) for node, text in comes if text.startswith("SET GLOBAL")]
        if shape == "standalone":  # surplus appliers end at a write, and may need another one
            assert stays == comes
            assert counted_stays == counted_comes
        writes = [{text for node, text in seen if "UPDATE" in text} for seen in (stays, comes)]
        assert writes[0] == writes[1]
        assert bool(writes[0]) is (name == "wsrep_slave_threads")
    switch.to({}, {name})


def test_variants_without_a_variable_to_set_send_nothing(standalone):
    """A cluster that runs one variant only, or variants with the same options, has nothing to switch."""
    switch = Switch(standalone)
    asked = standalone.nodes[0].status("Questions")["questions"]
    switch.to({})

    assert int(standalone.nodes[0].status("Questions")["questions"]) == int(asked) + 1


def test_a_switch_sets_back_what_a_failed_one_left(standalone):
    """The server took another value than the one that was asked for."""
    switch = Switch(standalone)
    cold = running(standalone, "key_cache_block_size")
    with pytest.raises(ProvisionError):
        switch.to({"key_cache_block_size": "1000"})
    assert running(standalone, "key_cache_block_size") == [512]
    switch.to({})

    assert running(standalone, "key_cache_block_size") == cold


def test_a_value_that_does_not_arrive_is_an_error(standalone):
    """A switch that a server refuses names node, variable and value, and the server's words."""
    switch = Switch(standalone)

    with pytest.raises(ProvisionError) as caught:
        switch.to({"innodb_io_capacity": "none"})
    assert str(caught.value).startswith("could not switch node1 to innodb_io_capacity=none: node1: ")
    assert "1232" in str(caught.value)


def test_a_value_that_the_server_changes_is_an_error(standalone):
    """Silently rounded is not arrived."""
    switch = Switch(standalone)

    with pytest.raises(ProvisionError) as caught:
        switch.to({"key_cache_block_size": "1000"})
    assert "node1" in str(caught.value)
    assert "{'key_cache_block_size': '512 instead of 1000'}" in str(caught.value)
    switch.to({})


def test_a_switch_that_was_verified_once_reads_a_digest(standalone, monkeypatch):
    """The server makes it of all variables, so a change by somebody else is still seen, and set back."""
    (node,), switch, name = standalone.nodes, Switch(standalone), "lock_wait_timeout"
    cold = running(standalone, "wait_timeout")
    first, _ = sent(standalone, switch, monkeypatch, {name: "40"}, {name})
    switch.to({}, {name})
    again, _ = sent(standalone, switch, monkeypatch, {name: "40"}, {name})
    node.query("SET GLOBAL wait_timeout = 77")
    changed, _ = sent(standalone, switch, monkeypatch, {name: "40"}, {name})

    reads = [sum(text == "SHOW GLOBAL VARIABLES" for _, text in seen) for seen in (first, again, changed)]
    assert reads == [1, 0, 2]
    assert running(standalone, "wait_timeout") == cold
    switch.to({}, {name})


def test_mysql_makes_the_same_digest(mysql, briefly):
    """Of all variables but those of its identity."""
    cluster = briefly("standalone", 1, mysql)
    (node,), switch = cluster.nodes, Switch(cluster)
    for value in ("40", "41", "40"):
        switch.to({"lock_wait_timeout": value})
    ((count, digest),) = node.query(switches._digest(node))

    assert int(count) > 500
    assert switch._digests["node1", frozenset({("lock_wait_timeout", "40")})] == [(count, digest)]
    assert len(switch._digests) == 2
