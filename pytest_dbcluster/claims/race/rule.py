"""The rule of a race: which variants leave at a look, and when one of them has won. Pure functions.

k variants start. Each comparison of two of them has the level alpha / (k - 1), over all looks together.

- A variant leaves when one that stays is faster: the whole interval of their ratio lies above 1. A variant that was
  beaten by no one stays. If the variants beat each other in a circle, nobody leaves at this look.
- The race ends when one variant remains. It also ends when one is less than the margin slower than all others that
  remain.

The race is wrong if the best variant leaves, or if the winner is slower than it by the margin. The chance of both
errors together is at most alpha:

- Let b be the best variant, and j another one. j drives b out only if the interval of j / b lies above 1. The true
  ratio is not above 1.
- j wins beside b only if that interval lies above 1 - margin.
- If j is slower than b by the margin or more, the first event lies within the second. Otherwise only the first is an
  error. So j causes an error with a chance of at most alpha / (k - 1). All others together cause one with alpha.

Each comparison rests on the order that was drawn (``block_order``). Whoever else runs, a fair coin says which of two
variants runs first. That is exact if the departure of a third variant does not change
the noise of the two. ``benchmarks/race.py`` shows the error if it does: noise that shrinks or grows tenfold, and speeds
that drift, so that shorter blocks have less noise.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection

from pytest_dbcluster.claims import critical_values, intervals, verdict
from pytest_dbcluster.claims.pairs import Pairs

MOST = 1 + critical_values.PARTS[-1]  # variants of a race
Drawn = Callable[[int, int], Pairs]


@dataclasses.dataclass(frozen=True)
class RaceRule:
    """The rule of one race. Variants are numbers."""

    variants: int
    """The number of variants at the start, 2 to ``MOST``."""

    margin: float
    """The fraction by which a winner may be slower than another that remains, 0 < margin < 1."""

    alpha: float = verdict.ALPHA
    """The maximum chance that the race is wrong, one of ``critical_values.ALPHAS``."""

    apart: Callable[[int, int], float] = lambda candidate, baseline: 0.0
    """How far equal clusters of two variants can differ, as a natural log; 0 if they share one."""

    @property
    def level(self) -> float:
        """The one-sided level of each comparison."""
        return critical_values.share(self.alpha, self.variants - 1)

    def beaten(self, remaining: Collection[int], drawn: Drawn) -> dict[int, int]:
        """The variants that leave at this look, each with the variant that beats it most clearly.

        drawn: returns the pairs of (candidate, baseline), as many as a look has. Empty if nobody leaves.
        """
        beats = {
            (one, other)
            for one in remaining
            for other in remaining
            if one != other and self._is_above(drawn(one, other), self.apart(one, other))
        }
        staying = [one for one in remaining if all(loser != one for _, loser in beats)]
        return {
            loser: max(ahead, key=lambda one: intervals.quick_estimate(drawn(one, loser)))
            for loser in remaining
            if (ahead := [one for one in staying if (one, loser) in beats])
        }

    def winner(self, remaining: Collection[int], drawn: Drawn) -> int | None:
        """The variant that ends the race at this look; None if it goes on. drawn: as in ``beaten``.

        If several could win, it is the one whose smallest ratio to another is the largest.
        """
        if len(remaining) == 1:
            return next(iter(remaining))
        bound = math.log1p(-self.margin)
        others = {one: [other for other in remaining if other != one] for one in remaining}
        safe = [
            one
            for one in remaining
            if all(self._is_above(drawn(one, other), bound + self.apart(one, other)) for other in others[one])
        ]
        return max(safe, key=lambda one: lead(one, others[one], drawn), default=None)

    def _is_above(self, pairs: Pairs, bound: float) -> bool:
        """Whether the look shows that the log ratio is above a bound; not if void rounds or rounding could decide."""
        if math.isinf(pairs.blur) or verdict.unlike_voids(pairs):
            return False
        return intervals.rejects(pairs, self.level, bound + pairs.blur)[0]


def lead(one: int, others: Collection[int], drawn: Drawn) -> float:
    """The smallest estimated log ratio of a variant to one of the others; infinite without others."""
    return min((intervals.quick_estimate(drawn(one, other)) for other in others), default=math.inf)
