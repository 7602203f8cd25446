"""Noise of paired log ratios, and figures of rounds that need no draw. Pure functions.

``values`` is one natural log ratio per pair, in the order of the pairs. ``intervals`` has the estimate and interval of
a claim.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from pytest_dbcluster.claims.pairs import log, log_difference

Interval = tuple[float, float]

POWER, POWER_Z = 0.8, 0.84  # of "could see" and "needs"; the second is its normal quantile
MOST_PAIRS = 1_000_000  # a larger number of pairs is not useful advice
ROBUST = 1.4826  # standard deviation by median absolute deviation, of normal values
STALL_FACTOR = 2.0  # a round that took longer than this times the median of all rounds stalled


def log_ratio(candidate: float, baseline: float) -> float:
    """log(candidate / baseline) of two values of at least 0: two zeros give 0, a single zero gives +-700.

    Raises ValueError for a negative value or nan.
    """
    if candidate < 0 or baseline < 0:
        raise ValueError(f"a ratio needs values of at least 0, not {candidate:g} and {baseline:g}")
    return log_difference(log(candidate), log(baseline))


def factor(value: float) -> float:
    """The ratio of a log ratio: exp(value), or inf if exp would overflow."""
    return math.inf if value > 709 else math.exp(value)


def widen(limits: Interval, estimate: float) -> Interval:
    """The interval, widened to include the estimate; pairs drawn after the last look move only the estimate."""
    return min(limits[0], estimate), max(limits[1], estimate)


def pair_sd(values: Sequence[float]) -> float:
    """Standard deviation of a log ratio, robust against outliers; infinite below 2 pairs.

    1.4826 times the median absolute deviation, or the ordinary standard deviation when that median is 0.
    """
    if len(values) < 2:
        return math.inf
    middle = statistics.median(values)
    deviation = statistics.median(abs(value - middle) for value in values)
    return ROBUST * deviation if deviation else statistics.stdev(values)


def halves(values: Sequence[float]) -> tuple[float, float]:
    """Median log ratio of the first and of the second half of the pairs; nan below 2 pairs."""
    if len(values) < 2:
        return math.nan, math.nan
    middle = len(values) // 2
    return statistics.median(values[:middle]), statistics.median(values[middle:])


def order_effect(values: Sequence[float], baseline_first: Sequence[bool]) -> float:
    """Median log ratio of the pairs that ran AB (baseline first) minus the median of BA; nan without both orders."""
    ab = [value for value, first in zip(values, baseline_first, strict=True) if first]
    ba = [value for value, first in zip(values, baseline_first, strict=True) if not first]
    return statistics.median(ab) - statistics.median(ba) if ab and ba else math.nan


def lag1(values: Sequence[float]) -> float:
    """Correlation of each value with the next one; 0 for constant values, nan below 3 pairs."""
    if len(values) < 3:
        return math.nan
    mean = statistics.fmean(values)
    total = math.fsum((value - mean) ** 2 for value in values)
    if not total:
        return 0.0
    return math.fsum((a - mean) * (b - mean) for a, b in itertools.pairwise(values)) / total


def median_interval(values: Sequence[float], level: float = 0.95) -> Interval | None:
    """A confidence interval of the median, for any distribution; its ends are two of the values.

    The k-th smallest and the k-th largest value. The chance that the median lies outside is a binomial tail of fair
    coins (Conover, Practical Nonparametric Statistics, 3.2). k is the largest that keeps it at 1 - ``level`` or less.
    None for too few values: 95 % needs 6.
    """
    rising, count = sorted(values), len(values)
    outside, lowest = 0.0, -1
    for rank in range(count // 2):
        outside += 2 * math.comb(count, rank) / 2**count
        if outside > 1 - level:
            break
        lowest = rank
    return (rising[lowest], rising[count - 1 - lowest]) if lowest >= 0 else None


def binomial(most: int, count: int, chance: float) -> float:
    """The chance that at most ``most`` of ``count`` tries succeed, if each succeeds with ``chance``."""
    if most >= count or chance <= 0:
        return 1.0
    if chance >= 1:
        return 0.0
    return math.fsum(_binomial_term(number, count, chance) for number in range(most + 1))


def _binomial_term(number: int, count: int, chance: float) -> float:
    """The chance that exactly ``number`` of ``count`` tries succeed, if each succeeds with ``chance`` (not 0 or 1)."""
    ways = math.lgamma(count + 1) - math.lgamma(number + 1) - math.lgamma(count - number + 1)
    return math.exp(ways + number * math.log(chance) + (count - number) * math.log1p(-chance))


def slope(places: Sequence[float], values: Sequence[float]) -> float:
    """By how much values rise per unit of their places (least squares). Raises ValueError for a single place."""
    return statistics.linear_regression(places, values).slope


def count_stalls(baseline: Sequence[float], candidate: Sequence[float]) -> tuple[int, int]:
    """The stalled rounds of baseline and of candidate, from seconds per operation of each round.

    A round stalled when it took more than twice the median of all rounds of both.
    """
    limit = STALL_FACTOR * statistics.median([*baseline, *candidate]) if baseline else 0.0
    return sum(value > limit for value in baseline), sum(value > limit for value in candidate)
