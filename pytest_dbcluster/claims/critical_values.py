"""The looks, which are the numbers of pairs at which a claim is judged, and their critical values.

Below 15 pairs a look is a t test that also needs every pair on the same side. From 15 pairs on it is Wilcoxon's
signed-rank test, which is valid for any symmetric noise. Each row of ``TABLE`` keeps the chance to be wrong at *any*
look, towards one side, at the row's level. The nominal level of a row is the smallest that normal, uniform and
two-mode differences allowed in 20 million simulated claims each; see ``benchmarks/critical_values.py``.

Checked with 4 million fresh claims at the level .0005: the error rate is .00028 for normal differences, .00047 for
uniform, .00049 for two-mode and .00026 for Cauchy. The worst distribution known, sines of a random angle, has .0011.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pytest_dbcluster.errors import ConfigError

LOOKS = (6, 8, 11, 15, 20, 28, 40, 56, 80, 113, 160)  # numbers of pairs
RANKS_FROM = 15  # pairs: below it a t test, from it on a signed-rank test
GUARD_LEVEL = 0.05  # the maximum chance that a guard holds wrongly
ALPHAS = (0.0005, 0.0001)  # the permitted values of --db-alpha, the default first
MAX_STEPS = 4  # of an order: it compares up to five variants
LEVELS = (GUARD_LEVEL, *(alpha / parts for alpha in ALPHAS for parts in range(1, MAX_STEPS + 1)))


@dataclass(frozen=True)
class Boundary:
    """The critical values of one level, one per look.

    nominal: the one-sided level of a single look. critical: below 15 pairs the t value to exceed (infinite where so
    few pairs prove nothing at this level); from 15 pairs on the signed-rank sum to reach (where no sum suffices, the
    maximum sum plus 1).
    """

    nominal: float
    critical: tuple[float, ...]

    def at(self, look: int) -> float:
        """The critical value of the look at ``look`` pairs. Raises ValueError for a number that is not a look."""
        return self.critical[LOOKS.index(look)]


inf = math.inf
TABLE: Mapping[float, Boundary] = MappingProxyType(
    {
        0.05: Boundary(1.051e-2, (4.7174, 3.9903, 3.5516, 101, 167, 304, 581, 1080, 2100, 4025, 7793)),
        0.0005: Boundary(4.188e-5, (15.4021, 10.0326, 7.4870, 120, 200, 364, 689, 1265, 2421, 4571, 8722)),
        0.0005 / 2: Boundary(2.706e-5, (inf, 10.7168, 7.8738, 121, 202, 368, 696, 1276, 2441, 4605, 8781)),
        0.0005 / 3: Boundary(1.704e-5, (inf, 11.4867, 8.2995, 121, 204, 371, 702, 1287, 2462, 4640, 8841)),
        0.0005 / 4: Boundary(1.220e-5, (inf, 12.0750, 8.6185, 121, 205, 373, 707, 1295, 2476, 4665, 8883)),
        0.0001: Boundary(9.527e-6, (inf, 12.5268, 8.8600, 121, 206, 375, 710, 1301, 2486, 4683, 8914)),
        0.0001 / 2: Boundary(4.416e-6, (inf, 14.0357, 9.6469, 121, 208, 380, 720, 1318, 2518, 4738, 9008)),
        0.0001 / 3: Boundary(2.770e-6, (inf, 15.0318, 10.1512, 121, 209, 383, 725, 1328, 2536, 4769, 9063)),
        0.0001 / 4: Boundary(2.770e-6, (inf, inf, 10.1512, 121, 209, 383, 725, 1328, 2536, 4769, 9063)),
    }
)


def boundary(level: float) -> Boundary:
    """The critical values of a one-sided level. Raises ConfigError for a level that was not calibrated."""
    if level not in TABLE:
        known = ", ".join(f"{calibrated:.3g}" for calibrated in TABLE)
        raise ConfigError(f"no critical values for level {level:.3g}; there are values for {known}")
    return TABLE[level]


def next_look(pairs: int) -> int | None:
    """The first look after ``pairs`` pairs, as a number of pairs; None after the last look."""
    return next((look for look in LOOKS if look > pairs), None)


def last_look(pairs: int) -> int | None:
    """The last look that ``pairs`` drawn pairs have reached, as a number of pairs; None before the first look."""
    return next((look for look in reversed(LOOKS) if look <= pairs), None)
