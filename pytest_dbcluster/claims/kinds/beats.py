"""``beats``: the candidate is faster than the baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster.claims.claim import Claim, Kind, by_metric, register

BELOW = 2.0  # of the margin: 2 would be 200 %, and mostly is a mistake for 2 %


class Beats(Kind):
    """The candidate is faster than the baseline by more than the fraction ``by``: ratio > 1 + by.

    Holds when the whole sequential interval of the ratio (99.9 % at alpha .0005) lies above 1 + by. Fails when it lies
    below. Either verdict is wrong with a chance of at most alpha. Raises ConfigError unless 0 <= by < 2. For larger
    factors use ``scales``.
    """

    name = "beats"
    below = BELOW
    no_margin = True

    def bounds(self, margin: float) -> tuple[float, float]:
        """Above 1 + by."""
        return math.log1p(margin), math.inf

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``flush_2 is more than 10 % faster than default``."""
        faster = f"more than {100 * claim.margin:.4g} % faster" if claim.margin else "faster"
        return f"{names[0]} is {'' if true else 'not '}{faster} than {names[1]}{by_metric(metric, unit)}"

    def hint(self, margin: float) -> str:
        """What a margin of 1 or more means, and the claim that says it."""
        if not 1 <= margin < math.inf:
            return ""
        times = f"{1 + margin:g} times as fast"
        return (
            f"; it is a fraction: {margin:g} means {100 * margin:g} %, {times}, and {margin:g} % is {margin / 100:g}; "
            f"{times} is scales(..., at_least={1 + margin:g})"
        )


beats = register(Beats())
