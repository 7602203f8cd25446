"""The tutorial, followed as a reader does: its files, its commands, and the outcomes that it promises."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dbcluster.reporting.documents.run_document import read_run
from tests.support import conftests
from tests.support.command import dbcluster

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial"
FIRST = (TUTORIAL / "first-claim.md").read_text()
FLUSH = (TUTORIAL / "galera-flush.md").read_text()
README = (TUTORIAL.parents[1] / "README.md").read_text()


# What a reader has: a package without the pages of a checkout, no calibration, and a terminal as wide as the samples.
INSTALLED = """
from pytest_dbcluster import reasons
from pytest_dbcluster.testbed import calibrations

reasons.IN_CHECKOUT = ()
calibrations.read = calibrations.Calibration
"""
TERMINAL = {"COLUMNS": "100", "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}


def section(title):
    """The text below a heading of the first page."""
    return FIRST.split(f"## {title}\n")[1].split("\n## ")[0]


def block(text, language):
    """The first block of a language."""
    return re.search(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]


def shape(line):
    """A line without what differs between two runs: figures, the bar of an interval, and the width of columns."""
    return " ".join(re.sub(r"(\d[\d.]*|\.\d+|inf)x?", "#", re.sub(r"\s(1/\d+\s|report: ).*", "", line)).split())


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The project that the tutorial makes; its rounds are those of users, because shorter ones decide a guard later."""
    made = tmp_path_factory.mktemp("tutorial") / "my_project"
    done = dbcluster("init", str(made))
    assert done.returncode == 0, done.stderr
    (made / "conftest.py").write_text(conftests.OWN_MACHINE + conftests.NO_CHARTS + INSTALLED)
    return made


@pytest.mark.parametrize(
    ("title", "code", "outcomes", "differs", "told"),
    [
        ("Ask", 0, {"holds"}, "innodb_flush_log_at_trx_commit: 1 -> 2", None),
        pytest.param(
            *("See a claim fail", 1, {"refuted"}, "innodb_flush_log_at_trx_commit: 2 -> 1", None),
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            *("See a claim without an answer", 0, {"inconclusive"}, "lock_wait_timeout: ", 3),
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_each_step_ends_as_the_tutorial_says(project, title, code, outcomes, differs, told):
    """The reader saves the file, types the command, and sees this outcome, this exit code and the lines of the sample.

    The first step is the project that `dbcluster init` writes: it measures real servers as it stands, with its my.cnf.
    Why a claim stays open, and what would decide it, depends on its rounds: the last sample counts up to there.
    """
    text = section(title)
    if saved := re.search(r"Save this as `([^`]+)`", text):
        (project / saved[1]).write_text(block(text, "python"))
    program, *words = shlex.split(block(text, "sh"))
    words += [] if saved else ["test_performance.py"]  # the other steps have written theirs beside it
    plain = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    environment = {**os.environ, **TERMINAL, "DBCLUSTER_DATA_DIR": str(project / "runs")}
    for again in ([], ["--db-resume"], ["--db-resume"]):  # on a busy machine a reader repeats an open claim
        done = subprocess.run(
            [sys.executable, "-m", program, *plain, *words, *again],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        found = {test.outcome for test in read_run(project / "reports" / "latest").tests}
        if found == outcomes or "inconclusive" not in found:
            break

    assert done.returncode == code, done.stdout + done.stderr
    assert found == outcomes
    printed = " ".join(map(shape, done.stdout.splitlines()))
    sample = list(filter(None, map(shape, block(text, "text").splitlines())))[:told]
    assert [line for line in sample if line not in printed] == [], done.stdout
    assert differs in (project / "reports" / "latest" / "claims.jsonl").read_text()


def test_the_second_page_asks_what_readme_asks():
    """`make bench` and a test of README hold the same example, which real servers answer."""
    assert block(FLUSH, "python") == block(README, "python")
