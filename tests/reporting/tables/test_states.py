"""The states of claims and tests."""

from __future__ import annotations

from pytest_dbcluster.reporting.documents.run_document import TestDocument
from pytest_dbcluster.reporting.tables import states
from tests.support.records import beside, failed, record, undecided


def ended(test, outcome):
    """A test that ended like this."""
    return TestDocument(test, outcome, "why", 1.0)


def test_each_outcome_has_its_word():
    """A comparison that claims nothing neither holds nor is refuted."""
    found = [states.state(made) for made in (record(), failed(), undecided(), beside())]

    assert found == ["holds", "refuted", "inconclusive", "compared"]
    assert set(found) < set(states.SYMBOLS) == set(states.ASCII_SYMBOLS)


def test_a_test_that_no_claim_shows_is_counted():
    """Broken tests, and those whose claim ended before it was answered; each test once, however many claims it made."""
    open_ = undecided()
    tests = [
        ended("a", "broken"),
        ended(open_.test, "inconclusive"),
        ended("b", "inconclusive"),
        *[ended("c", outcome) for outcome in ("holds", "refuted", "skipped", "passed")],
    ]

    assert [test.test for test in states.tests_without_claim([open_, record()], tests)] == ["b", "a"]
    assert states.counts([open_, record(), record()], tests) == {"holds": 2, "inconclusive": 2, "broken": 1}
