"""mysqlslap: its parameters, its command lines and its report."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_dbcluster.errors import ConfigError, UnreadableOutput
from pytest_dbcluster.hosts.provisioners.fake import FakeHost
from pytest_dbcluster.workloads.mysqlslap import WRITING, MySQLSlap, parse
from pytest_dbcluster.workloads.workload import Setting
from tests.support.facts import missing

REPORT = """\
Benchmark
\tRunning for engine rocksdb
\tAverage number of seconds to run all queries: 0.417 seconds
\tMinimum number of seconds to run all queries: 0.401 seconds
\tMaximum number of seconds to run all queries: 0.502 seconds
\tNumber of clients running queries: 50
\tAverage number of queries per client: 20

"""


def setting_of(cluster, client, release, profile="quick"):
    """What a load may use."""
    return Setting(cluster, client, release, profile, lambda line: None)


def test_an_unknown_mode_lists_the_known_ones():
    """Before anything is started."""
    with pytest.raises(ConfigError) as caught:
        MySQLSlap("wriet")

    known = "known: key, mixed, read, update, write;"
    assert missing(caught.value, "unknown mysqlslap mode 'wriet'", known, "did you mean write?") == []


def test_an_unknown_endpoint_lists_the_known_ones():
    """Before anything is started."""
    with pytest.raises(ConfigError) as caught:
        MySQLSlap("read", to="raeder")

    facts = ("unknown mysqlslap endpoint 'raeder'", "known: writer, reader;", "did you mean reader?")
    assert missing(caught.value, *facts) == []


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


@pytest.mark.parametrize(("mode", "profile"), [("write", "quick"), ("update", "paper"), ("read", "paper")])
def test_what_writes_is_refused_at_a_replica(replicated, mode, profile):
    """In paper every mode writes; without a place none is sent there."""
    own = "" if mode in WRITING else ", which makes its table itself,"
    with pytest.raises(ConfigError) as caught:
        MySQLSlap(mode, to="reader").prepare(setting_of(replicated, None, None, profile))
    for fact in (
        f"mysqlslap {mode} c50 to the reader{own} ",
        "node2 of async_replication3",
        "only node1",
        'to="writer"',
    ):
        assert fact in str(caught.value)
    MySQLSlap(mode).prepare(setting_of(replicated, None, None, "paper"))


@pytest.mark.parametrize("name", ["concurrency", "queries", "rows", "int_columns", "char_columns"])
def test_numbers_start_at_one(name):
    """Nothing cannot be measured."""
    with pytest.raises(ConfigError) as caught:
        MySQLSlap("key", **{name: 0})

    assert missing(caught.value, f"mysqlslap {name}=0: ", "accepts 1 or more") == []


@pytest.mark.parametrize("name", ["queries", "quick_queries"])
def test_every_client_needs_a_query(name):
    """Both profiles are checked; the number that is too small is the one that is shown."""
    with pytest.raises(ConfigError) as caught:
        MySQLSlap("key", concurrency=50, **{name: 40})

    assert missing(caught.value, "mysqlslap: ", "50 clients", "at least one query each", "40 queries") == []


def test_equal_loads_are_equal():
    """So that they share their tables; the name tells them apart in tables of results."""
    assert MySQLSlap("write") == MySQLSlap("write")
    assert hash(MySQLSlap("write")) == hash(MySQLSlap("write"))
    assert str(MySQLSlap("write", concurrency=8)) == "mysqlslap write c8"
    assert str(MySQLSlap("read", to="writer")) == "mysqlslap read c50 to the writer"
    assert MySQLSlap("read", rows=100).data_text == "1 table of 99 rows"


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


@pytest.mark.parametrize(("printed", "step"), [("0.417", 0.001), ("0.4172", 0.0001), ("12", 1.0)])
def test_a_time_is_as_exact_as_its_last_digit(printed, step):
    """The tool prints milliseconds; a release that prints more digits is believed."""
    assert parse(REPORT.replace("0.417", printed), clients=50).resolution == pytest.approx(step)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "mysqlslap printed no report of one benchmark; lines of its output: 0, with the end ''"),
        (REPORT + REPORT, "mysqlslap printed no report of one benchmark; lines of its output: 16, with the end "),
        (
            REPORT.replace("Average number of seconds", "Mean"),
            "mysqlslap printed no report of one benchmark; lines of its output: 8",
        ),
        (
            REPORT.replace("queries: 50", "queries: 49"),
            "mysqlslap printed no report of 50 clients; lines of its output: 8",
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
