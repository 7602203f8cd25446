"""``differs``: a comparison without a claim. It asks only if two variants differ."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dbcluster.claims.claim import Claim, Kind, Outcome, by_metric, register


class Differs(Kind):
    """The two variants are not equally fast. The outcome is that it holds or is inconclusive; it never fails."""

    name = "differs"
    no_margin = True
    claims_nothing = True

    def bounds(self, margin: float) -> tuple[float, float]:
        """Both ends are 0, the only point at which it is false."""
        return 0.0, 0.0

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``flush_2 and default differ``."""
        return f"{names[0]} and {names[1]} differ{by_metric(metric, unit)}"

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """Its name in the table: ``flush_2 against default``."""
        return f"{names[0]} against {names[1]}" + ("" if metric == usual else f" ({metric})")

    def range_text(self, claim: Claim) -> str:
        """Nothing."""
        return "nothing"

    def word(self, outcome: Outcome) -> str:
        """Whether the variants differ."""
        return "unclear" if outcome is Outcome.INCONCLUSIVE else "differ"

    def sentence(self, claim: Claim, outcome: Outcome, names: Sequence[str], metric: str, unit: str) -> str:
        """``no difference between flush_2 and default is shown`` while it is inconclusive."""
        if outcome is Outcome.INCONCLUSIVE:
            return f"no difference between {names[0]} and {names[1]}{by_metric(metric, unit)} is shown"
        return self.says(claim, names, metric, unit)


differs = register(Differs())
