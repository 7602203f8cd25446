"""Terminals: what becomes of transactions under conflicts, lost connections and a pace, and how runs end early."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from pytest_dbcluster import release as releases
from pytest_dbcluster import terminals
from pytest_dbcluster.errors import ConfigError, NodeDied, ProvisionError, Unsupported, WorkloadError
from pytest_dbcluster.node import LOAD
from pytest_dbcluster.release import Release
from pytest_dbcluster.spec import ClusterSpec, Endpoint
from pytest_dbcluster.sql import Connection, SQLError
from pytest_dbcluster.terminals import Call
from pytest_dbcluster.workload import Setting

SCHEMA = "dbcluster_terminals"
ROWS = 1000


@pytest.fixture(scope="module")
def client(provisioner):
    """A host for the load."""
    host = provisioner.acquire(ClusterSpec("standalone", name="client"))[0]
    yield host
    provisioner.release([host])


def setting_of(cluster, client, **changed):
    """What a load may use."""
    made = Setting(cluster, client, cluster.nodes[0].release, "quick", lambda line: None)
    return dataclasses.replace(made, **changed)


@pytest.fixture
def filled(client):
    """``filled(cluster)``: a setting with a table of a thousand rows; dropped at the end."""
    made = []

    def filled(cluster):
        setting = setting_of(cluster, client)
        made.append(setting.cluster.nodes[0])
        made[-1].query(f"CREATE DATABASE {SCHEMA}")
        terminals.command(
            call(setting, "oltp_read_write", script="oltp_read_write.lua"), setting, "prepare", seconds=60
        )
        assert cluster.settle(30)
        return setting

    yield filled
    for node in (one for one in made if one.running):
        node.query(f"DROP DATABASE {SCHEMA}")


def call(setting, event, *, threads=4, script="oltp.lua", size=ROWS, to=None, **options):
    """One of sysbench's scripts over all nodes."""
    own = {"tables": 1, "table_size": size, "auto_inc": False, **options}
    own |= {"script": event} if script == "oltp.lua" else {}
    where = to or terminals.endpoints(setting.cluster, "all", writes=True)
    return Call(event, script, threads, SCHEMA, where, own)


def in_the_middle(deed, *, after=0.3):
    """Do something while the load runs."""
    thread = threading.Timer(after, deed)
    thread.start()
    return thread


def test_threads_go_round_the_nodes(galera2, filled):
    """The first to the first node, the second to the next one, in every run alike."""
    setting = filled(galera2)
    for _ in range(2):
        _, reports = terminals.run(call(setting, "oltp_point_select", threads=5), setting, seconds=0.05)

        assert [one["nodes"] for one in reports] == [["node1"], ["node2"], ["node1"], ["node2"], ["node1"]]


AHEAD = """
local ffi = require("ffi")
local terminal = require("terminal")
terminal.load {
   kinds = {"nothing"},
   -- as if another thread had looked at the clock 5 ms later, and had been the first to say when the run begins
   start = function() ffi.C.optopt = math.floor((terminal.now() + 0.005) * 1e4) % 2147483648 end,
   draw = function() return 1 end,
   execute = function(t) t.con:query("DO 0") end,
}
"""


def test_all_threads_have_one_start_whoever_looks_at_the_clock_first(standalone, filled, tmp_path):
    """No round begins days before it began."""
    setting = filled(standalone)
    (tmp_path / "ahead.lua").write_text(AHEAD)
    ahead = Call("ahead", str(tmp_path / "ahead.lua"), 4, SCHEMA, terminals.endpoints(standalone, "all", writes=True))
    began = time.monotonic()
    done, reports = terminals.run(ahead, setting, seconds=0.02)
    starts = [one["begun"] for one in reports]

    assert began < min(starts) <= max(starts) < time.monotonic()
    assert max(starts) - min(starts) < 1e-3
    assert done.seconds < time.monotonic() - began


@pytest.mark.parametrize("prepared", [True, False])
def test_conflicts_end_no_run_and_the_ledger_adds_up(galera2, filled, prepared):
    """Both nodes write the same twenty rows: errors by number and node, each attempt counted once."""
    setting = filled(galera2)
    writing = dataclasses.replace(call(setting, "oltp_write_only", threads=8, size=20), prepared=prepared)
    outcome, _ = terminals.run(writing, setting, seconds=0.6)
    ledger, total = outcome.ledger, outcome.ledger.total

    assert {number for number, _ in ledger.errors} <= {1020, 1180, 1205, 1213, 1317}
    assert {node for _, node in ledger.errors} <= {"node1", "node2"}
    assert sum(total.attempts.values()) == total.good + total.failed
    assert total.tried - total.good == sum(ledger.errors.values()) > 0
    assert max(total.attempts) > 1
    assert total.aborted_seconds > 0
    assert outcome.good == total.committed == total.latencies.total == sum(outcome.by_second) > 0
    assert outcome.operations == total.tried
    galera2.check([f"{SCHEMA}.sbtest1"])
    assert galera2.nodes[0].query(f"SELECT COUNT(*) FROM {SCHEMA}.sbtest1") == [(ROWS,)]


def sent(node, deed):
    """What the load's threads execute while something is done, as the server's log has it."""
    node.query("SET GLOBAL log_output = 'TABLE'")
    node.query("TRUNCATE mysql.general_log")
    node.query("SET GLOBAL general_log = ON")
    try:
        deed()
    finally:
        node.query("SET GLOBAL general_log = OFF")
        node.query("SET GLOBAL log_output = 'FILE'")
    rows = node.query(
        f"SELECT argument FROM mysql.general_log WHERE user_host LIKE '{LOAD}%' AND command_type = 'Execute'"
    )
    return [argument for (argument,) in rows]


def test_a_retry_sends_the_same_statements(standalone, filled):
    """A transaction that waited for a row in vain starts again with the row that it was to change."""
    setting, node = filled(standalone), standalone.nodes[0]
    node.query("SET GLOBAL innodb_lock_wait_timeout = 1")
    other = Connection("other", node.endpoint)
    other.run(["SET autocommit = 0", f"SELECT COUNT(*) FROM {SCHEMA}.sbtest1 FOR UPDATE"])
    unlock = in_the_middle(other.close, after=1.2)
    outcomes = []
    try:
        writing = call(setting, "oltp_write_only", threads=1)
        said = sent(node, lambda: outcomes.append(terminals.run(writing, setting, seconds=1.4)[0]))
    finally:
        unlock.join()
        node.query("SET GLOBAL innodb_lock_wait_timeout = DEFAULT")

    assert outcomes[0].ledger.errors == {(1205, "node1"): 1}
    assert outcomes[0].ledger.total.attempts[2] == 1
    assert outcomes[0].ledger.total.latencies.percentile(1) > 1
    assert said[0] == said[2] == "BEGIN"
    assert said[1] == said[3]
    assert said[1].startswith("UPDATE")


def test_a_seed_makes_the_same_transactions(standalone, filled):
    """Two runs with one seed send the same statements in the same order, at any pace."""
    setting, node = filled(standalone), standalone.nodes[0]
    writing = call(setting, "oltp_write_only", threads=1)
    one, other = (
        sent(node, lambda rate=rate: terminals.run(writing, setting, seconds=0.2, rate=rate, seed=7))
        for rate in (None, 300)
    )
    shorter = min(len(one), len(other))

    assert shorter > 20
    assert len(set(one[:shorter])) > shorter / 3
    assert one[:shorter] == other[:shorter]


def test_each_block_has_inputs_of_its_own(standalone, filled):
    """All variants of a block get the same ones; no draw of arrivals and rows is measured over and over."""
    setting, node = filled(standalone), standalone.nodes[0]
    writing = call(setting, "oltp_write_only", threads=1)
    third, again, fourth = (
        sent(
            node, lambda number=number: terminals.run(writing, dataclasses.replace(setting, block=number), seconds=0.1)
        )
        for number in (3, 3, 4)
    )
    shorter = min(len(third), len(again), len(fourth))

    assert shorter > 10
    assert third[:shorter] == again[:shorter] != fourth[:shorter]


def test_an_open_loop_counts_from_the_intended_start(standalone, filled):
    """A server that stands still makes every transaction slow that was to start meanwhile, not one a thread."""
    setting, pid = filled(standalone), standalone.nodes[0].process.pid

    def stall():
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.4)
        os.kill(pid, signal.SIGCONT)

    stalled = in_the_middle(stall)
    outcome, _ = terminals.run(call(setting, "oltp_point_select", threads=2), setting, seconds=1, rate=300)
    stalled.join()
    latencies = outcome.ledger.total.latencies

    assert outcome.rate == 300
    assert outcome.good == outcome.offered == latencies.total
    assert latencies.percentile(1) > 0.3
    assert latencies.percentile(0.9) > 0.1  # the stall is 40 % of the time


def test_an_open_loop_that_cannot_be_kept_ends(standalone, filled):
    """Starts that are due take place for as long again as the run lasts, the rest do not."""
    setting = filled(standalone)
    outcome, _ = terminals.run(call(setting, "oltp_read_write", threads=2), setting, seconds=0.3, rate=20_000)

    assert outcome.good < outcome.offered
    assert outcome.offered == pytest.approx(6000, rel=0.1)
    assert outcome.seconds < 5


def kill_connections(node, times=8):
    """End every connection of the load, again and again; over a connection of our own, the run uses the node's."""
    with contextlib.closing(Connection("killer", node.endpoint)) as own:
        for _ in range(times):
            time.sleep(0.03)
            for (number,) in own.query(f"SELECT id FROM information_schema.processlist WHERE user = '{LOAD}'"):
                with contextlib.suppress(SQLError):  # it has ended by itself
                    own.query(f"KILL {number}")


def drop_table(node):
    """Drop the table of the load, over a connection of our own."""
    with contextlib.closing(Connection("dropper", node.endpoint)) as own:
        own.query(f"DROP TABLE {SCHEMA}.sbtest1")


@pytest.mark.parametrize("event", ["oltp_update_index", "oltp_read_only"])
def test_a_lost_connection_ends_no_run(standalone, filled, event):
    """Its thread connects again; only what may have been committed is unknown, everything else is tried again."""
    setting, node = filled(standalone), standalone.nodes[0]
    killer = in_the_middle(lambda: kill_connections(node), after=0.1)
    outcome, _ = terminals.run(call(setting, event), setting, seconds=0.6)
    killer.join()
    total, lost = outcome.ledger.total, sum(outcome.ledger.errors.values())

    assert {number for number, _ in outcome.ledger.errors} <= {1317, 1927, 2006, 2013}
    assert lost > 0
    assert total.unknown == (lost if event == "oltp_update_index" else 0)
    assert total.tried - total.good == lost
    assert sum(total.attempts.values()) == total.good + total.unknown + total.failed


def test_what_was_acknowledged_is_there_after_a_loss(standalone, filled):
    """Every insert that the load counts as committed is in the table, and no more besides than the unknown ones."""
    setting, node = filled(standalone), standalone.nodes[0]
    killer = in_the_middle(lambda: kill_connections(node), after=0.1)
    outcome, _ = terminals.run(call(setting, "oltp_insert"), setting, seconds=0.6)
    killer.join()
    more = node.query(f"SELECT COUNT(*) FROM {SCHEMA}.sbtest1")[0][0] - ROWS
    total = outcome.ledger.total

    assert total.unknown > 0
    assert total.committed <= more <= total.committed + total.unknown


def test_a_run_can_outlive_a_node(bring, filled):
    """Its reports are there although nobody answers any more; without being asked to, it says which node has died."""
    cluster = bring("standalone")
    setting = filled(cluster)
    in_the_middle(lambda: os.kill(cluster.nodes[0].process.pid, signal.SIGKILL), after=0.3)
    outcome, reports = terminals.run(call(setting, "oltp_update_index"), setting, seconds=0.8, outlive=True)

    assert len(reports) == 4
    assert outcome.good > 0
    assert outcome.ledger.total.unknown <= 4
    with pytest.raises(NodeDied, match="node node1 was ended by SIGKILL"):
        terminals.run(call(setting, "oltp_update_index"), setting, seconds=0.1)


def test_what_no_retry_cures_ends_the_run_in_the_servers_words(galera2, filled):
    """A table that vanishes: the error with its number, and the node by its name."""
    setting = filled(galera2)
    dropped = in_the_middle(lambda: drop_table(galera2.nodes[0]))
    with pytest.raises(WorkloadError) as caught:
        terminals.run(call(setting, "oltp_point_select"), setting, seconds=3)
    dropped.join()

    first, *rest = str(caught.value).splitlines()
    assert first.startswith("oltp_point_select ended with 1 on galera2: ")
    assert re.search(rf"error 1146 on node[12]: Table '{SCHEMA}.sbtest1' doesn't exist", str(caught.value))
    assert len(rest) < 10
    with pytest.raises(WorkloadError, match=rf"1146 \"Table '{SCHEMA}.sbtest1' doesn't exist\""):
        terminals.run(call(setting, "oltp_point_select"), setting, seconds=1)


def test_a_preparation_that_lost_a_thread_has_failed(standalone, filled):
    """The tool ends with 0 then, and half of the tables are there."""
    setting = filled(standalone)
    again = call(setting, "oltp_read_write", script="oltp_read_write.lua", tables=2)

    with pytest.raises(
        WorkloadError, match=r"^oltp_read_write prepare lost threads on (.|\n)*Table 'sbtest1' already exists"
    ):
        terminals.command(again, setting, "prepare", seconds=60)


def test_a_report_of_an_earlier_run_is_not_taken(standalone, filled, tmp_path):
    """Each report says of which run it is."""
    setting = filled(standalone)
    terminals.run(call(setting, "oltp_point_select"), setting, seconds=0.05)

    with pytest.raises(WorkloadError, match=r"report-0\.json is of an earlier run"):
        terminals._report(call(setting, "x"), setting, f"{setting.client.directory}/reports/report-0.json", "other")
    with pytest.raises(WorkloadError, match="ended without a report of one of its threads"):
        terminals._report(call(setting, "x"), setting, f"{setting.client.directory}/reports/report-9.json", "other")


def test_passwords_are_not_on_the_command_line(standalone, filled):
    """They are in a file that nobody else can read."""
    setting = filled(standalone)
    seen = []

    def look():
        mine = [one for one in psutil.Process().children() if "oltp.lua" in str(one.cmdline())]
        seen.extend(" ".join(one.cmdline()) for one in mine)

    looked = in_the_middle(look)
    terminals.run(call(setting, "oltp_point_select"), setting, seconds=0.8)
    looked.join()

    assert len(seen) == 1
    assert standalone.nodes[0].password not in seen[0]
    assert Path(f"{setting.client.directory}/sysbench.cnf").stat().st_mode & 0o077 == 0


def report(number, begun, ended, **fields):
    """What a thread leaves, one type of transaction."""
    entry = {"attempts": [[1, 5], [3, 1]], "committed": 5, "rolled_back": 0, "failed": 1, "unknown": 0}
    entry |= {"aborted_seconds": 0.5, "latencies": [[640, 5]]}
    own = {"id": number, "begun": begun, "ended": ended, "cpu": 0.5, "process_cpu": 1.5 + number, "lost": 0}
    return {**own, "offered": 6, "by_second": [4, 1], "errors": [(1213, "node1", 3)], "kinds": {"pay": entry}, **fields}


def test_reports_of_threads_add_up():
    """Time runs from the first start to the last end; the busiest thread is told, and the CPU of the whole process."""
    outcome = terminals.outcome([report(0, 10.0, 12.0), report(1, 10.5, 12.5, cpu=1.0, by_second=[5])], 4.0)

    assert outcome.seconds == 2.5
    assert (outcome.operations, outcome.good, outcome.commits, outcome.offered) == (16, 10, 10, 12)
    assert outcome.by_second == (9, 1)
    assert outcome.ledger.errors == {(1213, "node1"): 6}
    assert outcome.ledger.entries["pay"].attempts == {1: 10, 3: 2}
    assert outcome.ledger.entries["pay"].latencies.counts == {640: 10}
    assert outcome.ledger.entries["pay"].aborted_seconds == 1.0
    assert (outcome.client_seconds, outcome.busiest, outcome.rate) == (1.5, 0.5, 4.0)


def test_more_threads_than_connections_are_refused(galera2, filled):
    """Which node, how many it takes, and what to set; each node has its share of the threads."""
    setting = filled(galera2)
    with pytest.raises(ConfigError) as caught:
        terminals.run(call(setting, "oltp_point_select", threads=400), setting, seconds=0.1)

    said = re.fullmatch(
        r"oltp_point_select: 400 threads are 200 connections to node1, which takes 151 at once, (\d+) of them in use: "
        r"set max_connections=(\d+) or more there, or take fewer threads",
        str(caught.value),
    )
    assert int(said[2]) == 200 + int(said[1])


ENDS = [Endpoint("a", 1, "u", "p"), Endpoint("a", 2, "u", "p"), Endpoint("b", 1, "u", "p"), Endpoint("b", 3, "u", "p")]


@pytest.mark.parametrize(
    ("ends", "hosts", "ports"), [(ENDS[:1], "a", "1"), (ENDS[:2], "a", "1,2"), ([ENDS[0], ENDS[2]], "a,b", "1")]
)
def test_sysbench_connects_to_each_port_of_each_host(ends, hosts, ports):
    """Nodes of one machine, or one port of many machines."""
    found = terminals._addresses(Call("x", "oltp.lua", 1, SCHEMA, ends))

    assert found == {"mysql-host": hosts, "mysql-port": ports}


def test_endpoints_that_sysbench_cannot_be_told_are_refused():
    """It would connect to places that nobody named."""
    with pytest.raises(Unsupported, match="several hosts at one port or several ports of one, not a:1"):
        terminals._addresses(Call("x", "oltp.lua", 1, SCHEMA, ENDS))


def cluster_of(nodes, writers, proxy):
    """A cluster as far as endpoints are concerned."""
    made = [SimpleNamespace(endpoint=Endpoint("h", number, "admin", "p", tls=True)) for number in range(nodes)]
    return SimpleNamespace(
        nodes=made, writers=made[:writers], proxy=proxy, writer=lambda: "writer", reader=lambda: "reader"
    )


@pytest.mark.parametrize(
    ("to", "writes", "writers", "proxy", "chosen"),
    [
        ("all", True, 3, None, [0, 1, 2]),
        ("all", True, 1, None, [0]),
        ("all", False, 1, "proxy", [0, 1, 2]),
        (None, True, 3, None, [0, 1, 2]),
        (None, False, 1, None, [0, 1, 2]),
        (None, True, 1, "proxy", ["writer"]),
        (None, True, 3, "proxy", ["reader"]),
        (None, False, 1, "proxy", ["reader"]),
        ("writer", False, 3, None, ["writer"]),
        ("reader", True, 3, None, ["reader"]),
    ],
)
def test_where_threads_connect(to, writes, writers, proxy, chosen):
    """What writes goes where writes are taken; a proxy is used when nothing else is said."""
    found = terminals.endpoints(cluster_of(3, writers, proxy), to, writes=writes)

    assert [getattr(one, "port", one) for one in found] == chosen
    assert {getattr(one, "user", LOAD) for one in found} == {LOAD}


@pytest.mark.parametrize(
    ("says", "scripts", "words"),
    [
        ("sysbench 0.4.12", True, "says 'sysbench 0.4.12', and loads need sysbench 1.0 or later; `dbcluster fetch"),
        ("1.1.0-dev", False, r"came without its scripts \(share/sysbench\)"),
    ],
)
def test_an_old_or_bare_sysbench_is_refused(says, scripts, words, standalone, client, tmp_path, monkeypatch):
    """Its own --version decides."""
    program = tmp_path / "sysbench"
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    found = Release("sysbench", "sysbench", "1", tmp_path, scripts=tmp_path if scripts else None, source="PATH")
    monkeypatch.setattr(releases, "find", lambda name, **_: found)

    with pytest.raises(Unsupported, match=words):
        terminals.sysbench(setting_of(standalone, client))


def test_a_missing_sysbench_is_said_with_the_ways_out(standalone, client, tmp_path, monkeypatch):
    """Nothing in the cache, no apt, none on PATH."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(
        (Unsupported, ProvisionError), match=r"sysbench cannot be fetched: .*Ways out: install sysbench"
    ):
        terminals.sysbench(setting_of(standalone, client))
