"""Whole runs whose tests read earlier answers otherwise: they assert what was shown, or name another winner."""

from __future__ import annotations

import pytest

from pytest_dbcluster.reporting import schema
from tests.reporting.resume.test_earlier import on_made_up_rounds, outcomes
from tests.support.resumed import RESUME, WORDS, drawn

READ = """
    import os

    from pytest_dbcluster.spec import ClusterSpec

    ONE = ClusterSpec("galera", nodes=3)
    OTHER = ONE.with_options(lock_wait_timeout=40).named("other")

    def test_shown(measure):
        one, other = measure("mysqlslap write", on=[ONE, OTHER])
        one.against(other)
        answer = one.beats(other)
        if "ASSERTED" in os.environ:
            assert answer
        answer.show()

    def test_race(measure):
        winner = measure.race("mysqlslap mixed", on=[ONE, OTHER])
        assert winner.is_(os.environ.get("WINNER", "galera3"))
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """The suite of this module."""
    return on_made_up_rounds(pytester, monkeypatch, READ)


@pytest.fixture
def latest(suite):
    """The results directory."""
    return suite.path / "reports" / "latest"


def states(latest):
    """By claim, whether it is asserted, and its outcome; the file of each one exists."""
    assert len(list((latest / "rounds").glob("*.csv"))) == len(schema.read_claims(latest))
    return {claim.text: (claim.asserted, claim.verdict.outcome.name) for claim in schema.read_claims(latest)}


@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["one process", "a worker"])
def test_answers_follow_what_their_test_asserts_now(suite, latest, monkeypatch, workers):
    """One that was only shown, and a race of which the test named another winner, are taken over without a round."""
    history = latest.parent / "history.jsonl"
    suite.runpytest_inprocess(*WORDS, f"--db-history={history}")
    compared, shown, race = states(latest)
    first = {claim.claim_id: claim.run_id for claim in schema.read_claims(latest)}
    known = history.read_bytes()
    assert states(latest) == {shown: (False, "FAILS"), compared: (False, "HOLDS"), race: (True, "FAILS")}
    drawn(suite)

    suite.runpytest_inprocess(*RESUME, *workers)
    assert drawn(suite) == set()
    assert states(latest) == {shown: (False, "FAILS"), compared: (False, "HOLDS"), race: (True, "FAILS")}
    assert outcomes(latest) == {"test_shown": "passed", "test_race": "refuted"}

    monkeypatch.setenv("ASSERTED", "1")
    monkeypatch.setenv("WINNER", "other")
    result = suite.runpytest_inprocess(*RESUME, *workers, f"--db-history={history}")
    assert drawn(suite) == set()
    assert states(latest) == {shown: (True, "FAILS"), compared: (False, "HOLDS"), race: (True, "HOLDS")}
    assert outcomes(latest) == {"test_shown": "refuted", "test_race": "holds"}
    result.stdout.fnmatch_lines(["--db-resume: 3 answers taken over, 0 claims measured"])
    assert {claim.claim_id: claim.run_id for claim in schema.read_claims(latest)} == first
    assert history.read_bytes() == known
    (won,) = (claim for claim in schema.read_claims(latest) if claim.text == race)
    assert "names" not in won.verdict.reason
    assert won.message.startswith("HOLDS")
