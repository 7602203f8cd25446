"""The answer of a claim as a sentence."""

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Outcome

NAMES = ("new", "old")


@pytest.mark.parametrize(
    ("claim", "holds", "fails"),
    [
        (kinds.beats(), "new is faster than old", "new is not faster than old"),
        (kinds.beats(0.1), "new is more than 10 % faster than old", "new is not more than 10 % faster than old"),
        (
            kinds.no_slower_than(0.05),
            "new is less than 5 % slower than old",
            "new is not less than 5 % slower than old",
        ),
        (
            kinds.same_as(0.05),
            "new and old are equally fast within 5 %",
            "new and old are not equally fast within 5 %",
        ),
        (kinds.scales(2), "new is more than 2 times as fast as old", "new is not more than 2 times as fast as old"),
        (
            kinds.ordered(),
            "each of new, old is faster than the one before it",
            "not each of new, old is faster than the one before it",
        ),
    ],
)
def test_each_claim_has_its_sentence(claim, holds, fails):
    """It says what was shown: the claim, or its opposite; or that neither was."""
    assert claim.sentence(Outcome.HOLDS, NAMES, "throughput", "/s") == holds
    assert claim.sentence(Outcome.FAILS, NAMES, "throughput", "/s") == fails
    assert claim.sentence(Outcome.INCONCLUSIVE, NAMES, "throughput", "/s") == f"not decided: whether {holds}"


@pytest.mark.parametrize(("by", "more"), [(0.0, ""), (0.5, " by more than 50 %")])
def test_fades_names_both_pairs(by, more):
    """What loses less stands first."""
    names, claim = ("one", "one_far", "many", "many_far"), kinds.fades(by)
    verbs = {Outcome.HOLDS: "loses less", Outcome.FAILS: "does not lose less"}

    for outcome, verb in verbs.items():
        said = claim.sentence(outcome, names, "throughput", "/s")
        assert said == f"many_far {verb} against many than one_far against one{more}"


def test_a_counter_is_named():
    """A claim about a counter is about nothing else."""
    said = kinds.lower(0.5).sentence(Outcome.FAILS, NAMES, "fsyncs_per_commit", "")

    assert said == "fsyncs_per_commit is not more than 50 % lower with new than with old"


def test_another_metric_than_the_speed_is_named():
    """A percentile is no throughput."""
    assert kinds.beats().sentence(Outcome.HOLDS, NAMES, "p95", "ms") == "new is faster than old, by p95"


def test_a_comparison_claims_nothing():
    """It differs, or no difference is shown; that is no proof that there is none."""
    assert kinds.differs().sentence(Outcome.HOLDS, NAMES, "throughput", "/s") == "new and old differ"
    undecided = kinds.differs().sentence(Outcome.INCONCLUSIVE, NAMES, "throughput", "/s")
    assert undecided == "no difference between new and old is shown"
