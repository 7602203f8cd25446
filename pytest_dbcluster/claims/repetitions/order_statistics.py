"""The interval of a quantile from independent repetitions (order statistics), and of a share. Pure functions.

The number of repetitions below the true quantile is binomial, whatever the distribution of the values is. So each end
of the interval is one of the values, and errs with a chance of at most ``level``.

Six repetitions give the median a 95 % interval, from the smallest to the largest. Eleven give a 99.9 % interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pytest_dbcluster.claims.repetitions.samples import Repetitions

ALONE_TIMES = 11  # repetitions of an event on a single variant: those of an error of .0005 for the median
USUAL_LEVEL = 0.025  # the error of each end of a 95 % interval
STEPS = 60  # of a bisection


def at_least(successes: int, trials: int, chance: float) -> float:
    """The probability of so many successes or more in independent trials."""
    return math.fsum(
        math.comb(trials, one) * chance**one * (1 - chance) ** (trials - one) for one in range(successes, trials + 1)
    )


def repetitions_needed(share: float, level: float) -> int:
    """The smallest number of repetitions from which a value can lie above the quantile with an error of ``level``."""
    return math.ceil(math.log(level) / math.log(share) - 1e-9)


def level_of(repetitions: int, share: float, alpha: float) -> float | None:
    """The error of each end: ``alpha`` if so many repetitions suffice for it, else that of 95 %; None if not for it."""
    for level in (alpha, USUAL_LEVEL):
        if repetitions >= repetitions_needed(share, level):
            return level
    return None


def interval(samples: Repetitions, share: float, level: float) -> tuple[float, float]:
    """The values between which the quantile lies. 0 and infinity if too few repetitions bound an end.

    A lower bound counts with its value for the lower end, and as infinite for the upper end.
    """
    count = len(samples)
    least, most = sorted(samples.values), sorted(samples.most)
    # at_least(rank, ...) is the chance that ``rank`` values or more lie at or below the quantile.
    below = [rank for rank in range(1, count + 1) if 1 - at_least(rank, count, share) <= level]
    above = [rank for rank in range(1, count + 1) if at_least(rank, count, share) <= level]
    return (least[max(below) - 1] if below else 0.0), (most[min(above) - 1] if above else math.inf)


def quantile(samples: Repetitions, share: float) -> float:
    """The estimate: the median of the values, or the value that this share of them does not exceed; nan without any."""
    rising = sorted(samples.values)
    if not rising:
        return math.nan
    if share == 0.5:
        return (rising[(len(rising) - 1) // 2] + rising[len(rising) // 2]) / 2
    return rising[min(len(rising) - 1, math.ceil(share * len(rising) - 1e-9) - 1)]


def share_interval(happened: int, repetitions: int, level: float) -> tuple[float, float]:
    """The interval of the chance of something that happened in so many repetitions (Clopper and Pearson 1934).

    Each end errs with a chance of at most ``level``. If it never happened, the upper end is 1 - level ** (1 / n).
    """
    low = 0.0 if happened == 0 else _bisect(lambda chance: at_least(happened, repetitions, chance) > level)
    if happened == repetitions:
        return low, 1.0
    if happened == 0:
        return 0.0, 1 - level ** (1 / repetitions)
    return low, _bisect(lambda chance: 1 - at_least(happened + 1, repetitions, chance) <= level)


def _bisect(reached: Callable[[float], bool]) -> float:
    """The smallest chance from which ``reached`` is True; it is False at 0."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return (low + high) / 2
