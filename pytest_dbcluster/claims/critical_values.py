"""When a claim may answer, and how strong its evidence must be then: the looks and their critical values.

A look after fewer than 15 pairs is a t test that also wants every pair on the same side; from 15 on it is
Wilcoxon's signed rank, whose values hold for any symmetric noise. Each row keeps the chance to be wrong at
*any* look, towards one side, at the level it is named by: it is the smallest nominal level that normal,
uniform and two-mode differences allowed in 20 million simulated claims each; ``benchmarks/critical_values.py``.

Checked with 4 million fresh claims: where .0005 is promised, normal differences err .00028, uniform .00047,
two-mode .00049 and Cauchy .00026. The worst kind known, sines of a random angle, errs .0011.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pytest_dbcluster.errors import ConfigError

LOOKS = (6, 8, 11, 15, 20, 28, 40, 56, 80, 113, 160)
RANKS_FROM = 15
GUARD_LEVEL = 0.05
ALPHAS = (0.0005, 0.0001)
MOST_NEIGHBOURS = 4
LEVELS = (GUARD_LEVEL, *(alpha / parts for alpha in ALPHAS for parts in range(1, MOST_NEIGHBOURS + 1)))


@dataclass(frozen=True)
class Boundary:
    """The critical values of one level, one per look.

    ``nominal`` is the one-sided level of a single look. ``critical`` holds, below 15 pairs, the t that must
    be exceeded (infinite where so few pairs cannot speak at this level) and from 15 on the signed-rank sum
    that must be reached (one more than there is where no sum suffices).
    """

    nominal: float
    critical: tuple[float, ...]

    def at(self, look: int) -> float:
        """The critical value of a look of ``look`` pairs; ValueError where there is no look."""
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
    """The critical values of a one-sided level; ConfigError for a level that was not calibrated."""
    if level not in TABLE:
        known = ", ".join(f"{one:.3g}" for one in TABLE)
        raise ConfigError(f"no critical values for level {level:.3g}; there are values for {known}")
    return TABLE[level]


def next_look(pairs: int) -> int | None:
    """The number of pairs at which a claim with ``pairs`` pairs looks next; None after the last look."""
    return next((look for look in LOOKS if look > pairs), None)


def last_look(pairs: int) -> int | None:
    """The look that ``pairs`` drawn pairs have reached or passed; None before the first."""
    return next((look for look in reversed(LOOKS) if look <= pairs), None)
