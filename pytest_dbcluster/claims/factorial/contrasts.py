"""The estimate and the interval of an effect, and of the interaction of two options, as log ratios.

An effect of b: the second level of an option multiplies the speed by exp(b) in every combination. Then the values
without b at the second level are fixed numbers. A value of b is rejected by the exact test of ``chances``. The interval
is all that lies between the values of b that are not rejected.
"""

from __future__ import annotations

import abc
import dataclasses
import itertools
import math
import statistics
from collections.abc import Sequence

from pytest_dbcluster.claims.estimators import Interval
from pytest_dbcluster.claims.factorial import chances
from pytest_dbcluster.claims.factorial.chances import Shape
from pytest_dbcluster.claims.factorial.trial import FactorialTrial

EQUAL = 1e-12  # differences of residuals below this are ties


class Contrast(abc.ABC):
    """What a claim about options compares, as a log ratio."""

    noise_factor = 1.0
    """How many times as large its error is as that of an effect."""

    @property
    @abc.abstractmethod
    def estimate(self) -> float:
        """The estimate; nan without a comparison."""

    @abc.abstractmethod
    def interval(self, level: float) -> Interval:
        """The values that one look does not reject. level: the error of each end at all looks together."""


@dataclasses.dataclass(frozen=True)
class MainEffect(Contrast):
    """The second level of an option compared with its first, in the same strata."""

    comparisons: tuple[tuple[float, float], ...]
    """For each two rounds of a stratum at different levels: the difference of their residuals, and by how much it falls
    if b rises by 1.
    """

    shapes: tuple[Shape, ...]
    """The numbers of rounds at the second and at the first level in each stratum."""

    @property
    def estimate(self) -> float:
        """The median of the values of b at which two rounds are equal (Hodges-Lehmann)."""
        return statistics.median([value / step for value, step in self.comparisons if step > EQUAL] or [math.nan])

    def interval(self, level: float) -> Interval:
        """The smallest and the largest b that are not rejected."""
        most = chances.critical_value(self.shapes, chances.at_look(level))
        if most is None:
            return -math.inf, math.inf
        low = first_kept(self.comparisons, most)
        return low, -first_kept([(-value, step) for value, step in self.comparisons], most)


@dataclasses.dataclass(frozen=True)
class Interaction(Contrast):
    """The effect of one option at the second level of another, compared with its effect at the first level.

    Each end of its interval consists of two ends with half of the level. So either option may have any effect.
    """

    second: MainEffect
    """The effect in the rounds at the second level of the other option."""

    first: MainEffect
    """The effect in the rounds at its first level."""

    noise_factor = 2.0

    @property
    def estimate(self) -> float:
        """The difference of both effects."""
        return self.second.estimate - self.first.estimate

    def interval(self, level: float) -> Interval:
        """The differences between values of both effects that are not rejected."""
        (second_low, second_high), (first_low, first_high) = (
            one.interval(level / 2) for one in (self.second, self.first)
        )
        return second_low - first_high, second_high - first_low


def of(trial: FactorialTrial, option: int, given: int | None = None) -> Contrast:
    """The effect of an option (0-based), or with ``given`` its interaction with that option."""
    others = [one for one in range(trial.options) if one not in (option, given)]
    if given is None:
        return effect(trial, option, others, trial.strata())
    second, first = (effect(trial, option, others, trial.strata(given, level)) for level in (1, 0))
    return Interaction(second, first)


def effect(trial: FactorialTrial, option: int, others: Sequence[int], strata: Sequence[Sequence[int]]) -> MainEffect:
    """The effect of an option in these strata, from residuals after the levels of ``others``.

    The residuals are linear in the values. So a value b at the second level moves the difference of two rounds in
    proportion to b. The residuals of the own levels say by how much.
    """
    own = [float(trial.level(option, place)) for place in range(len(trial.logs))]
    values, steps = (trial.residuals(column, others, strata) for column in (trial.logs, own))
    found, shapes = [], []
    for places in strata:
        groups = [[place for place in places if own[place] == level] for level in (1, 0)]
        shapes.append((len(groups[0]), len(groups[1])))
        found += [(values[i] - values[j], steps[i] - steps[j]) for i, j in itertools.product(*groups)]
    return MainEffect(tuple(found), tuple(sorted(shapes)))


def first_kept(comparisons: Sequence[tuple[float, float]], most: int) -> float:
    """The smallest b at which more than ``most`` comparisons do not show the second level above the first.

    -inf if that is so for all small b, inf if it is so for none. A comparison mostly turns as b rises. One whose step
    is negative turns back: then the other options' levels explain more than the own ones do.
    """
    count = sum(step < -EQUAL or (abs(step) <= EQUAL and value <= EQUAL) for value, step in comparisons)
    if count > most:
        return -math.inf
    turns = sorted((value / step, step < 0) for value, step in comparisons if abs(step) > EQUAL)
    for at, back in turns:
        count += -1 if back else 1
        if count > most:
            return at
    return math.inf
