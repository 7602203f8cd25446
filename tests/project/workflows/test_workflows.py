"""The workflows for GitHub: valid, safe, and their script does what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dbcluster.cli import init
from pytest_dbcluster.system import cache
from tests.support.command import ROOT, git_in
from tests.support.facts import missing
from tests.support.workflows import read

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SCRIPT = "scripts/compare_with_base.sh"
BIN = Path(sys.executable).parent
ACTIONLINT = "v1.7.12"


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


def test_no_workflow_runs_a_pull_request_with_the_rights_of_the_repository(workflows):
    """The only one with such rights is started by another workflow, checks nothing out, and uses no action."""
    every = {path.name: read(path) for path in workflows.glob("*.yml")}
    privileged = [name for name, one in every.items() if {"pull_request_target", "workflow_run"} & set(one["on"])]

    assert privileged == ["comment-example.yml"]
    assert "pull_request_target" not in every["comment-example.yml"]["on"]
    steps = [step for job in every["comment-example.yml"]["jobs"].values() for step in job["steps"]]
    assert [step for step in steps if "uses" in step] == []


def actionlint():
    """The program actionlint of this exact version, built by Go from the module proxy; skips where there is no Go."""
    bin_directory = cache.root() / "tools" / f"actionlint-{ACTIONLINT}"
    program = bin_directory / "actionlint"
    if not program.exists():
        if shutil.which("go") is None:
            pytest.skip("no Go on PATH, which builds actionlint: install it (golang-go)")
        # A check of a second is not worth the time of the compiler's optimizations.
        fast = ["-gcflags=all=-N -l -dwarf=false", "-ldflags=-s -w"]
        command = ["go", "install", *fast, f"github.com/rhysd/actionlint/cmd/actionlint@{ACTIONLINT}"]
        built = {"GOBIN": str(bin_directory), "GOFLAGS": "-modcacherw", "CGO_ENABLED": "0"}
        done = subprocess.run(command, env=os.environ | built, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"Go could not build actionlint {ACTIONLINT}: {done.stderr.strip().splitlines()[-1]}")
    return program


def test_workflows_say_nothing_that_github_refuses(workflows):
    """Expressions, contexts, job dependencies and the syntax of shell scripts, as actionlint knows them."""
    command = [actionlint(), "-no-color", "-shellcheck=", "-pyflakes=", *sorted(workflows.glob("*.yml"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_workflow_is_found(workflows):
    """So the check above looks at something."""
    wrong = workflows / "gate-example.yml"
    wrong.write_text(wrong.read_text().replace("env.XDG_CACHE_HOME", "environment.XDG_CACHE_HOME"))
    done = subprocess.run([actionlint(), "-no-color", wrong], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert 'undefined variable "environment"' in done.stdout


@pytest.fixture
def checkout(tmp_path):
    """A git repository with the script, a my.cnf that its last commit changed, and a command that takes its place."""
    place = tmp_path / "checkout"
    git = git_in(place)
    (place / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / SCRIPT, place / "scripts")
    git("init", "--quiet")
    for number in (1, 2):
        (place / "my.cnf").write_text(f"[mysqld]\nsync_binlog = {number}\n")
        git("add", "my.cnf")
        git("commit", "--quiet", "--message", str(number))
    (place / ".venv" / "bin").mkdir(parents=True)

    def run(status, file="my.cnf", commit="HEAD~1", **environment):
        program = place / ".venv" / "bin" / "dbcluster"
        program.write_text(f'#!/bin/sh\necho "$@"\ncat "$3" "$5"\necho the sentence\nexit {status}\n')
        program.chmod(0o755)
        command = [place / SCRIPT, commit, file, "result.md", "--seconds", "60"]
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
    assert re.fullmatch(r"compare --cnf (/.+)/base/my\.cnf --cnf \1/head/my\.cnf --seconds 60", lines[0])
    assert [line for line in lines if "sync_binlog" in line] == ["sync_binlog = 1", "sync_binlog = 2"]
    assert (checkout.place / "result.md").read_text() == done.stdout
    assert len(trees) == 1


def test_what_could_not_be_told_is_a_warning_in_github(checkout, tmp_path):
    """The result is the step summary too."""
    step = tmp_path / "step.md"
    done, _ = checkout(4, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(step))

    assert done.stdout.splitlines()[-1] == "::warning file=my.cnf::the sentence"
    assert step.read_text().startswith("```\ncompare --cnf ")


def test_a_my_cnf_that_did_not_change_is_not_compared(checkout):
    """It is said, and the job is green; the files that it includes may have changed, so then it is compared."""
    (checkout.place / "my.cnf").write_text("[mysqld]\nsync_binlog = 1\n")
    done, trees = checkout(2)

    assert done.returncode == 0
    (line,) = done.stdout.splitlines()
    assert missing(line, "my.cnf is the same", "commit HEAD~1", "nothing to compare") == []
    assert len(trees) == 1


def test_a_my_cnf_that_is_new_has_nothing_to_be_compared_with(checkout):
    """It is said, and the job is green."""
    (checkout.place / "new.cnf").write_text("[mysqld]\n")
    done, trees = checkout(3, "new.cnf")

    assert done.returncode == 0
    (line,) = done.stdout.splitlines()
    assert missing(line, "new.cnf is new", "commit HEAD~1", "nothing to compare") == []
    assert len(trees) == 1


@pytest.mark.parametrize("commit", ["", "0" * 40])
def test_a_pull_request_without_a_base_is_told_what_is_missing(checkout, commit):
    """A job that no pull request has started has none, and a shallow checkout does not have it."""
    done, trees = checkout(0, commit=commit)
    said = (
        f"there is no base to compare my.cnf with: this checkout has no commit '{commit}'; run it for a pull request, "
        "and check out the whole history (fetch-depth: 0)\n"
    )

    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert (checkout.place / "result.md").read_text() == said
    assert len(trees) == 1


def test_a_checkout_that_git_refuses_is_told_so(checkout):
    """As in a container, where it belongs to another user: git's own sentence says what to do."""
    done, _ = checkout(0, GIT_TEST_ASSUME_DIFFERENT_OWNER="1")

    assert (done.returncode, done.stdout) == (2, "")
    assert "dubious ownership" in done.stderr
    assert done.stderr.endswith(
        "git cannot read this checkout, for the reason above, so there is no base to compare my.cnf with\n"
    )
