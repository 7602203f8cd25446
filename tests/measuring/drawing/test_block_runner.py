"""One block: who has the machine while it runs, and what is shown of it."""

from __future__ import annotations

import contextlib

import pytest

from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of
from tests.support.fakes import noisy
from tests.support.measurements import measurement, two


def test_rounds_are_alone_where_the_source_can_be():
    """As many in a turn as there are variants, warm-ups too, so that others get the machine inside an opening block."""
    source, turns = two(), []

    @contextlib.contextmanager
    def exclusive():
        before = len(source.rounds)
        yield
        turns.append(source.rounds[before:])

    source.exclusive = exclusive
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow)

    assert [len(turn) for turn in turns] == [2] * (len(source.rounds) // 2)


def test_progress_is_told_of_each_round():
    """It knows the pair, whether it counts, and after the first look the ratio so far."""
    told = []
    source = two(seconds=noisy(1.0, 0.95, sd=0.05))
    asked = Measurement(source, Rules(seed=7), progress=told.append)
    slow, fast = series_of(asked)
    fast.same_as(slow, within=0.5)

    assert len(told) == len(source.rounds)
    assert [one.warm_up for one in told] == [block < 0 for _, block, _ in source.rounds]
    assert {one.ratio for one in told if one.pair <= 4} == {None}
    counted = [one.pair for one in told if not one.warm_up]
    assert counted == [n // 2 + 1 for n in range(len(counted))]
    assert [one.last for one in told] == [n % 2 == 1 for n in range(len(told))]


@pytest.mark.parametrize(("claim", "looks"), [("same_as", {8, 12, 14}), ("beats", {12, 14}), ("against", {12, 14})])
def test_the_next_look_is_one_that_can_decide(claim, looks):
    """A guard is judged from 8 pairs on, other claims from 12. The progress names the claim, a warm-up has none."""
    told = []
    slow, fast = series_of(Measurement(two(seconds=noisy(1.0, 1.0)), Rules(seed=7, cap=14), progress=told.append))
    ask = {
        "same_as": lambda: fast.same_as(slow, within=0.01),
        "beats": lambda: fast.beats(slow),
        "against": lambda: fast.against(slow),
    }
    ask[claim]()

    assert {one.next_look for one in told if not one.warm_up} == looks
    assert {(one.warm_up, one.claim) for one in told} == {(True, ""), (False, claim)}
    assert [one.opening for one in told if not one.warm_up] == [8] * 24 + [0] * 4
