"""``meets``: one variant keeps an objective for its latency at an arrival rate."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims.claim import Claim, register
from pytest_dbcluster.claims.kinds.events.below import Below
from pytest_dbcluster.formatting import amount


class Meets(Below):
    """A latency percentile does not exceed its objective in half of the rounds, at an arrival rate.

    Holds when the interval of the median lies below the objective, and fails when it lies above. The interval comes
    from order statistics, so it holds for any distribution of independent rounds. The claim is about one variant, so it
    does not rest on the random order. From 11 rounds on the verdict is wrong with a chance of at most .0005.
    """

    name = "meets"
    option = "objective"
    repetition = "round"
    censored = "ended early, because they must miss the objective"

    def bounds(self, margin: float) -> tuple[float, float]:
        """Below the objective, in milliseconds."""
        return -math.inf, 1e3 * margin

    def bound_text(self, bound: float) -> str:
        """``20 ms``."""
        return f"{amount(bound)} ms"

    def figure_text(self, value: float, limits: Sequence[float]) -> str:
        """``12.3 ms``."""
        return formatting.NOTHING if math.isnan(value) else f"{super().figure_text(value, limits)[:-2]} ms"

    def interval_text(self, low: float, high: float, limits: Sequence[float]) -> str:
        """``11.8 .. 13.1 ms``; ``11.8 ms or more`` if rounds that ended early are among those of the upper end."""
        if math.isinf(high) and math.isfinite(low):
            return f"{self.figure_text(low, limits)} or more"
        shown = super().interval_text(low, high, limits)
        return shown if shown == formatting.NO_INTERVAL else f"{shown[:-2]} ms"

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """``a.meets(p95=0.02, at=2000)``."""
        objective = [f"{metric}={claim.margin:g}"] if claim.margin else [metric]
        return f"{names[0]}.{self.name}({', '.join([*objective, f'at={claim.rate:.12g}'])})"

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``a meets a p95 of 20 ms at 2000/s``."""
        objective = f"a {metric} of {self.bound_text(1e3 * claim.margin)} at {amount(claim.rate)}/s"
        return f"{names[0]} {'meets' if true else 'does not meet'} {objective}"


meets = register(Meets())
