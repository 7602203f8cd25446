"""``fades``: a loss is smaller for one pair of variants than for another."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster.claims.claim import Claim, Kind, T, by_metric, register
from pytest_dbcluster.claims.critical_values import RANKS_FROM
from pytest_dbcluster.claims.kinds.beats import BELOW
from pytest_dbcluster.claims.pairs import Pairs, of_losses


class Fades(Kind):
    """The second pair of variants keeps more of its speed than the first pair.

    What a pair keeps is its second variant / its first variant. The claim is that what the second pair keeps / what the
    first pair keeps > 1 + by. Judged like ``beats``, from 17 blocks on. Raises ConfigError unless 0 <= by < 2.
    """

    name = "fades"
    below = BELOW
    no_margin = True
    candidate_last = True
    of_many = True
    composed = True
    looks_from = RANKS_FROM

    def bounds(self, margin: float) -> tuple[float, float]:
        """The ratio of both ratios above 1 + by."""
        return math.log1p(margin), math.inf

    def comparisons(self, variants: Sequence[T]) -> list[tuple[T, T]]:
        """The two pairs of variants, the second first."""
        return super().comparisons(variants)[::2]

    def subclaims(self, claim: Claim, parts: Sequence[Pairs], apart: Sequence[float]) -> list[tuple[Claim, Pairs]]:
        """The two ratios of each place as one pair."""
        first, second = parts
        return [(claim, of_losses(second, first))]

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """``fades((one, one_far), (many, many_far), by=0.1)``."""
        two = [f"({names[0]}, {names[1]})", f"({names[2]}, {names[3]})"]
        return f"{self.name}({', '.join([*two, *self.keywords(claim, metric, usual)])})"

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``many_far loses less against many than one_far against one``."""
        verb = "loses less" if true else "does not lose less"
        by = f" by more than {100 * claim.margin:.4g} %" if claim.margin else ""
        of = by_metric(metric, unit)
        return f"{names[3]} {verb} against {names[2]} than {names[1]} against {names[0]}{by}{of}"

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool, count: int) -> str:
        """``many_far loses less than one_far``: four names are too many for a line of a terminal."""
        verb = "loses" if holds else "does not lose"
        return f"{names[0]} {verb} less than {names[2]}{by_metric(metric, unit)}"


fades = register(Fades())
