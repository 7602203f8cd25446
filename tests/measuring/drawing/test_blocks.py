"""The blocks of a measurement as a value: what counts, what was void, and what is drawn next."""

from __future__ import annotations

import pytest

from pytest_dbcluster.measuring.drawing.blocks import DrawnBlocks
from pytest_dbcluster.rounds.round import Round, RunResult

NAMES = ("slow", "fast")


def rounds_of(block, number, void=""):
    """The rounds of a block, each with its position for its seconds."""
    return [
        Round(NAMES[variant], number, position, RunResult(1.0 + position, 100, 100), 0.0, 0.0, {}, void=void)
        for position, variant in enumerate(block.order)
    ]


def drawn(blocks, count):
    """Count so many blocks."""
    for _ in range(count):
        block = blocks.upcoming()
        blocks.count(block, rounds_of(block, len(blocks.counted)))
    return blocks


def test_a_block_is_the_next_one_until_it_counts():
    """One that was interrupted is drawn again."""
    blocks = DrawnBlocks(NAMES, 7, 3)
    first = blocks.upcoming()

    assert blocks.upcoming() is first
    drawn(blocks, 1)
    assert blocks.upcoming() is not first
    assert (blocks.pairs, blocks.counted) == (4, [first])


def test_the_rounds_of_a_pair_have_the_same_place():
    """The n-th round of each variant is of the n-th pair of the block."""
    blocks = DrawnBlocks(NAMES, 7, 3)
    block = blocks.upcoming()
    drawn(blocks, 1)

    for pair in range(4):
        assert [block.pairs[series[pair].position] for series in blocks.rounds] == [pair, pair]


def test_seconds_are_those_of_the_variants():
    """Each variant's rounds are counted for it."""
    blocks = drawn(DrawnBlocks(NAMES, 7, 3), 1)

    assert blocks.seconds([0]) + blocks.seconds([1]) == blocks.seconds([0, 1]) == sum(range(1, 9))
    assert blocks.seconds([]) == 0


@pytest.mark.parametrize(("count", "pairs"), [(0, 4), (2, 4), (3, 1), (9, 1)])
def test_the_pairs_of_the_next_block_are_known_before(count, pairs):
    """Four while opening blocks are left, then one."""
    assert drawn(DrawnBlocks(NAMES, 7, 3), count).next_pairs == pairs


def test_beginning_again_drops_all_and_draws_another_order():
    """With as many opening blocks; the pairs that were dropped are remembered."""
    blocks = drawn(DrawnBlocks(NAMES, 7, 3), 4)
    orders = [block.order for block in blocks.counted]
    blocks.void.append(rounds_of(blocks.upcoming(), 4, "the primary changed"))
    blocks.begin_again()

    assert (blocks.pairs, blocks.counted, blocks.void, blocks.dropped, blocks.restarts) == (0, [], [], 13, 1)
    drawn(blocks, 4)
    assert blocks.pairs == 13
    assert [block.order for block in blocks.counted] != orders


def test_without_opening_blocks_each_block_is_one_pair():
    """From the first block on."""
    blocks = DrawnBlocks(NAMES, 7, 3)
    blocks.leave_out_openings()

    assert drawn(blocks, 3).pairs == 3
    assert [block.length for block in blocks.counted] == [1, 1, 1]


@pytest.mark.parametrize("kept", range(9))
def test_whole_pairs_of_an_interrupted_opening_block_count_as_later_blocks(kept):
    """Both rounds of a pair, or neither."""
    blocks = drawn(DrawnBlocks(NAMES, 7, 3), 1)
    block = blocks.upcoming()
    begun = rounds_of(block, 1)[:kept]
    blocks.count_whole_pairs(block, begun)
    whole = sum(block.pairs[:kept].count(pair) == 2 for pair in range(4))

    assert [len(series) for series in blocks.rounds] == [4 + whole] * 2
    assert [one.length for one in blocks.counted] == [4] + [1] * whole
    assert blocks.openings == (1 if kept else 3)


def test_a_warm_up_that_was_interrupted_counts_for_nothing():
    """Its blocks have negative numbers."""
    blocks = DrawnBlocks(NAMES, 7, 3)
    block = blocks.upcoming()
    blocks.count_whole_pairs(block, rounds_of(block, -5))

    assert (blocks.pairs, blocks.openings) == (0, 3)


def test_void_rounds_are_placed_by_the_pairs_before_them():
    """Each with whether it was the candidate's; the round that was drawn again with it is left out."""
    blocks = drawn(DrawnBlocks(NAMES, 7, 3), 4)
    block = blocks.upcoming()
    first, second = rounds_of(block, 4, "gone")[0], rounds_of(block, 4)[1]
    blocks.void.append([first, second])

    assert blocks.void_rounds(1, 0) == ((13, first.variant == "fast"),)
    assert (blocks.void_within(13), blocks.void_within(14)) == ([], [[first, second]])
