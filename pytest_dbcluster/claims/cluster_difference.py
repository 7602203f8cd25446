"""ClusterDifference: how far two fresh equal clusters can differ, called f. Pure functions.

Two servers with the same release and options differ: their memory and files lie elsewhere. Such a difference stays as
long as the servers run, so more rounds do not remove it. So a claim between separate clusters holds only if its
interval lies beyond its bound by more than f. It fails only if the interval lies short of the bound by more than f.
Between the two it is inconclusive. Each metric has a separate f: equal clusters differ more in a latency than in
throughput.

f is the .995 quantile of the log ratio of two fresh equal clusters: 1 pair of clusters in 200 differs by more towards
one side. ``upper`` estimates it from pairs of clusters that were measured.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

QUANTILE = 0.995
ONE_IN = round(1 / (1 - QUANTILE))
USUAL_PAIRS = 24  # of clusters, that `dbcluster calibrate` measures
LEAST_PAIRS = 8  # of clusters: fewer give an f of more than 3.4 standard deviations
ASSUMED = "assumed"
SPAN, STEPS = 1e3, 2000  # the range of the variances, as a factor, and its steps
PRECISE = 1e-6  # of f, in standard deviations
NEGLIGIBLE = 1e-18  # of the largest weight of a variance: all smaller ones together change no digit of f


@dataclasses.dataclass(frozen=True)
class ClusterDifference:
    """How far two fresh equal clusters can differ, and how that is known."""

    log_ratio: float
    """The difference f for one instance of each variant, as a natural log."""

    source: str
    """Its origin in a few words, such as ``assumed`` or ``measured 2026-11-22``."""

    pairs: int = 0
    """The pairs of clusters that were measured for it; 0 if it is assumed."""

    instances: int = 1
    """The instances of each variant; the mean of k of them differs by the root of k less."""

    command: str = ""
    """The command that measures it on this machine; empty if it was measured."""

    @property
    def bound(self) -> float:
        """The difference of the means of instances, as a natural log."""
        return self.log_ratio / math.sqrt(self.instances)

    @property
    def share(self) -> float:
        """The difference as a fraction."""
        return math.expm1(self.bound)

    def line(self, metric: str) -> str:
        """The line of a claim's message. metric: what equal clusters differ in, such as ``throughput``."""
        means = f", means of {self.instances} instances" if self.instances > 1 else ""
        few = f", fewer than {USUAL_PAIRS}" if 0 < self.pairs < USUAL_PAIRS else ""
        measure = f"; to measure it here: {self.command}" if self.command else ""
        return (
            f"separate clusters: equal ones can differ by {percent(self.bound)} in {metric} "
            f"(1 in {ONE_IN}{means}; {self.source}{few}); a smaller difference decides nothing{measure}"
        )

    def refuses(self, kind: str, margins: Sequence[float]) -> str:
        """Why a claim cannot have these margins (absolute log ratios), at or below f; empty if it can."""
        if not margins or min(margins) > self.bound:
            return ""
        return (
            f"{kind}: its margin, {percent(min(margins))} as a ratio of speeds, is not larger than "
            f"{percent(self.bound)}, by which equal clusters can differ (1 in {ONE_IN}; {self.source}); take a larger "
            "margin, more instances (measure(..., instances=4)), a.against(b) without a claim, or measure it here: "
            f"{self.command or 'dbcluster calibrate'}"
        )


def combine(one: ClusterDifference, other: ClusterDifference) -> ClusterDifference:
    """The difference of a cluster of one kind and a cluster of another: the root of the mean of both squares.

    The squares add up, because each f is the spread of two clusters of its kind. instances: those of ``one``.
    """
    if one == other:
        return one
    both = math.sqrt((one.log_ratio**2 + other.log_ratio**2) / 2)
    sources = "; ".join(dict.fromkeys((one.source, other.source)))
    commands = " && ".join(dict.fromkeys(filter(None, (one.command, other.command))))
    return ClusterDifference(both, sources, min(one.pairs, other.pairs), one.instances, commands)


def add(one: ClusterDifference, other: ClusterDifference) -> ClusterDifference:
    """The difference of the ratio of two ratios, each of two clusters: the root of the sum of both squares."""
    both = combine(one, other)
    return dataclasses.replace(both, log_ratio=math.hypot(one.log_ratio, other.log_ratio))


def upper(log_ratios: Sequence[float], noise: float = 0.0) -> float:
    """Return f from the log ratios of pairs of fresh equal clusters, one for each pair of clusters.

    Without noise it is t * s, or the largest of the differences if that is larger.

    - s is the root of the mean square. The mean of the differences is 0, because either cluster of a pair may be the
      first. So s has as many degrees of freedom as there are pairs.
    - t is the .995 quantile of Student's distribution with these degrees of freedom. At 24 pairs it is 2.80; a known
      standard deviation would need 2.58.
    - For normal differences exactly 1 new pair in 200 lies above t * s, with the uncertainty of s included. It is the
      prediction bound of one future observation, for a known mean. See Hahn and Meeker, Statistical Intervals, 1991,
      section 4.8.
    - The largest difference guards against tails that are not normal.

    noise: the standard error of a difference that comes from the rounds. The interval of a claim already has the noise
    of its rounds, so f leaves it out (``_prediction``). Few rounds make f larger, not smaller.

    Raises ValueError for fewer than ``LEAST_PAIRS`` differences, and for one that is not finite.
    """
    if len(log_ratios) < LEAST_PAIRS:
        raise ValueError(f"f needs at least {LEAST_PAIRS} pairs of clusters, got {len(log_ratios)}")
    if not all(map(math.isfinite, (*log_ratios, noise))):
        raise ValueError("a difference of two clusters is not finite")
    square = math.fsum(value * value for value in log_ratios) / len(log_ratios)
    if not square:
        return 0.0
    if not noise:
        return max(student_quantile(QUANTILE, len(log_ratios)) * math.sqrt(square), *map(abs, log_ratios))
    share = math.sqrt(max(0.0, 1 - noise * noise / square))  # of a difference, which is not the rounds' noise
    return max(_prediction(square, noise * noise, len(log_ratios)), share * max(map(abs, log_ratios)))


def _prediction(square: float, noise: float, pairs: int) -> float:
    """The .995 quantile of the next difference of two clusters, by Bayes' rule, for differences with noise.

    square: the mean square of the differences. noise: the variance that comes from the rounds. The variance v of a
    difference, noise included, has the prior 1 / v, cut off below the noise. So without noise the result is Student's.
    """
    lowest, highest = max(noise, square / SPAN), max(noise, square) * SPAN
    step = math.log(highest / lowest) / STEPS
    variances = [lowest * math.exp(step * (number + 0.5)) for number in range(STEPS)]  # even on a log scale: 1 / v
    logs = [-pairs / 2 * (math.log(v) + square / v) for v in variances]
    most = max(logs)
    weighted = [
        (weight, math.sqrt(max(0.0, v - noise)))
        for v, value in zip(variances, logs, strict=True)
        if (weight := math.exp(value - most)) > NEGLIGIBLE
    ]
    wanted, low, high = QUANTILE * math.fsum(weight for weight, _ in weighted), 0.0, 10 * math.sqrt(highest)
    while high - low > PRECISE * math.sqrt(square):
        middle = (low + high) / 2
        below = math.fsum(
            weight * (1 + math.erf(middle / deviation / math.sqrt(2))) / 2 if deviation else weight
            for weight, deviation in weighted
        )
        low, high = (middle, high) if below < wanted else (low, middle)
    return high


@functools.cache
def student_quantile(probability: float, freedom: int) -> float:
    """The quantile of Student's t distribution with a whole number of degrees of freedom, by bisection."""
    low, high = 0.0, 1e4
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _student(middle, freedom) < probability else (low, middle)
    return low


def _student(t: float, freedom: int) -> float:
    """The distribution function of Student's t (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    angle = math.atan2(t, math.sqrt(freedom))
    square = math.cos(angle) ** 2
    term, total = 1.0, 1.0
    if freedom % 2:
        term = total = math.cos(angle) if freedom > 1 else 0.0
        for k in range(3, freedom, 2):
            term *= square * (k - 1) / k
            total += term
        inside = 2 / math.pi * (angle + math.sin(angle) * total)
    else:
        for k in range(2, freedom, 2):
            term *= square * (k - 1) / k
            total += term
        inside = math.sin(angle) * total
    return (1 + inside) / 2


def percent(log_ratio: float) -> str:
    """A log ratio as a percentage of the slower one, ``5.7 %``."""
    return f"{100 * math.expm1(log_ratio):.1f} %"
