"""``scales``: the candidate is so many times as fast as the baseline."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster.claims.claim import Claim, Kind, by_metric, register


class Scales(Kind):
    """The candidate is more than ``at_least`` times as fast as the baseline; judged like ``beats``.

    Raises ConfigError unless ``at_least`` is above 0.
    """

    name = "scales"
    option = "at_least"
    about_size = True

    def bounds(self, margin: float) -> tuple[float, float]:
        """Above ``at_least``."""
        return math.log(margin), math.inf

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``four is more than 2 times as fast as one``."""
        times = f"{'' if true else 'not '}more than {claim.margin:g} times as fast"
        return f"{names[0]} is {times} as {names[1]}{by_metric(metric, unit)}"


scales = register(Scales())
