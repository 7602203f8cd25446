"""A cluster that runs: where loads are sent, what its check finds, and nodes that are gone."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.errors import ConfigError, NodeDied, SeriesVoid
from tests.support.facts import missing


def test_tables_that_differ_between_nodes_void_the_rounds(bring):
    """The checksums find a row that only one node has; the cluster is then marked as unusable."""
    cluster = bring("galera", 2)
    one, other = cluster.nodes
    one.query("CREATE DATABASE apart")
    one.query("CREATE TABLE apart.t (id INT PRIMARY KEY)")
    assert cluster.settle(60)
    cluster.check(["apart.t"])
    other.query("SET SESSION wsrep_on = OFF")
    other.query("INSERT INTO apart.t VALUES (1)")

    with pytest.raises(SeriesVoid) as caught:
        cluster.check(["apart.t"])
    assert re.fullmatch(
        r"cluster galera2 failed its check after the rounds: "
        r"table apart\.t differs between nodes: \{'node1': 0, 'node2': \d+\}",
        str(caught.value),
    )
    assert cluster.dirty.startswith("table apart.t differs")
    cluster.close()


def test_virtual_columns_make_no_table_differ(galera2, monkeypatch):
    """Of such a table the stored columns are compared if checksums differ, which they may for equal rows."""
    one, other = galera2.nodes
    query = Node.query
    monkeypatch.setattr(
        Node,
        "query",
        lambda node, text, *how: [("", node.name)] if text.startswith("CHECKSUM") else query(node, text, *how),
    )
    one.query("CREATE DATABASE virtual")
    one.query(
        "CREATE TABLE virtual.t (id INT PRIMARY KEY, n DOUBLE, a BLOB, b VARCHAR(9) CHARACTER SET latin1, c BIT(3), "
        "d POINT, e JSON, f DATE, twice DOUBLE AS (n * 2))"
    )
    one.query("CREATE TABLE virtual.plain (id INT PRIMARY KEY)")
    one.query("INSERT INTO virtual.t (id, n, a, b, c, d, e) VALUES (1, .1, 0xff00, 'ü', b'11', POINT(1, 2), '[1]')")
    one.query("INSERT INTO virtual.t (id, n) VALUES (2, 1e300)")
    assert galera2.settle(60)
    try:
        assert galera2._faults(["virtual.t"]) == []
        assert len(galera2._faults(["virtual.plain"])) == 1
        other.query("SET SESSION wsrep_on = OFF")
        other.query("UPDATE virtual.t SET n = .2 WHERE id = 1")
        other.query("SET SESSION wsrep_on = ON")
        (fault,) = galera2._faults(["virtual.t"])
        assert re.fullmatch(r"table virtual\.t differs between nodes: \{'node1': '2 \d+', 'node2': '2 \d+'\}", fault)
    finally:
        one.query("DROP DATABASE virtual")


def test_a_lone_server_has_no_tables_to_compare(standalone):
    """To read all of a large table takes a minute, and says nothing."""
    (node,) = standalone.nodes
    before = node.status("com_checksum")
    standalone.check(["mysql.user"])

    assert node.status("com_checksum") == before


def test_where_all_nodes_are_alike_reads_and_writes_go_to_the_first(standalone, galera2):
    """Without a proxy, nothing spreads the reads over the nodes."""
    for cluster in (standalone, galera2):
        assert cluster.reader() == cluster.writer()
        assert cluster.reader().nodes == ("node1",)


def test_what_writes_is_not_sent_to_a_replica(replicated):
    """Neither without nor with a proxy; the error names the nodes and the fix."""
    writer, reader = replicated.writer(), replicated.reader()
    replicated.require_writers([writer], "load")

    for endpoints, names in (
        ([reader], "node2"),
        ([dataclasses.replace(reader, nodes=("node2", "node3"))], "node2, node3"),
    ):
        with pytest.raises(ConfigError) as caught:
            replicated.require_writers([writer, *endpoints], "load")
        of_cluster = f"{names} of async_replication3 is read-only"
        assert missing(caught.value, "load writes", of_cluster, "only node1 accepts", 'set to="writer"') == []


def test_a_missing_table_is_no_equal_table(galera2):
    """A table without a checksum fails the check."""
    with pytest.raises(SeriesVoid, match=r"table test\.none differs between nodes: \{'node1': None, 'node2': None\}"):
        galera2.check(["test.none"])
    galera2.dirty = ""


def test_a_new_error_line_voids_the_rounds(standalone):
    """Only errors logged since the last call count, each once."""
    with Path(standalone.nodes[0].log).open("a") as log:
        log.write("2026-01-01  0:00:00 0 [ERROR] InnoDB: something broke\n")

    with pytest.raises(SeriesVoid) as caught:
        standalone.check()
    line = "node1 logged: 2026-01-01  0:00:00 0 [ERROR] InnoDB: something broke"
    assert missing(caught.value, "cluster standalone1 failed", "after the rounds", line) == []
    standalone.check()
    standalone.dirty = ""


def test_an_error_line_that_is_expected_voids_nothing(standalone):
    """An event has declared it; every other line counts as before."""
    log = Path(standalone.nodes[0].log)
    standalone.expected_errors.add("peer .* is lost")
    try:
        with log.open("a") as lines:
            lines.write("2026-01-01  0:00:00 0 [ERROR] WSREP: peer node2 is lost\n")
        standalone.check()
        with log.open("a") as lines:
            lines.write("2026-01-01  0:00:00 0 [ERROR] InnoDB: something broke\n")
        with pytest.raises(SeriesVoid, match="something broke"):
            standalone.check()
    finally:
        standalone.expected_errors.clear()
        standalone.dirty = ""


def test_an_error_that_several_nodes_logged_is_named_once():
    """The error of a workload lists the nodes before the line, without its time."""
    lines = (["2026-01-01  0:00:00 0 [ERROR] full"], ["2026-01-01  0:00:07 0 [ERROR] full"], ["[ERROR] other"])
    nodes = [
        SimpleNamespace(name=f"node{number}", raise_if_dead=lambda: None, new_errors=lambda logged=logged: logged)
        for number, logged in enumerate(lines, 1)
    ]

    error = Cluster.load_failure(SimpleNamespace(nodes=nodes), "the tool ended with 1", "no space")
    assert str(error).splitlines() == [
        "the tool ended with 1: no space",
        "    node1, node2 logged: [ERROR] full",
        "    node3 logged: [ERROR] other",
    ]


def test_a_node_that_cannot_apply_keeps_the_cluster_from_settling(galera2):
    """Settling returns False after its timeout; later it succeeds."""
    one, other = galera2.nodes
    one.query("CREATE DATABASE IF NOT EXISTS late")
    one.query("CREATE TABLE IF NOT EXISTS late.t (id INT AUTO_INCREMENT PRIMARY KEY)")
    assert galera2.settle(60)
    other.query("FLUSH TABLES WITH READ LOCK")
    try:
        one.query("INSERT INTO late.t VALUES ()")

        assert galera2.settle(0.2) is False
        assert any("wsrep_l" in problem for problem in galera2.backlog())
    finally:
        other.query("UNLOCK TABLES")
    assert galera2.settle(60) is True


def test_settling_flushes_a_log_that_commits_do_not(standalone):
    """With flush=0 a commit is not on disk; after settling it is, with the option as before."""
    node = standalone.nodes[0]
    node.query("SET GLOBAL innodb_flush_log_at_trx_commit = 0")
    try:
        node.query("CREATE DATABASE IF NOT EXISTS lazy")
        node.query("CREATE OR REPLACE TABLE lazy.t (id INT AUTO_INCREMENT PRIMARY KEY)")
        node.query("INSERT INTO lazy.t VALUES ()")
        written = int(node.status("Innodb_lsn_%")["innodb_lsn_current"])  # InnoDB may go on writing

        assert standalone.settle(60) is True
        assert int(node.status("Innodb_lsn_%")["innodb_lsn_flushed"]) >= written
        assert node.query("SELECT @@global.innodb_flush_log_at_trx_commit") == [(0,)]
    finally:
        node.query("SET GLOBAL innodb_flush_log_at_trx_commit = 1")


def test_an_option_is_as_before_when_a_flush_fails(standalone, monkeypatch):
    """The statement that fails comes after the one that changes the option."""
    node = standalone.nodes[0]
    node.query("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
    try:
        with monkeypatch.context() as patch:
            patch.setattr(node, "dialect", dataclasses.replace(node.dialect, flush="FLUSH NONE_AT_ALL"))
            with pytest.raises(SQLError, match="NONE_AT_ALL"):
                node.flush_log()

        assert node.query("SELECT @@global.innodb_flush_log_at_trx_commit") == [(2,)]
    finally:
        node.query("SET GLOBAL innodb_flush_log_at_trx_commit = 1")


def test_a_refused_statement_is_no_dead_node(standalone):
    """The error has the node, the statement, the error number and the server's message."""
    with pytest.raises(SQLError) as caught:
        standalone.nodes[0].query("SELECT * FROM none.at_all")

    assert caught.value.number == 1146
    assert str(caught.value).startswith("node1: 'SELECT * FROM none.at_all' failed: 1146 ")


def test_whoever_asks_a_killed_node_learns_that_it_is_dead(briefly):
    """The error has the node, the signal and the log, not the lost connection; the cluster is not used again."""
    cluster = briefly("standalone")
    (node,) = cluster.nodes
    node.query("SELECT 1")
    os.kill(node.process.pid, signal.SIGKILL)

    for ask in (lambda: node.query("SELECT 1"), node.status, node.variables, node.flush_log, cluster.check):
        with pytest.raises(NodeDied, match=r"^node node1 was ended by SIGKILL; the last lines of its error log"):
            ask()
    assert cluster.dirty.startswith("node node1 was ended by SIGKILL")
