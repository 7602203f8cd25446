"""``same_effect``: a change has the same effect on two baselines. It is the guard that two options do not interact."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster.claims.claim import Claim, by_metric, register
from pytest_dbcluster.claims.kinds.fades import Fades


class SameEffect(Fades):
    """The guard: candidate / baseline of two pairs of variants differ by less than the fraction ``within``.

    The data are those of ``fades``: the ratio of two ratios. It holds when the 90 % interval lies between 1 - within
    and its inverse, wrong with a chance of at most .05 if rounds are independent. It fails when the sequential
    interval (99.9 %) lies outside. The first look comes after 17 pairs. Raises ConfigError unless 0 < within < 1.
    """

    name = "same_effect"
    option = "within"
    below = 1.0
    no_margin = False
    guard = True

    def bounds(self, margin: float) -> tuple[float, float]:
        """The ratio of both ratios between 1 - within and its inverse."""
        return math.log1p(-margin), -math.log1p(-margin)

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``both against flush_2 is the same as threads_4 against default within 10 %``."""
        same = f"{'is' if true else 'is not'} the same as {names[1]} against {names[0]}"
        return f"{names[3]} against {names[2]} {same} within {100 * claim.margin:.4g} %{by_metric(metric, unit)}"

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool) -> str:
        """``both gains as much as threads_4``: four names are too many for a line of a terminal."""
        verb = "gains" if holds else "does not gain"
        return f"{names[0]} {verb} as much as {names[2]}{by_metric(metric, unit)}"


same_effect = register(SameEffect())
