"""``ordered``: each of several variants is faster than the one before it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from pytest_dbcluster.claims import critical_values
from pytest_dbcluster.claims.claim import Claim, Kind, by_metric, register
from pytest_dbcluster.claims.kinds.beats import BELOW
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.errors import ConfigError


class Ordered(Kind):
    """Each variant is faster than the variant before it by more than the fraction ``step``.

    The order holds when every step holds at ``alpha``; an intersection-union test needs no correction. It fails when
    one step fails at ``alpha`` / number of steps (Bonferroni). Raises ConfigError unless 0 <= step < 2.
    """

    name = "ordered"
    option = "step"
    below = BELOW
    no_margin = True
    candidate_last = True
    of_many = True

    def bounds(self, margin: float) -> tuple[float, float]:
        """Each ratio above 1 + step."""
        return math.log1p(margin), math.inf

    def subclaims(self, claim: Claim, parts: Sequence[Pairs], apart: Sequence[float]) -> list[tuple[Claim, Pairs]]:
        """One claim for each step. Raises ConfigError for fewer than 2 or more than 5 variants."""
        if not 1 <= len(parts) <= critical_values.MAX_STEPS:
            raise ConfigError(f"ordered accepts 2 to {critical_values.MAX_STEPS + 1} variants, not {len(parts) + 1}")
        by_step = apart or [claim.apart] * len(parts)
        steps = zip(by_step, parts, strict=True)
        return [(dataclasses.replace(claim, apart=own), pairs) for own, pairs in steps]

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """``ordered(slow, middle, fast, step=0.05)``."""
        return f"{self.name}({', '.join([*names, *self.keywords(claim, metric, usual)])})"

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``each of slow, middle, fast is faster than the one before it``."""
        by = f" by more than {100 * claim.margin:.4g} %" if claim.margin else ""
        each = f"{'' if true else 'not '}each of {', '.join(names)}"
        return f"{each} is faster than the one before it{by}{by_metric(metric, unit)}"

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool, count: int) -> str:
        """None: the call names all variants."""
        return ""

    def figure(self, ratio: str) -> str:
        """``smallest step 1.08x``."""
        return f"smallest step {ratio}"

    def hint(self, margin: float) -> str:
        """What a margin of 1 or more means."""
        if not 1 <= margin < math.inf:
            return ""
        times = f"{1 + margin:g} times as fast"
        return f"; it is a fraction: {margin:g} means {100 * margin:g} %, {times}, and {margin:g} % is {margin / 100:g}"


ordered = register(Ordered())
