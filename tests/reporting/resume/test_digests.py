"""What the answer of a claim depends on, as short hashes."""

from __future__ import annotations

import hashlib

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.reporting.resume import digests
from pytest_dbcluster.reporting.resume.digests import CLAIM, Conditions
from tests.support.run_documents import MACHINE


def of(claim, *, asserted=True):
    """The digest of what a claim asks."""
    question = Question(claim, 1, 0, "throughput", asserted=asserted)
    return digests.digests(question, [], [], Conditions((), MACHINE), instances=1)[CLAIM]


def test_a_claim_that_is_only_shown_asks_the_same():
    """So its answer is taken over, whether its test asserts it then or now."""
    assert of(kinds.beats(0.1)) == of(kinds.beats(0.1), asserted=False)
    assert of(kinds.beats(0.1)) != of(kinds.beats(0.2))
    assert of(kinds.beats(0.1)) != of(kinds.no_slower_than(0.1))


def test_answers_of_earlier_versions_stay_valid():
    """Their digest had whether a claim was asserted, so the hash of a claim and that of a comparison stay the same."""
    for claim, asserted in ((kinds.beats(0.1), True), (kinds.differs(), False)):
        parts = (claim.kind, claim.margin, "throughput", asserted)
        assert of(claim, asserted=asserted) == hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
