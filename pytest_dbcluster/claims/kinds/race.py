"""``race``: which of several variants is best."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster.claims.claim import UNDECIDED, Claim, Kind, Outcome, T, by_metric, register
from pytest_dbcluster.claims.critical_values import RANKS_FROM


class Race(Kind):
    """One of several variants is less than the fraction ``by`` slower than each other.

    - A variant leaves when one that remains beats it at alpha / (k - 1), for k variants.
    - The race ends when one remains, or when one is less than ``by`` slower than each other that remains.
    - It is wrong if the best variant leaves, or if the winner is slower than it by ``by`` or more. The chance is at
      most alpha.

    ``measure.race`` makes it, and returns a ``Winner``. Raises ConfigError unless 0 < by < 1.
    """

    name = "race"
    below = 1.0
    of_many = True
    looks_from = RANKS_FROM

    @property
    def has_history(self) -> bool:
        """No: another variant may win, or come next to the winner."""
        return False

    def bounds(self, margin: float) -> tuple[float, float]:
        """Each ratio of the winner to another is above 1 - by."""
        return math.log1p(-margin), math.inf

    def comparisons(self, variants: Sequence[T]) -> list[tuple[T, T]]:
        """The winner, which is the first one, with each other."""
        return [(variants[0], other) for other in variants[1:]]

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """``race(flush_0, flush_1, flush_2, by=0.05)``, in the order of the alphabet, whoever wins."""
        return f"{self.name}({', '.join([*sorted(names), *self.keywords(claim, metric, usual)])})"

    def sentence(self, claim: Claim, outcome: Outcome, names: Sequence[str], metric: str, unit: str) -> str:
        """The answer, ``not decided: which of flush_0, flush_1 and flush_2 is best``."""
        if outcome is not Outcome.INCONCLUSIVE:
            return super().sentence(claim, outcome, names, metric, unit)
        *most, last = sorted(names)
        return f"{UNDECIDED}which of {', '.join(most)} and {last} is best{by_metric(metric, unit)}"

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``flush_0 wins the race of 3 variants: less than 5 % slower than any other``."""
        other = "" if true else ", and not the variant that the test names"
        less = f"less than {100 * claim.margin:.3g} % slower than any other"
        return f"{names[0]} wins the race of {len(names)} variants{other}: {less}{by_metric(metric, unit)}"

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool, count: int) -> str:
        """``flush_0 wins against 2 others, 1.21x as fast as flush_2``."""
        return f"{names[0]} wins against {len(names) - 1} others, {ratio} as fast as {names[1]}"


race = register(Race())
