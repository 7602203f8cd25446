"""When a claim may answer, and how strong its evidence must be then: the looks and their critical values.

A look after fewer than 15 pairs is a t test that also wants every pair on the same side; from 15 on it is
Wilcoxon's signed rank, whose values hold for any symmetric noise. Each row keeps the chance to be wrong at
*any* look, towards one side, at the level it is named by: it is the smallest nominal level that normal,
uniform and two-mode differences allowed in 400 000 simulated claims each; ``benchmarks/critical_values.py``.
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
        0.05: Boundary(1.051e-2, (4.7175, 3.9903, 3.5516, 101, 167, 304, 581, 1080, 2100, 4025, 7793)),
        0.0005: Boundary(4.095e-5, (15.4725, 10.0667, 7.5065, 120, 201, 365, 690, 1265, 2422, 4573, 8726)),
        0.0005 / 2: Boundary(2.451e-5, (inf, 10.8776, 7.9635, 121, 202, 368, 697, 1278, 2446, 4613, 8794)),
        0.0005 / 3: Boundary(1.628e-5, (inf, 11.5661, 8.3429, 121, 204, 371, 703, 1288, 2464, 4644, 8847)),
        0.0005 / 4: Boundary(1.125e-5, (inf, 12.2205, 8.6966, 121, 205, 374, 708, 1297, 2479, 4671, 8894)),
        0.0001: Boundary(9.537e-6, (inf, 12.5248, 8.8590, 121, 205, 375, 710, 1301, 2486, 4683, 8914)),
        0.0001 / 2: Boundary(4.789e-6, (inf, 13.8688, 9.5613, 121, 207, 379, 719, 1316, 2514, 4732, 8998)),
        0.0001 / 3: Boundary(2.764e-6, (inf, 15.0370, 10.1538, 121, 209, 383, 725, 1328, 2536, 4770, 9063)),
        0.0001 / 4: Boundary(2.764e-6, (inf, inf, 10.1538, 121, 209, 383, 725, 1328, 2536, 4770, 9063)),
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
