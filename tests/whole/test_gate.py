"""The example workflow's step, run as it is written, finds a made-up regression of a my.cnf."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.command import ROOT, alone, git_in

WORKFLOW = ROOT / ".github" / "workflows" / "compare-example.yml"
CNF = "fixtures/mycnf/flush_2.cnf"
# The workflow gives the comparison five minutes and two workloads. It ends as soon as its answer is known. One client
# waits for every flush; 50 share them, and on a fast disk they lose nothing.
SHORTER = "--seconds 120 --workload mysqlslap:write --threads 1"


@pytest.fixture
def git(tmp_path):
    """Call git in a repository that has the script and, in the place of its own, the command of this installation."""
    place = tmp_path / "checkout"
    call = git_in(place)
    (place / "scripts").mkdir(parents=True)
    (place / CNF).parent.mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "compare_with_base.sh", place / "scripts")
    alone(place / ".venv" / "bin")
    call("init", "--quiet")
    call.place = place
    return call


def commit(git, flush):
    """Commit the my.cnf with this value; return the commit."""
    (git.place / CNF).write_text(f"[mysqld]\ninnodb_flush_log_at_trx_commit = {flush}\n")
    git("add", CNF)
    git("commit", "--quiet", "--message", f"flush {flush}")
    return git("rev-parse", "HEAD")


def step():
    """The command of the step that compares, and the file that the workflow compares."""
    text = WORKFLOW.read_text()
    assert f"  CNF: {CNF}\n" in text
    (command,) = re.findall(r"^        run: (scripts/compare_with_base\.sh .*)$", text, re.MULTILINE)
    return command


def test_a_flush_at_each_commit_is_found_by_the_gate(git, tmp_path):
    """The base flushes once a second. The job is red, and the step summary has the sentence."""
    base = commit(git, 2)
    commit(git, 1)
    summary = tmp_path / "summary.md"
    given = {"BASE": base, "CNF": CNF, "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{step()} {SHORTER}"],
        cwd=git.place,
        env=os.environ | given,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout.splitlines()
    if fast := [line for line in said if "an fsync takes" in line]:
        pytest.skip(f"a flush costs nothing here: {fast[0]}")

    assert done.returncode == 3, done.stdout + done.stderr
    assert said[-1] == "checkout_flush_2 is worse than base_flush_2: mysqlslap write c1"
    assert said[-2] == f"report: {git.place}/reports/compare/index.html"
    assert (git.place / "comparison.md").read_text() == done.stdout
    assert said[-1] in summary.read_text()
    assert Path(git.place / "reports" / "compare" / "index.html").exists()
