"""The looks, which are the numbers of pairs at which a claim is judged, and their critical values.

The order of the rounds is drawn at random (``block_order``), so it is the only thing whose distribution is known. Every
critical value rests on it. Suppose that the variant changes nothing beyond the claim's bound. Then the times are fixed
numbers, and only the labels of the variants are random. This is so for any noise: drift, waves, modes, stalls, ties.

- Looks at 8 and 12 pairs: Mann-Whitney (1947) of four rounds against four, summed over the opening blocks. The value
  is the largest sum U that still rejects. Its exact distribution counts the 70 arrangements of each opening block.
- Looks from 14 pairs on: Wilcoxon's signed-rank sum of ``s * v``. s is +1 if the baseline ran first, else -1. v is the
  pair's difference (first round minus second) without its centre. The value is the smallest sum that rejects. Centre
  and ranks do not use s, and each s is a fair coin. So the exact null distribution of the sum is Wilcoxon's for every
  centre. The values hold for a trimmed mean as they do for a mean. Ties only lower the chance.

Two variants may also have the same centre and different spreads: their log differences are symmetric about the bound.
Then s is a fair coin for each difference of independent rounds as well. So the signed ranks keep their exact chance.
The opening blocks do not. With chance 2**-n all n rounds of the noisier variant lie on one side of the other variant.
So no look at 4 pairs may reject (1/16), nor one at 8 pairs of a claim (1/256). At 12 pairs U <= 2 counts as .00027. No
gate that compares the spreads seen at 8 pairs would help: a variant with two modes may show only one of them.

Rows for claims: the exact chances of all looks add up to at most the level (union bound). So the level holds in both
cases, towards one side. A look may reject if the chance of equal signs is at most a tenth of the level. All signed
ranks have one nominal level: the largest that keeps the sum. It is never larger than that of a looser level. Guards:
the chances add up to .1. A guard promises it if rounds depend on each other and the variant changes nothing. A
simulation shows that this keeps .05 for independent rounds, all looks together. It has spreads from 1:1 to 1:10, and
noise that grows tenfold.

``benchmarks/critical_values.py`` makes and checks the table. For rows of claims it only counts, without simulation.
``benchmarks/noise_models.py`` shows the errors of all looks together for noise of many kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pytest_dbcluster.claims.block_order import PER_OPENING, openings
from pytest_dbcluster.errors import ConfigError

LOOKS = (8, 12, 14, 17, 20, 24, 28, 34, 40, 44, 48, 56, 67, 80, 95, 113, 135, 160)  # numbers of pairs
OF_OPENINGS = LOOKS[:2]  # looks that compare whole opening blocks by Mann-Whitney
RANKS_FROM = LOOKS[2]  # pairs: from here on a look is a signed-rank test
GUARD_LEVEL = 0.05  # the maximum chance that a guard holds wrongly, if rounds are independent
GUARD_BOUND = 0.1  # the same if they depend on each other, and the noise is the same for both variants
ALPHAS = (0.0005, 0.0001)  # the permitted values of --db-alpha, the default first
MAX_STEPS = 4  # of an order: it compares up to five variants
PARTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16)  # into which an alpha can be shared; .0005 / 5 is .0001
LEVELS = (GUARD_LEVEL, *dict.fromkeys(alpha / parts for alpha in ALPHAS for parts in PARTS))


@dataclass(frozen=True)
class Boundary:
    """The critical values of one level.

    At 8 and 12 pairs the largest Mann-Whitney sum that rejects, from 14 pairs on the smallest signed-rank sum.
    """

    critical: tuple[int | None, ...]
    """The critical value of each look, in the order of ``LOOKS``; None if the look cannot decide."""

    def at(self, look: int) -> int | None:
        """The critical value of the look at ``look`` pairs. Raises ValueError for a number that is not a look."""
        return self.critical[LOOKS.index(look)]

    @property
    def first_look(self) -> int:
        """The number of pairs at the first look that can decide; no verdict comes earlier, even from clear pairs."""
        return next(look for look, value in zip(LOOKS, self.critical, strict=True) if value is not None)


_: int | None = None  # a look that cannot decide
TABLE: Mapping[float, Boundary] = MappingProxyType(
    {
        level: Boundary(row)
        for level, row in {
            0.05: (3, 7, 92, 129, 172, 237, 312, 443, 595, 709, 831, 1104, 1539, 2141, 2954, 4094, 5730, 7910),
            0.0005: (_, 2, _, 152, 204, 282, 372, 525, 703, 834, 976, 1289, 1784, 2465, 3376, 4646, 6455, 8850),
            0.0005 / 2: (_, _, _, 152, 204, 282, 372, 525, 703, 834, 976, 1289, 1784, 2465, 3376, 4646, 6455, 8850),
            0.0005 / 3: (_, _, _, 153, 205, 284, 374, 528, 707, 839, 981, 1296, 1793, 2477, 3392, 4667, 6483, 8886),
            0.0005 / 4: (_, _, _, 153, 206, 285, 376, 531, 711, 844, 986, 1303, 1803, 2490, 3409, 4689, 6512, 8924),
            0.0005 / 6: (_, _, _, 153, 207, 287, 378, 536, 717, 850, 994, 1313, 1817, 2508, 3433, 4721, 6554, 8979),
            0.0005 / 7: (_, _, _, _, 207, 288, 379, 536, 717, 851, 995, 1314, 1819, 2511, 3437, 4726, 6560, 8987),
            0.0005 / 8: (_, _, _, _, 208, 288, 379, 537, 719, 853, 997, 1317, 1822, 2515, 3442, 4733, 6570, 9000),
            0.0005 / 9: (_, _, _, _, 208, 289, 380, 538, 720, 855, 999, 1320, 1825, 2520, 3449, 4741, 6581, 9015),
            0.0005 / 12: (_, _, _, _, 208, 290, 382, 541, 724, 859, 1004, 1326, 1834, 2531, 3464, 4762, 6608, 9050),
            0.0005 / 16: (_, _, _, _, 209, 291, 384, 543, 727, 863, 1009, 1332, 1842, 2542, 3478, 4780, 6633, 9082),
            0.0001: (_, _, _, 153, 206, 286, 377, 534, 714, 848, 991, 1309, 1811, 2500, 3423, 4708, 6537, 8956),
            0.0001 / 2: (_, _, _, _, 208, 289, 381, 539, 722, 856, 1001, 1322, 1829, 2524, 3454, 4749, 6591, 9027),
            0.0001 / 3: (_, _, _, _, 209, 291, 383, 543, 726, 862, 1008, 1330, 1840, 2540, 3475, 4776, 6627, 9074),
            0.0001 / 4: (_, _, _, _, 210, 292, 385, 545, 729, 866, 1012, 1336, 1848, 2550, 3489, 4794, 6651, 9106),
            0.0001 / 5: (_, _, _, _, 210, 292, 386, 547, 732, 869, 1016, 1341, 1855, 2560, 3501, 4810, 6673, 9134),
            0.0001 / 6: (_, _, _, _, 210, 293, 387, 549, 734, 871, 1019, 1345, 1860, 2566, 3510, 4822, 6688, 9154),
            0.0001 / 7: (_, _, _, _, 210, 294, 388, 550, 736, 873, 1021, 1348, 1864, 2572, 3518, 4832, 6701, 9171),
            0.0001 / 8: (_, _, _, _, 210, 294, 389, 551, 738, 875, 1024, 1351, 1868, 2577, 3524, 4841, 6714, 9187),
            0.0001 / 9: (_, _, _, _, 210, 295, 389, 552, 739, 877, 1025, 1354, 1872, 2582, 3530, 4849, 6724, 9201),
            0.0001 / 12: (_, _, _, _, _, 295, 390, 553, 741, 880, 1029, 1358, 1877, 2590, 3541, 4863, 6742, 9225),
            0.0001 / 16: (_, _, _, _, _, 296, 392, 555, 744, 883, 1033, 1363, 1885, 2599, 3554, 4880, 6765, 9254),
        }.items()
    }
)


def boundary(level: float) -> Boundary:
    """The critical values of a one-sided level. Raises ConfigError for a level that was not calibrated."""
    if level not in TABLE:
        known = ", ".join(f"{calibrated:.3g}" for calibrated in TABLE)
        raise ConfigError(f"no critical values for level {level:.3g}; there are values for {known}")
    return TABLE[level]


def share(alpha: float, parts: int) -> float:
    """The calibrated level of each of ``parts`` comparisons that share an alpha: at most alpha / parts.

    Raises ValueError for more than 16 parts, or fewer than one.
    """
    for calibrated in PARTS:
        if 1 <= parts <= calibrated:
            return alpha / calibrated
    raise ValueError(f"an alpha is shared by 1 to {PARTS[-1]} comparisons, not {parts}")


def table_level(level: float) -> float:
    """The largest level of the table that is at most this one; without one the smallest level."""
    return max((one for one in TABLE if one <= level), default=min(TABLE))


def looks(instances: int = 1) -> tuple[int, ...]:
    """The looks of a measurement whose blocks use ``instances`` instances in turn.

    No look comes inside an opening block. A look comes only when every instance has equally many opening blocks. So no
    verdict rests more on one instance than on another.
    """
    whole = PER_OPENING * openings(instances)
    return tuple(
        look for look in LOOKS if (look in OF_OPENINGS and look % (PER_OPENING * instances) == 0) or look >= whole
    )


def next_look(pairs: int, instances: int = 1) -> int | None:
    """The first look after ``pairs`` pairs, as a number of pairs; None after the last look."""
    return next((look for look in looks(instances) if look > pairs), None)


def last_look(pairs: int, instances: int = 1) -> int | None:
    """The last look that ``pairs`` drawn pairs have reached, as a number of pairs; None before the first look."""
    return next((look for look in reversed(looks(instances)) if look <= pairs), None)
