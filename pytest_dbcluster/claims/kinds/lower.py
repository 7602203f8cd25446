"""``lower``: a counter of the candidate is lower than that of the baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster.claims.claim import Claim, Kind, Shape, register


class Lower(Kind):
    """The candidate's counter is lower than the baseline's by more than the fraction ``by``; judged like ``beats``.

    In a typical round: in more than half of the pairs that counted anything. Inconclusive if the totals
    of all rounds say otherwise. Raises ConfigError unless 0 <= by < 1.
    """

    name = "lower"
    below = 1.0
    no_margin = True
    shape = Shape.COUNTER

    def bounds(self, margin: float) -> tuple[float, float]:
        """Below 1 - by."""
        return -math.inf, math.log1p(-margin)

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``fsyncs is lower with flush_2 than with default``."""
        lower = f"more than {100 * claim.margin:.4g} % lower" if claim.margin else "lower"
        return f"{metric} is {'' if true else 'not '}{lower} with {names[0]} than with {names[1]}"

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """``flush_2.lower("fsyncs", than=default)``."""
        arguments = [f'"{metric}"', f"than={names[1]}", *self.keywords(claim, metric, usual=metric)]
        return f"{names[0]}.{self.name}({', '.join(arguments)})"

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool, count: int) -> str:
        """``fsyncs of flush_2 is 0.01x that of default``."""
        return f"{metric} of {names[0]} is {ratio} that of {names[1]}"


lower = register(Lower())
