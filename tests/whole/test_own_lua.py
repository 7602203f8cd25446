"""The guide to one's own sysbench script, followed as a reader does: its files, its command, and its outcome."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_dbcluster.reporting.documents.run_document import read_run
from pytest_dbcluster.workloads.script import LuaScript
from tests.support import conftests, golden

GUIDE = (Path(__file__).parents[2] / "docs" / "how-to" / "own-lua.md").read_text()
SAVED = re.compile(r"Save this as `([^`]+)`[^\n]*:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The files of the guide, with shorter rounds."""
    for name, text in SAVED.findall(GUIDE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "conftest.py").write_text(conftests.OWN_MACHINE + conftests.NO_CHARTS + conftests.BRIEF_TIMES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.thorough
def test_the_guide_ends_as_it_says(project, monkeypatch):
    """From an empty directory to the first verdict, whose claim has the digest of the script."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(project / "runs"))
    program, *words = shlex.split(re.search(r"^```sh\n(pytest .*?)^```", GUIDE, re.MULTILINE | re.DOTALL)[1])
    plain = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    done = subprocess.run([sys.executable, "-m", program, *plain, *words], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert {test.outcome for test in read_run(project / "reports" / "latest").tests} == {"holds"}
    [claim] = map(json.loads, (project / "reports" / "latest" / "claims.jsonl").read_text().splitlines())
    visits = LuaScript("bench/visits.lua")
    assert claim["claim_id"].endswith(f" | script visits t8 pages=5000 {visits.content_hash}")
    assert claim["files"]["default"] == visits.files


def test_a_message_of_the_guide_is_the_message(project):
    """As the reader sees it."""
    message = golden.message_of(LuaScript("bench/visits.lua", options={"page": 1}).check)

    assert f"```text\n{message}\n```" in GUIDE
