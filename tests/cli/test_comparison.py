"""The judgement of ``dbcluster compare``: which verdicts make a candidate worse, no worse, or unknown."""

from __future__ import annotations

import math
import random

import pytest

from pytest_dbcluster.claims import claim as claims
from pytest_dbcluster.claims import verdict
from pytest_dbcluster.claims.verdict import Terms
from pytest_dbcluster.cli.comparison import Compared, Result, judged, overall, slower, told_margin

GUARD = claims.no_slower_than(0.05)


def guard(ratio, sd, pairs, **terms):
    """The verdict on this many made-up pairs with a true ratio and a spread; drawn look by look, as a run does."""
    source = random.Random(7)
    values = [math.log(ratio) + source.gauss(0, sd) for _ in range(pairs)]
    return verdict.replay(GUARD, values, Terms(**{"out_of_budget": "time is used", **terms}))


def test_a_guard_that_holds_tells_its_own_margin():
    """A candidate that is as fast is no worse by 5 %."""
    found = guard(1.0, 0.01, 40)

    assert told_margin(found) == pytest.approx(0.05)
    assert judged(found, None) is Result.NO_WORSE


def test_a_wider_margin_is_told_where_5_per_cent_cannot_be():
    """A candidate that may be 7 % slower is no worse by 7 %, and the margin is that of the 90 % interval."""
    found = guard(0.965, 0.03, 11)

    assert found.outcome is claims.Outcome.INCONCLUSIVE
    assert told_margin(found) == pytest.approx(1 - found.decided_low)
    assert 0.05 < told_margin(found) <= 0.10
    assert judged(found, None) is Result.NO_WORSE


def test_beyond_10_per_cent_nothing_is_told():
    """A candidate that may be 30 % slower, and may be faster, is unknown."""
    assert judged(guard(1.0, 0.3, 8), None) is Result.UNKNOWN


def test_before_the_first_look_nothing_is_told():
    """Five pairs have no interval."""
    found = guard(1.0, 0.01, 5)

    assert told_margin(found) == math.inf
    assert judged(found, None) is Result.UNKNOWN


def test_a_guard_that_fails_is_worse():
    """A candidate that is 30 % slower is worse."""
    found = guard(0.7, 0.03, 20)

    assert slower(found)
    assert judged(found, None) is Result.WORSE


def test_an_interval_below_one_is_worse_too():
    """A candidate that is certainly slower, by more or by less than 5 %, is worse."""
    found = guard(0.94, 0.02, 20)

    assert found.outcome is claims.Outcome.INCONCLUSIVE
    assert found.high < 1
    assert judged(found, None) is Result.WORSE


def test_where_no_verdict_can_be_trusted_nothing_is_told():
    """On a machine that cannot measure the difference, a clear interval says nothing."""
    found = guard(0.7, 0.01, 20, untrusted="no disk writes that fast")

    assert not slower(found)
    assert judged(found, None) is Result.UNKNOWN


def test_a_worse_p95_makes_a_faster_candidate_worse():
    """Throughput alone does not make up for a tail that is certainly longer."""
    assert judged(guard(1.3, 0.02, 8), guard(0.5, 0.05, 8)) is Result.WORSE


def test_a_p95_that_cannot_be_told_changes_nothing():
    """The throughput decides where p95 has too few rounds."""
    assert judged(guard(1.3, 0.02, 8), guard(1.0, 0.5, 6)) is Result.NO_WORSE


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([Result.NO_WORSE, Result.NO_WORSE], Result.NO_WORSE),
        ([Result.NO_WORSE, Result.UNKNOWN], Result.UNKNOWN),
        ([Result.UNKNOWN, Result.WORSE], Result.WORSE),
        ([Result.NO_WORSE, Result.WORSE], Result.WORSE),
    ],
)
def test_one_worse_workload_makes_the_candidate_worse(results, expected, monkeypatch):
    """A candidate is no worse only where it is no worse on every workload."""
    items = [Compared(f"workload {number}", None) for number in range(len(results))]
    by_item = {id(item): result for item, result in zip(items, results, strict=True)}
    monkeypatch.setattr(Compared, "result", property(lambda self: by_item[id(self)]))

    assert overall(items) is expected


def test_a_workload_without_an_answer_is_unknown():
    """A workload whose time was used before its first round says nothing."""
    assert Compared("tpcc", None, reason="its time is used").result is Result.UNKNOWN


def test_exit_codes_are_those_of_the_help():
    """0 no worse, 3 worse, 4 could not tell: 1 and 2 are errors, as everywhere."""
    assert [result.value for result in (Result.NO_WORSE, Result.WORSE, Result.UNKNOWN)] == [0, 3, 4]
