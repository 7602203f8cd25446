"""The exact distribution of the statistic of an effect, and the looks.

In a stratum, ``m`` rounds have one level and ``n`` the other. If the option does nothing, each choice of the ``m``
rounds is equally likely, whatever the values are. The statistic is Mann-Whitney's U: the number of the ``m n``
comparisons in which the first group is above the second, summed over the strata. It is the sum of the ranks inside the
strata without a constant. Its distribution is counted: by dynamic programming in a stratum, and convolved over them.
Ties count against a rejection, so they only lower its chance.

All looks of an option share its ``alpha`` equally. So the error holds for all of them together (union bound), whatever
their dependence is. Every option has ``alpha`` divided by the number of options.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterable

from pytest_dbcluster.claims.factorial.design import PER_LEVEL
from pytest_dbcluster.claims.repetitions.permutation import arrangements

# Numbers of blocks. With other spreads at the same centre, all rounds of one level can lie on one side of the others
# with a chance of 2**-4 in a block. So no look comes before four blocks.
LOOKS = (4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 28, 34, 40)
PAIRS = tuple(PER_LEVEL * look for look in LOOKS)  # the same as rounds of each level

Shape = tuple[int, int]


@functools.lru_cache(maxsize=512)
def ways(shapes: tuple[Shape, ...]) -> tuple[int, ...]:
    """By U, the number of arrangements of strata with these numbers of rounds at each level, as a running sum."""
    counts = _counts(shapes)
    found, below = [], 0
    for number in counts:
        below += number
        found.append(below)
    return tuple(found)


@functools.lru_cache(maxsize=512)
def _counts(shapes: tuple[Shape, ...]) -> tuple[int, ...]:
    if not shapes:
        return (1,)
    before, own = _counts(shapes[:-1]), arrangements(*shapes[-1])
    counts = [0] * (len(before) + len(own) - 1)
    for one, number in enumerate(before):
        for other, times in enumerate(own):
            counts[one + other] += number * times
    return tuple(counts)


def critical_value(shapes: Iterable[Shape], level: float) -> int | None:
    """The largest U that rejects: the exact chance of this or a smaller U is at most ``level``. None without one."""
    found = ways(tuple(sorted(shapes)))
    reached = bisect.bisect_right(found, level, key=lambda number: number / found[-1])
    return reached - 1 if reached else None


def at_look(level: float) -> float:
    """The level of one look, if ``level`` is that of all looks together."""
    return level / len(LOOKS)


def first_look(level: float) -> int:
    """The number of blocks of the first look that can decide at this level."""
    shape = (PER_LEVEL, PER_LEVEL)
    return next(look for look in LOOKS if critical_value([shape] * look, at_look(level)) is not None)


def last_look(blocks: int) -> int:
    """The last look that so many blocks have reached; 0 before the first."""
    return max((look for look in LOOKS if look <= blocks), default=0)
