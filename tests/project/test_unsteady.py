"""The check that an unsteady test does not fail: which tests run again, and what is said of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.conftests import PLAIN
from tests.support.unsteady import repeatable

ROOT = Path(__file__).parents[2]
# Fails the first time, in a directory of its own; the file counts how often it ran.
UNSTEADY = """
from pathlib import Path

def test_{name}():
    ran = Path(__file__).with_suffix(".ran")
    ran.write_text((ran.read_text() if ran.exists() else "") + "x")
    assert len(ran.read_text()) {condition}, "the first failure"
"""


@pytest.fixture
def check(tmp_path):
    """``check(name=condition)``: runs tests that pass when the number of their run meets the condition."""

    def run(*words, **conditions):
        files = []
        for name, condition in conditions.items():
            files.append(tmp_path / f"test_{name}.py")
            files[-1].write_text(UNSTEADY.format(name=name, condition=condition))
        (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = -p no:dbcluster {' '.join(PLAIN)}\n")
        command = [sys.executable, "-m", "tests.support.unsteady", "report", *words]
        paths = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [*command, *files], cwd=tmp_path, env=paths, capture_output=True, timeout=120, check=False
        )
        report = (tmp_path / "report").read_text() if (tmp_path / "report").exists() else ""
        return done.returncode, report, [len(one.with_suffix(".ran").read_text()) for one in files]

    return run


def test_a_test_that_fails_once_is_named_and_the_run_is_green(check):
    """It runs three times alone; the report has its name and its first failure."""
    status, report, ran = check("-n", "1", waits="> 1", steady="> 0")

    assert status == 0, report
    assert ran == [4, 1]
    assert report.count("UNSTABLE") == 1
    assert "test_waits.py::test_waits" in report
    assert "the first failure" in report


def test_a_test_that_fails_again_fails_the_run(check):
    """One failure among the three is enough, and none is run after it."""
    status, report, ran = check(waits="> 2")

    assert status == 1
    assert ran == [2]
    assert not report


def test_a_test_of_leaks_is_not_repeated(check):
    """One leak is a finding, however rare."""
    status, report, ran = check(no_server_leaks="> 1")

    assert status == 1
    assert ran == [1]
    assert not report


@pytest.mark.parametrize(
    ("failures", "allowed"),
    [
        ([], False),
        (["tests/a/test_b.py::test_c"], True),
        ([f"tests/a/test_b.py::test_c[{n}]" for n in range(3)], True),
        ([f"tests/a/test_b.py::test_c[{n}]" for n in range(4)], False),
        (["tests/a/test_b.py"], False),
        (["suites/galera/test_flush.py::test_flush_2_beats_the_default[write]"], False),
        (["tests/a/test_b.py::test_c", "tests/whole/test_leaks.py::test_d"], False),
        (["tests/hosts/provisioners/ec2/test_kills.py::test_d"], False),
        (["tests/clusters/servers/test_cnf_judge.py::test_d"], False),
    ],
)
def test_few_tests_run_again_and_never_a_claim_or_a_finding(failures, allowed):
    """More than three failures, a file that does not load, claims, and tests of leaks, kills and harm stay failed."""
    assert repeatable(failures) is allowed


def test_only_the_check_of_a_checkout_repeats_tests():
    """`.ci/run` asks for it; GitHub's workflow and a developer's `make test` do not."""
    asked = "DBCLUSTER_UNSTABLE"

    assert asked in (ROOT / ".ci" / "run").read_text()
    assert not any(asked in file.read_text() for file in (ROOT / ".github" / "workflows").iterdir())
