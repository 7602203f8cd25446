"""The test, estimate and interval of a counter, for ``lower``: in a typical round. Pure functions.

No test of equal means keeps its level under rare bursts and has power. So the claim is about pairs of rounds: in more
than half of those that counted anything, the candidate's count is lower by the margin. That is a sign test. A pair with
nothing on both sides is not evidence. A pair on the bound counts for neither side.

From 14 pairs on a look takes the chance of the number of pairs on one side. It rejects if that is at most its critical
value (``critical_values``). That is exact in two cases, for any spread, skew or bursts:

- the values are fixed, and only their labels are drawn;
- rounds are independent, and their pairs lie above and below the bound equally often.

At 12 pairs a sign test cannot reject. There rounds are compared as those of speeds are. In the second case its chance
is not exact: ``benchmarks/noise_models.py`` counts the errors of all looks together.

The message shows the totals of all rounds too. If they lie on the other side of the bound, there is no verdict.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Sequence

from pytest_dbcluster.claims import critical_values, estimators
from pytest_dbcluster.claims.block_order import PER_OPENING
from pytest_dbcluster.claims.critical_values import LOOKS, RANKS_FROM
from pytest_dbcluster.claims.estimators import MOST_PAIRS, POWER, POWER_Z
from pytest_dbcluster.claims.pairs import LARGEST_LOG, Pairs

Interval = tuple[float, float]

ROUNDING = 1e-12  # a log ratio this close to a bound counts as on the bound
HALVINGS = 30  # of a chance: to 1e-9


def rejects(pairs: Pairs, level: float, bound: float) -> tuple[bool, bool]:
    """Whether the look at this number of pairs shows that the typical log ratio is (above, below) the bound."""
    if math.isinf(bound):
        return bound == -math.inf, bound == math.inf
    found, needed = _sign_test(pairs, level)
    above, below = _sides(found, bound)
    return above >= needed, below >= needed


def _sign_test(pairs: Pairs, level: float) -> tuple[Sequence[float], float]:
    """The log ratios of a look, in rising order, and how many on one side reject; infinite for none.

    Before 14 pairs all rounds inside each opening block are compared, as they are for speeds: so few pairs cannot
    reject.
    """
    look = len(pairs)
    if look >= RANKS_FROM:
        return ratios(pairs), least(level, look, pairs_with_counts(pairs))
    value = critical_values.boundary(level).at(look)
    if value is None or look != PER_OPENING * pairs.whole_openings:
        return (), math.inf
    openings = [slice(start, start + PER_OPENING) for start in range(0, look, PER_OPENING)]
    both = [
        rounds
        for opening in openings
        for rounds in itertools.product(pairs.candidate[opening], pairs.baseline[opening])
    ]
    return _sorted_ratios(both), len(both) - value


def sides(pairs: Pairs, bound: float) -> tuple[int, int]:
    """How many pairs lie (above, below) a log ratio."""
    return _sides(ratios(pairs), bound)


def _sides(found: Sequence[float], bound: float) -> tuple[int, int]:
    return sum(ratio > bound + ROUNDING for ratio in found), sum(ratio < bound - ROUNDING for ratio in found)


@functools.lru_cache(maxsize=64)
def ratios(pairs: Pairs) -> tuple[float, ...]:
    """The log ratios of the pairs that counted anything, in rising order; infinite if one side counted nothing."""
    return _sorted_ratios(zip(pairs.candidate, pairs.baseline, strict=True))


def _sorted_ratios(both: Iterable[tuple[float, float]]) -> tuple[float, ...]:
    return tuple(sorted(c - b for c, b in both if c > -math.inf or b > -math.inf))


def pairs_with_counts(pairs: Pairs) -> int:
    """The number of pairs with anything on either side."""
    return len(ratios(pairs))


@functools.lru_cache(maxsize=1024)
def least(level: float, look: int, of: int) -> float:
    """The smallest number of ``of`` pairs on one side that rejects at a look; infinite if none does."""
    most, share, number = chance(level, look), 0.0, of
    while number >= 0 and (share := share + math.comb(of, number) / 2**of) <= most:
        number -= 1
    return number + 1 if number < of else math.inf


@functools.lru_cache(maxsize=512)
def chance(level: float, look: int) -> float:
    """The exact chance that this look's signed ranks reject wrongly towards one side; 0 if it cannot decide."""
    value = critical_values.boundary(level).at(look)
    if value is None:
        return 0.0
    return _share_of_rank_sums(look, value)


def _share_of_rank_sums(look: int, value: int) -> float:
    """The share of all ways to give ranks to a side whose sum is ``value`` or more.

    The number of ways to each sum is a digit of ``width`` bits of one large number. So adding a rank is a shift and an
    addition. The sum of the digits from one on is what remains of a division by the largest digit.
    """
    width, ways = look + 2, 1
    for rank in range(1, look + 1):
        ways += ways << (rank * width)
    return float(((ways >> (value * width)) % ((1 << width) - 1)) / 2**look)


def estimate(pairs: Pairs) -> float:
    """The log ratio of a typical pair: the median; nan without pairs.

    It is infinite if most pairs counted only on one side, and 0 if nothing was counted.
    """
    found = ratios(pairs)
    if not len(pairs):
        return math.nan
    low, high = (found[(len(found) - 1) // 2], found[len(found) // 2]) if found else (0.0, 0.0)
    return low if low == high else 0.0 if math.isnan(low + high) else (low + high) / 2


def total(pairs: Pairs) -> float:
    """The log ratio of the totals; infinite if one is 0, 0 if both are, nan without pairs."""
    if not len(pairs):
        return math.nan
    both = (pairs.candidate, pairs.baseline)
    candidate, baseline = (math.fsum(math.exp(min(log, LARGEST_LOG)) for log in logs) for logs in both)
    if candidate and baseline:
        return math.log(candidate / baseline)
    return 0.0 if candidate == baseline else math.copysign(math.inf, candidate - baseline)


def interval(seen: Pairs, level: float) -> Interval:
    """The log ratios that the look at this number of pairs does not reject: two of the pairs', or infinite."""
    found, needed = _sign_test(seen, level)
    if needed > len(found):
        return -math.inf, math.inf
    return found[len(found) - int(needed)], found[int(needed) - 1]


def detectable(pairs: Pairs, level: float, look: int) -> float:
    """The log ratio by which a counter must be lower for ``look`` pairs to show it (power .8), or 0."""
    found, of = ratios(pairs), _of(pairs, look)
    needed = _least_pairs(level, look, of)
    if math.isinf(needed) or not found:
        return math.inf
    place = math.ceil(_chance_for(int(needed), of) * len(found)) - 1
    return max(0.0, found[min(place, len(found) - 1)] - estimate(pairs))


def _least_pairs(level: float, look: int, of: int) -> float:
    """As ``least``; before 14 pairs, when rounds are compared, all pairs have to lie on one side."""
    if look >= RANKS_FROM:
        return least(level, look, of)
    return look if of == look and critical_values.boundary(level).at(look) is not None else math.inf


def _of(pairs: Pairs, look: int) -> int:
    """How many of ``look`` pairs will have counted anything, if they resemble these."""
    return round(look * pairs_with_counts(pairs) / len(pairs))


@functools.lru_cache(maxsize=1024)
def _chance_for(needed: int, of: int) -> float:
    """The chance of each pair with which ``needed`` of ``of`` pairs are reached with power .8."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        reached = 1 - estimators.binomial(needed - 1, of, middle)
        low, high = (low, middle) if reached >= POWER else (middle, high)
    return high


def pairs_needed(pairs: Pairs, on_side: int, level: float, later: Iterable[int]) -> int | None:
    """How many pairs decide with power .8, if their share on this side is that of these.

    later: the looks to come. Beyond them the number is that of a normal approximation. None if no more than half of
    the pairs lie there, and if a million pairs are not enough.
    """
    if not on_side or 2 * on_side <= pairs_with_counts(pairs):
        return None
    share = on_side / pairs_with_counts(pairs)
    for look in later:
        needed = _least_pairs(level, look, of := _of(pairs, look))
        if needed <= of and 1 - estimators.binomial(int(needed) - 1, of, share) >= POWER:
            return look
    reach = math.sqrt(2 * math.log(1 / chance(level, LOOKS[-1])))  # an upper limit of the normal quantile
    root = (reach + POWER_Z * 2 * math.sqrt(share * (1 - share))) / (2 * share - 1)
    number = max(root**2 * len(pairs) / pairs_with_counts(pairs), len(pairs) + 1)
    return math.ceil(number) if number <= MOST_PAIRS else None


def chance_of(on_side: int, pairs: Pairs, level: float, end: int) -> float:
    """The chance that ``end`` pairs reject towards a side with so many of these pairs, if later ones resemble them.

    With a flat prior of the share that lies there: beta-binomial.
    """
    drawn, of = pairs_with_counts(pairs), _of(pairs, end)
    needed, left = least(level, end, of), of - drawn
    if needed > on_side + left:
        return 0.0
    first = max(0, int(needed) - on_side)
    return math.fsum(
        _beta_binomial(number, left, on_side + 1, drawn - on_side + 1) for number in range(first, left + 1)
    )


def _beta_binomial(number: int, of: int, a: int, b: int) -> float:
    def log_beta(x: float, y: float) -> float:
        return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)

    return math.comb(of, number) * math.exp(log_beta(number + a, of - number + b) - log_beta(a, b))


def too_little(pairs: Pairs) -> str:
    """Why these pairs show little: fewer counted anything than the first signed look needs; else empty."""
    found = pairs_with_counts(pairs)
    return f"{found} of {len(pairs)} pairs counted anything" if found < min(RANKS_FROM, len(pairs)) else ""
