"""Drift: does a new run differ from earlier runs of the same claim on the same machine? Pure functions.

The new log ratio is compared with the weighted mean of the last ``LAST`` runs. The test is Student's t over the spread
between runs. The standard errors of the runs are only weights: two runs of one hour differ by more than the noise of
their rounds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from pytest_dbcluster.claims.cluster_difference import student_quantile

LAST = 10  # earlier runs that count
LEAST = 5  # fewer earlier runs are too few
ALPHA = 0.001  # chance of a warning about a run that is like the earlier ones, both sides together
SMALLEST = 0.05  # smaller differences give no warning
BETWEEN = 0.01  # the assumed standard deviation between runs in the weights, as a natural log


@dataclasses.dataclass(frozen=True)
class DriftPoint:
    """One run."""

    value: float
    """A log ratio, or the log of a speed."""

    error: float
    """Its standard error from the noise of its rounds."""


@dataclasses.dataclass(frozen=True)
class Drift:
    """A new run compared with earlier ones. All but ``runs`` are nan if there are too few earlier runs."""

    runs: int
    """The number of earlier runs that counted."""

    change: float = math.nan
    """The new value minus the weighted mean, as a natural log."""

    t: float = math.nan
    """The change, in standard deviations of a new run."""

    limit: float = math.nan
    """A larger |t| is a warning."""

    @property
    def has_enough_runs(self) -> bool:
        """Whether there are enough earlier runs."""
        return self.runs >= LEAST

    @property
    def warns(self) -> bool:
        """Whether the new run differs from the earlier ones, certainly and by ``SMALLEST`` or more."""
        return self.has_enough_runs and abs(self.t) > self.limit and abs(math.expm1(self.change)) >= SMALLEST


def drift(earlier: Sequence[DriftPoint], new: DriftPoint) -> Drift:
    """Compare a new run with the last ``LAST`` of the earlier ones, oldest first.

    The weights are w = 1 / variance. The mean is m = sum(w x) / sum(w), and s^2 = sum(w (x - m)^2) / (n - 1). Suppose
    that the values are normal with variances in proportion to 1 / w. Then ``(new - m) / (s sqrt(1 / w_new + 1 /
    sum(w)))`` has Student's t distribution with n - 1 degrees of freedom. That is the prediction of one future value
    (Hahn and Meeker, Statistical Intervals, 1991, section 4.8). Two-sided .001 is 8.61 at five runs and 4.78 at ten.
    """
    last = [point for point in earlier if math.isfinite(point.value)][-LAST:]
    if len(last) < LEAST or not math.isfinite(new.value):
        return Drift(len(last) if math.isfinite(new.value) else 0)
    weights = [_weight(point) for point in last]
    total = math.fsum(weights)
    mean = math.fsum(weight * point.value for weight, point in zip(weights, last, strict=True)) / total
    squares = math.fsum(weight * (point.value - mean) ** 2 for weight, point in zip(weights, last, strict=True))
    spread = math.sqrt(squares / (len(last) - 1) * (1 / _weight(new) + 1 / total))
    change = new.value - mean
    limit = student_quantile(1 - ALPHA / 2, len(last) - 1)
    return Drift(len(last), change, change / spread if spread else math.copysign(math.inf, change), limit)


def _weight(point: DriftPoint) -> float:
    error = point.error if math.isfinite(point.error) else 0.0
    return 1 / (error**2 + BETWEEN**2)
