"""A whole run as a user starts it: pytest, a real server, mysqlslap, verdicts, and nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import psutil
import pytest

from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.documents.run_document import read_run
from tests.support import conftests
from tests.support.facts import missing

CLUSTERS = """\
import pytest
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap

ONE = ClusterSpec("standalone")
# Each commit waits for others that do not come: a difference that takes no CPU time and is larger than any noise.
EAGER = ONE.with_options(log_bin="binlog", innodb_flush_log_at_trx_commit=2).named("eager")
PATIENT = EAGER.with_options(binlog_commit_wait_count=1000, binlog_commit_wait_usec=8000).named("patient")
IO = ONE.with_options(innodb_io_capacity=300)
READ = MySQLSlap("read", concurrency=2, queries=60, rows=500)
WRITE = MySQLSlap("write", concurrency=2, queries=30, rows=20)
"""
# Each of them ends with an answer after few pairs.
DECIDED = """

def test_holds(measure):
    patient, eager = measure(WRITE, on=[PATIENT, EAGER])
    assert eager.beats(patient)


def test_cause(measure):
    default, flush_2 = measure(WRITE, on=[ONE, ONE.with_cnf("flush_2")])
    assert flush_2.lower("fsyncs_per_commit", than=default)


def test_fails(measure):
    patient, eager = measure(WRITE, on=[PATIENT, EAGER])
    assert patient.beats(eager)


def test_lower_cannot_be_per_commit(measure):
    default, io = measure(READ, on=[ONE, IO])
    assert io.lower("fsyncs_per_commit", than=default)


def test_topology(measure):
    measure(READ, on=[ClusterSpec("galara", nodes=3), ONE])


def test_option(measure):
    measure(READ, on=[ONE.with_options(innodb_flush_log_at_trx_comit=2), ONE])


def test_release(measure):
    measure(READ, on=[ONE.on_release(ReleaseName("mariadb", "11.99")), ONE])


def test_fragment(measure):
    measure(READ, on=[ONE.with_cnf("flush2"), ONE])


def test_not_a_list(measure):
    measure(READ, on=ONE)


def test_one_load_by_name(measure):
    measure({"read": READ}, on=[ONE, IO])


def test_tail(measure):
    default, io = measure(READ, on=[ONE, IO])
    assert io.beats(default, metric="p95")


def test_curve(measure):
    measure.sweep(WRITE, on=[ONE, IO], threads=(1, 2)).draw(1)


def test_promise(measure):
    measure(READ, on=[ONE, ClusterSpec("galera", nodes=2)])
"""
# Each of them draws all pairs that it may.
UNDECIDED = """

def test_open(measure):
    default, io = measure(READ, on=[ONE, IO])
    assert io.beats(default, by=0.001)


def test_loads(measure):
    few, many = measure({"few": READ, "many": MySQLSlap("read", concurrency=8, queries=64, rows=500)}, on=[ONE])
    many.against(few)


def test_promise_on_purpose(measure):
    one, galera = measure(READ, on=[ONE, ClusterSpec("galera", nodes=2)], across_durability=True, instances=1)
    galera.against(one)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Where the suite lies, with a my.cnf under every cluster."""
    place = tmp_path_factory.mktemp("suite")
    (place / "fixtures" / "mycnf").mkdir(parents=True)
    (place / "fixtures" / "mycnf" / "flush_2.cnf").write_text("[mysqld]\ninnodb_flush_log_at_trx_commit = 2\n")
    (place / "test_suite.py").write_text(CLUSTERS + DECIDED)
    (place / "test_undecided.py").write_text(CLUSTERS + UNDECIDED)
    (place / "site.cnf").write_text("!include /etc/host.cnf\n[mysqld]\ninnodb_io_capacity = 250\n")
    (place / "old" / "etc").mkdir(parents=True)
    (place / "old" / "etc" / "host.cnf").write_text("[mysqld]\nport = 3306\nskip-networking\nlock_wait_timeout = 55\n")
    (place / "pytest.ini").write_text("[pytest]\n")
    (place / "conftest.py").write_text(conftests.OWN_MACHINE + conftests.NO_CHARTS + conftests.COUNTED_ROUNDS)
    return place


def run(place, module, most_pairs):
    """A run of one module of the suite in which a claim draws so many pairs at most."""
    words = ["-W", "error", "-vv", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", module]
    options = [f"--db-max-pairs={most_pairs}", "--db-seed=4", "--db-cnf=site.cnf", "--db-cnf-root=old"]
    options += [f"--db-results=reports/{most_pairs}", f"--db-trace={most_pairs}.json"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words, *options],
        cwd=place,
        env={**os.environ, "DBCLUSTER_DATA_DIR": str(place / "runs"), "COLUMNS": "400"},  # no line of ours is wrapped
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def result(place):
    """The run of the claims that are decided, once for all tests."""
    return run(place, "test_suite.py", 80)


@pytest.fixture(scope="module")
def undecided(place):
    """The run of the others, which end when they have drawn all pairs."""
    return run(place, "test_undecided.py", 4)


def section(result, test):
    """What the run printed about one failed test."""
    _, _, after = result.stdout.partition(f"_ {test} _")
    return after.partition("\n")[2].partition("\n___")[0].partition("\n===")[0]


def test_outcomes_are_those_of_the_claims(result, undecided):
    """Passed, failed and inconclusive; every piece of bad input is a failure of its own test alone."""
    assert result.returncode == 1, result.stdout + result.stderr
    assert "10 failed, 3 passed" in result.stdout
    assert undecided.returncode == 0, undecided.stdout + undecided.stderr
    assert "2 passed, 1 inconclusive" in undecided.stdout


def test_a_failed_claim_shows_what_was_measured(result):
    """Ratio with interval, noise, error, seed, durability and the variables that differ."""
    said = section(result, "test_fails")

    assert said.startswith("REFUTED: patient is not faster than eager; measured ")
    assert "seed 4" in said
    assert ", Hodges-Lehmann, sequential 99.9 % interval" in said
    assert "durability: patient flush=2, sync_binlog=0, one server" in said
    assert "binlog_commit_wait_count: 0 -> 1000" in said


@pytest.mark.parametrize(
    ("test", "words"),
    [
        (
            "test_lower_cannot_be_per_commit",
            "counter 'fsyncs_per_commit': mysqlslap read c2 commits nothing, so there is no value per commit",
        ),
        ("test_topology", "unknown topology 'galara'; known: "),
        (
            "test_option",
            "unknown option 'innodb_flush_log_at_trx_comit' of mariadb:10.11; "
            "did you mean innodb_flush_log_at_trx_commit?",
        ),
        ("test_release", "unknown release mariadb:11.99; known: "),
        ("test_fragment", "there is no "),
        ("test_promise", "standalone1 and galera2 differ in durability, and the test's options did not set"),
        (
            "test_one_load_by_name",
            "measure({name: workload, ...}, on=[spec, ...]) needs two or more workloads, got 1: write measure(workload",
        ),
        (
            "test_tail",
            "metric 'p95' of mysqlslap read c2: in a closed loop a stalled server gets no operations, ",
        ),
        ("test_not_a_list", "measure(workload, on=[...]) accepts a list of ClusterSpec; got ClusterSpec(topology="),
    ],
)
def test_bad_input_is_one_sentence(result, test, words):
    """The test that gave it fails with that, without a traceback."""
    assert section(result, test).startswith(words)
    assert "Traceback" not in section(result, test)


def test_what_lay_under_every_cluster_is_named_where_it_lost(result):
    """The spec's own option wins over --db-cnf, and the line that lost is printed."""
    said = " ".join(result.stdout.split())
    assert "innodb_io_capacity_300: innodb_io_capacity = 300 overrides 250 of --db-cnf" in said


def test_what_concerns_another_host_is_said_once(result, place):
    """The file of --db-cnf includes one below --db-cnf-root; its port and skip-networking reach no server."""
    line = "left out 2 lines of site.cnf that concern the host it came from: port (old/etc/host.cnf:2), "

    assert " ".join(result.stdout.split()).count(line) == 1  # a long sentence takes several lines


def test_a_curve_of_real_servers_is_kept(result, place):
    """Drawn and not claimed, with what the load generator used in the files of the claims."""
    assert "curve: mysqlslap write, operations / s, median (95 % interval)" in result.stdout
    [kept] = (place / "reports" / "80" / "curves").glob("*.csv")
    rows = [line.split(",")[:2] for line in kept.read_text().splitlines()]

    assert rows == [
        ["concurrency", "variant"], ["1", "standalone1"], ["1", "innodb_io_capacity_300"], ["2", "standalone1"],
        ["2", "innodb_io_capacity_300"],
    ]  # fmt: skip
    assert "load generator: " in (place / "reports" / "80" / "claims.jsonl").read_text()


def test_loads_by_name_are_compared(undecided, place):
    """On one cluster, under the names that the test gave them."""
    assert "`many against few` | mysqlslap read c2 and" in (place / "reports" / "4" / "summary.md").read_text()


def test_every_claim_is_in_the_results(result, place):
    """Whatever became of it."""
    summary = (place / "reports" / "80" / "summary.md").read_text()

    assert "| `eager.beats(patient)` | mysqlslap write c2 |" in summary
    assert "| `patient.beats(eager)` | mysqlslap write c2 |" in summary
    assert '| `flush_2.lower("fsyncs_per_commit", than=standalone1)` | mysqlslap write c2 |' in summary


def test_every_phase_and_round_is_in_the_trace(result, place):
    """On the row of its cluster or variant. The rounds of the claims are among them, with their measured seconds."""
    events = json.loads((place / "80.json").read_text())
    rows = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    found = {(one["name"], rows[one["tid"]]) for one in events if one["ph"] == "X"}
    measured = {round(one["args"]["measured"], 4) for one in events if one["name"] == "round" and one["ph"] == "X"}
    claims = schema.read_claims(place / "reports" / "80")
    of_claims = {round(done.seconds, 4) for claim in claims for done in schema.claim_rounds(claim)}

    of_cluster = {"start", "prepare data", "form", "wait until ready", "load", "check", "close"}
    assert {(name, "cluster standalone1") for name in of_cluster} <= found
    of_round = {"warm-up", "round", "switch", "reset", "read counters", "workload", "drain"}
    assert {(name, "eager") for name in of_round} <= found
    assert {(name, "run") for name in ("start", "evidence", "check", "chart", "page")} <= found
    assert of_claims
    assert of_claims <= measured


def test_the_last_lines_say_where_the_time_went(result, place):
    """``run.json`` has the same groups for the page."""
    [line] = [line for line in result.stdout.splitlines() if line.startswith("where the time went: ")]
    spent = read_run(place / "reports" / "80").time_spent

    assert {"rounds", "overhead of rounds", "warm-ups", "starts", "data", "stops"} <= spent.keys()
    assert min(spent.values()) >= 0
    assert missing(line, "rounds ", "starts ", "warm-ups ") == []


def test_nothing_is_left(result, undecided, place):
    """No directory of the run, and no server."""
    assert list((place / "runs").glob("*")) == []
    lines = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert [line for line in lines if str(place) in " ".join(line)] == []
