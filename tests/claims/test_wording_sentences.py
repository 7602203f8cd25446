"""The answer of a claim as a sentence."""

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Outcome
from tests.support import golden
from tests.support.facts import missing

NAMES = ("new", "old")


TWO = {
    "beats": kinds.beats(),
    "beats by a margin": kinds.beats(0.1),
    "no_slower_than": kinds.no_slower_than(0.05),
    "same_as": kinds.same_as(0.05),
    "scales": kinds.scales(2),
    "ordered": kinds.ordered(),
    "differs": kinds.differs(),
    "lower": kinds.lower(),
    "lower by a margin": kinds.lower(0.5),
}


@pytest.mark.parametrize("name", [name for name in TWO if name != "differs"])
def test_each_claim_has_its_sentence(name):
    """It says the claim, or its opposite; or that neither was shown."""
    claim = TWO[name]
    holds, fails, undecided = (claim.sentence(outcome, NAMES, "throughput", "/s") for outcome in Outcome)

    assert all(one in holds for one in NAMES)
    assert fails.replace("not ", "", 1) == holds
    assert undecided == f"not decided: whether {holds}"


def test_golden_claim_sentences():
    """The sentence of each kind and outcome is that of the golden file."""
    four = ("one", "one_far", "many", "many_far")
    asked = {name: (claim, NAMES, "fsyncs" if claim.counts else "throughput") for name, claim in TWO.items()}
    asked["fades"] = kinds.fades(), four, "throughput"
    asked["fades by a margin"] = kinds.fades(0.5), four, "goodput"
    golden.compare(
        "claim_sentences",
        {
            f"{name}, {outcome.value}": claim.sentence(outcome, names, metric, "" if claim.counts else "/s")
            for name, (claim, names, metric) in asked.items()
            for outcome in Outcome
            if not (claim.of_kind.claims_nothing and outcome is Outcome.FAILS)
        },
    )


@pytest.mark.parametrize(("by", "more"), [(0.0, ""), (0.5, " by more than 50 %")])
def test_fades_names_both_pairs(by, more):
    """What loses less stands first."""
    names, claim = ("one", "one_far", "many", "many_far"), kinds.fades(by)
    verbs = {Outcome.HOLDS: "loses less", Outcome.FAILS: "does not lose less"}

    for outcome, verb in verbs.items():
        said = claim.sentence(outcome, names, "throughput", "/s")
        assert said.startswith(f"many_far {verb}")
        assert said.index("many_far") < said.index("against many") < said.index("one_far") < said.index("against one")
        assert said.endswith(more)
        assert ("50 %" in said) is bool(by)


def test_a_counter_is_named():
    """A claim about a counter is about nothing else."""
    said = kinds.lower(0.5).sentence(Outcome.FAILS, NAMES, "fsyncs_per_commit", "")

    assert missing(said, "fsyncs_per_commit", "is not more than 50 % lower", "with new", "with old") == []
    assert "fast" not in said


def test_another_metric_than_the_speed_is_named():
    """A percentile is no throughput."""
    said = kinds.beats().sentence(Outcome.HOLDS, NAMES, "p95", "ms")

    assert said.startswith(kinds.beats().sentence(Outcome.HOLDS, NAMES, "throughput", "/s"))
    assert said.endswith("by p95")


def test_a_comparison_claims_nothing():
    """It differs, or no difference is shown; that is no proof that there is none."""
    assert kinds.differs().sentence(Outcome.HOLDS, NAMES, "throughput", "/s") == "new and old differ"
    undecided = kinds.differs().sentence(Outcome.INCONCLUSIVE, NAMES, "throughput", "/s")
    assert missing(undecided, "no difference", "is shown", "new", "old") == []
