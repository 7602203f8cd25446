"""A disk that fills in mid-round: what the user is told, and that nothing stays. A whole run on a small disk."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

from tests.support import conftests

SUITE = """\
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.workloads.mysqlslap import MySQLSlap

ONE = ClusterSpec("standalone")
LOAD = MySQLSlap("write", concurrency={clients}, queries=60_000, rows=100)


def test_claim(measure):
    default, other = measure(LOAD, on=[ONE, ONE.with_options(lock_wait_timeout=40)])
    assert default.against(other)
"""
# A redo log with holes would meet the full disk first, and that ends the server.
WITHOUT_HOLES = "local_host.COPY = local_host.COPY[:-1]"
# A mount namespace of its own: the disk ends with the last process in it, whatever becomes of the test.
ON_A_SMALL_DISK = """\
mount -t tmpfs -o size=150m dbcluster-test disk || exit 98
"$@" >output 2>&1
echo $? >status
ls -A disk >left
"""


@pytest.fixture
def small_disk(tmp_path):
    """A function that runs a suite with its data on a file system that holds a server and 20 MB more."""
    (tmp_path / "disk").mkdir()
    unshare = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]

    def on_it(*command):
        done = subprocess.run(
            [*unshare, "sh", "-c", ON_A_SMALL_DISK, "sh", *command],
            cwd=tmp_path,
            env={**os.environ, "DBCLUSTER_DATA_DIR": str(tmp_path / "disk"), "COLUMNS": "400"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"a small disk needs unshare --mount and mount -t tmpfs, as root or for users: {done.stderr}")
        return {name: (tmp_path / name).read_text() for name in ("output", "status", "left")}

    return on_it


@pytest.mark.parametrize(
    ("clients", "words"),
    [
        (20, ["mysqlslap write c20 ended with clients that failed on ", "ERROR : The table 't1' is full",
              "node1 logged: [ERROR] InnoDB: preallocating ", " failed with error 28"]),
        (1, ["cannot write ", ".sql: No space left on device; set DBCLUSTER_DATA_DIR to another directory"]),
    ],
    ids=["by the server", "by the load's own file"],
)  # fmt: skip
def test_a_disk_that_fills_in_mid_round_is_named(small_disk, tmp_path, clients, words):
    """The test fails with the words of whoever met it, without a traceback; no server and no file stays."""
    (tmp_path / "test_claim.py").write_text(SUITE.format(clients=clients))
    (tmp_path / "conftest.py").write_text(conftests.OWN_MACHINE + WITHOUT_HOLES + conftests.NO_CHARTS)
    pytest_ = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-W", "error"]
    result = small_disk(*pytest_, "--db-max-pairs=1", "--override-ini=addopts=", "test_claim.py")

    assert result["status"] == "1\n", result["output"]
    assert [word for word in words if word not in result["output"]] == [], result["output"]
    assert "Traceback" not in result["output"]
    assert result["left"] == ""
    lines = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert [line for line in lines if str(tmp_path) in " ".join(line)] == []
