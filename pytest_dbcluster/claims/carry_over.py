"""Carry-over: whether a round is slower because of the variant that ran before it.

A variant that leaves work behind (dirty pages, a backlog, a full log) slows whatever follows it. The order of the
rounds is random, so each variant is followed by itself and by the others. The log time of a round is modelled as the
sum of its block's, its variant's and its predecessor's part, fitted by least squares. In blocks of one round of each of
two variants this is the t test of the log ratios between pairs that begin after the other variant and pairs that
do not. Eights are fitted apart from later blocks, because a drift makes them noisier.
No verdict rests on carry-over: it is shown beside the estimate, and it warns.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_dbcluster.claims.pairs import bounded

LEVEL = 0.01  # the chance to warn where there is no carry-over
NEGLIGIBLE = 0.001  # of the time of a round: without noise the smallest carry-over would be certain
LEAST = 4  # degrees of freedom; with fewer the carry-over is not known
SINGULAR = 1e-9  # of a sum of squares: what is left of a column that says nothing new


@dataclass(frozen=True)
class Placed:
    """One round. variant: its number. block: the number of its block. log_time: the natural log of its time.

    after: the number of the variant that ran before it; None where that is not known.
    """

    variant: int
    after: int | None
    block: int
    log_time: float


@dataclass(frozen=True)
class CarryOver:
    """The carry-over of two variants.

    slower: the fraction by which a round takes longer after the candidate than after the baseline; negative where it
    takes longer after the baseline. low, high: the 99 % interval of ``slower``. ratio: candidate / baseline of rounds
    that follow the same variant, so without carry-over.
    """

    slower: float
    low: float
    high: float
    ratio: float

    @property
    def warned(self) -> bool:
        """Whether there is carry-over worth a warning: without any, in 1 of 100 claims of independent rounds.

        It is no test by the draw alone, so waves of a few rounds' period may make it 2 of 100.
        """
        return abs(self.slower) >= NEGLIGIBLE and (self.low > 0 or self.high < 0)


@dataclass(frozen=True)
class _Estimate:
    """A coefficient with its variance, which was estimated with so many degrees of freedom.

    weight: its precision if all rounds were equally noisy.
    """

    value: float
    variance: float
    freedom: int
    weight: float


def of(rounds: Sequence[Placed], candidate: int, baseline: int) -> CarryOver | None:
    """The carry-over of two variants, from their rounds after any variant; None where too few rounds tell it."""
    known = [done for done in rounds if done.after is not None and done.variant in (candidate, baseline)]
    if any(math.isinf(done.log_time) for done in known):
        return None
    several = {block for (block, _), count in Counter((d.block, d.variant) for d in known).items() if count > 1}
    parts = [[done for done in known if (done.block in several) is eights] for eights in (True, False)]
    fits = [fit for fit in (_fit(part, candidate, baseline) for part in parts) if fit]
    if not fits:
        return None
    after, variant = (_combined(estimates) for estimates in zip(*fits, strict=True))
    reach = critical_t(after.freedom, LEVEL) * math.sqrt(after.variance)
    ends = (after.value - reach, after.value, after.value + reach, -variant.value)
    low, middle, high, ratio = map(bounded, ends)
    return CarryOver(math.expm1(middle), math.expm1(low), math.expm1(high), math.exp(ratio))


def _combined(estimates: Sequence[_Estimate]) -> _Estimate:
    """Several estimates of the same as one; degrees of freedom as Welch and Satterthwaite (1946) have them.

    The weights come from the order of the rounds, not from their noise: few rounds that happen to be close together
    would count too much.
    """
    total = sum(estimate.weight for estimate in estimates)
    shares = [estimate.weight / total for estimate in estimates]
    parts = [share**2 * estimate.variance for share, estimate in zip(shares, estimates, strict=True)]
    value = _dot(shares, [estimate.value for estimate in estimates])
    squares = sum(part**2 / estimate.freedom for part, estimate in zip(parts, estimates, strict=True))
    least = min(estimate.freedom for estimate in estimates)
    freedom = math.floor(sum(parts) ** 2 / squares) if squares else least
    return _Estimate(value, sum(parts), freedom, total)


def _fit(rounds: Sequence[Placed], candidate: int, baseline: int) -> tuple[_Estimate, _Estimate] | None:
    """By how much (log time) a round after the candidate, and a round of the candidate, is slower than the baseline's.

    None where too few rounds tell it.
    """
    others = sorted({done.after for done in rounds if done.after is not None} - {baseline})
    blocks = [done.block for done in rounds]
    freedom = len(rounds) - len(set(blocks)) - len(others) - 1
    if candidate not in others or freedom < LEAST:
        return None
    columns = [[float(done.variant == candidate) for done in rounds]]
    columns += [[float(done.after == other) for done in rounds] for other in others]
    fitted = _fitted([_within(column, blocks) for column in columns], _within([d.log_time for d in rounds], blocks))
    if fitted is None:
        return None
    values, inverse, squares = fitted
    after, variant = (
        _Estimate(values[place], squares / freedom * inverse[place][place], freedom, 1 / inverse[place][place])
        for place in (1 + others.index(candidate), 0)
    )
    return after, variant


def _within(values: Sequence[float], blocks: Sequence[int]) -> list[float]:
    """The values less the mean of their block."""
    members = defaultdict(list)
    for block, value in zip(blocks, values, strict=True):
        members[block].append(value)
    means = {block: statistics.fmean(of_block) for block, of_block in members.items()}
    return [value - means[block] for block, value in zip(blocks, values, strict=True)]


def _fitted(
    columns: Sequence[Sequence[float]], values: Sequence[float]
) -> tuple[list[float], list[list[float]], float] | None:
    """Least squares: coefficients, the inverse of the normal equations, the sum of squares of what remains.

    None where one column follows from the others.
    """
    size = len(columns)
    rows = [[_dot(a, b) for b in columns] + [float(n == k) for k in range(size)] for n, a in enumerate(columns)]
    for n in range(size):  # Gauss and Jordan; the matrix is positive definite, so no pivot is searched for
        if rows[n][n] <= SINGULAR * max(1.0, _dot(columns[n], columns[n])):
            return None
        rows[n] = [entry / rows[n][n] for entry in rows[n]]
        for k in range(size):
            if k != n:
                rows[k] = [entry - rows[k][n] * own for entry, own in zip(rows[k], rows[n], strict=True)]
    inverse = [row[size:] for row in rows]
    found = [_dot(row, [_dot(column, values) for column in columns]) for row in inverse]
    left = [value - _dot(found, row) for value, row in zip(values, zip(*columns, strict=True), strict=True)]
    return found, inverse, _dot(left, left)


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def critical_t(freedom: int, level: float) -> float:
    """The value that |t| exceeds with the chance ``level``, Student's t with so many degrees of freedom (1 or more)."""
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _inside(middle, freedom) < 1 - level else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _inside(angle: float, freedom: int) -> float:
    """The chance that |t| is below sqrt(freedom) * tan(angle) (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= math.cos(angle) ** 2 * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
