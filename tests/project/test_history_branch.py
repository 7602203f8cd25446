"""The history on a branch of its own: what a nightly job gets, and what several jobs put at once."""

from __future__ import annotations

import os
import subprocess
import threading
import time

import pytest

from pytest_dbcluster import wait
from tests.support.command import ROOT
from tests.support.facts import missing

SCRIPT = ROOT / "scripts" / "history_branch.sh"
WHO = {f"GIT_{role}_{key}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}


def git(place, *words):
    """What git prints there."""
    command = ["git", "-c", "init.defaultBranch=main", *words]
    done = subprocess.run(command, cwd=place, env=os.environ | WHO, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path):
    """``clone("one")``: a checkout of a repository with one commit, whose history file has one line of its own."""
    remote = tmp_path / "remote.git"
    git(tmp_path, "init", "--quiet", "--bare", str(remote))

    def make(name):
        place = tmp_path / name
        git(tmp_path, "clone", "--quiet", str(remote), str(place))
        if not git(place, "ls-remote"):
            git(place, "commit", "--quiet", "--allow-empty", "--message", "first")
            git(place, "push", "--quiet", "origin", "HEAD:refs/heads/main")
            git(remote, "symbolic-ref", "HEAD", "refs/heads/main")
        (place / "history.jsonl").write_text(f'{{"run": "{name}"}}\n')
        return place

    make.remote = remote
    return make


def run(place, *words, **environment):
    """Call the script there."""
    given = {name: value for name, value in os.environ.items() if name != "GITHUB_ACTIONS"} | environment
    return subprocess.run([SCRIPT, *words], cwd=place, env=given, capture_output=True, text=True, check=False)


def kept(clone):
    """The lines on the branch."""
    return git(clone.remote, "show", "history:history.jsonl").splitlines()


def test_a_remote_that_cannot_be_read_is_an_error(clone):
    """Not a first night: its history would be compared with nothing."""
    one = clone("one")
    git(one, "remote", "set-url", "origin", str(one / "nowhere"))
    got = run(one, "get", "before.jsonl")

    assert got.returncode != 0
    assert "no branch" not in got.stdout
    assert not (one / "before.jsonl").exists()


def test_the_first_night_has_no_history(clone):
    """It is said, and is no error; the branch has no common commit with the project."""
    one = clone("one")
    got = run(one, "get", "before.jsonl")
    put = run(one, "put", "history.jsonl")

    assert (got.returncode, put.returncode) == (0, 0), got.stderr + put.stderr
    assert missing(got.stdout, "origin has no branch history", "begins with this run\n") == []
    assert not (one / "before.jsonl").exists()
    assert put.stdout == "branch history: 1 line\n"
    assert git(clone.remote, "ls-tree", "--name-only", "history") == "history.jsonl"
    assert git(clone.remote, "rev-list", "--count", "history") == "1"
    assert git(one, "status", "--porcelain", "--untracked-files=no") == ""


def test_a_later_night_goes_on_from_it(clone):
    """What it got is not added again."""
    run(clone("one"), "put", "history.jsonl")
    two = clone("two")
    got = run(two, "get", "reports/history.jsonl")
    with (two / "reports" / "history.jsonl").open("a") as file:
        file.write('{"run": "two"}\n{"run": "to')  # a torn line stays one, and ends
    run(two, "put", "reports/history.jsonl")

    assert missing(got.stdout, "reports/history.jsonl: 1 line with branch history\n") == []
    assert kept(clone) == ['{"run": "one"}', '{"run": "two"}', '{"run": "to']


def test_two_jobs_put_at_once(clone):
    """Neither loses a line of the other."""
    run(clone("one"), "put", "history.jsonl")
    places = [clone(name) for name in ("two", "three", "four")]
    jobs = [subprocess.Popen([SCRIPT, "put", "history.jsonl"], cwd=place, stdout=subprocess.PIPE) for place in places]
    ends = [job.wait(60) for job in jobs]
    for job in jobs:
        job.stdout.close()

    assert ends == [0, 0, 0]
    assert sorted(kept(clone)) == sorted(f'{{"run": "{name}"}}' for name in ("one", "two", "three", "four"))


def test_a_job_waits_while_another_one_has_locked_the_branch(clone):
    """It has a lock file for a moment, and the branch is not new yet."""
    run(clone("one"), "put", "history.jsonl")
    lock, begun = clone.remote / "refs/heads/history.lock", clone.remote / "begun"
    hook = clone.remote / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\ntouch {begun}\n")
    hook.chmod(0o755)
    lock.touch()

    def unlock():
        wait.until(lambda: [] if begun.exists() else ["none"], "a push", seconds=60)
        time.sleep(0.5)  # git waits for a tenth of a second
        lock.unlink()

    unlocking = threading.Thread(target=unlock)
    unlocking.start()
    put = run(clone("two"), "put", "history.jsonl")
    unlocking.join()

    assert (put.returncode, put.stderr) == (0, "")
    assert kept(clone) == ['{"run": "one"}', '{"run": "two"}']


def test_lines_that_could_not_be_pushed_stay(clone):
    """Until the next night, which gets the branch and pushes both."""
    run(clone("one"), "put", "history.jsonl")
    two = clone("two")
    run(two, "get", "history.jsonl")

    assert (two / "history.jsonl").read_text() == '{"run": "one"}\n{"run": "two"}\n'
    assert [path.name for path in two.iterdir() if path.name != ".git"] == ["history.jsonl"]


def test_a_branch_of_somebody_else_stays(clone):
    """A push would remove its files."""
    place = clone("one")
    (place / "work.txt").touch()
    git(place, "add", "work.txt")
    git(place, "commit", "--quiet", "--message", "work")
    git(place, "push", "--quiet", "origin", "HEAD:refs/heads/main")
    before = git(clone.remote, "rev-parse", "main")
    for what in ("put", "get"):
        done = run(place, what, "history.jsonl", "main")
        assert done.returncode == 2
        assert missing(done.stderr, "branch main has other files than history.jsonl (work.txt)", "another BRANCH") == []

    assert git(clone.remote, "rev-parse", "main") == before
    assert (place / "history.jsonl").read_text() == '{"run": "one"}\n'


def test_without_the_right_to_push_it_says_so(clone):
    """As in a job of a fork: a warning, and no red job, because the file has all lines."""
    one = clone("one")
    hook = clone.remote / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho no rights >&2\nexit 1\n")
    hook.chmod(0o755)
    put = run(one, "put", "history.jsonl", GITHUB_ACTIONS="true")

    assert put.returncode == 0
    assert put.stdout.startswith("::warning::the history was not pushed to branch history: ")
    assert put.stderr.endswith("; history.jsonl has all lines\n")
    assert "pre-receive hook declined" in put.stderr


def test_without_a_measured_claim_the_branch_stays(clone):
    """An empty file, or none, adds nothing."""
    one = clone("one")
    (one / "history.jsonl").write_text("")

    (line,) = run(one, "put", "history.jsonl").stdout.splitlines()
    assert missing(line, "history.jsonl has no lines", "no claim was measured", "branch history stays") == []
    assert "history" not in git(clone.remote, "branch")


def test_a_wrong_call_shows_its_usage(clone):
    """With exit status 2."""
    done = run(clone("one"), "push", "history.jsonl")

    assert (done.returncode, done.stderr) == (2, "usage: scripts/history_branch.sh get|put FILE [BRANCH [REMOTE]]\n")
