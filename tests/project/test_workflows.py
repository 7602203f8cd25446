"""The workflows for GitHub: valid, safe, and their script does what it says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dbcluster.cli import init
from tests.support.command import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SCRIPT = "scripts/compare_with_base.sh"
BIN = Path(sys.executable).parent


@pytest.fixture
def workflows(tmp_path):
    """All workflows of the project, and the one that ``dbcluster init`` writes, in one directory."""
    directory = tmp_path / ".github" / "workflows"
    directory.mkdir(parents=True)
    for workflow in WORKFLOWS:
        shutil.copy(workflow, directory)
    init.write(tmp_path / "project", init.files(tmp_path / "project"))
    shutil.copy(tmp_path / "project" / init.WORKFLOW, directory / "init.yml")
    return directory


def test_workflows_have_the_shape_that_github_reads(workflows):
    """As its JSON Schema says."""
    command = [BIN / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows.glob("*.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_workflows_are_safe(workflows):
    """No text of a pull request is run, each action is pinned to a commit, and no job may do more than it needs."""
    command = [BIN / "zizmor", "--offline", "--no-progress", str(workflows)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "No findings to report" in done.stdout + done.stderr


@pytest.fixture
def checkout(tmp_path):
    """A git repository with the script, a my.cnf that its last commit changed, and a command that takes its place."""

    def git(*words):
        who = {f"GIT_{role}_{key}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
        command = ["git", "-c", "init.defaultBranch=main", *words]
        done = subprocess.run(command, cwd=place, env=os.environ | who, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    place = tmp_path / "checkout"
    (place / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / SCRIPT, place / "scripts")
    git("init", "--quiet")
    for number in (1, 2):
        (place / "my.cnf").write_text(f"[mysqld]\nsync_binlog = {number}\n")
        git("add", "my.cnf")
        git("commit", "--quiet", "--message", str(number))
    (place / ".venv" / "bin").mkdir(parents=True)

    def run(status, file="my.cnf", **environment):
        program = place / ".venv" / "bin" / "dbcluster"
        program.write_text(f'#!/bin/sh\necho "$@"\ncat "$3" "$5"\necho the sentence\nexit {status}\n')
        program.chmod(0o755)
        command = [place / SCRIPT, "HEAD~1", file, "result.md", "--seconds", "60"]
        given = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB")} | environment
        done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
        return done, git("worktree", "list").splitlines()

    run.place = place
    return run


@pytest.mark.parametrize(("status", "ends"), [(0, 0), (3, 3), (4, 0), (1, 1)])
def test_a_my_cnf_is_compared_with_that_of_another_commit(checkout, status, ends):
    """The base first. The job is red where it is worse, and not where it could not be told; the work tree is gone."""
    done, trees = checkout(status)
    lines = done.stdout.splitlines()

    assert done.returncode == ends, done.stderr
    assert lines[0].startswith("compare --cnf /")
    assert lines[0].endswith("/base/my.cnf --cnf my.cnf --seconds 60")
    assert [line for line in lines if "sync_binlog" in line] == ["sync_binlog = 1", "sync_binlog = 2"]
    assert (checkout.place / "result.md").read_text() == done.stdout
    assert len(trees) == 1


def test_what_could_not_be_told_is_a_warning_in_github(checkout, tmp_path):
    """The result is the step summary too."""
    step = tmp_path / "step.md"
    done, _ = checkout(4, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(step))

    assert done.stdout.splitlines()[-1] == "::warning file=my.cnf::the sentence"
    assert step.read_text().startswith("```\ncompare --cnf ")


def test_a_my_cnf_that_is_new_has_nothing_to_be_compared_with(checkout):
    """It is said, and the job is green."""
    (checkout.place / "new.cnf").write_text("[mysqld]\n")
    done, trees = checkout(3, "new.cnf")

    assert done.returncode == 0
    assert done.stdout == "new.cnf is new: commit HEAD~1 does not have it, so there is nothing to compare\n"
    assert len(trees) == 1
