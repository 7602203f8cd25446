"""The published JSON Schemas: what a run writes is valid, and they say what the types say."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.documents.run_document import run_text
from tests.support import conftests
from tests.support.records import record, undecided
from tests.support.resumed import WORDS
from tests.support.run_documents import run_document

ROOT = Path(__file__).parents[2]
FAKE = ROOT / "tests" / "support" / "fake_session.py"
SUITE = """
    import pytest
    from pytest_dbcluster.spec import ClusterSpec
    from pytest_dbcluster.workloads.sysbench import SysBench

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")
    THIRD = ONE.with_storage("gp2-100").named("third")

    def test_faster(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        assert other.beats(one)
        other.against(one)

    def test_slower(measure):
        one, other = measure("mysqlslap read", on=[ONE, THIRD])
        assert one.beats(other)

    def test_checks(measure):
        one, other = measure("dies", on=[ONE, OTHER])
        assert other.beats(one)

    def test_curve(measure):
        curve = measure.sweep(SysBench("oltp_read_only"), on=[ONE, OTHER], threads=(1, 16))
        assert curve.every(lambda one, other: other.beats(one))
"""


def validator(name):
    """The validator of a published schema."""
    text = (ROOT / "pytest_dbcluster" / "reporting" / "schemas" / f"{name}.schema.json").read_text()
    jsonschema.Draft202012Validator.check_schema(json.loads(text))
    return jsonschema.Draft202012Validator(json.loads(text))


def test_the_schemas_are_those_of_the_types():
    """A changed field needs ``python scripts/json_schemas.py``."""
    script = ROOT / "scripts" / "json_schemas.py"
    done = subprocess.run([sys.executable, script, "--check"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_a_run_writes_is_valid(pytester):
    """Claims that hold, fail and compare, broken tests, and the points of a sweep."""
    pytester.makeconftest(FAKE.read_text() + conftests.NO_CHARTS)
    pytester.makepyfile(test_suite=SUITE)
    pytester.runpytest_inprocess(*WORDS, "--db-seed=5")
    results = pytester.path / "reports" / "latest"
    claims = [json.loads(line) for line in (results / "claims.jsonl").read_text().splitlines()]

    assert len(claims) == 5
    for claim in claims:
        validator("claims").validate(claim)
    validator("run").validate(json.loads((results / "run.json").read_text()))


def test_numbers_without_end_are_valid():
    """They are texts."""
    verdict = dataclasses.replace(record().verdict, high=math.inf, ratio=math.nan)
    for made in (record(verdict=verdict), undecided(pairs=2)):
        validator("claims").validate(json.loads(schema.claim_line(made, "a.csv", None, None)))


@pytest.mark.parametrize(
    "changes",
    [{"began": "soon"}, {"format": 2}, {"tests": [{"test": "a", "outcome": "green", "reason": "", "seconds": 1}]}],
)
def test_another_document_is_not_valid(changes):
    """A schema that allows everything says nothing."""
    document = json.loads(run_text(run_document()))
    validator("run").validate(document)

    with pytest.raises(jsonschema.ValidationError):
        validator("run").validate({**document, **changes})
