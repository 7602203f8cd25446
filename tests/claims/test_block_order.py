"""The order of the rounds: every order equally likely, and repeatable from its seed."""

from collections import Counter
from itertools import islice, pairwise, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dbcluster.claims.block_order import block_orders, blocks, openings, pairs_before, seed_of
from tests.support.pairs import orders

seeds = st.integers(0, 2**64 - 1)
SIGMAS = 5.5  # of a count; a fair one is further from its mean once in 20 million


def fair(counts, outcomes):
    """Whether each of so many outcomes occurs as often as an equal share, but for chance."""
    total = sum(counts.values())
    spread = SIGMAS * (total / outcomes) ** 0.5
    return len(counts) == outcomes and all(abs(count - total / outcomes) <= spread for count in counts.values())


def places(block, variant):
    """The places of a variant's rounds in a block, in the order of their pairs."""
    return [place for _, place in sorted((block.pairs[k], k) for k, one in enumerate(block.order) if one == variant)]


@given(st.integers(1, 7), seeds)
def test_an_opening_block_runs_each_variant_four_times(variants, seed):
    """Once for each of its four pairs; a later block runs each variant once."""
    first, later = list(islice(blocks(variants, seed), 3)), list(islice(blocks(variants, seed), 3, 30))
    for block in first:
        assert sorted(zip(block.order, block.pairs, strict=True)) == list(product(range(variants), range(4)))
    for block in later:
        assert (sorted(block.order), set(block.pairs)) == (list(range(variants)), {0})
    assert [block.length for block in first + later] == [4] * 3 + [1] * 27


def test_an_opening_block_may_have_another_length():
    """Repetitions of an event come in blocks of seven of each variant."""
    first, second, later = islice(blocks(2, 37, 2, 7), 3)

    for block in (first, second):
        assert sorted(zip(block.order, block.pairs, strict=True)) == list(product(range(2), range(7)))
    assert later.length == 1
    assert [pairs_before(block, 2, 7) for block in range(4)] == [0, 7, 14, 15]


@given(st.integers(1, 5), seeds, st.integers(0, 30))
def test_a_seed_repeats_its_blocks(variants, seed, length):
    """The same seed gives the same sequence, and a longer one starts like a shorter one."""
    longer = list(islice(blocks(variants, seed), length + 5))
    assert longer[:length] == list(islice(blocks(variants, seed), length))


def test_the_sequence_of_a_seed_is_pinned():
    """A seed printed by an older run still names the same orders."""
    block, _, _, *later = islice(blocks(2, 813), 12)
    assert block.order == (1, 0, 1, 1, 1, 0, 0, 0)
    assert block.pairs == (3, 2, 2, 1, 0, 0, 1, 3)
    assert [one.order[0] for one in later] == [0, 0, 0, 1, 0, 0, 0, 1, 1]


def test_every_arrangement_of_an_opening_block_is_equally_likely():
    """All seventy, so no fixed pattern can meet a periodic disturbance."""
    found = Counter(next(blocks(2, seed)).order for seed in range(15_000))
    assert fair(found, 70)


def test_given_the_matching_each_pair_of_an_opening_block_is_a_fair_coin():
    """All 105 matchings of its places are equally likely, and in each of them all 16 patterns of who runs first."""
    matchings, patterns = Counter(), Counter()
    for seed in range(15_000):
        block = next(blocks(2, seed))
        baseline, candidate = places(block, 0), places(block, 1)
        matched = sorted((min(pair), max(pair), pair[0] < pair[1]) for pair in zip(baseline, candidate, strict=True))
        matchings[tuple((first, second) for first, second, _ in matched)] += 1
        patterns[tuple(first for *_, first in matched)] += 1
    assert fair(matchings, 105)
    assert fair(patterns, 16)


@pytest.mark.parametrize("variants", [3, 5])
def test_two_of_several_variants_are_arranged_as_two_alone(variants):
    """Whichever two: all 70 arrangements are equally likely, and so are all patterns of who runs first in a pair."""
    for one, other in ((0, 1), (variants - 2, variants - 1)):
        arrangements, patterns = Counter(), Counter()
        for seed in range(10_000):
            block = next(blocks(variants, seed))
            arrangements[tuple(number for number in block.order if number in (one, other))] += 1
            pairs = sorted(zip(places(block, one), places(block, other), strict=True), key=min)
            patterns[tuple(first < second for first, second in pairs)] += 1
        assert fair(arrangements, 70)
        assert fair(patterns, 16)


def test_the_pairs_of_steps_that_share_a_variant_are_fair_too():
    """In an order of three, whether the middle one precedes its neighbours: each of the six orders equally often."""
    found = Counter(block.order for seed in range(100) for block in islice(blocks(3, seed), 3, 63))
    assert fair(found, 6)
    assert set(found) == set(permutations(range(3)))


def test_blocks_after_the_opening_blocks_are_fair_coins():
    """AB and BA are equally likely and do not follow each other's lead."""
    coins = [one.order == (0, 1) for seed in range(50) for one in islice(blocks(2, seed), 3, 203)]
    assert 4700 < sum(coins) < 5300
    assert 4700 < sum(a == b for a, b in pairwise(coins)) < 5300


def test_signs_of_all_pairs_are_fair():
    """Nothing is balanced: the number of pairs that begin with the baseline is that of so many fair coins."""
    firsts = Counter(sum(orders(seed, 24)) for seed in range(5000))
    mean = sum(count * times for count, times in firsts.items()) / 5000
    spread = sum((count - mean) ** 2 * times for count, times in firsts.items()) / 5000
    assert abs(mean - 12) < 0.2
    assert 5.4 < spread < 6.6


@pytest.mark.parametrize(("instances", "wanted"), [(1, 3), (2, 4), (3, 3), (4, 4), (5, 5), (7, 7)])
def test_every_instance_has_as_many_opening_blocks(instances, wanted):
    """Three at least, and a multiple of the instances."""
    assert openings(instances) == wanted


def test_pairs_before_a_block_are_counted():
    """Four for each opening block, one for each later block."""
    assert [pairs_before(block, 3) for block in range(6)] == [0, 4, 8, 12, 13, 14]
    assert [pairs_before(block, 0) for block in range(3)] == [0, 1, 2]


def test_orders_for_rounds_that_do_not_count_have_each_variant_once():
    """A warm-up needs no more."""
    assert all(sorted(order) == [0, 1, 2] for order in islice(block_orders(3, 5), 20))
    assert fair(Counter(islice(block_orders(3, 5), 6000)), 6)


def test_a_measurement_has_a_seed_of_its_own():
    """64 bits: the run's seed, mixed with test, workload, variants and number; the same on every machine."""
    names = ("test.py::test_a", "write", "slow", "fast", 0)
    assert seed_of(1, *names) == seed_of(1, *names) == 11923418300236570458
    others = {seed_of(2, *names), seed_of(1, *names[:-1], 1), seed_of(1, "test.py::test_b", *names[1:])}
    assert len({seed_of(1, *names), *others}) == 4
    found = [seed_of(run, "a") for run in range(4000)]
    for bit in range(64):
        assert 1750 < sum(value >> bit & 1 for value in found) < 2250


def test_one_variant_has_one_order():
    """A block of a single variant is that variant."""
    assert [block.order for block in islice(blocks(1, 5), 5)] == [(0,) * 4] * 3 + [(0,)] * 2


@pytest.mark.parametrize("variants", [0, -1])
@pytest.mark.parametrize("draw", [blocks, block_orders])
def test_a_block_without_variants_is_refused(variants, draw):
    """Fewer than one variant is an error that gives the number."""
    with pytest.raises(ValueError, match=f"at least one variant, not {variants}"):
        next(draw(variants, 1))
