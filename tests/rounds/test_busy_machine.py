"""A busy machine: when it is called that, and what a message says of it."""

from __future__ import annotations

import pytest

from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.verdict import Terms, judge
from pytest_dbcluster.rounds import busy_machine
from pytest_dbcluster.rounds.busy_machine import OthersLoad
from pytest_dbcluster.rounds.round import Round, RunResult
from tests.support.facts import missing
from tests.support.pairs import pairs


def rounds(*others, usable=2.0):
    """Rounds of one variant, each with the cores that others took; None where they are not known."""
    samples = [{} if cores is None else {"cpu_others": cores, "usable_cores": usable} for cores in others]
    return {"a": [Round("a", 0, 0, RunResult(1.0, 1), 0.0, 0.0, samples=found) for found in samples]}


def test_a_machine_is_busy_from_a_tenth_of_its_cores_on():
    """The cores are shown with those that may be used."""
    assert busy_machine.busy(0.19, 2.0) == ""
    assert missing(busy_machine.busy(0.2, 2.0), "other programs", "0.2 of 2 cores") == []
    assert busy_machine.busy(0.5, 64.0) == ""


def test_the_median_round_decides():
    """One disturbed round of many is no busy machine."""
    assert "1.5 of 2 cores" in busy_machine.reason(rounds(1.5, 1.5, 0.0))
    assert busy_machine.reason(rounds(1.5, 0.0, 0.0)) == ""
    assert busy_machine.lines(rounds(1.5)) == [busy_machine.reason(rounds(1.5))]


def test_rounds_elsewhere_say_nothing_of_it():
    """Other machines do not tell what others take."""
    assert busy_machine.reason(rounds(None, None)) == ""
    assert busy_machine.lines({"a": []}) == []


def test_what_others_took_is_known_before_and_while_rounds_ran():
    """The rounds decide whether the machine was busy; where they do not know, what was seen before."""
    before = OthersLoad(2.0, before=1.0, load=3.5)
    both = busy_machine.others_load(rounds(0.1, 0.1), before)

    seen = ("0.1 in the median round", "1.0 before the first round", "load average 3.5", "2 usable cores")
    assert missing(both, *seen) == []
    assert both.busy == ""
    assert missing(before.busy, "other programs", "1.0 of 2 cores") == []
    assert busy_machine.others_load(rounds(None), None) is None
    assert busy_machine.environment_entry([None, before, both]) == {"cores that other programs took": str(both)}
    assert busy_machine.environment_entry([None]) == {}


@pytest.mark.parametrize("others", [0.0, 1.5])
def test_an_inconclusive_verdict_names_a_busy_machine(others):
    """Its own reason stays first."""
    values = [0.3, -0.3] * 4
    verdict = judge(kinds.no_slower_than(0.05), pairs(values), Terms(out_of_budget="the time is used"))
    told = busy_machine.add_reason(verdict, rounds(others))

    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert told.reason.startswith(verdict.reason)
    assert ("1.5 of 2 cores" in told.reason) == bool(others)


def test_a_decided_verdict_stays_as_it_is():
    """Noise of others makes no verdict wrong."""
    verdict = judge(kinds.no_slower_than(0.05), pairs([0.5] * 12), Terms())

    assert verdict.outcome is Outcome.HOLDS
    assert busy_machine.add_reason(verdict, rounds(1.9)) == verdict
