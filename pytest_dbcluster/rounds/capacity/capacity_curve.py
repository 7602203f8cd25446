"""CapacityCurve: a latency percentile at several arrival rates, and the rate at which it crosses an objective."""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics
from collections.abc import Sequence
from typing import Self

from pytest_dbcluster.rounds.capacity.objective import Objective

BEYOND = 4.0  # times the objective: how far a queue has grown beyond it says only how long the rate has run
ENDED = 1.02  # times the objective: the least percentile of a rate that ended early, since buckets are this coarse


@dataclasses.dataclass(frozen=True)
class RatePoint:
    """An open loop at one arrival rate."""

    rate: float
    """The arrival rate, in operations a second."""

    latency: float
    """The percentile of the latencies from the intended start, in seconds. Operations that did not end count too."""

    ended_early: bool = False
    """Whether it ended before its time, because it must miss the objective."""


@dataclasses.dataclass(frozen=True)
class CapacityCurve:
    """What one round found: a percentile at each of its arrival rates."""

    percentile: str
    """The percentile, such as ``p95``."""

    seconds: float
    """The seconds that the percentile must not exceed."""

    points: tuple[RatePoint, ...]
    """The rates, in rising order."""

    @classmethod
    def of(cls, objective: Objective, points: Sequence[RatePoint]) -> Self:
        """The curve of these rates, in any order. Raises ValueError without a rate."""
        if not points:
            raise ValueError("a capacity needs at least one arrival rate")
        return cls(objective.percentile, objective.seconds, tuple(sorted(points, key=lambda point: point.rate)))

    @functools.cached_property
    def censored(self) -> int:
        """1 if the capacity is above the highest rate, -1 if it is below the lowest rate, else 0."""
        return self._crossing[1]

    @functools.cached_property
    def value(self) -> float:
        """The arrival rate at which the percentile crosses the objective, in operations a second.

        It is interpolated between two rates, on logarithmic scales. For a censored round it is the highest or the
        lowest rate.
        """
        return self._crossing[0]

    @functools.cached_property
    def _crossing(self) -> tuple[float, int]:
        """``value`` and ``censored``."""
        logs, limit = rising([self._log(point) for point in self.points]), math.log(self.seconds)
        missing = next((number for number, log in enumerate(logs) if log > limit), None)
        if missing is None:
            return self.points[-1].rate, 1
        if missing == 0:
            return self.points[0].rate, -1
        low, high = (math.log(self.points[number].rate) for number in (missing - 1, missing))
        share = (limit - logs[missing - 1]) / (logs[missing] - logs[missing - 1])
        return math.exp(low + share * (high - low)), 0

    @property
    def upper(self) -> float:
        """The lowest rate that misses the objective, or the highest rate."""
        return next((point.rate for point in self.points if point.rate >= self.value), self.points[-1].rate)

    def _log(self, point: RatePoint) -> float:
        """The natural log of a latency, at most that of BEYOND times the objective."""
        latency = max(point.latency, ENDED * self.seconds) if point.ended_early else point.latency
        return math.log(min(latency, BEYOND * self.seconds))


def rising(values: Sequence[float]) -> list[float]:
    """The rising values nearest to these: neighbours that fall are replaced by their mean (pool adjacent violators).

    A percentile rises with the rate, so a fall is noise.
    """
    pools: list[list[float]] = []
    for value in values:
        pools.append([value])
        while len(pools) > 1 and statistics.fmean(pools[-2]) > statistics.fmean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    return [mean for pool in pools for mean in [statistics.fmean(pool)] * len(pool)]


def mean(curves: Sequence[CapacityCurve]) -> CapacityCurve:
    """The curve of several rounds with the same rates: the geometric mean of the latencies at each rate."""
    by_rate: dict[float, list[RatePoint]] = {}
    for curve in curves:
        for point in curve.points:
            by_rate.setdefault(point.rate, []).append(point)
    points = tuple(
        RatePoint(
            rate,
            statistics.geometric_mean([point.latency for point in several]),
            2 * sum(point.ended_early for point in several) > len(several),
        )
        for rate, several in sorted(by_rate.items())
    )
    return dataclasses.replace(curves[0], points=points)
