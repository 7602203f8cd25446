"""Carry-over: whether a round is slower because of the variant that ran before it.

A variant that leaves work behind (dirty pages, a backlog, a full log) slows whatever follows it. The order of the
rounds is random, so each variant is followed by itself and by the others. The log time of a round is modelled as a sum:
its block's, its variant's and its predecessor's part. Least squares fit them. In blocks of one round of each of two
variants this compares two kinds of pairs: those that begin after the other variant, and those that do not. It compares
their log ratios. Opening blocks are fitted apart from later blocks, because a drift makes them noisier.

What chance does is known from the draw of the order (``block_order``), as it is for claims. Without carry-over the log
times less the variant's part are fixed numbers, whatever the noise is. Every other order that could have been drawn
meets the same numbers. So t of the order that ran is compared with t of other orders. This is a randomisation test,
with p as in Phipson and Smyth 2010. The variant's part itself is not known: every value is tried, and the one with
which chance does the most counts. So the level holds for any ratio of the variants and any noise that is the same for
both. It takes for granted that a variant changes every log time by the same.

No verdict rests on carry-over: it is shown beside the estimate, and it warns.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import add, mul
from typing import NamedTuple

from pytest_dbcluster.claims.block_order import seed_of
from pytest_dbcluster.claims.pairs import clamp

LEVEL = 0.01  # the chance to warn if there is no carry-over
NEGLIGIBLE = (
    0.001  # of the time of a round: smaller effects are ignored, because without noise any effect is significant
)
LEAST = 4  # degrees of freedom; with fewer the carry-over is not known
SINGULAR = 1e-9  # of a sum of squares: what is left of a column that says nothing new
DRAWN = (499, 4999)  # other orders: the few show mostly that there is nothing to warn of, else the many are drawn
CLEAR = 5 * LEVEL  # no more are drawn if this share of the few has at least the t of the order that ran
EXACT = 1e-3  # by how much the square of the critical value may be too large
BEYOND = 1e12  # a square of t above it is none
WITHOUT_THIRD = 7  # sums of a block, or of all blocks, if no third variant ran before a round

Values = Sequence[float]
Sums = Callable[[Sequence[int], int], tuple[float, ...]]  # of a block, from its labels and the label before it
# Of one block: for each arrangement of the two variants its sums after a round of the (second, first) variant, and
# whether its last round is one of the first variant.
Arrangements = Sequence[tuple[tuple[Values, Values], int]]


@dataclass(frozen=True)
class Placed:
    """One round and its predecessor."""

    variant: int
    """The number of its variant."""

    after: int | None
    """The number of the variant that ran before it; None if that is not known."""

    block: int
    """The number of its block."""

    log_time: float
    """The natural log of its time."""


@dataclass(frozen=True)
class CarryOver:
    """The carry-over of two variants."""

    slower: float
    """The fraction by which a round takes longer after the candidate than after the baseline.

    It is negative if the round takes longer after the baseline.
    """

    low: float
    """The lower end of the 99 % interval of ``slower``."""

    high: float
    """The upper end of the same interval."""

    ratio: float
    """Candidate / baseline of rounds that follow the same variant, so without carry-over."""

    @property
    def warned(self) -> bool:
        """Whether the interval excludes 0; without carry-over at most 1 of 100 does."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class _Fit:
    """The fit of the opening or of the later blocks. A round's number is its place among those of the two variants."""

    blocks: Sequence[Sequence[int]]
    """The numbers of the rounds of each block."""

    moved: frozenset[int]
    """The numbers of the rounds whose predecessor is of the two variants."""

    columns: Mapping[int, Values]
    """Number of a fitted round -> its values that no order changes: log time, variant, and one value for each third
    variant before it. Each is without the mean of the block, and without the part that third variants explain.
    """

    squares: tuple[float, float, float]
    """The sums of time x time, time x variant, and variant x variant."""

    freedom: int
    """Degrees of freedom."""

    def sums_of(self, block: Sequence[int]) -> Sums:
        """What a block adds to the sums of products, with labels (1: the first variant) after another label.

        u is a round's own label, p that of its predecessor, both less their mean in the block. The sums are uu, up, pp,
        those of u with each column, and those of p with each column.
        """
        fitted = [place for place, number in enumerate(block) if number in self.columns]
        moved = [block[place] in self.moved for place in fitted]
        columns = [*zip(*(self.columns[block[place]] for place in fitted), strict=True)]
        size = len(fitted)

        def sums(labels: Sequence[int], before: int) -> tuple[float, ...]:
            ran = (before, *labels)
            u = [labels[place] for place in fitted]
            p = [ran[place] if follows else 0 for place, follows in zip(fitted, moved, strict=True)]
            of_u, of_p = sum(u), sum(p)
            squares = of_u - of_u**2 / size, _dot(u, p) - of_u * of_p / size, of_p - of_p**2 / size
            return (*squares, *(_dot(u, column) for column in columns), *(_dot(p, column) for column in columns))

        return sums

    def sums_of_the_order(self, labels: Sequence[int]) -> list[float]:
        """The sums of all blocks, with the labels of all rounds of the two variants."""
        own = [[labels[number] for number in block] for block in self.blocks]
        before = [labels[block[0] - 1] if block[0] else 0 for block in self.blocks]
        each = map(self.sums_of, self.blocks)
        return _total([sums(drawn, prior) for sums, drawn, prior in zip(each, own, before, strict=True)])


class _Score(NamedTuple):
    """What the fit finds in one order, for every possible part of the first variant at once.

    ``part`` is subtracted from the log time of each round of the first variant. Then:

    - the predecessor's part is (time - part x label) / weight
    - the square of its t is a ratio with two terms: (time - part x label)^2 over (times - 2 x part x mixed + part^2 x
      labels)
    """

    weight: float
    time: float
    label: float
    times: float
    mixed: float
    labels: float

    def square(self, part: float) -> float:
        """The square of t, with this part of the first variant."""
        found, noise = self.time - part * self.label, self.times - 2 * part * self.mixed + part**2 * self.labels
        return found**2 / noise if noise > 0 else (math.inf if found else 0.0)

    def largest(self) -> float:
        """The largest square of t, with any part of the first variant."""
        time, label, times, mixed, labels = self[1:]
        both = times * labels - mixed**2
        if both <= SINGULAR * times * labels:
            return math.inf
        return (time**2 * labels - 2 * time * label * mixed + label**2 * times) / both

    def reaches(self, square: float) -> list[tuple[float, float]]:
        """The parts of the first variant with which the square of t is at least this one, as closed intervals."""
        a = self.label**2 - square * self.labels
        b = self.time * self.label - square * self.mixed
        c = self.time**2 - square * self.times
        if (inside := b * b - a * c) <= 0 or not a:  # a part^2 - 2 b part + c has one sign
            return [(-math.inf, math.inf)] if c >= 0 else []
        low, high = sorted(((b - math.sqrt(inside)) / a, (b + math.sqrt(inside)) / a))
        return [(low, high)] if a < 0 else [(-math.inf, low), (high, math.inf)]


def of(rounds: Sequence[Placed], candidate: int, baseline: int) -> CarryOver | None:
    """The carry-over of two variants, from their rounds after any variant; None if too few rounds show it."""
    two = [done for done in rounds if done.variant in (candidate, baseline)]
    if not two or any(math.isinf(done.log_time) for done in two if done.after is not None):
        return None
    # The first round's variant, not the candidate, is 1: so the question the other way around has the same answer.
    labels = [int(done.variant == two[0].variant) for done in two]
    blocks = [[*numbers] for _, numbers in itertools.groupby(range(len(two)), key=lambda number: two[number].block)]
    if math.prod(math.comb(len(block), sum(labels[n] for n in block)) for block in blocks) < 2 / LEVEL:
        return None
    third = {done.after for done in two if done.after is not None} - {candidate, baseline}
    kinds = [[block for block in blocks if (len(block) > 2) is openings] for openings in (True, False)]
    fits = [fit for kind in kinds if (fit := _fit(two, labels, kind, sorted(third)))]
    sums = [fit.sums_of_the_order(labels) for fit in fits]
    if (ran := _score(fits, sums)) is None:
        return None
    variant = _first_variant(sums)
    square = _critical(ran, variant, _orders(fits, blocks, labels)) if ran.times else 0.0
    reach = max(math.sqrt(square * ran.times) / ran.weight, math.log1p(NEGLIGIBLE))
    sign = 1 if two[0].variant == candidate else -1
    middle, ratio = sign * ran.time / ran.weight, math.exp(clamp(-sign * variant))
    slower, low, high = (math.expm1(clamp(end)) for end in (middle, middle - reach, middle + reach))
    return CarryOver(slower, low, high, ratio)


def _fit(
    two: Sequence[Placed], labels: Sequence[int], blocks: Sequence[Sequence[int]], third: Sequence[int]
) -> _Fit | None:
    """The fit of some blocks; None if too few rounds show the carry-over."""
    known = [number for block in blocks for number in block if two[number].after is not None]
    owners = [two[number].block for number in known]
    columns: list[list[float]] = []
    for variant in third:
        left = _without(_within([float(two[number].after == variant) for number in known], owners), columns)
        if (square := _dot(left, left)) > SINGULAR:
            columns.append([value / math.sqrt(square) for value in left])
    freedom = len(known) - len(set(owners)) - len(columns) - 2
    if freedom < LEAST:
        return None
    time, label = (
        _without(_within([float(value[number]) for number in known], owners), columns)
        for value in ([done.log_time for done in two], labels)
    )
    return _Fit(
        [block for block in blocks if not set(known).isdisjoint(block)],
        frozenset(number for number in known if two[number].after not in third),
        dict(zip(known, zip(time, label, *columns, strict=True), strict=True)),
        (_dot(time, time), _dot(time, label), _dot(label, label)),
        freedom,
    )


def _within(values: Values, blocks: Sequence[int]) -> list[float]:
    """The values less the mean of their block."""
    members = defaultdict(list)
    for block, value in zip(blocks, values, strict=True):
        members[block].append(value)
    means = {block: statistics.fmean(of_block) for block, of_block in members.items()}
    return [value - means[block] for block, value in zip(blocks, values, strict=True)]


def _without(values: Sequence[float], columns: Sequence[Values]) -> list[float]:
    """What orthonormal columns do not explain."""
    for column in columns:
        share = _dot(values, column)
        values = [value - share * part for value, part in zip(values, column, strict=True)]
    return [*values]


def _orders(fits: Sequence[_Fit], blocks: Sequence[Sequence[int]], labels: Sequence[int]) -> Iterator[_Score | None]:
    """What the fit finds in other orders that could have been drawn, without end; the same for the same order."""
    coin = random.Random(seed_of(0, "carry-over", *labels))
    places = {block[0]: place for place, fit in enumerate(fits) for block in fit.blocks}
    tables = [
        (place, _arrangements(block, labels, None if place is None else fits[place]))
        for block, place in ((block, places.get(block[0])) for block in blocks)
    ]
    while True:
        rows: list[list[Values]] = [[] for _ in fits]
        before = 0
        for place, arrangements in tables:
            sums, last = arrangements[int(coin.random() * len(arrangements))]
            if place is not None:
                rows[place].append(sums[before])
            before = last
        yield _score(fits, [_total(of_fit) for of_fit in rows])


def _arrangements(block: Sequence[int], labels: Sequence[int], fit: _Fit | None) -> Arrangements:
    """Every arrangement of the two variants in a block; the places of other variants stay."""
    found = []
    sums = fit.sums_of(block) if fit else None
    for chosen in itertools.combinations(range(len(block)), sum(labels[number] for number in block)):
        drawn = [int(place in chosen) for place in range(len(block))]
        found.append(((sums(drawn, 0), sums(drawn, 1)) if sums else ((), ()), drawn[-1]))
    return found


def _score(fits: Sequence[_Fit], sums: Sequence[Values]) -> _Score | None:
    """What all fits together find in one order; None if in each of them a column follows from the others.

    Each fit counts as it would be precise if all rounds were equally noisy. By its own noise, a fit of few rounds that
    happen to be close together would count too much.
    """
    total = [0.0] * 6
    for fit, of_fit in zip(fits, sums, strict=True):
        uu, up, pp, u_time, u_label, p_time, p_label = _of_two(of_fit)
        if uu <= SINGULAR or (weight := pp - up * up / uu) <= SINGULAR:
            continue
        time, label = p_time - up / uu * u_time, p_label - up / uu * u_label
        times, mixed, labels = fit.squares
        times = (weight * (times - u_time * u_time / uu) - time * time) / fit.freedom
        mixed = (weight * (mixed - u_time * u_label / uu) - time * label) / fit.freedom
        labels = (weight * (labels - u_label * u_label / uu) - label * label) / fit.freedom
        total = [*map(add, total, (weight, time, label, times, mixed, labels))]
    weight, time, label, times, mixed, labels = total
    if not weight:
        return None
    if labels <= SINGULAR * weight:  # the order that ran, or its reverse: the first variant's part changes nothing
        label = mixed = labels = 0.0
    return _Score(weight, time, label, max(0.0, times), mixed, labels)


def _first_variant(sums: Sequence[Values]) -> float:
    """By how much (log time) a round of the first variant is slower than the second's, after the same variant."""
    weights, times = 0.0, 0.0
    for uu, up, pp, u_time, _, p_time, _ in map(_of_two, sums):
        if uu > SINGULAR and pp > SINGULAR and (weight := uu - up * up / pp) > SINGULAR:
            weights += weight
            times += u_time - up / pp * p_time
    return times / weights


def _of_two(sums: Values) -> tuple[float, ...]:
    """The sums uu, up, pp, then those of u and p with time and variant, without what third variants explain."""
    if len(sums) == WITHOUT_THIRD:
        return tuple(sums)
    uu, up, pp, *crossed = sums
    u, p = crossed[: len(crossed) // 2], crossed[len(crossed) // 2 :]
    third = u[2:], p[2:]
    uu, up, pp = uu - _dot(third[0], third[0]), up - _dot(*third), pp - _dot(third[1], third[1])
    return uu, up, pp, u[0], u[1], p[0], p[1]


def _critical(ran: _Score, variant: float, orders: Iterator[_Score | None]) -> float:
    """The square of t that less than 1 of 100 orders reach, with any part of the first variant.

    Infinite if there is none. ran: the order that ran. variant: the first variant's part, as it is estimated.
    """
    few, many = DRAWN
    scores = [*itertools.islice(orders, few)]
    least = (1 - SINGULAR) * ran.square(variant)
    if sum(score.square(variant) >= least for score in scores if score) < CLEAR * (few + 1):
        scores += itertools.islice(orders, many - few)
    allowed = round(LEVEL * (len(scores) + 1)) - 1  # the order that ran is one of them
    informative = [score for score in scores if score]
    squares = sorted((score.square(variant) for score in informative), reverse=True)
    low = squares[allowed] if len(squares) > allowed else 0.0
    if low > BEYOND:
        return math.inf
    informative = [score for score in informative if score.largest() >= low]
    high = max(1.0, 2 * low)
    while _most(informative, high) > allowed:
        low, high = high, 2 * high
        if high > BEYOND:
            return math.inf
    while high - low > EXACT * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _most(informative, middle) > allowed else (low, middle)
    return high


def _most(scores: Sequence[_Score], square: float) -> int:
    """How many of these have at least this square of t, with the first variant's part that has most."""
    reached = [interval for score in scores for interval in score.reaches(square)]
    ends = sorted([(low, 0) for low, _ in reached] + [(high, 1) for _, high in reached])
    return max(itertools.accumulate(-1 if ended else 1 for _, ended in ends), default=0)


def _total(rows: Sequence[Values]) -> list[float]:
    return [*map(sum, zip(*rows, strict=True))]


def _dot(a: Values, b: Values) -> float:
    total: float = sum(map(mul, a, b))
    return total
