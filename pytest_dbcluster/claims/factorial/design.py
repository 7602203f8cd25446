"""The levels of the rounds: in a block of eight rounds, each option has each of its two levels in four of them.

A combination is a whole number. Its bit ``k`` is 1 in a round in which option ``k`` has its second level.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from pytest_dbcluster.claims.block_order import PER_OPENING, Block, shuffle

PER_LEVEL = PER_OPENING  # rounds of each level of an option in a block
ROUNDS = 2 * PER_LEVEL
PAIRED = tuple(place // 2 for place in range(ROUNDS))  # neighbours are shown as a pair; no claim compares them


def blocks(options: int, seed: int) -> Iterator[Block]:
    """Yield blocks of eight rounds without end; ``order`` has the combination of each round.

    Each option's four rounds at its second level are one of 70 arrangements, drawn independently of the other options.
    The same seed gives the same sequence.
    """
    coin = random.Random(seed)
    while True:
        columns = [shuffle((0, 1) * PER_LEVEL, coin) for _ in range(options)]
        yield Block(tuple(map(combination, zip(*columns, strict=True))), PAIRED)


def warm_ups(options: int, seed: int) -> Iterator[Block]:
    """Yield pairs of rounds without end, for a warm-up: a random combination, and the one without a common level."""
    coin = random.Random(seed)
    while True:
        first = int(coin.random() * 2**options)
        yield Block((first, first ^ (2**options - 1)), (0, 0))


def combination(levels: tuple[int, ...]) -> int:
    """The combination with these levels, 0 or 1, by option."""
    return sum(level << option for option, level in enumerate(levels))


def name_of(number: int, options: int) -> str:
    """The name of a combination: a digit for each option, in their order; 1 is the second level."""
    return "".join(str(number >> option & 1) for option in range(options))


def number_of(name: str) -> int:
    """The combination with this name."""
    return combination(tuple(map(int, name)))
