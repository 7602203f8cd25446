"""Estimate and interval of the log ratio of two variants, from the tests of ``critical_values``. Pure functions.

A log ratio b is inside the interval when the last look does not reject it. At 8 and 12 pairs the test is
Mann-Whitney's. The ends of the interval are two of the 16 differences inside each opening block. From 14 pairs on it is
the signed-rank test of ``remainders``. Of censored pairs each end compares ``Pairs.at_worst``. ``level`` is a one-sided
chance of error that ``critical_values`` has; other levels raise ConfigError.

An end is found by bisection, to ROUNDING. If it is only drawn in a chart or printed, a larger ``within`` saves half of
the time: the end then lies at most ``within`` outside of the exact one, never inside.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from pytest_dbcluster.claims import counts, critical_values
from pytest_dbcluster.claims.block_order import PER_OPENING
from pytest_dbcluster.claims.critical_values import RANKS_FROM
from pytest_dbcluster.claims.pairs import LARGEST_LOG, Pairs

Interval = tuple[float, float]

UNBOUNDED: Interval = (-math.inf, math.inf)
UNKNOWN = LARGEST_LOG / 4  # an end of censored pairs beyond it is an average with an unknown value
TRIMMED = 4  # a centre leaves out a 4th of the values at either end
ROUNDING = 1e-12  # a log ratio this close to a bound counts as on the bound
REACH = 1e4  # times the spread of the pairs: no finite end of an interval lies as far out
WIDEST = 1e-9  # the smallest spread that is reckoned with, so that equal pairs have a range to search


def interval(pairs: Pairs, level: float, within: float = ROUNDING) -> Interval:
    """The log ratios that the last look does not reject; each end errs with a chance of at most ``level``.

    That chance covers all looks together. Unbounded before the first look, and if so few pairs prove nothing.
    """
    look = critical_values.last_look(len(pairs), pairs.instances)
    if look is None:
        return UNBOUNDED
    if pairs.censored is not None:
        above, below = (interval(pairs.at_worst(above=side), level, within) for side in (True, False))
        low, high = above[0], below[1]
        return (-math.inf if low < -UNKNOWN else low), (math.inf if high > UNKNOWN else high)
    if pairs.counts:
        return counts.interval(pairs.first(look), level)
    value = critical_values.boundary(level).at(look)
    return UNBOUNDED if value is None or not _speaks(pairs, look) else _at_look(pairs.first(look), value, within)


def _speaks(pairs: Pairs, look: int) -> bool:
    """Whether a look has its data: before 14 pairs it compares whole opening blocks."""
    return look >= RANKS_FROM or look == PER_OPENING * pairs.first(look).whole_openings


@functools.lru_cache(maxsize=64)
def _at_look(seen: Pairs, value: int, within: float) -> Interval:
    if len(seen) < RANKS_FROM:
        crossed = sorted(seen.cross_differences())
        return crossed[value], crossed[-1 - value]
    return rank_interval(seen, value, within)


def rank_interval(pairs: Pairs, value: int, within: float = ROUNDING) -> Interval:
    """The log ratios that the signed-rank test does not reject with this critical value.

    The rank sum falls with b, so each end is found by bisection.
    """
    below = _last(lambda b: sums_above(_rising_remainders(pairs, b), 0.0) >= value, pairs, within)
    above = _last(lambda b: _sums_below(_rising_remainders(pairs, -b)) >= value, pairs, within, mirrored=True)
    return below, -above


def rejects(pairs: Pairs, level: float, bound: float) -> tuple[bool, bool]:
    """Whether the look at this number of pairs shows that the log ratio is (above, below) the bound.

    It decides as ``interval`` does, without searching for the ends. Pairs without noise can lie on a bound: what is
    closer to it than rounding errors is neither above nor below.
    """
    if pairs.censored is not None:
        faster, slower = (rejects(pairs.at_worst(above=side), level, bound) for side in (True, False))
        return faster[0], slower[1]
    if pairs.counts:
        return counts.rejects(pairs, level, bound)
    value = critical_values.boundary(level).at(len(pairs))
    if value is None or math.isinf(bound) or not _speaks(pairs, len(pairs)):
        return bound == -math.inf, bound == math.inf
    if len(pairs) < RANKS_FROM:
        low, high = _at_look(pairs, value, 0.0)
        return low > bound + ROUNDING, high < bound - ROUNDING
    above, below = _sums(pairs, bound)
    return above >= value, below >= value


@functools.lru_cache(maxsize=16)
def _sums(pairs: Pairs, bound: float) -> tuple[int, int]:
    """The signed-rank sums for (above, below) the bound; several levels compare the same sums."""
    above = sums_above(_rising_remainders(pairs, bound + ROUNDING), 0.0)
    return above, _sums_below(_rising_remainders(pairs, bound - ROUNDING))


def remainders(pairs: Pairs, bound: float) -> list[float]:
    """The values s * v whose signed ranks are summed, one per pair, for the log ratio ``bound``.

    u = s * (ratio - bound) is the log speed of the pair's second round over the first. The draw does not move it, for
    any ratio that the bound allows for. v = u - centre takes out what the position in a pair does. Each s * v falls
    when the bound rises, because the centre is a weighted mean of ordered values.
    """
    u = [sign * (ratio - bound) for sign, ratio in zip(pairs.signs, pairs.ratios, strict=True)]
    middle = centre(u) if pairs.centred else 0.0
    return [sign * (value - middle) for sign, value in zip(pairs.signs, u, strict=True)]


def _rising_remainders(pairs: Pairs, bound: float) -> list[float]:
    """The values of ``remainders`` in rising order. What a claim does most: each step of a bisection asks for them.

    Those of one sign are in the order of their ratios, whatever the bound is. So two sorted lists are merged.
    """
    first, second = ([ratio - bound for ratio in rising] for rising in pairs.rising_ratios)
    middle = centre([*first, *(-value for value in reversed(second))]) if pairs.centred else 0.0
    return sorted([*(value - middle for value in first), *(value + middle for value in second)])


def _sums_below(rising: Sequence[float]) -> int:
    """As ``rank_sum`` of the values with the other sign."""
    return sums_above([-value for value in reversed(rising)], 0.0)


def centre(values: Sequence[float]) -> float:
    """The mean of the middle half (25 % trimmed mean): stalled rounds do not move it."""
    cut = len(values) // TRIMMED
    kept = sorted(values)[cut : len(values) - cut]
    return math.fsum(kept) / len(kept)


def rank_sum(values: Sequence[float]) -> int:
    """The signed-rank sum: how many sums of two values, each value with itself too, are above 0 (Tukey 1949).

    Ties and zeros count for neither side.
    """
    return sums_above(sorted(values), 0.0)


def sums_above(rising: Sequence[float], limit: float) -> int:
    """How many sums of two values, each value with itself too, are above a limit; the values in rising order."""
    total, low, high = 0, 0, len(rising) - 1
    while low <= high:
        if rising[low] + rising[high] > limit:
            total += high - low + 1
            high -= 1
        else:
            low += 1
    return total


def estimate(pairs: Pairs, within: float = ROUNDING) -> float:
    """The Hodges-Lehmann estimate of the log ratio: the middle of what the test rejects last; nan without pairs.

    At whole opening blocks it is the median of the 16 differences inside each of them. From 13 pairs on, half of all
    sums of two remainders are above 0 at this log ratio. Otherwise it is the median of the averages of two pairs. Of a
    counter it is the estimate of ``counts``.
    """
    if pairs.counts:
        return counts.estimate(pairs)
    count = len(pairs)
    if 0 < count == PER_OPENING * pairs.whole_openings < RANKS_FROM:
        return _median(sorted(pairs.cross_differences()))
    if count >= RANKS_FROM - 1:
        ends = _at_middle(pairs, within)
        if all(map(math.isfinite, ends)):
            return (ends[0] + ends[1]) / 2
    return hodges_lehmann(pairs.ratios)


def quick_estimate(pairs: Pairs) -> float:
    """An estimate of the log ratio for forecasts: the mean of the centres of both orders, or of all; nan without pairs.

    An effect of the position in a pair does not move it.
    """
    groups = [[ratio for ratio, sign in zip(pairs.ratios, pairs.signs, strict=True) if sign == one] for one in (1, -1)]
    if not len(pairs):
        return math.nan
    return (centre(groups[0]) + centre(groups[1])) / 2 if all(groups) else centre(pairs.ratios)


@functools.lru_cache(maxsize=64)
def _at_middle(pairs: Pairs, within: float) -> Interval:
    sums = len(pairs) * (len(pairs) + 1) // 2
    return rank_interval(pairs, (sums + 1) // 2, within)


def hodges_lehmann(values: Sequence[float]) -> float:
    """The median of the averages of two values, each with itself too (Hodges and Lehmann 1963); nan without values."""
    rising = sorted(values)
    return _median(sorted([(a + b) / 2 for i, a in enumerate(rising) for b in rising[i:]]))


def _median(ordered: Sequence[float]) -> float:
    """The median of a sorted sequence; nan of an empty one."""
    if not ordered:
        return math.nan
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _last(rejected: Callable[[float], bool], pairs: Pairs, within: float, *, mirrored: bool = False) -> float:
    """The end of the log ratios that are rejected, which begin far below the pairs; -inf when none is.

    mirrored: ``rejected`` takes the log ratio with the other sign.
    """
    ratios = [-ratio for ratio in pairs.ratios] if mirrored else pairs.ratios
    lowest, highest = min(ratios), max(ratios)
    spread = max(highest - lowest, WIDEST)
    low, high = lowest - spread, highest + spread
    if not rejected(low):
        high, low = low, lowest - REACH * spread
        if not rejected(low):
            return -math.inf
    elif rejected(high):
        low, high = high, highest + REACH * spread
        if rejected(high):
            return math.inf
    while high - low > within and low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low
