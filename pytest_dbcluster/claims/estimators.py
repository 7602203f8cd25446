"""What paired log ratios say: estimate, interval, noise, and what could have been seen. Pure functions.

Every series is one log ratio per pair, in the order in which the pairs ran.
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
LARGEST_LOG = 700.0
POWER_Z = 0.84
RANK_COST = 1.05
ROBUST = 1.4826
STALL_FACTOR = 2.0


def log_ratio(candidate: float, baseline: float) -> float:
    """log(candidate / baseline) of two non-negative values; two zeros are equal, one gives +-700."""
    if candidate < 0 or baseline < 0:
        raise ValueError(f"a ratio needs values of at least 0, not {candidate:g} and {baseline:g}")
    if candidate == baseline:
        return 0.0
    if not candidate or not baseline:
        return LARGEST_LOG if candidate else -LARGEST_LOG
    return bounded(math.log(candidate) - math.log(baseline))


def bounded(value: float) -> float:
    """The log ratio, cut at +-700 so that it has an exponential; ValueError for what is not a number."""
    if math.isnan(value):
        raise ValueError("a log ratio is not a number; was a round without a result given to a claim?")
    return max(-LARGEST_LOG, min(LARGEST_LOG, value))


def factor(value: float) -> float:
    """The exponential; infinite where it would overflow."""
    return math.inf if value > 709 else math.exp(value)


def around(found: Interval, estimate: float) -> Interval:
    """The interval, widened to the estimate: pairs drawn after the last look move the estimate alone."""
    return min(found[0], estimate), max(found[1], estimate)


@functools.lru_cache(maxsize=8)
def walsh(values: tuple[float, ...]) -> tuple[float, ...]:
    """The averages of all pairs of values, each with itself too, sorted: n(n+1)/2 of them."""
    rising = sorted(values)  # runs that rise already make the second sort cheaper
    return tuple(sorted([(a + b) / 2 for i, a in enumerate(rising) for b in rising[i:]]))


def hodges_lehmann(values: Sequence[float]) -> float:
    """The median of the Walsh averages (Hodges and Lehmann 1963); not a number without values."""
    return _middle(walsh(tuple(values))) if values else math.nan


def _middle(ordered: Sequence[float]) -> float:
    """The median of what is sorted already."""
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def interval(values: Sequence[float], level: float) -> Interval:
    """All effects that the sequential test has not rejected, ``level`` wrong towards each side.

    The values up to the last look count. Below 15 pairs it is the t interval widened to the extreme pairs,
    from 15 on it runs between two Walsh averages. Unbounded before the first look and where nothing suffices.
    """
    look = critical_values.last_look(len(values))
    if look is None:
        return UNBOUNDED
    threshold = critical_values.boundary(level).at(look)
    seen = values[:look]
    return t_interval(seen, threshold) if look < critical_values.RANKS_FROM else rank_interval(seen, int(threshold))


def t_interval(values: Sequence[float], threshold: float) -> Interval:
    """The t interval, mean -+ threshold * s / sqrt(n), widened until it holds every value."""
    if math.isinf(threshold):
        return UNBOUNDED
    mean = statistics.fmean(values)
    reach = threshold * statistics.stdev(values, mean) / math.sqrt(len(values))
    return min(mean - reach, *values), max(mean + reach, *values)


def rank_interval(values: Sequence[float], threshold: int) -> Interval:
    """The Walsh averages beyond which the signed-rank sum reaches the threshold; unbounded if none does."""
    averages = walsh(tuple(values))
    if threshold > len(averages):
        return UNBOUNDED
    return averages[len(averages) - threshold], averages[threshold - 1]


def pair_sd(values: Sequence[float]) -> float:
    """Standard deviation of a pair: 1.48 MAD, or the ordinary one if most are equal; infinite below 2 pairs."""
    if len(values) < 2:
        return math.inf
    middle = statistics.median(values)
    deviation = statistics.median(abs(value - middle) for value in values)
    return ROBUST * deviation if deviation else statistics.stdev(values)


def z_value(level: float) -> float:
    """The normal quantile of one look's nominal level."""
    return -statistics.NormalDist().inv_cdf(critical_values.boundary(level).nominal)


def detectable(values: Sequence[float], level: float) -> float:
    """The smallest log ratio that so many pairs show with power .8: (z + .84) * 1.05 * sd / sqrt(n)."""
    if not values:
        return math.inf
    return (z_value(level) + POWER_Z) * RANK_COST * pair_sd(values) / math.sqrt(len(values))


def pairs_needed(distance: float, sd: float, level: float) -> int | None:
    """Pairs that show an effect ``distance`` from a bound with power .8; None where a million do not suffice."""
    if not distance or math.isinf(distance):
        return None
    root = (z_value(level) + POWER_Z) * RANK_COST * sd / distance
    return max(critical_values.LOOKS[0], math.ceil(root**2)) if root <= 1000 else None


def chance_beyond(distance: float, sd: float, drawn: int, level: float, end: int) -> float:
    """Chance that at ``end`` pairs an interval lies beyond an edge, if the pairs to come are like those drawn.

    ``distance`` is how far the estimate of the ``drawn`` pairs lies beyond that edge. Given these, the estimate
    of all pairs is normal around today's with the variance sd^2 (1/drawn - 1/end), by a flat prior.
    """
    spread = RANK_COST * sd * math.sqrt(max(0.0, 1 / drawn - 1 / end))
    gap = distance - z_value(level) * RANK_COST * sd / math.sqrt(end)
    return statistics.NormalDist().cdf(gap / spread) if spread else float(gap > 0)


def halves(values: Sequence[float]) -> tuple[float, float]:
    """Median log ratio of the first and of the second half; not a number below 2 pairs."""
    if len(values) < 2:
        return math.nan, math.nan
    middle = len(values) // 2
    return statistics.median(values[:middle]), statistics.median(values[middle:])


def order_effect(values: Sequence[float], baseline_first: Sequence[bool]) -> float:
    """Median log ratio of the pairs that ran AB minus that of BA; not a number when an order is missing."""
    ab = [value for value, first in zip(values, baseline_first, strict=True) if first]
    ba = [value for value, first in zip(values, baseline_first, strict=True) if not first]
    return statistics.median(ab) - statistics.median(ba) if ab and ba else math.nan


def lag1(values: Sequence[float]) -> float:
    """Correlation of each pair with the next one; 0 for constant pairs, not a number below 3."""
    if len(values) < 3:
        return math.nan
    mean = statistics.fmean(values)
    total = math.fsum((value - mean) ** 2 for value in values)
    if not total:
        return 0.0
    return math.fsum((a - mean) * (b - mean) for a, b in itertools.pairwise(values)) / total


def median_interval(values: Sequence[float], level: float = 0.95) -> Interval | None:
    """An interval of the median from the values alone: two of them, in order, as many from either end.

    The chance that the median lies outside is that of so few heads among fair coins (Conover, Practical Nonparametric
    Statistics, 3.2), at most 1 - ``level``. None for fewer values than that takes: 6 for 95 %.
    """
    rising, number = sorted(values), len(values)
    outside, left = 0.0, -1
    for place in range(number // 2):
        outside += 2 * math.comb(number, place) / 2**number
        if outside > 1 - level:
            break
        left = place
    return (rising[left], rising[number - 1 - left]) if left >= 0 else None


def stall_test(baseline: Sequence[float], candidate: Sequence[float]) -> tuple[int, int, float]:
    """Rounds of each variant longer than twice its median, and the chance of the candidate's excess.

    Takes seconds per round, pair by pair. Among the pairs in which only one variant stalled, either is as
    likely without an effect: the third number is the exact one-sided binomial chance of at least so many of
    the candidate's (McNemar 1947). ValueError for series of different length.
    """
    slow_baseline, slow_candidate = _stalled(baseline), _stalled(candidate)
    pairs = list(zip(slow_baseline, slow_candidate, strict=True))
    only_candidate = sum(c and not b for b, c in pairs)
    discordant = sum(b != c for b, c in pairs)
    at_least = sum(math.comb(discordant, k) for k in range(only_candidate, discordant + 1))
    return sum(slow_baseline), sum(slow_candidate), at_least / 2**discordant


def _stalled(seconds: Sequence[float]) -> list[bool]:
    """Whether each round took more than twice the median."""
    usual = statistics.median(seconds) if seconds else 0.0
    return [value > STALL_FACTOR * usual for value in seconds]
