"""The total difference of a counter, for ``lower``: its test, estimate and interval. Pure functions.

Ranks say little about a counter that is often 0: a pair with nothing on both sides is no evidence, and a count of 30 is
more than a count of 1. So the baseline's values are scaled to the claim's bound, and the candidate's total is compared
with the totals of all other orders that could have been drawn. That distribution is exact: where the
candidate is exactly on the bound, the scaled values are fixed numbers, and only the labels of the variants are random.

- Looks at 8 and 12 pairs: all 70 arrangements of each eight.
- Looks from 14 pairs on: both orders of each pair. A pair with nothing on both sides leaves first.

A look rejects where the share of orders with such a total is at most the chance that the critical value of this look
has (``critical_values``). So all looks together keep the level, as they do for ranks. Values are rounded to a grid,
which does not depend on the labels: then all orders can be counted, and the rounding costs no exactness.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Sequence

from pytest_dbcluster.claims import critical_values
from pytest_dbcluster.claims.block_order import PER_EIGHT
from pytest_dbcluster.claims.critical_values import RANKS_FROM
from pytest_dbcluster.claims.pairs import LARGEST_LOG, Pairs

Interval = tuple[float, float]

GRID = 100  # steps of the grid in the largest difference
ROUNDING = 1e-12  # a difference below this share of the values is a rounding error
PRECISE = 1e-4  # of the ends of an interval, as log ratios


def rejects(pairs: Pairs, level: float, bound: float) -> tuple[bool, bool]:
    """Whether the look at this number of pairs shows that the log ratio is (above, below) the bound."""
    if math.isinf(bound):
        return bound == -math.inf, bound == math.inf
    most = chance(level, len(pairs))
    return chance_above(pairs, bound) <= most, chance_below(pairs, bound) <= most


@functools.lru_cache(maxsize=256)
def chance(level: float, look: int) -> float:
    """The exact chance of this look to reject wrongly towards one side; 0 where it cannot speak."""
    value = critical_values.boundary(level).at(look)
    if value is None:
        return 0.0
    if look >= RANKS_FROM:
        return share_of_signs(range(1, look + 1), value)
    eights = [range(2 * PER_EIGHT)] * (look // PER_EIGHT)
    return share_of_arrangements(eights, sum(sum(eight[PER_EIGHT:]) for eight in eights) - value)


def chance_above(pairs: Pairs, bound: float) -> float:
    """The chance of a total of the candidate as high as it is or higher, if the log ratio is ``bound``."""
    candidate, baseline = scaled(pairs, bound)
    return _chance_of_total(pairs, candidate, baseline)


def chance_below(pairs: Pairs, bound: float) -> float:
    """The chance of a total of the candidate as low as it is or lower, if the log ratio is ``bound``."""
    candidate, baseline = scaled(pairs, bound)
    return _chance_of_total(pairs, baseline, candidate)


def scaled(pairs: Pairs, bound: float = 0.0) -> tuple[list[float], list[float]]:
    """The values of candidate and baseline, those of the baseline times the ratio of the bound."""
    factor = math.exp(bound)
    candidate, baseline = (
        [math.exp(min(log, LARGEST_LOG)) for log in logs] for logs in (pairs.candidate, pairs.baseline)
    )
    return candidate, [factor * value for value in baseline]


def _chance_of_total(pairs: Pairs, ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The share of orders that give ``ours`` a total as high as it is or higher."""
    if len(pairs) >= RANKS_FROM:
        steps = _on_grid(
            [a - b if abs(a - b) > ROUNDING * max(a, b) else 0.0 for a, b in zip(ours, theirs, strict=True)]
        )
        return share_of_signs([abs(step) for step in steps if step], sum(step for step in steps if step > 0))
    if len(pairs) != PER_EIGHT * pairs.whole_eights:
        return 1.0
    rounds = [slice(start, start + PER_EIGHT) for start in range(0, len(pairs), PER_EIGHT)]
    eights = [[*ours[eight], *theirs[eight]] for eight in rounds]
    lowest = [min(eight) for eight in eights]
    above = [value - least for eight, least in zip(eights, lowest, strict=True) for value in eight]
    steps = _on_grid([value if value > ROUNDING * max(map(max, eights)) else 0.0 for value in above])
    by_eight = [steps[start : start + 2 * PER_EIGHT] for start in range(0, len(steps), 2 * PER_EIGHT)]
    return share_of_arrangements(by_eight, sum(sum(eight[:PER_EIGHT]) for eight in by_eight))


def _on_grid(values: Sequence[float]) -> list[int]:
    largest = max(map(abs, values), default=0.0)
    return [round(GRID * value / largest) for value in values] if largest else [0] * len(values)


def share_of_signs(weights: Iterable[int], least: int) -> float:
    """The share of all ways to choose some of these weights whose sum is ``least`` or more."""
    ordered = tuple(sorted(weights))
    width = len(ordered) + 2
    return float(_digits_from(_ways_of_signs(ordered, width), width, least) / 2 ** len(ordered))


def share_of_arrangements(eights: Iterable[Iterable[int]], least: int) -> float:
    """The share of all ways to choose four values of each eight whose sum is ``least`` or more."""
    ordered = tuple(tuple(sorted(eight)) for eight in eights)
    arrangements = math.comb(2 * PER_EIGHT, PER_EIGHT) ** len(ordered)
    width = arrangements.bit_length() + 1
    return float(_digits_from(_ways_of_arrangements(ordered, width), width, least) / arrangements)


@functools.lru_cache(maxsize=8)
def _ways_of_signs(weights: tuple[int, ...], width: int) -> int:
    """The number of ways to each sum, as a digit of ``width`` bits of one large number.

    So adding a weight is a shift and an addition.
    """
    ways = 1
    for weight in weights:
        ways += ways << (weight * width)
    return ways


@functools.lru_cache(maxsize=8)
def _ways_of_arrangements(eights: tuple[tuple[int, ...], ...], width: int) -> int:
    """As ``_ways_of_signs``, of four values from each eight."""
    each = (sum(1 << (sum(chosen) * width) for chosen in itertools.combinations(eight, PER_EIGHT)) for eight in eights)
    return math.prod(each)


def _digits_from(number: int, width: int, first: int) -> int:
    """The sum of the digits of ``width`` bits from this one on: what remains of a division by the largest digit."""
    return (number >> (first * width)) % ((1 << width) - 1)


def estimate(pairs: Pairs) -> float:
    """The log ratio of the totals; infinite where one is 0, 0 for nothing on both sides, nan without pairs."""
    candidate, baseline = map(math.fsum, scaled(pairs))
    if not len(pairs):
        return math.nan
    if candidate and baseline:
        return math.log(candidate / baseline)
    return 0.0 if candidate == baseline else math.copysign(math.inf, candidate - baseline)


@functools.lru_cache(maxsize=64)
def interval(seen: Pairs, level: float) -> Interval:
    """The log ratios that the look at this number of pairs does not reject; infinite ends are not excluded."""
    most = chance(level, len(seen))
    return (
        _last(lambda bound: chance_above(seen, bound) <= most),
        -_last(lambda bound: chance_below(seen, -bound) <= most),
    )


def _last(rejected: Callable[[float], bool]) -> float:
    """The end of the log ratios that are rejected, which begin far below; -inf where none is, inf where all are."""
    high = 1.0
    while rejected(high):
        high *= 2
        if high > LARGEST_LOG:
            return math.inf
    low = -1.0
    while not rejected(low):
        low *= 2
        if low < -LARGEST_LOG:
            return -math.inf
    while high - low > PRECISE:
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


def distance(pairs: Pairs, bound: float) -> tuple[float, float]:
    """Mean and standard deviation of the pairs' differences from the bound, as shares of the baseline's mean.

    Near the bound they are log ratios. (0, 0) where nothing was counted, and below 2 pairs.
    """
    candidate, baseline = scaled(pairs, bound)
    scale = max(math.fsum(baseline), math.fsum(candidate)) / max(1, len(pairs))
    if len(pairs) < 2 or not scale:
        return 0.0, 0.0
    differences = [(c - b) / scale for c, b in zip(candidate, baseline, strict=True)]
    return statistics.fmean(differences), statistics.stdev(differences)


def counted(pairs: Pairs) -> int:
    """The number of pairs with anything on either side."""
    return sum(c > -math.inf or b > -math.inf for c, b in zip(pairs.candidate, pairs.baseline, strict=True))


def too_little(pairs: Pairs) -> str:
    """Why these pairs say little, where fewer have anything to count than the first signed look takes; else empty."""
    found = counted(pairs)
    return f"{found} of {len(pairs)} pairs counted anything" if found < min(RANKS_FROM, len(pairs)) else ""
