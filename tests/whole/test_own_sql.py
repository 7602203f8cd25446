"""The guide to one's own SQL, followed as a reader does: its files, its command, and the outcome that it promises."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dbcluster.reporting.documents.run_document import read_run
from pytest_dbcluster.workloads.sql import SQLFiles
from pytest_dbcluster.workloads.sql.language import scripts
from pytest_dbcluster.workloads.sql.language.expressions import FUNCTIONS
from pytest_dbcluster.workloads.sql.manifest import WorkloadManifest
from tests.support import conftests

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "how-to" / "own-sql.md").read_text()
REFERENCE = (DOCS / "reference" / "sql-files.md").read_text()
SAVED = re.compile(r"Save this as `([^`]+)`[^\n]*:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The files of the guide, with shorter rounds."""
    made = tmp_path_factory.mktemp("own") / "my_project"
    for name, text in SAVED.findall(GUIDE):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    (made / "conftest.py").write_text(conftests.OWN_MACHINE + conftests.NO_CHARTS + conftests.BRIEF_TIMES)
    return made


def test_the_guide_has_all_its_files(project):
    """A workload of three transactions."""
    workload = SQLFiles(project / "shop")

    assert str(workload) == "sql shop t16"
    assert [(script.name, weight) for script, weight in workload.read.scripts] == [
        ("browse", 70),
        ("history", 20),
        ("order", 10),
    ]
    assert workload.read.tables == ("customers", "products", "orders")


@pytest.mark.thorough
def test_the_guide_ends_as_it_says(project, monkeypatch):
    """From an empty directory to the first verdict."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(project / "runs"))
    program, *words = shlex.split(re.search(r"^```sh\n(pytest .*?)^```", GUIDE, re.MULTILINE | re.DOTALL)[1])
    plain = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    done = subprocess.run(
        [sys.executable, "-m", program, *plain, *words], cwd=project, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert {test.outcome for test in read_run(project / "reports" / "latest").tests} == {"holds"}


def test_the_reference_names_every_key_command_and_function():
    """And no other ones."""
    keys = set(re.findall(r"^\| `([a-z_]+)` \|", REFERENCE.split("## The data")[0], re.MULTILINE))
    commands = set(re.findall(r"`\\([a-z_]+)", REFERENCE.split("## Commands")[1].split("## Expressions")[0]))
    table = REFERENCE.split("## Functions")[1].split("All values depend")[0]
    functions = set(
        re.findall(r"`([a-z_]+)[(`]", "".join(line.split("|")[1] for line in table.splitlines() if "|" in line))
    )

    assert keys == WorkloadManifest.__dataclass_fields__.keys()
    assert commands == set(scripts.META)
    assert functions == set(FUNCTIONS)
