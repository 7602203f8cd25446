"""Rounds that ran after the hosts had used up a lent speed: they are shown, and decide no claim."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.lent_speed import LentSpeed
from pytest_dbcluster.measuring.measurement import Measurement, Rules
from pytest_dbcluster.measuring.series import Series, ordered, series_of
from tests.support.fakes import FakeSource, noisy

WHY = "server1: the burst credits of its volume are used up"


@dataclasses.dataclass
class Lent(FakeSource):
    """Hosts whose lent speed lasts for so many rounds; it comes back after ``regained`` rounds."""

    lasts: float = float("inf")
    regained: float = float("inf")

    def lent(self) -> str:
        """Why it is used up."""
        return WHY if self.lasts < len(self.rounds) <= self.regained else ""


def compared(speed: float = 1.5, **how: float) -> tuple[Series, Series, Measurement]:
    """A baseline, and a candidate of so many times its speed, and their measurement."""
    measurement = Measurement(Lent(("slow", "fast"), noisy(1.0, 1 / speed, sd=0.02), **how), Rules(seed=1))  # type: ignore[arg-type]
    slow, fast = series_of(measurement)
    return slow, fast, measurement


def shown(answer: Answer) -> tuple[Outcome, str]:
    """How a claim ended, and why."""
    return answer.verdict.outcome, answer.verdict.reason


def test_a_claim_is_decided_while_it_lasts() -> None:
    """What ran out after the deciding look changes nothing."""
    slow, fast, measurement = compared()
    assert shown(fast.beats(slow))[0] is Outcome.HOLDS
    used = len(measurement.source.rounds)  # type: ignore[attr-defined]
    slow, fast, _ = compared(lasts=used)

    assert shown(fast.beats(slow))[0] is Outcome.HOLDS


def test_a_claim_ends_inconclusive_where_it_runs_out() -> None:
    """With the reason of the hosts, and without another block: more rounds would show nothing."""
    slow, fast, measurement = compared(speed=1.01, lasts=25)
    answer = fast.beats(slow)

    assert shown(answer) == (Outcome.INCONCLUSIVE, WHY)
    assert measurement.pairs <= 16
    with pytest.raises(Exception, match=WHY):
        bool(answer)


def test_what_was_used_up_before_the_first_block_decides_nothing() -> None:
    """Not even a difference that is seen at the first look."""
    slow, fast, measurement = compared(speed=4.0, lasts=-1)

    assert shown(fast.beats(slow)) == (Outcome.INCONCLUSIVE, WHY)
    assert measurement.pairs == 4


def test_a_second_claim_is_decided_by_the_rounds_before() -> None:
    """It replays the looks: those before the end of the lent speed decide, those after it do not."""
    slow, fast, measurement = compared(speed=1.5)
    decided = fast.beats(slow).verdict.pairs
    used = 2 * len(measurement.source.rounds)  # type: ignore[attr-defined]
    slow, fast, measurement = compared(speed=1.5, lasts=used)

    undecided = fast.beats(slow, by=0.5)  # its bound is the ratio: it draws on until the speed runs out
    assert shown(undecided) == (Outcome.INCONCLUSIVE, WHY)
    assert (shown(fast.beats(slow))[0], fast.beats(slow).verdict.pairs) == (Outcome.HOLDS, decided)
    assert measurement.lent_speed.pairs >= decided


def test_an_order_and_stalls_are_inconclusive_too() -> None:
    """As every claim about speed."""
    source = Lent(("a", "b", "c"), noisy(4.0, 2.0, 1.0, sd=0.02), lasts=-1)
    first, second, third = series_of(Measurement(source, Rules(seed=1)))

    assert shown(ordered(first, second, third))[0] is Outcome.INCONCLUSIVE
    assert WHY in shown(ordered(first, second, third))[1]
    assert shown(third.no_more_stalls_than(first)) == (Outcome.INCONCLUSIVE, WHY)


def test_counters_do_not_depend_on_it() -> None:
    """A claim about what a commit does is decided at any speed."""
    counters = {0: {"fsyncs": 100.0}, 1: {"fsyncs": 10.0}}
    source = Lent(("more", "less"), noisy(1.0, 1.0), counters=counters.__getitem__, lasts=-1)
    more, less = series_of(Measurement(source, Rules(seed=1)))

    assert less.lower("fsyncs", than=more).verdict.outcome is Outcome.HOLDS


def test_what_comes_back_does_not_count_again() -> None:
    """A measurement whose blocks ran at two speeds stays undecided."""
    slow, fast, _ = compared(lasts=1, regained=10)

    assert shown(fast.beats(slow)) == (Outcome.INCONCLUSIVE, WHY)


def test_dropped_pairs_are_not_trusted() -> None:
    """When the rounds begin again, no pair is left that was drawn while it lasted."""
    lent = LentSpeed(Lent(("a", "b"), noisy(1.0, 1.0), lasts=-1))
    lent.look(12)
    assert (lent.pairs, lent.reason) == (12, WHY)
    lent.drop()

    assert (lent.pairs, lent.reason) == (0, WHY)
