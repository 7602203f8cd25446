"""mysqlslap: its parameters, its command lines, its report, and what happens when it or a server dies."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ConfigError, NodeDied, UnreadableOutput, WorkloadError
from pytest_dbcluster.provisioners.fake import FakeHost
from pytest_dbcluster.workload import Setting
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap, parse

REPORT = """\
Benchmark
\tRunning for engine rocksdb
\tAverage number of seconds to run all queries: 0.417 seconds
\tMinimum number of seconds to run all queries: 0.401 seconds
\tMaximum number of seconds to run all queries: 0.502 seconds
\tNumber of clients running queries: 50
\tAverage number of queries per client: 20

"""
LONG = MySQLSlap("read", concurrency=2, queries=20_000, quick_queries=20_000)


@pytest.fixture
def client(provisioner, standalone):
    """A host for the load."""
    host = provisioner.acquire(dataclasses.replace(standalone.spec, name="client"))[0]
    yield host
    provisioner.release([host])


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


def test_an_unknown_mode_lists_the_known_ones():
    """Before anything is started."""
    with pytest.raises(ConfigError) as caught:
        MySQLSlap("wriet")

    assert str(caught.value) == (
        "unknown mysqlslap mode 'wriet'; known: key, mixed, read, update, write; did you mean write?"
    )


def test_an_unknown_endpoint_lists_the_known_ones():
    """Before anything is started."""
    with pytest.raises(ConfigError) as caught:
        MySQLSlap("read", to="raeder")

    assert str(caught.value) == "unknown mysqlslap endpoint 'raeder'; known: writer, reader; did you mean reader?"


@pytest.mark.parametrize(
    ("mode", "profile", "writers", "chosen"),
    [
        ("write", "quick", 3, "reader"),
        ("mixed", "paper", 3, "reader"),
        ("update", "quick", 3, "writer"),
        ("write", "quick", 1, "writer"),
        ("mixed", "quick", 1, "writer"),
        ("read", "quick", 1, "reader"),
        ("key", "quick", 1, "reader"),
        ("read", "paper", 1, "writer"),
    ],
)
def test_what_writes_goes_where_writes_are_taken(mode, profile, writers, chosen):
    """On three nodes of which so many take writes; the published call makes its table itself, whatever its mode."""
    nodes = ["node1", "node2", "node3"]
    cluster = SimpleNamespace(nodes=nodes, writers=nodes[:writers], writer=lambda: "writer", reader=lambda: "reader")

    assert MySQLSlap(mode).endpoint(cluster, profile) == chosen
    assert MySQLSlap(mode, to="reader").endpoint(cluster, profile) == "reader"
    assert MySQLSlap(mode, to="writer").endpoint(cluster, profile) == "writer"


@pytest.mark.parametrize("name", ["concurrency", "queries", "rows", "int_columns", "char_columns"])
def test_numbers_start_at_one(name):
    """Nothing cannot be measured."""
    with pytest.raises(ConfigError) as caught:
        MySQLSlap("key", **{name: 0})

    assert str(caught.value) == f"mysqlslap {name}=0: it takes 1 or more"


@pytest.mark.parametrize("name", ["queries", "quick_queries"])
def test_every_client_needs_a_query(name):
    """Both profiles are checked; the number that is too small is the one that is shown."""
    with pytest.raises(ConfigError) as caught:
        MySQLSlap("key", concurrency=50, **{name: 40})

    assert str(caught.value) == "mysqlslap: 50 clients need as many queries or more, got 40"


def test_equal_loads_are_equal():
    """So that they share their tables; the name tells them apart in tables of results."""
    assert MySQLSlap("write") == MySQLSlap("write")
    assert hash(MySQLSlap("write")) == hash(MySQLSlap("write"))
    assert str(MySQLSlap("write", concurrency=8)) == "mysqlslap write c8"
    assert str(MySQLSlap("read", to="writer")) == "mysqlslap read c50 to the writer"


def test_quick_runs_fewer_queries_of_read():
    """Its published round lasts ten seconds; the other modes run as many as published."""
    assert MySQLSlap("read").round_queries("quick") < MySQLSlap("read").round_queries("paper") == 1000
    assert MySQLSlap("write").round_queries("quick") == 1000


def test_each_client_runs_the_same_number_of_queries():
    """A rest that does not divide is left out, and not counted as done."""
    assert MySQLSlap("key", concurrency=3, queries=100).round_queries("quick") == 99


def test_the_average_of_the_report_is_the_measured_time():
    """In seconds; the shortest and the longest iteration are kept beside."""
    found = parse(REPORT, clients=50)

    assert (found.seconds, found.least, found.most) == (0.417, 0.401, 0.502)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "mysqlslap printed no report of one benchmark in 0 lines of output: ''"),
        (REPORT + REPORT, "mysqlslap printed no report of one benchmark in 16 lines of output: "),
        (
            REPORT.replace("Average number of seconds", "Mean"),
            "mysqlslap printed no report of one benchmark in 8 lines",
        ),
        (
            REPORT.replace("queries: 50", "queries: 49"),
            "mysqlslap printed no report of 50 clients in 8 lines of output",
        ),
        (REPORT.replace("0.417", "0.000"), "mysqlslap printed no time above 0: the round was too short to be measured"),
        (REPORT.replace("0.417", "0,417"), "mysqlslap printed no report of one benchmark"),
    ],
)
def test_anything_but_one_whole_report_is_unreadable(text, words):
    """The error says what was missing and holds what was printed."""
    with pytest.raises(UnreadableOutput) as caught:
        parse(text, clients=50)

    assert str(caught.value).startswith(words)
    assert caught.value.output == text


def test_paper_is_the_published_command_line(standalone, mariadb):
    """Only where to connect and the credentials' file are ours; the password is in no argument."""
    host = FakeHost("client", answers={"*": REPORT})
    MySQLSlap("write").run(setting_of(standalone, host, mariadb, "paper"))

    command = host.commands[0]
    assert Path(command[0]).name == "mariadb-slap"
    assert [
        word
        for word in command[1:]
        if not re.match(r"--(defaults-file=|host=|port=|protocol=|plugin-dir=|skip-ssl)", word)
    ] == [
        "--auto-generate-sql",
        "--auto-generate-sql-add-autoincrement",
        "--auto-generate-sql-load-type=write",
        "--auto-generate-sql-write-number=5000",
        "--number-int-cols=10",
        "--number-char-cols=10",
        "--concurrency=50",
        "--number-of-queries=1000",
        "--iterations=10",
    ]
    assert standalone.nodes[0].password not in " ".join(command)
    assert standalone.nodes[0].password.encode() in host.files["/fake/client.cnf"]


def test_an_unreadable_print_of_the_tool_is_said(standalone, mariadb):
    """Quick takes its SQL from the tool; a tool that prints something else is not guessed at."""
    host = FakeHost("client", answers={"*--only-print": "usage: ..."})

    with pytest.raises(UnreadableOutput, match=r"^mysqlslap --only-print printed no CREATE TABLE followed by its stat"):
        MySQLSlap("write").prepare(setting_of(standalone, host, mariadb))


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
    assert str(caught.value) == "mysqlslap read c2 was ended by SIGKILL on standalone1: it said nothing"
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
