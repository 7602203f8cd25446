"""The answer of ``dbcluster compare``: which verdicts make a candidate worse, no worse, or unknown."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest

from pytest_dbcluster.claims import claim as claims
from pytest_dbcluster.claims import kinds, verdict
from pytest_dbcluster.claims.verdict import Terms
from pytest_dbcluster.reporting.tables.no_worse import (
    ComparedWorkload,
    MetricAnswer,
    Result,
    certain_margin,
    equal_margin,
    is_slower,
    judge,
    overall,
    rows,
    sentence,
)
from tests.support.pairs import pairs

GUARD = kinds.no_slower_than(0.05)


def guard(ratio, sd, number, void=(), **terms):
    """The verdict on this many made-up pairs with a true ratio and a spread; drawn look by look, as a run does."""
    source = random.Random(7)
    values = [math.log(ratio) + source.gauss(0, sd) for _ in range(number)]
    return verdict.replay(GUARD, pairs(values, void=void), Terms(**{"out_of_budget": "time is used", **terms}))


def test_a_guard_that_holds_tells_its_own_margin():
    """A candidate that is as fast is no worse by 5 %."""
    found = guard(1.0, 0.01, 40)

    assert certain_margin(found) == pytest.approx(0.05)
    assert judge(found, None) is Result.NO_WORSE


@pytest.mark.parametrize(
    ("ratio", "sd", "margin"),
    [(1.0, 0.01, 0.05), (1.08, 0.01, 0.08), (1.3, 0.01, None), (1.0, 0.9, None), (0.7, 0.01, None)],
    ids=["equal", "a little faster", "faster", "unknown", "slower"],
)
def test_a_difference_is_excluded_on_both_sides(ratio, sd, margin):
    """Neither variant is slower by the margin; beyond 10 % it does not count."""
    found = equal_margin(guard(ratio, sd, 40))

    assert found > 0.10 if margin is None else found == pytest.approx(margin, abs=0.01)


def test_a_difference_of_equal_clusters_is_excluded_too():
    """The margin on separate clusters is wider by it, and the interval after all rounds can be the closer one."""
    found = dataclasses.replace(guard(1.0, 0.01, 40), low=0.98, high=1.02, decided_low=0.96, decided_high=1.2)
    apart = dataclasses.replace(found, claim=dataclasses.replace(found.claim, apart=math.log(1.03)))
    closer = dataclasses.replace(found, low=0.97, high=1.02)

    assert equal_margin(found) == pytest.approx(1 - 1 / 1.2)
    assert equal_margin(found, closer) == 0.05
    assert equal_margin(apart, closer) == pytest.approx(1 - 0.97 / 1.03)


def test_an_open_answer_says_which_differences_are_excluded():
    """From the interval after all rounds; without an interval only the workload is named."""
    verdict = guard(1.0, 0.3, 8)
    found = dataclasses.replace(verdict, low=0.553, high=1.874)
    apart = dataclasses.replace(found, claim=dataclasses.replace(found.claim, apart=math.log(1.05)))
    none = dataclasses.replace(verdict, low=0.0, high=math.inf)
    items = [ComparedWorkload("tpcc", MetricAnswer(each, "goodput", ("", ""))) for each in (found, apart, none)]
    begin = "could not tell whether new is worse than old: tpcc"

    assert [sentence([item], ("old", "new")) for item in items] == [
        f"{begin} (at most 45 % slower, at most 1.87x as fast)",
        f"{begin} (at most 48 % slower, at most 1.97x as fast)",
        begin,
    ]


def test_a_wider_margin_is_told_where_5_per_cent_cannot_be():
    """A candidate that may be 7 % slower is no worse by 7 %, and the margin is that of the 90 % interval."""
    found = guard(0.96, 0.04, 8)

    assert found.outcome is claims.Outcome.INCONCLUSIVE
    assert certain_margin(found) == pytest.approx(1 - found.decided_low)
    assert 0.05 < certain_margin(found) <= 0.10
    assert judge(found, None) is Result.NO_WORSE


def test_a_guard_with_a_wide_margin_tells_what_its_interval_shows():
    """Equal clusters can differ by more than 5 % in p95, so its guard has a wide margin. A faster p95 is known."""
    wide = kinds.no_slower_than(0.25)
    found = [
        verdict.replay(wide, pairs([math.log(ratio) + change for change in (0.1, -0.1) * 4]), Terms())
        for ratio in (3.0, 1.05)
    ]
    assert [one.outcome for one in found] == [claims.Outcome.HOLDS] * 2
    apart = [dataclasses.replace(one, claim=dataclasses.replace(one.claim, apart=math.log(1.2))) for one in found]

    assert [certain_margin(one) for one in apart] == [0.05, pytest.approx(1 - found[1].decided_low / 1.2)]
    items = [
        ComparedWorkload("tpcc", MetricAnswer(guard(1.0, 0.01, 40), "goodput", ("", "")),
                         p95=MetricAnswer(one, "p95", ("", "")))
        for one in apart
    ]  # fmt: skip
    assert [sentence([item], ("old", "new")).endswith("p95 not known") for item in items] == [False, True]
    texts = ["no worse (less than 5 % slower)", "could not tell: it may be up to 21 % slower"]
    assert [rows([item])[1].text for item in items] == texts


def test_a_ratio_without_a_sequential_interval_has_that_of_its_guard():
    """After 8 pairs there is no interval of 99.9 % yet. Without pairs there is none at all."""
    held = guard(1.0, 0.01, 8)
    answer = MetricAnswer(held, "goodput", ("", ""))
    none = dataclasses.replace(answer, verdict=dataclasses.replace(held, decided_low=0.0, decided_high=math.inf))

    assert held.low == 0
    found = [rows([ComparedWorkload("tpcc", one)])[0].figures[2] for one in (answer, none)]
    assert found[0].endswith(f"(90 %: {held.decided_low:.2f} .. {held.decided_high:.2f})")
    assert found[1].endswith("(no interval yet)")


def test_beyond_10_per_cent_nothing_is_told():
    """A candidate that may be 30 % slower, and may be faster, is unknown."""
    assert judge(guard(1.0, 0.3, 8), None) is Result.UNKNOWN


def test_before_the_first_look_nothing_is_told():
    """Three pairs have no interval."""
    found = guard(1.0, 0.01, 3)

    assert certain_margin(found) == math.inf
    assert judge(found, None) is Result.UNKNOWN


def test_a_guard_that_fails_is_worse():
    """A candidate that is 30 % slower is worse."""
    found = guard(0.7, 0.03, 20)

    assert is_slower(found)
    assert judge(found, None) is Result.WORSE


def test_an_interval_below_one_is_worse_too():
    """A candidate that is certainly slower, by more or by less than 5 %, is worse."""
    found = guard(0.94, 0.02, 20)

    assert found.outcome is claims.Outcome.INCONCLUSIVE
    assert found.high < 1
    assert judge(found, None) is Result.WORSE


def test_where_no_verdict_can_be_trusted_nothing_is_told():
    """On a machine that cannot measure the difference, a clear interval says nothing."""
    found = guard(0.7, 0.01, 20, untrusted="no disk writes that fast")

    assert not is_slower(found)
    assert judge(found, None) is Result.UNKNOWN


def test_void_rounds_of_one_variant_alone_tell_nothing():
    """A variant whose slow rounds go void looks faster than it is, in every interval."""
    found = guard(0.97, 0.001, 20, void=((3, True), (7, True)))

    assert "2 of the candidate and 0 of the baseline were void" in found.reason
    assert (found.needed_pairs, found.needed_margin) == (None, None)
    assert not is_slower(found)
    assert judge(found, None) is Result.UNKNOWN


def test_a_worse_p95_makes_a_faster_candidate_worse():
    """Throughput alone does not make up for a tail that is certainly longer."""
    assert judge(guard(1.3, 0.02, 12), guard(0.5, 0.05, 12)) is Result.WORSE


def test_a_p95_that_cannot_be_told_changes_nothing():
    """The throughput decides where p95 has too few rounds."""
    assert judge(guard(1.3, 0.02, 8), guard(1.0, 0.5, 6)) is Result.NO_WORSE


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
    items = [ComparedWorkload(f"workload {number}", None) for number in range(len(results))]
    by_item = {id(item): result for item, result in zip(items, results, strict=True)}
    monkeypatch.setattr(ComparedWorkload, "result", property(lambda self: by_item[id(self)]))

    assert overall(items) is expected


def test_a_workload_without_an_answer_is_unknown():
    """A workload whose time was used before its first round says nothing."""
    assert ComparedWorkload("tpcc", None, reason="its time is used").result is Result.UNKNOWN


def test_exit_codes_are_those_of_the_help():
    """0 no worse, 3 worse, 4 could not tell: 1 and 2 are errors, as everywhere."""
    assert [result.value for result in (Result.NO_WORSE, Result.WORSE, Result.UNKNOWN)] == [0, 3, 4]


def test_what_equal_clusters_can_differ_by_is_not_worse():
    """A candidate on clusters of its own that is 3 % slower is not called worse, and its margin includes f."""
    found = dataclasses.replace(guard(0.97, 0.02, 12), low=0.95, high=0.985, decided_low=0.955, needed_margin=0.08)
    inconclusive = dataclasses.replace(
        found, outcome=claims.Outcome.INCONCLUSIVE, claim=dataclasses.replace(GUARD, apart=math.log(1.039))
    )

    assert not is_slower(inconclusive)
    assert is_slower(dataclasses.replace(inconclusive, claim=GUARD))
    assert certain_margin(inconclusive) == pytest.approx(1 - inconclusive.decided_low / 1.039)
