"""Estimate, interval, noise and detectable difference of paired log ratios. Pure functions.

``values`` is one natural log ratio per pair, in the order in which the pairs ran. ``level`` is a one-sided chance of
error that ``critical_values`` has; other levels raise ConfigError.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections.abc import Sequence

from pytest_dbcluster.claims import critical_values

Interval = tuple[float, float]

UNBOUNDED: Interval = (-math.inf, math.inf)
LARGEST_LOG = 700.0  # exp(709) is near the largest float
POWER_Z = 0.84  # normal quantile of power .8
RANK_COST = 1.05  # factor on the standard error, because the estimate uses ranks and no mean
ROBUST = 1.4826  # standard deviation by median absolute deviation, of normal values
STALL_FACTOR = 2.0  # a round that took longer than this times its median stalled


def log_ratio(candidate: float, baseline: float) -> float:
    """log(candidate / baseline) of two values of at least 0: two zeros give 0, a single zero gives +-700.

    Raises ValueError for a negative value or nan.
    """
    if candidate < 0 or baseline < 0:
        raise ValueError(f"a ratio needs values of at least 0, not {candidate:g} and {baseline:g}")
    if candidate == baseline:
        return 0.0
    if not candidate or not baseline:
        return LARGEST_LOG if candidate else -LARGEST_LOG
    return bounded(math.log(candidate) - math.log(baseline))


def bounded(value: float) -> float:
    """The log ratio, limited to +-700 so that its exponential is a float. Raises ValueError for nan."""
    if math.isnan(value):
        raise ValueError("a log ratio is not a number; was a round without a result given to a claim?")
    return max(-LARGEST_LOG, min(LARGEST_LOG, value))


def factor(value: float) -> float:
    """The ratio of a log ratio: exp(value), or inf where exp would overflow."""
    return math.inf if value > 709 else math.exp(value)


def around(limits: Interval, estimate: float) -> Interval:
    """The interval, widened to include the estimate; pairs drawn after the last look move the estimate alone."""
    return min(limits[0], estimate), max(limits[1], estimate)


@functools.lru_cache(maxsize=8)
def walsh(values: tuple[float, ...]) -> tuple[float, ...]:
    """The averages of all pairs of values, each value with itself too: n(n+1)/2 averages, sorted."""
    rising = sorted(values)  # rising runs make the second sort cheaper
    return tuple(sorted([(a + b) / 2 for i, a in enumerate(rising) for b in rising[i:]]))


def hodges_lehmann(values: Sequence[float]) -> float:
    """The median of the Walsh averages (Hodges and Lehmann 1963); nan without values."""
    return _middle(walsh(tuple(values))) if values else math.nan


def _middle(ordered: Sequence[float]) -> float:
    """The median of a sorted sequence."""
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def interval(values: Sequence[float], level: float) -> Interval:
    """The log ratios that the sequential test does not reject; each end is wrong with a chance of at most ``level``.

    Uses the values up to the last look. Below 15 pairs it is the t interval, widened to the extreme values; from 15
    on its ends are two Walsh averages. Unbounded before the first look, and where so few pairs prove nothing.
    """
    look = critical_values.last_look(len(values))
    if look is None:
        return UNBOUNDED
    threshold = critical_values.boundary(level).at(look)
    seen = values[:look]
    return t_interval(seen, threshold) if look < critical_values.RANKS_FROM else rank_interval(seen, int(threshold))


def t_interval(values: Sequence[float], threshold: float) -> Interval:
    """The t interval, mean -+ threshold * s / sqrt(n), widened to include every value."""
    if math.isinf(threshold):
        return UNBOUNDED
    mean = statistics.fmean(values)
    reach = threshold * statistics.stdev(values, mean) / math.sqrt(len(values))
    return min(mean - reach, *values), max(mean + reach, *values)


def rank_interval(values: Sequence[float], threshold: int) -> Interval:
    """The two Walsh averages beyond which the signed-rank sum reaches the threshold; unbounded if none does."""
    averages = walsh(tuple(values))
    if threshold > len(averages):
        return UNBOUNDED
    return averages[len(averages) - threshold], averages[threshold - 1]


def pair_sd(values: Sequence[float]) -> float:
    """Standard deviation of a log ratio, robust against outliers; infinite below 2 pairs.

    1.4826 times the median absolute deviation, or the ordinary standard deviation when that median is 0.
    """
    if len(values) < 2:
        return math.inf
    middle = statistics.median(values)
    deviation = statistics.median(abs(value - middle) for value in values)
    return ROBUST * deviation if deviation else statistics.stdev(values)


def z_value(level: float) -> float:
    """The normal quantile of the nominal level of one look."""
    return -statistics.NormalDist().inv_cdf(critical_values.boundary(level).nominal)


def detectable(values: Sequence[float], level: float) -> float:
    """The smallest log ratio that this many pairs show with power .8: (z + .84) * 1.05 * sd / sqrt(n)."""
    if not values:
        return math.inf
    return (z_value(level) + POWER_Z) * RANK_COST * pair_sd(values) / math.sqrt(len(values))


def pairs_needed(distance: float, sd: float, level: float) -> int | None:
    """Pairs that show an effect with power .8, at the log distance ``distance`` from a bound, for pairs of this sd.

    The inverse of ``detectable``. None for a distance of 0 or infinity, and when a million pairs are not enough.
    """
    if not distance or math.isinf(distance):
        return None
    root = (z_value(level) + POWER_Z) * RANK_COST * sd / distance
    return max(critical_values.LOOKS[0], math.ceil(root**2)) if root <= 1000 else None


def chance_beyond(distance: float, sd: float, drawn: int, level: float, end: int) -> float:
    """Chance that the interval of ``end`` pairs lies beyond a bound, if later pairs resemble the ``drawn`` pairs.

    distance: how far the present estimate lies beyond the bound, as a log ratio. With a flat prior the estimate of
    all pairs is normal around the present one, with the variance sd^2 (1/drawn - 1/end).
    """
    spread = RANK_COST * sd * math.sqrt(max(0.0, 1 / drawn - 1 / end))
    gap = distance - z_value(level) * RANK_COST * sd / math.sqrt(end)
    return statistics.NormalDist().cdf(gap / spread) if spread else float(gap > 0)


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
    coins (Conover, Practical Nonparametric Statistics, 3.2); k is the largest that keeps it at 1 - ``level`` or less.
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


def stall_test(baseline: Sequence[float], candidate: Sequence[float]) -> tuple[int, int, float]:
    """Return the stalled rounds of baseline and of candidate, and the chance of so many stalls of the candidate.

    Takes seconds per operation or per round, pair by pair. A round stalled when it took more than twice the median of
    its variant. Without an effect, each variant is equally likely to be the stalled one of a pair with one stall. The
    third number is the exact one-sided binomial chance of at least so many such pairs of the candidate (McNemar
    1947). Raises ValueError for series of different lengths.
    """
    slow_baseline, slow_candidate = _stalled(baseline), _stalled(candidate)
    pairs = list(zip(slow_baseline, slow_candidate, strict=True))
    only_candidate = sum(c and not b for b, c in pairs)
    discordant = sum(b != c for b, c in pairs)
    at_least = sum(math.comb(discordant, k) for k in range(only_candidate, discordant + 1))
    return sum(slow_baseline), sum(slow_candidate), at_least / 2**discordant


def _stalled(seconds: Sequence[float]) -> list[bool]:
    """Whether each round took more than twice the median."""
    median = statistics.median(seconds) if seconds else 0.0
    return [value > STALL_FACTOR * median for value in seconds]
