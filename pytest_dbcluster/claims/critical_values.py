"""The looks, which are the numbers of pairs at which a claim is judged, and their critical values.

The order of the rounds is drawn at random (``block_order``), so it is the only thing whose distribution is known. Every
critical value rests on it: when the variant changes nothing beyond the claim's bound, the times are fixed numbers,
whatever the noise is (drift, waves, modes, stalls, ties), and only the labels of the variants are random.

- Looks at 4, 8 and 12 pairs: Mann-Whitney (1947) of four rounds against four, summed over the eights. The value is the
  largest sum U that still rejects. Its exact distribution counts the 70 arrangements of each eight.
- Looks from 14 pairs on: Wilcoxon's signed-rank sum of ``s * v``. s is +1 where the baseline ran first, else -1; v is
  what remains of the pair's difference (first round minus second) without its centre. The value is the smallest sum
  that rejects. Centre and ranks use no s, and the s are fair coins, so the exact null distribution of the sum is
  Wilcoxon's for every centre: the values hold for a trimmed mean as they do for a mean. Ties only lower the chance.

Rows for claims: the exact chances of all looks add up to at most the level (union bound), so the level holds for any
noise, towards one side. The eights take fixed values, the look at 14 pairs speaks at .0005 only, and all other looks
have one nominal level, the largest that keeps the sum. (At 12 pairs .00025 asks for less than .0005, which has spent
its part at 8 pairs; everywhere else a stricter level asks for more.) Guards (.05): one nominal level for all looks from
14 on, calibrated by simulation of independent normal rounds, all looks together; for any noise the chance is at most
.109.

``benchmarks/critical_values.py`` makes and checks the table. For rows of claims it only counts, without simulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pytest_dbcluster.claims.block_order import EIGHTS, PER_EIGHT, eights
from pytest_dbcluster.errors import ConfigError

LOOKS = (4, 8, 12, 14, 17, 20, 24, 28, 34, 40, 48, 56, 67, 80, 95, 113, 135, 160)  # numbers of pairs
OF_EIGHTS = LOOKS[:EIGHTS]  # looks that compare whole eights by Mann-Whitney
RANKS_FROM = LOOKS[EIGHTS]  # pairs: from here on a look is a signed-rank test
GUARD_LEVEL = 0.05  # the maximum chance that a guard holds wrongly, for independent rounds
GUARD_BOUND = 0.11  # the same for any noise
ALPHAS = (0.0005, 0.0001)  # the permitted values of --db-alpha, the default first
MAX_STEPS = 4  # of an order: it compares up to five variants
LEVELS = (GUARD_LEVEL, *(alpha / parts for alpha in ALPHAS for parts in range(1, MAX_STEPS + 1)))


@dataclass(frozen=True)
class Boundary:
    """The critical values of one level, one per look; None where a look cannot speak at this level.

    At 4, 8 and 12 pairs the largest Mann-Whitney sum that rejects, from 14 pairs on the smallest signed-rank sum.
    """

    critical: tuple[int | None, ...]

    def at(self, look: int) -> int | None:
        """The critical value of the look at ``look`` pairs. Raises ValueError for a number that is not a look."""
        return self.critical[LOOKS.index(look)]

    @property
    def first_look(self) -> int:
        """The first look that can speak, as a number of pairs: no verdict comes earlier, however clear the pairs."""
        return next(look for look, value in zip(LOOKS, self.critical, strict=True) if value is not None)


_: int | None = None  # a look that cannot speak
TABLE: Mapping[float, Boundary] = MappingProxyType(
    {
        level: Boundary(row)
        for level, row in {
            0.05: (0, 3, 8, 92, 129, 172, 237, 312, 443, 596, 832, 1105, 1540, 2142, 2955, 4095, 5732, 7912),
            0.0005: (_, 0, 1, 105, 152, 204, 282, 371, 525, 702, 975, 1288, 1783, 2463, 3373, 4642, 6450, 8844),
            0.0005 / 2: (_, _, 3, _, 153, 205, 284, 374, 529, 708, 982, 1297, 1795, 2479, 3395, 4670, 6488, 8893),
            0.0005 / 3: (_, _, 2, _, 153, 205, 285, 375, 530, 710, 985, 1301, 1800, 2486, 3404, 4682, 6503, 8912),
            0.0005 / 4: (_, _, 2, _, _, 206, 286, 377, 534, 714, 991, 1308, 1810, 2500, 3422, 4706, 6535, 8954),
            0.0001: (_, _, 2, _, _, 207, 288, 379, 537, 718, 997, 1316, 1820, 2513, 3440, 4730, 6566, 8994),
            0.0001 / 2: (_, _, 1, _, _, 208, 290, 382, 541, 724, 1005, 1326, 1834, 2532, 3465, 4762, 6609, 9051),
            0.0001 / 3: (_, _, 1, _, _, 210, 292, 385, 546, 730, 1013, 1338, 1850, 2552, 3492, 4798, 6656, 9113),
            0.0001 / 4: (_, _, 1, _, _, 210, 294, 388, 550, 736, 1021, 1348, 1864, 2571, 3516, 4831, 6700, 9169),
        }.items()
    }
)


def boundary(level: float) -> Boundary:
    """The critical values of a one-sided level. Raises ConfigError for a level that was not calibrated."""
    if level not in TABLE:
        known = ", ".join(f"{calibrated:.3g}" for calibrated in TABLE)
        raise ConfigError(f"no critical values for level {level:.3g}; there are values for {known}")
    return TABLE[level]


def looks(instances: int = 1) -> tuple[int, ...]:
    """The looks of a measurement whose blocks use so many instances in turn.

    None comes before every instance has equally many eights, so that no verdict rests on one instance more than on
    another; and none inside an eight.
    """
    whole = PER_EIGHT * eights(instances)
    return tuple(look for look in LOOKS if (look in OF_EIGHTS and look % (PER_EIGHT * instances) == 0) or look >= whole)


def next_look(pairs: int, instances: int = 1) -> int | None:
    """The first look after ``pairs`` pairs, as a number of pairs; None after the last look."""
    return next((look for look in looks(instances) if look > pairs), None)


def last_look(pairs: int, instances: int = 1) -> int | None:
    """The last look that ``pairs`` drawn pairs have reached, as a number of pairs; None before the first look."""
    return next((look for look in reversed(looks(instances)) if look <= pairs), None)
