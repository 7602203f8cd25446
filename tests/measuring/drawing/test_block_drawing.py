"""Drawing rounds: opening blocks and later blocks, void rounds, the cap."""

from __future__ import annotations

import math

import pytest

from pytest_dbcluster.errors import SeriesVoid
from pytest_dbcluster.measuring.series import series_of
from tests.support.facts import missing
from tests.support.fakes import FakeSource, noisy
from tests.support.measurements import measured, measurement, two


def steady(variant):
    """Seconds without noise."""
    return (1.0, 0.5)[variant]


def test_the_first_blocks_are_opening_blocks():
    """Four rounds of each variant in a drawn arrangement; a block is never cut short."""
    source = two()
    slow, fast = series_of(measurement(source))
    assert fast.beats(slow)

    rounds = measured(source)
    assert [block for _, block, _ in rounds] == [0] * 8 + [1] * 8 + [2] * 8
    assert [position for _, _, position in rounds] == [*range(8)] * 3
    for opening in (rounds[:8], rounds[8:16], rounds[16:]):
        assert sorted(number for number, _, _ in opening) == [0] * 4 + [1] * 4


def test_blocks_after_three_opening_blocks_hold_each_variant_once():
    """In an order drawn for each."""
    source = two(seconds=noisy(1.0, 1.0, sd=0.3))
    asked = measurement(source)
    for _ in range(20):
        asked.drawing.draw([0, 1])

    rounds = measured(source)[24:]
    assert [(block, position) for _, block, position in rounds] == [(3 + n // 2, n % 2) for n in range(34)]
    assert all({rounds[n][0], rounds[n + 1][0]} == {0, 1} for n in range(0, 34, 2))
    assert {rounds[n][0] for n in range(0, 34, 2)} == {0, 1}
    assert asked.pairs == 12 + 17


def test_the_rounds_of_an_opening_block_are_matched_at_random():
    """The n-th rounds of both variants are a pair; who ran first is in the pairs, in the order of the match."""
    source = FakeSource(("slow", "fast"), lambda variant: float(len(source.rounds)))
    asked = measurement(source)
    asked.drawing.draw([0, 1])
    first, second = ([done.position for done in series] for series in asked.rounds)

    assert sorted(first + second) == [*range(8)]
    assert first != sorted(first) or second != sorted(second)
    pairs = asked.values.pairs(1, 0, "throughput")
    assert list(pairs.baseline_first) == [a < b for a, b in zip(first, second, strict=True)]
    assert pairs.ratios == pytest.approx(
        [math.log(a.seconds / b.seconds) for a, b in zip(asked.rounds[0], asked.rounds[1], strict=True)]
    )
    assert (pairs.openings, pairs.instances) == (3, 1)


def test_several_instances_have_as_many_opening_blocks_each():
    """Two instances have four opening blocks in turn, and no look before both have one, nor after three."""
    source = two(seconds=noisy(1.0, 0.97, sd=0.002))
    source.instances_in_turn = lambda: 2
    asked = measurement(source)
    slow, fast = series_of(asked)
    assert fast.same_as(slow, within=0.1).verdict.pairs == 8
    while asked.pairs < 18:
        asked.drawing.draw([0, 1])

    assert [block for _, block, position in measured(source) if not position] == [0, 1, 2, 3, 4, 5]
    assert [len(block.order) for block in asked.drawing.blocks.counted] == [8, 8, 8, 8, 2, 2]
    assert asked.values.pairs(1, 0, "throughput").instances == 2


@pytest.mark.parametrize(("cap", "drawn"), [(1, 1), (3, 3), (4, 4), (7, 4), (8, 8), (13, 12), (16, 14)])
def test_no_more_pairs_are_drawn_than_the_cap(cap, drawn):
    """An opening block that would exceed it is not begun; below one opening block the pairs are drawn one by one."""
    asked = measurement(two(seconds=noisy(1.0, 1.0, sd=0.3)), cap=cap)
    slow, fast = series_of(asked)

    assert fast.beats(slow, by=0.01).verdict.reason == f"cap of {cap} pairs"
    assert asked.pairs == drawn


def test_a_void_round_of_an_opening_block_is_repeated_in_its_place():
    """The other rounds of the opening block stay, and so does its arrangement."""
    plain, source = two(seconds=steady), two(voids=("",) * 5 + ("the primary changed",), seconds=steady)
    measurement(plain).drawing.draw([0, 1])
    asked = measurement(source)
    asked.drawing.draw([0, 1])

    rounds = measured(source)
    assert rounds[1] == rounds[2]
    assert [*rounds[:1], *rounds[2:]] == measured(plain)
    void = [[(done.position, done.void) for done in block] for block in asked.drawing.blocks.void]
    assert void == [[(1, "the primary changed")]]
    assert [len(series) for series in asked.rounds] == [4, 4]


def test_a_later_void_block_is_drawn_again_in_the_same_order():
    """A round that does not count takes its whole block with it."""
    source = two(voids=("",) * (4 + 24 + 1) + ("the primary changed",), seconds=steady)
    asked = measurement(source)
    for _ in range(4):
        asked.drawing.draw([0, 1])

    rounds = measured(source)[24:]
    assert len(rounds) == 4
    assert rounds[:2] == rounds[2:]
    assert [len(block) for block in asked.drawing.blocks.void] == [2]
    assert asked.pairs == 13


def test_void_rounds_are_in_the_message():
    """How many of each variant were drawn again, and why; they are no rounds of a series."""
    source = two(voids=("",) * 5 + ("the primary changed",), seconds=steady)
    asked = measurement(source)
    slow, fast = series_of(asked)
    answer = fast.beats(slow)
    variant = source.names[source.rounds[5][0]]

    line = f"\n  void rounds, drawn again: {variant} 1: {variant}: the primary changed"
    assert answer.message.endswith(line)
    assert [len(block) for block in asked.drawing.blocks.void_within(8)] == [1]
    assert not any(one.void for one in (*slow.rounds, *fast.rounds))


def test_a_claim_counts_the_void_rounds_among_its_own():
    """One that was void after the pairs of a claim is no matter of it."""
    source = two(voids=("",) * (4 + 24) + ("the primary changed",), seconds=steady)
    asked = measurement(source)
    slow, fast = series_of(asked)
    assert fast.beats(slow)
    asked.drawing.draw([0, 1])

    blocks = asked.drawing.blocks
    assert (len(blocks.void), blocks.void_within(12), len(blocks.void_within(13))) == (1, [], 1)
    assert fast.beats(slow).verdict.void == (0, 0)


def test_too_many_void_rounds_are_an_error():
    """More than a tenth of the pairs, and more than one: the error counts them and says why the last one was void."""
    source = two(voids=("",) * 4 + ("semi-sync fell back",) * 100, seconds=lambda variant: 1.0)
    slow, fast = series_of(measurement(source))

    with pytest.raises(SeriesVoid) as caught:
        fast.beats(slow)
    variant = source.names[source.rounds[4][0]]
    counts = ("2 times", "fake load", "void", "4 pairs")
    assert missing(caught.value, *counts, f": {variant}: semi-sync fell back") == []
