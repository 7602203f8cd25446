"""The claims of a test about one measurement: told apart, tried, answered and reported."""

from __future__ import annotations

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.measuring.claim_log import ClaimLog
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.measuring.series import series_of
from tests.support.measurements import measurement, two

QUESTION = Question(kinds.beats(0.1), 1, 0, "throughput")


class Counting:
    """Tries that are counted; this one is the third."""

    def __init__(self):
        self.begun, self.decided = [], []

    def begin(self, question):
        """Write it down."""
        self.begun.append(question)
        return 3

    def decide(self, question):
        """Write it down."""
        self.decided.append(question)


def answers():
    """A claim that holds and a comparison, about the same rounds."""
    slow, fast = series_of(measurement(two()))
    return fast.beats(slow), fast.against(slow)


def test_a_claim_is_declared_once_whatever_its_margin():
    """On another workload it is another claim; without a set of claims nothing is refused."""
    declared = set()
    log = ClaimLog(("slow", "fast"), "fake load", declared=declared)
    log.declare(QUESTION)

    with pytest.raises(ConfigError, match=r"^the test makes the claim fast\.beats\(slow, .* on fake load twice"):
        log.declare(Question(kinds.beats(0.2), 1, 0, "throughput"))
    ClaimLog(("slow", "fast"), "other load", declared=declared).declare(QUESTION)
    free = ClaimLog(("slow", "fast"), "fake load")
    free.declare(QUESTION)
    free.declare(QUESTION)


def test_a_try_begins_once_with_its_number():
    """Looks after the first are of the same try; a claim that never began is the first."""
    tries = Counting()
    log = ClaimLog(("slow", "fast"), "fake load", tries=tries)
    assert log.try_number(QUESTION) == 1
    log.begin_try(QUESTION)
    log.begin_try(QUESTION)

    assert log.try_number(QUESTION) == 3
    assert tries.begun == [QUESTION]


def test_a_claim_is_reported_when_it_is_read_and_a_comparison_at_once():
    """Each once; a claim with a verdict ends its tries."""
    reported, tries = [], Counting()
    log = ClaimLog(("slow", "fast"), "fake load", reported.append, tries=tries)
    claim, comparison = answers()
    log.add(claim)
    log.add(comparison)
    assert reported == [comparison]
    assert claim
    assert claim

    assert reported == [comparison, claim]
    assert tries.decided == [claim.question]
    log.report_unread()
    assert len(reported) == 2


def test_an_answer_that_is_shown_is_read_and_asserts_nothing():
    """It is reported once, as a comparison, even if its claim is refuted."""
    reported = []
    log = ClaimLog(("slow", "fast"), "fake load", reported.append)
    claim, _ = answers()
    log.add(claim)
    claim.show()
    claim.show()
    log.report_unread()

    assert [(one.verdict, one.asserted) for one in reported] == [(claim.verdict, False)]
    assert claim.read


def test_what_no_test_reads_is_reported_as_a_comparison():
    """The verdict of nobody is no verdict."""
    reported = []
    log = ClaimLog(("slow", "fast"), "fake load", reported.append)
    claim, _ = answers()
    log.add(claim)
    log.report_unread()

    assert [(one.verdict, one.asserted) for one in reported] == [(claim.verdict, False)]
