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
# fmt: off
DETECTABLE: Mapping[float, tuple[float, ...]] = MappingProxyType(
    {
        0.05: (2.15, 1.55, 1.3, 1.12, 0.981, 0.851, 0.751, 0.658, 0.588,
            0.554, 0.526, 0.478, 0.434, 0.391, 0.358, 0.326, 0.295, 0.27),
        0.0005: (inf, 2.43, 2.33, 2.18, 1.93, 1.61, 1.41, 1.17, 1.02,
            0.952, 0.894, 0.804, 0.72, 0.642, 0.583, 0.527, 0.477, 0.434),
        0.0005 / 2: (inf, inf, inf, 3.64, 2.41, 1.74, 1.45, 1.18, 1.03,
            0.953, 0.894, 0.804, 0.72, 0.642, 0.583, 0.527, 0.477, 0.434),
        0.0005 / 3: (inf, inf, inf, 4.5, 2.57, 1.82, 1.49, 1.21, 1.04,
            0.976, 0.913, 0.819, 0.731, 0.654, 0.593, 0.535, 0.485, 0.44),
        0.0005 / 4: (inf, inf, inf, 4.5, 2.71, 1.85, 1.53, 1.23, 1.07,
            0.99, 0.928, 0.834, 0.745, 0.665, 0.603, 0.544, 0.492, 0.447),
        0.0005 / 6: (inf, inf, inf, 4.5, 2.84, 1.95, 1.57, 1.28, 1.1,
            1.02, 0.953, 0.855, 0.764, 0.679, 0.615, 0.555, 0.502, 0.458),
        0.0005 / 8: (inf, inf, inf, inf, 3.27, 2.01, 1.6, 1.29, 1.11,
            1.03, 0.962, 0.862, 0.771, 0.683, 0.62, 0.559, 0.506, 0.461),
        0.0005 / 12: (inf, inf, inf, inf, 3.27, 2.13, 1.68, 1.34, 1.15,
            1.05, 0.984, 0.885, 0.787, 0.701, 0.633, 0.572, 0.516, 0.468),
        0.0005 / 16: (inf, inf, inf, inf, 3.54, 2.19, 1.73, 1.36, 1.16,
            1.07, 1, 0.897, 0.799, 0.712, 0.642, 0.579, 0.523, 0.475),
        0.0001: (inf, inf, inf, 4.5, 2.71, 1.9, 1.55, 1.26, 1.09,
            1.01, 0.946, 0.849, 0.756, 0.674, 0.609, 0.55, 0.497, 0.451),
        0.0001 / 2: (inf, inf, inf, inf, 3.27, 2.07, 1.66, 1.32, 1.13,
            1.04, 0.974, 0.876, 0.779, 0.694, 0.626, 0.567, 0.513, 0.465),
        0.0001 / 3: (inf, inf, inf, inf, 3.54, 2.19, 1.7, 1.36, 1.16,
            1.07, 1, 0.892, 0.795, 0.709, 0.64, 0.577, 0.521, 0.473),
        0.0001 / 4: (inf, inf, inf, inf, 4.28, 2.29, 1.76, 1.38, 1.17,
            1.09, 1.01, 0.905, 0.807, 0.717, 0.646, 0.583, 0.526, 0.479),
        0.0001 / 6: (inf, inf, inf, inf, 4.28, 2.36, 1.81, 1.43, 1.21,
            1.11, 1.03, 0.926, 0.823, 0.729, 0.658, 0.593, 0.536, 0.487),
        0.0001 / 8: (inf, inf, inf, inf, 4.28, 2.46, 1.88, 1.46, 1.24,
            1.13, 1.06, 0.94, 0.837, 0.74, 0.667, 0.603, 0.545, 0.493),
        0.0001 / 12: (inf, inf, inf, inf, inf, 2.6, 1.93, 1.49, 1.25,
            1.16, 1.07, 0.957, 0.847, 0.754, 0.678, 0.612, 0.55, 0.501),
        0.0001 / 16: (inf, inf, inf, inf, inf, 2.74, 2, 1.52, 1.28,
            1.17, 1.09, 0.968, 0.859, 0.763, 0.684, 0.617, 0.556, 0.505),
    }
)
# fmt: on

# The same where no look before 14 pairs speaks, because there are no whole eights to compare, as for ``fades``. From 14
# pairs on; after the last of these looks it is the same.
RANKS_ALONE: Mapping[float, tuple[float, ...]] = MappingProxyType(
    {
        0.05: (1.55, 1.21, 1.02, 0.865, 0.762, 0.666, 0.594),
        0.0005: (inf, 3.64, 2.41, 1.74, 1.45, 1.18, 1.03),
        0.0005 / 2: (inf, 3.64, 2.41, 1.74, 1.45, 1.18, 1.03),
        0.0005 / 3: (inf, 4.5, 2.57, 1.82, 1.49, 1.21, 1.04),
        0.0005 / 4: (inf, 4.5, 2.71, 1.85, 1.53, 1.23, 1.07),
        0.0005 / 6: (inf, 4.5, 2.84, 1.95, 1.57, 1.28, 1.1),
        0.0005 / 8: (inf, inf, 3.27, 2.01, 1.6, 1.29, 1.11),
        0.0005 / 12: (inf, inf, 3.27, 2.13, 1.68, 1.34, 1.15),
        0.0005 / 16: (inf, inf, 3.54, 2.19, 1.73, 1.36, 1.16),
        0.0001: (inf, 4.5, 2.71, 1.9, 1.55, 1.26, 1.09),
        0.0001 / 2: (inf, inf, 3.27, 2.07, 1.66, 1.32, 1.13),
        0.0001 / 3: (inf, inf, 3.54, 2.19, 1.7, 1.36, 1.16),
        0.0001 / 4: (inf, inf, 4.28, 2.29, 1.76, 1.38, 1.17),
        0.0001 / 6: (inf, inf, 4.28, 2.36, 1.81, 1.43, 1.21),
        0.0001 / 8: (inf, inf, 4.28, 2.46, 1.88, 1.46, 1.24),
        0.0001 / 12: (inf, inf, inf, 2.6, 1.93, 1.49, 1.25),
        0.0001 / 16: (inf, inf, inf, 2.74, 2, 1.52, 1.28),
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
