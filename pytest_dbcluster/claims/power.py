"""What a number of pairs can show: detectable differences, pairs that would decide, and the chance to decide later.

The noise of the pairs is resampled for these figures, so that stalls and modes count (``detectable``).
``level`` is a one-sided chance of error that ``critical_values`` has; other levels raise ConfigError.
"""

from __future__ import annotations

import bisect
import functools
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from math import inf
from types import MappingProxyType

from pytest_dbcluster.claims import counts, critical_values, estimators, intervals
from pytest_dbcluster.claims.critical_values import LOOKS, RANKS_FROM
from pytest_dbcluster.claims.estimators import MOST_PAIRS, POWER, POWER_Z
from pytest_dbcluster.claims.pairs import Pairs

KNOWN_FROM = 20  # pairs: fewer show their noise only as a range
DEPENDENT = 2.5  # standard errors of a correlation of neighbours that independent pairs seldom exceed
MANY = 40  # pairs: from here on the rank sum of a look is about normal, and needs no resampling
SHIFTED = 0.9  # of the deviation of a rank sum without a difference: about what it is with one that is to be shown
DRAWS = 100  # of resampled noise
# Few pairs miss the ends of their noise: each value drawn is spread by ``SMOOTH`` over the root of their number, times
# ``pair_sd``; and the share of the draws that counts is larger by ``FEW_PAIRS`` over their number, of guards by the
# second figure. With these .7 to .9 of fresh claims show the figure, for normal noise, stalls and modes
# (``benchmarks/power.py``).
SMOOTH, FEW_PAIRS = 2.2, (2.0, 1.2)
HALVINGS = 16  # of the range of a shift
RANK_COST = 1.023  # of the standard error of ranks, in that of a mean, for normal noise: the root of pi / 3

# So few pairs cannot be resampled, so these are the figures of the looks before 20 pairs: the log ratio, in standard
# deviations of a pair, that this look or an earlier one finds with power .8. They are for independent normal rounds,
# and include the error of the standard deviation. The second figure is without the looks at whole opening blocks. Other
# levels have none of these looks.
_GUARD, _FIRST, _SECOND = critical_values.GUARD_LEVEL, *critical_values.ALPHAS
SHOWN: Mapping[tuple[float, int], tuple[float, float]] = MappingProxyType(
    {
        (_GUARD, 8): (2.15, inf),
        (_GUARD, 12): (1.55, inf),
        (_GUARD, 14): (1.3, 1.55),
        (_GUARD, 17): (1.12, 1.21),
        (_FIRST, 12): (2.43, inf),
        (_FIRST, 17): (2.18, 3.64),
        (_FIRST / 2, 17): (3.64, 3.64),
        (_FIRST / 3, 17): (4.5, 4.5),
        (_FIRST / 4, 17): (4.5, 4.5),
        (_FIRST / 6, 17): (4.5, 4.5),
        (_SECOND, 17): (4.5, 4.5),
    }
)


def deciding_looks(level: float, pairs: Pairs) -> list[int]:
    """The looks of these pairs that can decide at this level, as numbers of pairs, in rising order."""
    row, first = critical_values.boundary(level), 0 if pairs.openings else RANKS_FROM
    return [look for look in critical_values.looks(pairs.instances) if look >= first and row.at(look) is not None]


def detectable(pairs: Pairs, level: float, look: int | None = None) -> float:
    """The smallest log ratio that ``look`` pairs of this noise show with power .8; infinite if none can.

    look: by default the last one that these pairs have reached.

    - Before 20 pairs: the factor of ``SHOWN`` times ``pair_sd``.
    - From 20 pairs on: pairs are drawn from these many times. The figure is the difference that .8 of the draws show.
    - From 40 pairs on the rank sum is about normal, so its mean at a difference is counted instead.
    """
    known = [one for one in deciding_looks(level, pairs) if one <= (look or len(pairs))]
    if not known:
        return math.inf
    if pairs.counts:
        return counts.detectable(pairs, level, known[-1])
    return _detectable_of(residuals(pairs), level, known[-1], openings=bool(pairs.openings))


def detectable_range(pairs: Pairs, level: float) -> tuple[float, float]:
    """``detectable`` as a range; both ends are the same if the pairs show their noise well enough.

    Fewer than 20 pairs do not, nor do pairs that depend on each other. Then the ends are the smallest and the largest
    figure of all pairs and of either half of them.
    """
    figure = detectable(pairs, level)
    if math.isinf(figure) or pairs.counts or not (len(pairs) < KNOWN_FROM or dependent(pairs)):
        return figure, figure
    look = [one for one in deciding_looks(level, pairs) if one <= len(pairs)][-1]
    around, half = residuals(pairs), len(pairs) // 2
    figures = [
        figure,
        *(_detectable_of(part, level, look, openings=bool(pairs.openings)) for part in (around[:half], around[half:])),
    ]
    return min(figures), max(figures)


def dependent(pairs: Pairs) -> bool:
    """Whether neighbouring pairs resemble each other, or alternate: in the difference of their rounds or in its size.

    The draw hides it in the log ratios, so each pair's second round is compared with its first.
    """
    centre = intervals.quick_estimate(pairs)
    rose = [sign * (ratio - centre) for sign, ratio in zip(pairs.signs, pairs.ratios, strict=True)]
    limit = DEPENDENT / math.sqrt(len(pairs))
    return any(abs(estimators.lag1(values)) > limit for values in (rose, list(map(abs, rose))))


def residuals(pairs: Pairs) -> tuple[float, ...]:
    """The log ratios without their centre."""
    centre = intervals.quick_estimate(pairs)
    return tuple(ratio - centre for ratio in pairs.ratios)


@functools.lru_cache(maxsize=64)
def _detectable_of(around: tuple[float, ...], level: float, look: int, *, openings: bool) -> float:
    """The log ratio that ``look`` pairs show with power .8, if their noise is drawn from these residuals."""
    if look < KNOWN_FROM:
        return SHOWN[level, look][not openings] * estimators.pair_sd(around)
    value = critical_values.boundary(level).at(look) or 0
    if look >= MANY:
        sums = look * (look + 1) // 2
        reached = value + POWER_Z * SHIFTED * math.sqrt(sums * (2 * look + 1) / 12)
        averages = _averages(around)
        return averages[math.floor(max(0.0, 1 - reached / sums) * 2 * len(averages))]
    coin = random.Random(look)
    spread = SMOOTH / math.sqrt(len(around)) * estimators.pair_sd(around)
    drawn = [_resample(around, look, spread, coin) for _ in range(DRAWS)]
    share = POWER + FEW_PAIRS[level == _GUARD] / len(around)
    return _least_shift_of_many(drawn, value, math.ceil(min(1.0, share) * DRAWS) - 1)


@functools.lru_cache(maxsize=8)
def _averages(around: tuple[float, ...]) -> list[float]:
    """The averages above 0 of any two of these residuals with a random sign each, the largest first.

    As many averages below 0 have the same sizes.
    """
    rising = sorted(map(abs, around))
    sums = [(high + low) / 2 for place, high in enumerate(rising) for low in rising[:place]]
    less = [(high - low) / 2 for place, high in enumerate(rising) for low in rising[:place]]
    return sorted([*sums, *less], reverse=True)


def _resample(around: Sequence[float], look: int, spread: float, coin: random.Random) -> list[float]:
    """So many of these residuals, with a random sign and some normal noise each, in rising order."""
    drawn = coin.choices(around, k=look)
    return sorted((value if coin.random() < 0.5 else -value) + coin.gauss(0, spread) for value in drawn)


def _least_shift_of_many(drawn: Sequence[Sequence[float]], value: int, rank: int) -> float:
    """The ``_least_shift`` with so many smaller ones among those of these draws.

    As in quickselect: to compare a draw with the shift of another one takes one sum instead of a search.
    """
    while True:
        shift = _least_shift(drawn[0], value)
        reached = [intervals.sums_above(rising, -2 * shift) >= value for rising in drawn[1:]]
        if (smaller := sum(reached)) == rank:
            return shift
        below = rank < smaller
        drawn = [one for one, is_smaller in zip(drawn[1:], reached, strict=True) if is_smaller is below]
        rank -= 0 if below else smaller + 1


def _least_shift(rising: Sequence[float], value: int) -> float:
    """The smallest shift of these differences whose signed-rank sum reaches the critical value."""
    low, high = -rising[-1], math.nextafter(-rising[0], math.inf)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if intervals.sums_above(rising, -2 * middle) >= value else (middle, high)
    return high


def pairs_needed(pairs: Pairs, distance: float, level: float) -> int | None:
    """How many pairs of this noise show an effect with power .8, at the log distance ``distance`` from a bound.

    More than there are. Up to 160 it is the first look that has this power. None for a distance of 0 or infinity, and
    when a million pairs are not enough.
    """
    if not distance or math.isinf(distance):
        return None
    later = [look for look in deciding_looks(level, pairs) if look > len(pairs)]
    number = bisect.bisect_left(later, True, key=lambda look: detectable(pairs, level, look) <= distance)
    if number < len(later):
        return later[number]
    root = detectable(pairs, level, LOOKS[-1]) / distance
    needed = LOOKS[-1] * root**2 if root < MOST_PAIRS else math.inf
    return max(math.ceil(needed), len(pairs) + 1) if needed <= MOST_PAIRS else None


def chance_beyond(distance: float, shown: float, drawn: int, level: float, end: int) -> float:
    """Chance that the interval of ``end`` pairs lies beyond a bound, if later pairs resemble the ``drawn`` pairs.

    distance: how far the present estimate lies beyond the bound, as a log ratio. shown: what ``end`` pairs show with
    power .8. With a flat prior the estimate of all pairs is normal around the present one. Its variance is error^2
    (end/drawn - 1). The error is that of an estimate from ``end`` pairs.
    """
    reach = quantile(level, end)
    if math.isinf(reach):
        return 0.0
    error = shown / (reach + POWER_Z)
    gap, spread = distance - reach * error, error * math.sqrt(max(0.0, end / drawn - 1))
    return statistics.NormalDist().cdf(gap / spread) if spread else float(gap > 0)


def quantile(level: float, look: int) -> float:
    """How many standard errors the signed-rank test of a look takes; infinite if the look cannot decide."""
    value = critical_values.boundary(level).at(look)
    if value is None:
        return math.inf
    sums = look * (look + 1) / 2
    return (value - sums / 2) / math.sqrt(sums * (2 * look + 1) / 12)


def detectable_if_normal(pairs: Pairs, level: float, end: int) -> float:
    """What ``end`` pairs show if the noise is normal, as small as ``pair_sd``: a fast first estimate."""
    error = RANK_COST * estimators.pair_sd(pairs.ratios) / math.sqrt(end)
    return error * (quantile(level, end) + POWER_Z)
