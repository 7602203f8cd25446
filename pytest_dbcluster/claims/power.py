"""What a number of pairs can show: detectable differences, pairs that would decide, and the chance to decide later.

``DETECTABLE`` is simulated for the looks that there are (``benchmarks/critical_values.py --power``): a normal formula
is wrong by far below 40 pairs, where a look is a count of ranks. ``level`` is a one-sided chance of error that
``critical_values`` has; other levels raise ConfigError.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from math import inf
from types import MappingProxyType

from pytest_dbcluster.claims import critical_values, estimators, totals
from pytest_dbcluster.claims.block_order import EIGHTS
from pytest_dbcluster.claims.critical_values import LOOKS, OF_EIGHTS
from pytest_dbcluster.claims.pairs import Pairs

POWER_Z = 0.84  # normal quantile of power .8
RANK_COST = 1.05  # factor on the standard error, because the estimate uses ranks and no mean
MOST_PAIRS = 1_000_000  # a number of pairs above it is no advice

# By level, one factor per look: the log ratio, in standard deviations of a pair, that this look or one before it finds
# with power .8, for independent normal rounds. The error of the standard deviation itself is included. Infinite before
# the first look that can speak.
DETECTABLE: Mapping[float, tuple[float, ...]] = MappingProxyType(
    {
        0.05: (
            4.17,
            2.07,
            1.39,
            1.2,
            1.06,
            0.933,
            0.812,
            0.722,
            0.641,
            0.574,
            0.517,
            0.47,
            0.424,
            0.385,
            0.35,
            0.319,
            0.288,
            0.263,
        ),
        0.0005: (
            inf,
            3.4,
            2.65,
            2.41,
            2.26,
            1.94,
            1.58,
            1.35,
            1.14,
            0.997,
            0.878,
            0.789,
            0.702,
            0.627,
            0.566,
            0.51,
            0.462,
            0.42,
        ),
        0.0005 / 2: (
            inf,
            inf,
            2.23,
            2.16,
            2.08,
            1.85,
            1.59,
            1.38,
            1.17,
            1.02,
            0.898,
            0.807,
            0.718,
            0.641,
            0.578,
            0.52,
            0.472,
            0.428,
        ),
        0.0005 / 3: (
            inf,
            inf,
            2.47,
            2.39,
            2.26,
            1.96,
            1.67,
            1.42,
            1.18,
            1.04,
            0.909,
            0.817,
            0.725,
            0.648,
            0.582,
            0.525,
            0.476,
            0.432,
        ),
        0.0005 / 4: (
            inf,
            inf,
            2.47,
            2.39,
            2.33,
            2.01,
            1.69,
            1.45,
            1.22,
            1.06,
            0.927,
            0.832,
            0.735,
            0.66,
            0.592,
            0.533,
            0.483,
            0.44,
        ),
        0.0001: (
            inf,
            inf,
            2.47,
            2.39,
            2.33,
            2.04,
            1.76,
            1.48,
            1.24,
            1.08,
            0.946,
            0.847,
            0.749,
            0.67,
            0.602,
            0.542,
            0.492,
            0.446,
        ),
        0.0001 / 2: (
            inf,
            inf,
            2.8,
            2.7,
            2.64,
            2.26,
            1.89,
            1.57,
            1.28,
            1.12,
            0.975,
            0.871,
            0.767,
            0.686,
            0.617,
            0.554,
            0.502,
            0.456,
        ),
        0.0001 / 3: (
            inf,
            inf,
            2.8,
            2.7,
            2.64,
            2.41,
            1.97,
            1.64,
            1.34,
            1.16,
            1,
            0.896,
            0.79,
            0.704,
            0.633,
            0.567,
            0.514,
            0.466,
        ),
        0.0001 / 4: (
            inf,
            inf,
            2.8,
            2.7,
            2.64,
            2.41,
            2.04,
            1.7,
            1.39,
            1.2,
            1.03,
            0.916,
            0.807,
            0.721,
            0.646,
            0.58,
            0.525,
            0.476,
        ),
    }
)


# The same where no look before 14 pairs speaks, because there are no whole eights to compare, as for ``fades``. From 14
# pairs on; after the last of these looks it is the same.
RANKS_ALONE: Mapping[float, tuple[float, ...]] = MappingProxyType(
    {
        0.05: (1.53, 1.18, 0.995, 0.849, 0.749, 0.652, 0.584),
        0.0005: (4.39, 3.18, 2.29, 1.69, 1.39, 1.15, 1),
        0.0005 / 2: (inf, 4.33, 2.52, 1.78, 1.45, 1.19, 1.03),
        0.0005 / 3: (inf, 4.33, 2.52, 1.82, 1.47, 1.2, 1.04),
        0.0005 / 4: (inf, inf, 2.73, 1.88, 1.51, 1.23, 1.06),
        0.0001: (inf, inf, 2.9, 1.98, 1.56, 1.26, 1.09),
        0.0001 / 2: (inf, inf, 3.19, 2.1, 1.63, 1.3, 1.12),
        0.0001 / 3: (inf, inf, 4.2, 2.26, 1.72, 1.36, 1.16),
        0.0001 / 4: (inf, inf, 4.2, 2.42, 1.81, 1.41, 1.2),
    }
)


def factor(level: float, look: int, eights: int = EIGHTS) -> float:
    """The entry of ``DETECTABLE`` at the look of ``look`` pairs; without eights that of ``RANKS_ALONE``."""
    critical_values.boundary(level)
    number = LOOKS.index(look)
    if eights or number >= len(OF_EIGHTS) + len(RANKS_ALONE[level]):
        return DETECTABLE[level][number]
    return inf if look in OF_EIGHTS else RANKS_ALONE[level][number - len(OF_EIGHTS)]


def detectable(pairs: Pairs, level: float) -> float:
    """The smallest log ratio that this many pairs show with power .8; infinite before the first look."""
    look = critical_values.last_look(len(pairs), pairs.instances)
    if look is None or math.isinf(times := factor(level, look, pairs.eights)):
        return math.inf
    return times * sd_of(pairs)


def sd_of(pairs: Pairs) -> float:
    """The standard deviation of a pair: of its log ratio, or of the difference of a counter as a share of its mean."""
    if not pairs.counts:
        return estimators.pair_sd(pairs.ratios)
    return totals.distance(pairs, 0.0)[1] if len(pairs) > 1 else math.inf


def pairs_needed(
    distance: float, sd: float, level: float, *, more_than: int = 0, instances: int = 1, eights: int = EIGHTS
) -> int | None:
    """Pairs that show an effect with power .8, at the log distance ``distance`` from a bound, for pairs of this sd.

    instances, eights: as in ``Pairs``. Up to 160 it is the first look after ``more_than`` pairs that has this power.
    None for a distance of 0 or infinity, and when a million pairs are not enough.
    """
    if not distance or math.isinf(distance):
        return None
    for look in critical_values.looks(instances):
        times = factor(level, look, eights)
        if look > more_than and math.isfinite(times) and times * sd <= distance:
            return look
    root = factor(level, LOOKS[-1]) * sd / distance
    needed = LOOKS[-1] * root**2 if root < MOST_PAIRS else math.inf
    return max(math.ceil(needed), more_than + 1) if needed <= MOST_PAIRS else None


def stalls_missed(share: float, pairs: int) -> float:
    """The chance that ``no_more_stalls_than`` holds all the same: the candidate stalls in this share of its rounds.

    The baseline does not stall. Exact: the claim holds up to the largest number of stalls whose chance, one half to its
    power, is above .05.
    """
    most = math.ceil(-math.log2(critical_values.GUARD_LEVEL)) - 1
    return math.fsum(math.comb(pairs, k) * share**k * (1 - share) ** (pairs - k) for k in range(most + 1))


def chance_beyond(distance: float, sd: float, drawn: int, level: float, end: int) -> float:
    """Chance that the interval of ``end`` pairs lies beyond a bound, if later pairs resemble the ``drawn`` pairs.

    distance: how far the present estimate lies beyond the bound, as a log ratio. With a flat prior the estimate of
    all pairs is normal around the present one, with the variance sd^2 (1/drawn - 1/end).
    """
    if math.isinf(factor(level, end)):
        return 0.0
    error = RANK_COST * sd
    spread = error * math.sqrt(max(0.0, 1 / drawn - 1 / end))
    gap = distance - (factor(level, end) * sd - POWER_Z * error / math.sqrt(end))
    return statistics.NormalDist().cdf(gap / spread) if spread else float(gap > 0)
