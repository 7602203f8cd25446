"""The guide to a workload in Python, followed as a reader does: its program, its test, and the tests of the kit."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dbcluster import testing
from pytest_dbcluster.reporting.documents.run_document import read_run
from tests.support import conftests

GUIDE = (Path(__file__).parents[2] / "docs" / "how-to" / "own-workload.md").read_text()
SAVED = re.compile(r"Save this as `([^`]+)`[^\n]*:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
OUTCOMES = {"holds", "inconclusive"}  # of a claim on a busy machine
FEWER = ("count: int = 2000", "count: int = 500")  # orders of a round


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The files of the guide, with shorter rounds."""
    for name, text in SAVED.findall(GUIDE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text.replace(*FEWER))
    assert FEWER[0] in GUIDE
    (tmp_path / "conftest.py").write_text(conftests.OWN_MACHINE + conftests.NO_CHARTS)
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pytest_run(*words):
    """A run of pytest in this directory."""
    plain = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    return subprocess.run([sys.executable, "-m", *words, *plain], capture_output=True, text=True, check=False)


@pytest.mark.thorough
def test_the_guide_to_a_command_ends_as_it_says(project):
    """A command of the shell becomes a workload that passes all tests of the kit, and answers a claim."""
    command = re.search(r"^```sh\n(pytest .*?)^```", GUIDE, re.MULTILINE | re.DOTALL)[1]
    done = pytest_run(*shlex.split(command))

    assert done.returncode == 0, done.stdout + done.stderr
    tests = {test.test.rpartition("::")[2]: test.outcome for test in read_run(project / "reports" / "latest").tests}
    assert {name: tests[name] for name in tests if "mill" in name}.keys() == {"test_the_mill_is_faster_without_a_flush"}
    assert tests["test_the_mill_is_faster_without_a_flush"] == "holds"
    assert tests["test_claims_work"] in OUTCOMES


def test_a_command_that_fails_is_an_error_with_its_output(project):
    """The reader sees what the client said."""
    script = project / "bench" / "load.sh"
    script.write_text(script.read_text().replace("INTO orders", "INTO odrers"))
    done = pytest_run("pytest", "test_mill.py", "-k", "faster")

    assert done.returncode == 1
    assert "mill 500 ended with 1 on " in " ".join(done.stdout.split())
    assert "Table 'mill.odrers' doesn't exist" in " ".join(done.stdout.split())


def test_the_guide_names_every_test_of_the_kit():
    """And no other one; the same for what a class can set."""
    kit = testing.WorkloadContract
    tests = {name for name in vars(kit) if name.startswith("test_")}

    assert set(re.findall(r"^\| `(test_\w+)` \|", GUIDE, re.MULTILINE)) == tests
    settable = set(kit.__annotations__)
    assert set(re.findall(r"^\| `(\w+)` \|", GUIDE.split("| attribute |")[1].split("##")[0], re.MULTILINE)) == settable
