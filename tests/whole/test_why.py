"""The guide to why a variant is slower, followed as a reader does: its commands, and the difference that it names."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.reporting import schema
from tests.support import conftests
from tests.support.facts import missing

GUIDES = [(Path(__file__).parents[2] / "docs" / "how-to" / name).read_text() for name in ("own-sql.md", "why.md")]
SAVED = re.compile(r"Save this as `([^`]+)`[^\n]*:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^```sh\n(.*?)^```", GUIDES[1], re.MULTILINE | re.DOTALL)


def test_the_guide_ends_as_it_says(tmp_path, monkeypatch):
    """The claim is refuted, and the first difference is the plan of the statement that has lost its index."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path / "runs"))
    project = tmp_path / "my_project"
    for name, text in (found for guide in GUIDES for found in SAVED.findall(guide)):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    (project / "conftest.py").write_text(conftests.OWN_MACHINE + conftests.NO_CHARTS + conftests.BRIEF_TIMES)
    copies, run, *_ = COMMANDS
    subprocess.run(["sh", "-ec", copies], cwd=project, check=True)
    program, *words = shlex.split(run)
    plain = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    done = subprocess.run(
        [sys.executable, "-m", program, *plain, *words], cwd=project, capture_output=True, text=True, check=False
    )
    (record,) = schema.read_claims(project / "reports" / "latest")

    assert record.verdict.outcome is Outcome.FAILS, done.stdout + done.stderr
    assert record.servers.reason == ""
    first = record.servers.statements[0]
    assert first.statement.startswith("select o.id, o.created, p.name from orders o")
    assert "customer_id" in [step.key for step in first.baseline_plan]
    assert "customer_id" not in [step.key for step in first.candidate_plan]
    shown = " ".join(done.stdout.split())
    assert (
        missing(shown, "1. another plan of select o.id", "key customer_id of o", "in `servers` of claims.jsonl") == []
    )
    assert "--db-why compares" not in shown
