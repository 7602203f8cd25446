"""The order of variants: balanced, random, and repeatable from its seed."""

from collections import Counter
from itertools import islice, pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dbcluster.claims.block_order import block_orders

seeds = st.integers(0, 2**63)


@settings(deadline=None)
@given(st.integers(1, 7), seeds)
def test_every_block_runs_each_variant_once(variants, seed):
    """A block is a permutation of the variants, in the balanced rows and after them."""
    for order in islice(block_orders(variants, seed), 40):
        assert sorted(order) == list(range(variants))


@settings(deadline=None)
@given(st.integers(2, 7), seeds)
def test_the_first_six_blocks_balance_every_pair(variants, seed):
    """Each variant runs before each other one in exactly three of the first six blocks."""
    first = list(islice(block_orders(variants, seed), 6))
    for a, b in permutations(range(variants), 2):
        assert sum(order.index(a) < order.index(b) for order in first) == 3


@settings(deadline=None)
@given(st.integers(3, 7), seeds)
def test_more_than_two_variants_take_every_place_equally_often(variants, seed):
    """The balanced rows put each variant into each place twice."""
    rows = list(islice(block_orders(variants, seed), 2 * variants))
    for place in range(variants):
        assert set(Counter(row[place] for row in rows).values()) == {2}


@settings(deadline=None)
@given(st.integers(1, 5), seeds, st.integers(0, 30))
def test_a_seed_repeats_its_orders(variants, seed, length):
    """The same seed gives the same sequence, and a longer one starts like a shorter one."""
    longer = list(islice(block_orders(variants, seed), length + 5))
    assert longer[:length] == list(islice(block_orders(variants, seed), length))


def test_the_sequence_of_a_seed_is_pinned():
    """A seed printed by an older run still names the same orders."""
    assert list(islice(block_orders(2, 813), 10)) == [(b, 1 - b) for b in (1, 1, 0, 1, 0, 0, 1, 1, 0, 1)]


def test_the_balanced_blocks_come_in_every_arrangement():
    """All twenty arrangements of 3 AB and 3 BA occur, so no fixed pattern can meet a periodic disturbance."""
    seen = {tuple(islice(block_orders(2, seed), 6)) for seed in range(1000)}
    assert len(seen) == 20


def test_later_blocks_are_fair_coins():
    """After the sixth block AB and BA are equally likely and do not follow each other's lead."""
    blocks = [order == (0, 1) for seed in range(50) for order in islice(block_orders(2, seed), 6, 206)]
    repeats = sum(a == b for a, b in pairwise(blocks))
    assert 4700 < sum(blocks) < 5300
    assert 4700 < repeats < 5300


def test_one_variant_has_one_order():
    """A block of a single variant is that variant."""
    assert list(islice(block_orders(1, 5), 8)) == [(0,)] * 8


@pytest.mark.parametrize("variants", [0, -1])
def test_a_block_without_variants_is_refused(variants):
    """Fewer than one variant is an error that gives the number."""
    with pytest.raises(ValueError, match=f"at least one variant, not {variants}"):
        next(block_orders(variants, 1))
