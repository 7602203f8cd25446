"""A run on a real server that is killed between two claims, and continued."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil

from pytest_dbcluster import wait
from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.documents.run_document import read_run
from tests.support import conftests
from tests.support.facts import missing
from tests.support.records import comparable

SUITE = """\
import os
import time

from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap

# With this option, one running server can switch between both flushes.
ONE = ClusterSpec("standalone", options={"innodb_log_file_buffering": "ON"})
FLUSH_2 = ONE.with_options(innodb_flush_log_at_trx_commit=2).named("own_flush_2")
MIXED = MySQLSlap("mixed", concurrency=2, queries=60, rows=200)
WRITE = MySQLSlap("write", concurrency=2, queries=60, rows=200)


def test_holds(measure):
    default, flush_2 = measure(MIXED, on=[ONE, FLUSH_2])
    assert flush_2.lower("fsyncs_per_commit", than=default)  # whatever else the machine does


def test_file(measure):
    default, flush_2 = measure(WRITE, on=[ONE, ONE.with_cnf("flush_2")])
    assert flush_2.lower("fsyncs_per_commit", than=default)


def test_next(measure):
    default, flush_2 = measure(WRITE, on=[ONE, FLUSH_2])
    while "WAIT" in os.environ:
        time.sleep(0.1)
    assert flush_2.lower("fsyncs_per_commit", than=default)
"""
RUN = [sys.executable, "-m", "pytest", "test_suite.py", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]


def run(directory, *words, **variables):
    """Begin a run; whoever begins it ends it."""
    command = ["env", *(f"{name}={value}" for name, value in variables.items()), *RUN, *words]
    return subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True)


def test_a_killed_run_on_a_real_server_is_continued(tmp_path):
    """A claim with an answer is not measured again, except for the one whose my.cnf has changed."""
    (tmp_path / "fixtures" / "mycnf").mkdir(parents=True)
    cnf = tmp_path / "fixtures" / "mycnf" / "flush_2.cnf"
    cnf.write_text("[mysqld]\ninnodb_flush_log_at_trx_commit = 2\n")
    (tmp_path / "conftest.py").write_text(conftests.OWN_MACHINE + conftests.NO_CHARTS + conftests.COUNTED_ROUNDS)
    (tmp_path / "test_suite.py").write_text(SUITE)
    latest = tmp_path / "reports" / "latest"

    def answered():
        found = len(schema.read_claims(latest, whole=False)) if latest.exists() else 0
        return [] if found == 2 else [f"{found} claims are answered"]

    with run(tmp_path, WAIT="1") as process:
        wait.until(answered, "the first two claims", seconds=300)
        servers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
    psutil.wait_procs(servers, timeout=60)
    before, _ = schema.read_claims(latest, whole=False)
    cnf.write_text("[mysqld]\ninnodb_flush_log_at_trx_commit = 2\ninnodb_io_capacity = 300\n")
    with run(tmp_path, "--db-resume") as process:
        said, _ = process.communicate(timeout=600)
    claims = {claim.test.rpartition("::")[2]: claim for claim in schema.read_claims(latest)}

    assert process.returncode == 0, said
    facts = (
        "--db-resume: 1 answer taken over, 2 claims measured",
        "1 answer no longer valid (its clusters or their my.cnf changed)",
    )
    assert missing(" ".join(said.split()), *facts) == []  # lines are wrapped
    assert comparable(claims["test_holds"]) == comparable(before)
    assert claims.keys() == {"test_holds", "test_file", "test_next"}
    assert [test.outcome for test in read_run(latest).tests] == ["holds", "holds", "holds"]
