"""A run with a history on a real server: its anchor is measured alone."""

from __future__ import annotations

import subprocess
import sys

from pytest_dbcluster.reporting.history import history_file
from tests.support import conftests

SUITE = """\
from pytest_dbcluster import ClusterSpec, MySQLSlap

# With this option, one running server can switch between both flushes.
ONE = ClusterSpec("standalone", options={"innodb_log_file_buffering": "ON"})
WRITE = MySQLSlap("write", concurrency=2, queries=60, rows=200)


def test_flush_2_saves_fsyncs(measure):
    default, flush_2 = measure(WRITE, on=[ONE, ONE.with_options(innodb_flush_log_at_trx_commit=2).named("flush_2")])
    assert flush_2.lower("fsyncs_per_commit", than=default)
"""
# Instead of the anchor, the servers that run when it would be measured, and their number before.
COUNTED = """
import psutil

from pytest_dbcluster.testbed import anchor
from pytest_dbcluster.testbed.pool import Pool


def servers():
    names = [process.name() for process in psutil.Process().children(recursive=True)]
    return sum("mariadbd" in name for name in names)


def closed(self):
    most.append(servers())
    close(self)


most, close, Pool.close = [], Pool.close, closed
anchor.measure = lambda provisioner, images, progress: 1000.0 * any(most) + servers()
"""


def test_the_anchor_is_measured_when_the_servers_of_the_run_have_stopped(tmp_path):
    """A server that takes CPU time while it waits would slow the anchor too, and so hide itself."""
    (tmp_path / "conftest.py").write_text(
        conftests.OWN_MACHINE + conftests.NO_CHARTS + conftests.COUNTED_ROUNDS + COUNTED
    )
    (tmp_path / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "test_suite.py", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    done = subprocess.run(
        [*command, "--db-history=history.jsonl"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    (entry,) = history_file.read(tmp_path / "history.jsonl").entries

    assert done.returncode == 0, done.stdout + done.stderr
    assert entry.anchor == 1000.0  # servers before, and none now
