"""Change points: where the level of a series of runs changed. Pure functions.

Each step looks for the split of a series whose two means differ most. It compares this split with those of shuffled
series. Without a change every order of the values is equally likely. If the split is larger, it is a change, and both
sides are searched again. The runs are assumed to be independent: a machine that becomes slower day by day gives change
points too.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from collections.abc import Sequence

ALPHA = 0.001  # chance that a series without a change shows one at the first step
SHUFFLES = 4999
LEAST = 4  # values on either side of a change


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of a series' level."""

    first: int
    """The number of the first value after the change, 0-based."""

    size: float
    """The mean after the change minus the mean before it, up to the next changes."""

    chance: float
    """The share of shuffled series with a split as large: (b + 1) / (m + 1) for b of m shuffles."""


def change_points(values: Sequence[float]) -> list[Change]:
    """The changes of a series, in its order; always the same for the same series."""
    drawn = random.Random(1)  # a fixed seed
    found = _splits(values, 0, drawn)
    if not found:
        return []
    borders = [0, *(first for first, _ in found), len(values)]
    means = [_mean(values[a:b]) for a, b in itertools.pairwise(borders)]
    return [Change(first, means[number + 1] - means[number], chance) for number, (first, chance) in enumerate(found)]


def _splits(values: Sequence[float], offset: int, drawn: random.Random) -> list[tuple[int, float]]:
    """The first value of each change and its chance; ``offset``: the number of the first of these values."""
    place, height = _largest(values)
    if not height > 0:
        return []
    shuffled, larger = list(values), 0
    allowed = int(ALPHA * (SHUFFLES + 1)) - 1
    for _ in range(SHUFFLES):
        drawn.shuffle(shuffled)
        larger += _largest(shuffled)[1] >= height * (1 - 1e-12)  # an equal split may differ in its last bit
        if larger > allowed:
            return []
    chance = (larger + 1) / (SHUFFLES + 1)
    before = _splits(values[:place], offset, drawn)
    return [*before, (offset + place, chance), *_splits(values[place:], offset + place, drawn)]


def _largest(values: Sequence[float]) -> tuple[int, float]:
    """The split with the largest difference of means, in units of its standard error for equal variances.

    Returns the number of values before it and the difference; (0, 0.0) for too few values.
    """
    count = len(values)
    if count < 2 * LEAST:
        return 0, 0.0
    centre = _mean(values)
    left, place, height = 0.0, 0, 0.0
    for k, value in enumerate(values[: count - LEAST], 1):
        left += value - centre
        # The means differ by left * count / (k (count - k)), with an error like sqrt(count / (k (count - k))).
        if k >= LEAST and (found := abs(left) * math.sqrt(count / (k * (count - k)))) > height:
            place, height = k, found
    return place, height


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
