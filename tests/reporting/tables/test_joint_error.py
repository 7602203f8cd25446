"""The chance that any claim of a run is wrong."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.carry_over import CarryOver
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.reporting.tables import joint_error
from tests.support.facts import missing
from tests.support.records import failed, record, undecided

GUARD = kinds.no_slower_than(0.05)
MEASURED = ClusterDifference(0.05, "measured on 24 pairs of clusters, 2026-11-22", 24)


def apart(difference):
    """A claim on separate clusters."""
    made = record(cluster_difference=difference)
    claim = dataclasses.replace(made.verdict.claim, apart=difference.bound)
    return dataclasses.replace(made, verdict=dataclasses.replace(made.verdict, claim=claim))


def strict(made):
    """The claim at the other level."""
    return dataclasses.replace(made, verdict=dataclasses.replace(made.verdict, alpha=0.0001))


@pytest.mark.parametrize(
    ("records", "bound"),
    [
        ([record(), failed()], "at most .001 "),
        ([record(), failed(), undecided()], "at most .0015 "),
        ([strict(record())] * 60, "at most .006 "),
        ([record()] * 1980, "at most .99 "),
        ([record()] * 2000, "no bound on the chance "),
        ([record(), apart(MEASURED)], "at most .006 "),
    ],
    ids=["two", "inconclusive", "strict", "many", "no bound", "separate clusters"],
)
def test_the_chances_of_all_claims_add_up(records, bound):
    """Whatever came out: a claim that was made counts, and its chance is that of its level."""
    line = joint_error.line(records)
    assert line.startswith(f"{len(records)} claims: ")
    assert missing(line, bound, "any is wrong") == []
    assert ";" not in line  # which separates what is said of guards, and of claims that are not covered


def test_each_comparison_of_a_claim_may_have_unlike_clusters():
    """The winner of a race is compared with every other variant."""
    made = apart(MEASURED)
    series = made.rounds[made.candidate]
    raced = dataclasses.replace(made, standings=(None,) * 5, rounds=dict.fromkeys("abcde", series))

    assert joint_error.line([record(), raced]).startswith("2 claims: at most .021 ")


def test_guards_count_apart():
    """Their level is a hundred times that of claims."""
    line = joint_error.line([record(), record(), record(GUARD, faster=1.0, sd=0.005), record(GUARD, faster=0.7)])

    assert line.startswith("2 claims: at most .001 that any is wrong; 2 guards: at most .1 more that any holds wrongly")
    assert joint_error.line([record(GUARD)] * 3).startswith("3 guards: at most .15 that any holds wrongly")


def test_claims_without_a_known_error_are_not_covered():
    """Found carry-over and a default difference of clusters; each is said with its number."""
    carried = record(carry_over=CarryOver(0.05, 0.02, 0.08, 1.2))
    default = apart(ClusterDifference(0.05, "default, measured elsewhere: 12 pairs of clusters", 12))
    line = joint_error.line([record(), carried, default, default])

    assert line.startswith("1 claim: at most .0005 ")
    assert "; not covered: 1 with carry-over, 2 with a default" in line
    uncovered = joint_error.line([carried, carried])
    assert uncovered.startswith("not covered: ")
    assert uncovered.endswith("2 with carry-over")


def test_a_single_claim_has_its_error_in_its_message():
    """Comparisons claim nothing."""
    assert joint_error.line([record(), record(asserted=False)]) == ""
    assert joint_error.line([]) == ""


def test_a_chance_is_never_rounded_down():
    """What is shown bounds what is promised."""
    for number in range(2, 400):
        shown = joint_error.line([record()] * number).split("at most ")[1].split()[0]
        assert number * 0.0005 <= float(shown) * (1 + 1e-9) <= number * 0.00055 * (1 + 1e-6)
