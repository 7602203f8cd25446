"""Claims about each repetition of an event: they fail at the first exception, and bound its chance."""

from __future__ import annotations

from pytest_dbcluster.claims import kinds, wording
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.repetitions import wording as event_wording
from pytest_dbcluster.claims.repetitions.samples import Repetitions

ALPHA = 0.0005


def loses_nothing(lost, times=6):
    """The verdict on the numbers of lost transactions."""
    claim = kinds.loses_nothing()
    return claim.of_kind.judge(claim, [Repetitions(tuple(lost))], times, ALPHA)


def test_a_single_loss_refutes():
    """At once, without more repetitions."""
    found = loses_nothing([0.0, 3.0])

    assert (found.outcome, found.pairs, found.ratio) == (Outcome.FAILS, 2, 0.5)
    assert "3 transactions" in found.reason


def test_no_loss_has_a_bound_and_is_not_never():
    """After six repetitions a loss in up to 39 % of the events is possible."""
    found = loses_nothing([0.0] * 6)

    assert loses_nothing([0.0] * 5) is None
    assert (found.outcome, wording.estimate(found)) == (Outcome.HOLDS, "a loss in 0 % of the events (0 .. 39 %)")
    assert wording.level(found) == "95 %"


def returned_by(*ways, times=6):
    """The verdict on the ways in which node3 came back, claimed to be IST."""
    claim = kinds.returned_by()
    own = Repetitions(tuple(float(way == "IST") for way in ways), texts=tuple(f"node3 {way}" for way in ways))
    return claim.of_kind.judge(claim, [own], times, ALPHA)


def test_a_node_that_comes_back_in_another_way_is_named():
    """With its repetition, and at once."""
    found = returned_by("IST", "IST", "SST")

    assert (found.outcome, found.pairs) == (Outcome.FAILS, 3)
    assert found.reason == "repetition 3: node3 SST"
    assert wording.estimate(found) == "another way back in 33.3 % of the events (1.7 .. 86 %)"
    assert wording.estimate(returned_by("SST")) == "another way back in 100 % of the events (5 .. 100 %)"
    assert event_wording.error(found) == found.reason


def test_the_chance_of_another_way_has_a_bound():
    """It is that of a loss, in other words."""
    found = returned_by(*["IST"] * 6)

    assert returned_by(*["IST"] * 5) is None
    assert (found.outcome, wording.estimate(found)) == (
        Outcome.HOLDS,
        "another way back in 0 % of the events (0 .. 39 %)",
    )
    possible = "another way back in up to 39 % of the events remains possible, with 95 % confidence"
    assert event_wording.error(found).startswith(possible)


def test_the_headline_of_a_proportion_counts_the_repetitions():
    """A claim that holds says so of each repetition, and the interval names what it is about."""
    kind, names = kinds.loses_nothing().of_kind, ("galera3",)
    kept = kind.headline("a loss in 0 % of the events", names, "lost", "", holds=True, count=6)
    lost = kind.headline("a loss in 50 % of the events", names, "lost", "", holds=False, count=2)
    back = kinds.returned_by().of_kind.headline("", names, "returned_by:IST", "", holds=True, count=6)

    assert kept == "galera3 loses no acknowledged transaction in 6 of 6 repetitions"
    assert lost == "galera3 loses acknowledged transactions: a loss in 50 % of the events"
    assert back == "the node of galera3 returns by IST in 6 of 6 repetitions"
    assert kind.of_level("95 %", "0 .. 39 %") == "95 %: a loss in 0 .. 39 % of the events"
