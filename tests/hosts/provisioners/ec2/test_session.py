"""A whole session of pytest on instances of a private subnet, through a jump host, which leaves its cluster running."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest

from tests.support.command import ROOT
from tests.support.ec2_machines import JUMP, with_config

SECONDS = 300
SUITE = """
from pytest_dbcluster import ClusterSpec, MySQLSlap, ReleaseName

def test_commits_without_flushes(measure):
    one = ClusterSpec("standalone", release=ReleaseName("mariadb", "10.11"))
    load = MySQLSlap("write", concurrency=4, queries=400, rows=100)
    usual, quick = measure(load, on=[one, one.with_options(innodb_flush_log_at_trx_commit=2)])
    assert quick.lower("fsyncs_per_commit", than=usual)
"""


@pytest.mark.remote
def test_a_session_goes_through_the_jump_host_and_leaves_its_cluster(machines, tmp_path, monkeypatch):
    """The jump host is in the user's own file of ssh. The printed commands connect, and end what was left."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path / "runs"))
    machines.jump()
    suite = tmp_path / "test_commits.py"
    suite.write_text(SUITE)
    command = [
        sys.executable, "-m", "pytest", str(suite), "-p", "no:cacheprovider", "--db-provisioner", "ec2",
        "--db-max-cost", "5", "--db-keep", "--db-results", str(tmp_path / "results"),
        "--db-ec2-subnet", machines.private_subnet(), "--db-ec2-jump", JUMP, *machines.options,
    ]  # fmt: skip

    def ran(*words, name, text=""):
        """A command where the stand-in's file of ssh is that of the user."""
        return subprocess.run(
            with_config(machines.user_config, tmp_path / name, words), input=text, capture_output=True, text=True,
            check=False, timeout=SECONDS, env={**os.environ, "COLUMNS": "400"}, cwd=ROOT,
        )  # fmt: skip

    done = ran(*command, name="run")
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"^  node1 +ssh -t (.*)$", done.stdout, re.MULTILINE)
    assert found, done.stdout
    asked = ran("ssh", *shlex.split(found[1]), name="ask", text="SELECT @@version;")
    ended = re.search(r"end them earlier: dbcluster (down \w+ --provisioner ec2 --region \S+)", done.stdout)

    assert "10.11." in asked.stdout, asked.stderr
    assert "1 hold" in done.stdout
    assert re.search(r"about 0\.\d\d USD spent so far; the kept instances will cost at most", done.stdout)
    assert machines.left()["instances"] == 2
    assert all(one.public_ip is None for one in machines.instances())
    assert ended, done.stdout
    down = ran(sys.executable, "-m", "pytest_dbcluster.cli.main", *ended[1].split(), name="down")
    assert down.returncode == 0, down.stderr
    assert machines.left() == {}
