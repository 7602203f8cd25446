"""The order in which the variants of each block run: balanced in the first six blocks, then random by a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Order = tuple[int, ...]

BALANCED_ROWS = 3


def block_orders(variants: int, seed: int) -> Iterator[Order]:
    """Yield the order of each block, without end; each order is a permutation of ``range(variants)``.

    In the first six blocks every variant runs before every other variant three times. So an effect of the position
    inside a block cannot make six pairs agree. The balanced rows are the cyclic shifts of a shuffled row (a Latin
    square: each variant at each position once) and their reverses. Every later block is a new shuffle. The same seed
    gives the same sequence. Raises ValueError for fewer than one variant.
    """
    if variants < 1:
        raise ValueError(f"a block needs at least one variant, not {variants}")
    coin = random.Random(seed)
    first = _shuffled(range(variants), coin)
    shifts = [first[k:] + first[:k] for k in range(variants)]
    if variants < BALANCED_ROWS:
        shifts = [first] * BALANCED_ROWS
    rows = _shuffled(shifts, coin)
    for start in range(0, len(rows), BALANCED_ROWS):
        chosen = rows[start : start + BALANCED_ROWS]
        yield from _shuffled([*chosen, *(row[::-1] for row in chosen)], coin)
    while True:
        yield _shuffled(range(variants), coin)


def _shuffled(items: Sequence[Item], coin: random.Random) -> tuple[Item, ...]:
    """Return a random permutation; it uses ``random()`` alone, which gives the same sequence in every Python."""
    return tuple(sorted(items, key=lambda _: coin.random()))
