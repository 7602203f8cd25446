"""mysqlslap on real servers: what reaches them, and what happens when it or a server dies."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
import time

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ConfigError, NodeDied, WorkloadError
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap
from pytest_dbcluster.workloads.workload import Setting
from tests.support.facts import missing
from tests.support.query_log import logging_queries

LONG = MySQLSlap("read", concurrency=2, queries=20_000, quick_queries=20_000)


def setting_of(cluster, client, release, profile="quick"):
    """What a load may use."""
    return Setting(cluster, client, release, profile, lambda line: None)


def while_it_runs(client, deed):
    """Do something as soon as the tool has begun its round."""

    def find():
        mine = [
            p for p in psutil.Process().children() if "slap" in " ".join(p.cmdline()) and "--query" in str(p.cmdline())
        ]
        if mine and not done:
            done.append(True)
            deed(mine[0])
        return [] if done else ["not running yet"]

    done = []
    thread = threading.Thread(target=wait.until, args=(find, "the tool"), kwargs={"seconds": 20})
    thread.start()
    return thread


def test_a_release_without_the_tool_names_it(standalone, client, mariadb, tmp_path):
    """A directory of a user's own may have the server alone; the error lists what there is."""
    for program in mariadb.bin.iterdir():
        if "slap" not in program.name:
            (tmp_path / program.name).symlink_to(program)
    bare = dataclasses.replace(mariadb, bin=tmp_path, source=str(tmp_path))

    with pytest.raises(ConfigError) as caught:
        MySQLSlap("write").prepare(setting_of(standalone, client, bare))
    assert str(caught.value).startswith(
        f"mariadb:10.11 ({tmp_path}) has no program 'mariadb-slap' in {tmp_path}; it has: "
    )
    assert "mariadbd" in str(caught.value)


def test_a_failed_query_is_in_the_tools_own_words(standalone, client, mariadb):
    """The tool ends with status 0 then; the error names load and cluster and repeats what it said."""
    load = MySQLSlap("key", concurrency=2, queries=4, rows=50)
    setting = setting_of(standalone, client, mariadb)
    load.prepare(setting)
    standalone.nodes[0].query("RENAME TABLE dbcluster_slap.t1 TO dbcluster_slap.away")
    try:
        with pytest.raises(WorkloadError) as caught:
            load.run(setting)
        assert str(caught.value).startswith("mysqlslap key c2 ended with clients that failed on standalone1: ")
        assert "Table 'dbcluster_slap.t1' doesn't exist" in str(caught.value)
    finally:
        load.clean(setting)


@pytest.fixture(scope="module")
def servers(bring, standalone, mysql):
    """One server of each vendor."""
    return {"mariadb": standalone, "mysql": bring("standalone", 1, mysql)}


@pytest.mark.parametrize("tool", ["mariadb", "mysql"])
@pytest.mark.parametrize("mode", ["mixed", "update", "key"])
def test_a_round_can_run_its_work_several_times(standalone, client, mariadb, mysql, tool, mode):
    """Each vendor's tool begins its statements again; the server counts each of them. The published round stays."""
    load = MySQLSlap(mode, concurrency=4, queries=40, quick_queries=40, rows=100, iterations=1)
    release = {"mariadb": mariadb, "mysql": mysql}[tool]
    once = setting_of(standalone, client, release, "quick")
    load.prepare(once)
    counted = []
    for setting in (once, dataclasses.replace(once, repeat=3)):
        before = standalone.nodes[0].status("Com_%")
        done = load.run(setting)
        after = standalone.nodes[0].status("Com_%")
        kinds = {name: int(after[name]) - int(before[name]) for name in ("com_insert", "com_update", "com_select")}
        counted.append((done.operations, done.commits, kinds))
        load.reset(setting)
    load.clean(once)

    (operations, commits, kinds), thrice = counted
    assert operations == sum(kinds.values()) == 40
    assert thrice == (120, commits and 3 * commits, {name: 3 * count for name, count in kinds.items()})
    paper = dataclasses.replace(once, profile="paper", repeat=3)
    assert load.run(paper).operations == 40


@pytest.mark.parametrize("profile", ["quick", "paper"])
@pytest.mark.parametrize(("tool", "server"), [("mysql", "mysql"), ("mysql", "mariadb"), ("mariadb", "mysql")])
def test_either_vendors_tool_sends_the_same_to_either_vendors_server(
    servers, client, mariadb, mysql, tool, server, profile
):
    """So one client serves a comparison across vendors: the server counts what the published load is made of."""
    cluster, release = servers[server], {"mariadb": mariadb, "mysql": mysql}[tool]
    load = MySQLSlap("mixed", concurrency=4, queries=40, quick_queries=40, rows=100, iterations=2)
    setting = setting_of(cluster, client, release, profile)
    load.prepare(setting)
    before = cluster.nodes[0].status("Com_%")
    outcome = load.run(setting)
    after = cluster.nodes[0].status("Com_%")
    load.clean(setting)

    assert outcome.operations == 40
    assert int(after["com_insert"]) - int(before["com_insert"]) == outcome.commits
    # The published call asks once an iteration for the ids of its preload.
    asked = {"quick": 20, "paper": 2 * 20 + 2}[profile]
    assert int(after["com_select"]) - int(before["com_select"]) == asked


@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_the_published_call_spans_all_that_it_sends(servers, client, mariadb, server):
    """Preloads and all iterations, from the tool's first statement to its last by the server's log, and no more."""
    cluster = servers[server]
    load = MySQLSlap("write", concurrency=4, queries=40, rows=100, iterations=3)
    setting = setting_of(cluster, client, mariadb, "paper")
    with logging_queries(cluster.nodes[0]):
        began = time.monotonic()
        outcome = load.run(setting)
        wall = time.monotonic() - began
    mine = "FROM mysql.general_log WHERE user_host LIKE 'dbcluster_load%'"
    ((inserts,),) = cluster.nodes[0].query(f"SELECT COUNT(*) {mine} AND argument LIKE 'INSERT%'")
    ((sent,),) = cluster.nodes[0].query(f"SELECT TIMESTAMPDIFF(MICROSECOND, MIN(event_time), MAX(event_time)) {mine}")

    assert inserts == outcome.commits == 3 * (40 + 99)
    assert 3 * outcome.seconds < sent / 1e6 <= outcome.span <= wall


def test_a_quick_round_spans_what_is_measured(standalone, client, mariadb):
    """There is nothing else in it, so it has no time of its own."""
    load = MySQLSlap("write", concurrency=2, queries=4, rows=50)
    setting = setting_of(standalone, client, mariadb)
    load.prepare(setting)
    outcome = load.run(setting)
    load.clean(setting)

    assert outcome.span is None


@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_a_server_that_takes_no_writes_is_said_in_its_words(servers, client, mariadb, server):
    """A primary that somebody made read-only refuses a load, whose account is not above that."""
    load = MySQLSlap("write", concurrency=2, queries=4, rows=50)
    setting = setting_of(servers[server], client, mariadb)
    load.prepare(setting)
    node = servers[server].nodes[0]
    node.query("SET GLOBAL read_only = ON")
    try:
        with pytest.raises(WorkloadError, match=r"server is running with the --read-only option"):
            load.run(setting)
    finally:
        node.query("SET GLOBAL read_only = OFF")
        load.clean(setting)


def test_tables_are_made_where_writes_are_taken(galera2, client, mariadb, monkeypatch):
    """Not on the first node, when another one is the only writer."""
    monkeypatch.setattr(galera2.topology, "writers", lambda nodes: nodes[1:], raising=False)
    load = MySQLSlap("write", concurrency=2, queries=4, rows=50)
    setting = setting_of(galera2, client, mariadb)
    monkeypatch.setattr(galera2.nodes[0], "query", lambda statement: pytest.fail(f"node1 was asked: {statement}"))
    load.prepare(setting)
    load.run(setting)
    load.reset(setting)
    rows = galera2.nodes[1].query("SELECT COUNT(*) FROM dbcluster_slap.t1")
    load.clean(setting)

    assert rows == [(49,)]
    assert galera2.nodes[1].query("SHOW DATABASES LIKE 'dbcluster_slap'") == []


def test_a_killed_tool_is_said_to_have_been_killed(standalone, client, mariadb):
    """Its servers live, so it is the load that ended."""
    setting = setting_of(standalone, client, mariadb)
    LONG.prepare(setting)
    thread = while_it_runs(client, lambda process: process.kill())

    with pytest.raises(WorkloadError) as caught:
        LONG.run(setting)
    thread.join()
    assert missing(caught.value, "mysqlslap read c2", "SIGKILL on standalone1", "printed nothing") == []
    LONG.clean(setting)


def test_a_tool_that_hangs_is_stopped(standalone, client, mariadb):
    """After the load's own time limit; nothing of it stays."""
    load = dataclasses.replace(LONG, seconds=0.3)
    setting = setting_of(standalone, client, mariadb)
    load.prepare(setting)

    with pytest.raises(WorkloadError) as caught:
        load.run(setting)
    assert str(caught.value).startswith("mysqlslap read c2 did not end within 0.3 s on standalone1: ")
    load.clean(setting)


def test_a_server_that_dies_in_a_round_is_the_cause(bring, client, mariadb):
    """Not the tool's lost connection is the message, but the node and the last lines of its error log."""
    cluster = bring("standalone")
    setting = setting_of(cluster, client, mariadb)
    LONG.prepare(setting)
    pid = cluster.nodes[0].process.pid
    thread = while_it_runs(client, lambda process: os.kill(pid, signal.SIGKILL))

    with pytest.raises(NodeDied) as caught:
        LONG.run(setting)
    thread.join()
    assert str(caught.value).startswith("node node1 was ended by SIGKILL; the last lines of its error log (")
    assert "ready for connections" in str(caught.value)
