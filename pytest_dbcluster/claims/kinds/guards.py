"""The guards: ``no_slower_than`` and ``same_as``. They say that nothing got worse by a margin or more."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster.claims.claim import Claim, Kind, by_metric, register


class NoSlowerThan(Kind):
    """The guard: the candidate is slower than the baseline by less than the fraction ``by``: ratio > 1 - by.

    Holds when the 90 % interval lies above 1 - by. That is wrong with a chance of at most .05 if rounds are independent
    (.1 if they are not). Fails when the sequential interval (99.9 %) lies below. Raises ConfigError unless 0 < by < 1.
    """

    name = "no_slower_than"
    below = 1.0
    guard = True

    def bounds(self, margin: float) -> tuple[float, float]:
        """Above 1 - by."""
        return math.log1p(-margin), math.inf

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``new is less than 5 % slower than old``."""
        less = f"{'' if true else 'not '}less than {100 * claim.margin:.4g} % slower"
        return f"{names[0]} is {less} than {names[1]}{by_metric(metric, unit)}"


class SameAs(Kind):
    """The guard: neither variant is slower by the fraction ``within``: ratio and 1 / ratio are above 1 - within.

    Holds when the 90 % interval lies inside both limits. That is wrong with a chance of at most .05 if rounds are
    independent (.1 if they are not). Fails when the sequential interval (99.9 %) lies outside. Raises ConfigError
    unless 0 < within < 1.
    """

    name = "same_as"
    option = "within"
    below = 1.0
    guard = True

    def bounds(self, margin: float) -> tuple[float, float]:
        """Between 1 - within and its inverse."""
        return math.log1p(-margin), -math.log1p(-margin)

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``new and old are equally fast within 5 %``."""
        equally = f"{'' if true else 'not '}equally fast within {100 * claim.margin:.4g} %"
        return f"{names[0]} and {names[1]} are {equally}{by_metric(metric, unit)}"


no_slower_than = register(NoSlowerThan())
same_as = register(SameAs())
