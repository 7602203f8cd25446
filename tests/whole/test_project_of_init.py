"""The project that `dbcluster init` writes, run as it stands on real servers."""

from __future__ import annotations

import os
import subprocess
import sys

from pytest_dbcluster.cli import main
from tests.support import conftests


def test_the_project_of_init_gives_a_verdict(tmp_path):
    """What `dbcluster init` writes measures real servers as it stands, with its my.cnf."""
    project = tmp_path / "project"
    assert main.main(["init", str(project)]) == 0
    (project / "conftest.py").write_text(conftests.OWN_MACHINE + conftests.NO_CHARTS + conftests.SHORT_ROUNDS)
    words = ["-k", "inserts", "--db-max-pairs=6", "--db-seed=4", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=project,
        env={**os.environ, "DBCLUSTER_DATA_DIR": str(tmp_path / "runs")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr  # on tmpfs a flush costs nothing, and the claim is open
    assert (
        '| `candidate.lower("fsyncs_per_commit", than=standalone1)` | mysqlslap write c50 |'
        in (project / "reports" / "latest" / "summary.md").read_text()
    )
    assert "innodb_flush_log_at_trx_commit: 1 -> 2" in (project / "reports" / "latest" / "claims.jsonl").read_text()
