"""The states of claims and tests: words, symbols and colours, for the terminal and the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pytest_dbcluster.claims.claim import STATES
from pytest_dbcluster.reporting.documents.run_document import CUT_SHORT, TestDocument
from pytest_dbcluster.reporting.records import ClaimRecord

COMPARED = "compared"  # of a comparison without a claim
SYMBOLS = {
    "holds": "✓",
    "refuted": "✗",
    "inconclusive": "?",
    COMPARED: "=",
    "broken": "!",
    CUT_SHORT: "/",
    "skipped": "-",
}
ASCII_SYMBOLS = {**SYMBOLS, "holds": "+", "refuted": "x"}
COLOURS = {"holds": "green", "refuted": "red", "inconclusive": "yellow", "broken": "red"}


def state(record: ClaimRecord) -> str:
    """The outcome of a claim as one word: holds, refuted, inconclusive, or compared without a claim."""
    return STATES[record.verdict.outcome] if record.asserted else COMPARED


def tests_without_claim(records: Sequence[ClaimRecord], tests: Sequence[TestDocument]) -> list[TestDocument]:
    """The tests without a record: broken ones, and inconclusive ones that ended before their first claim."""
    claimed = {record.test for record in records if state(record) == "inconclusive"}
    early = [test for test in tests if test.outcome == "inconclusive" and test.test not in claimed]
    return [*early, *(test for test in tests if test.outcome == "broken")]


def counts(records: Sequence[ClaimRecord], tests: Sequence[TestDocument] = ()) -> Mapping[str, int]:
    """The number of claims, and of tests without a claim, in each state that occurs, in the order of SYMBOLS."""
    found = Counter([*map(state, records), *(test.outcome for test in tests_without_claim(records, tests))])
    return {word: found[word] for word in SYMBOLS if found[word]}
