"""The levels of the rounds: four rounds of each level in a block, drawn for each option independently."""

from __future__ import annotations

import collections
import itertools

from pytest_dbcluster.claims.factorial import design

BLOCKS = 14_000


def test_each_option_has_each_level_in_four_rounds_of_a_block():
    """Whatever the other options have."""
    for block in itertools.islice(design.blocks(5, 7), 50):
        assert len(block.order) == 8
        assert block.length == 4
        for option in range(5):
            assert sum(number >> option & 1 for number in block.order) == 4


def test_the_seventy_arrangements_are_equally_likely_and_those_of_two_options_independent():
    """Each of the 70, and each way in which the rounds of two options can overlap, comes as often as it should."""
    arrangements, overlaps = collections.Counter(), collections.Counter()
    for block in itertools.islice(design.blocks(2, 3), BLOCKS):
        arrangements[tuple(number & 1 for number in block.order)] += 1
        overlaps[sum(number == 3 for number in block.order)] += 1

    assert len(arrangements) == 70
    assert 140 < min(arrangements.values()) <= max(arrangements.values()) < 260  # 200 expected, sd 14
    for overlap, ways in enumerate((1, 16, 36, 16, 1)):
        assert abs(overlaps[overlap] / BLOCKS - ways / 70) < 0.015


def test_the_same_seed_gives_the_same_levels():
    """Another seed gives others."""
    first, again, other = (list(itertools.islice(design.blocks(3, seed), 6)) for seed in (1, 1, 2))

    assert first == again
    assert first != other


def test_a_warm_up_has_both_levels_of_each_option():
    """The two rounds of a block of the warm-up share no level."""
    for block in itertools.islice(design.warm_ups(4, 5), 20):
        assert block.order[0] ^ block.order[1] == 0b1111
        assert block.length == 1


def test_a_combination_has_a_digit_for_each_option():
    """Its name and its number are the same thing."""
    assert design.combination((1, 0, 1)) == 5
    assert design.name_of(5, 4) == "1010"
    assert all(design.number_of(design.name_of(number, 4)) == number for number in range(16))
