"""The order in which the rounds run. It is drawn at random, so the chance of a wrong claim rests only on this draw.

Rounds are drawn in *blocks*. The first blocks are *opening blocks*: four rounds of each variant (eight rounds of two
variants) in a random arrangement. Every later block has one round of each variant, in random order. Two variants of a
block are compared in *pairs*. Inside an opening block a seeded random matching makes four pairs; a later block is one
pair.

What the draw guarantees for two variants, whatever other variants a block has: given the places of the two in an
opening block, all 70 arrangements are equally likely. Given the matching, a fair coin says which of the two runs first
in each of the four pairs. The four coins are independent (70 arrangements x 24 matchings = 105 pairings x 16 patterns
of coins). The same holds for later blocks. Nothing is balanced: a balanced order could meet a wave of the same period.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")
Order = tuple[int, ...]

PER_OPENING = 4  # pairs of an opening block, which is also its rounds of each variant
OPENINGS = 3  # opening blocks of a measurement; more if several instances need as many each


@dataclass(frozen=True)
class Block:
    """The rounds of one block."""

    order: Order
    """The 0-based variant of each round, in the order in which the rounds run."""

    pairs: Order
    """For each of these rounds the 0-based number of its pair inside the block."""

    @property
    def length(self) -> int:
        """The number of pairs, which is also the number of rounds of each variant."""
        return 1 + max(self.pairs)


def openings(instances: int) -> int:
    """The number of opening blocks for this many instances, used in turn: 3 or more, as many on each instance."""
    return -(-OPENINGS // instances) * instances


def pairs_before(block: int, number_of_openings: int, per_opening: int = PER_OPENING) -> int:
    """The number of pairs in the blocks before this one (0-based). ``number_of_openings`` blocks come first."""
    return block + (per_opening - 1) * min(block, number_of_openings)


def blocks(
    variants: int, seed: int, number_of_openings: int = OPENINGS, per_opening: int = PER_OPENING
) -> Iterator[Block]:
    """Yield blocks without end: first the opening blocks, then blocks with one round of each variant.

    The same seed gives the same sequence. per_opening: the pairs of an opening block. Raises ValueError for fewer than
    one variant.
    """
    _check(variants)
    coin = random.Random(seed)
    for _ in range(number_of_openings):
        yield _opening_block(variants, coin, per_opening)
    while True:
        yield Block(shuffle(range(variants), coin), (0,) * variants)


def block_orders(variants: int, seed: int) -> Iterator[Order]:
    """Yield random orders of the variants, without end, for rounds that count for no claim, such as a warm-up.

    The same seed gives the same sequence. Raises ValueError for fewer than one variant.
    """
    _check(variants)
    coin = random.Random(seed)
    while True:
        yield shuffle(range(variants), coin)


def seed_of(run: int, *names: object) -> int:
    """The seed of one measurement, 64 bits: the run's seed, mixed with the names of the measurement (SHA-256).

    So the orders of two measurements have nothing in common, and a repeated run repeats all of them.
    """
    text = "\0".join(map(str, (run, *names)))
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()[:8], "big")


def _check(variants: int) -> None:
    if variants < 1:
        raise ValueError(f"a block needs at least one variant, not {variants}")


def _opening_block(variants: int, coin: random.Random, pairs: int) -> Block:
    order = shuffle([number for number in range(variants) for _ in range(pairs)], coin)
    matching = [iter(shuffle(range(pairs), coin)) for _ in range(variants)]
    return Block(order, tuple(next(matching[number]) for number in order))


def shuffle(items: Sequence[Item], coin: random.Random) -> tuple[Item, ...]:
    """Return a random permutation; it uses only ``random()``, which gives the same sequence in every Python."""
    return tuple(sorted(items, key=lambda _: coin.random()))
