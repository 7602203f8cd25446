"""``against`` of events: a comparison of durations without a claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_dbcluster.claims.claim import Claim, Outcome, Verdict, register
from pytest_dbcluster.claims.kinds.differs import differs
from pytest_dbcluster.claims.kinds.events.shorter import Shorter
from pytest_dbcluster.claims.repetitions.samples import Repetitions


class DiffersAfter(Shorter):
    """A duration of an event is not equal to that of another variant. It shows the difference, and never fails.

    Judged as ``shorter``. The interval of the difference is in seconds: above 0 the candidate is shorter.
    """

    name = "event_differs"
    method = "against"
    paired = False
    claims_nothing = True

    @property
    def has_history(self) -> bool:
        """Not: a difference near 0 has no level."""
        return False

    def bounds(self, margin: float) -> tuple[float, float]:
        """Both ends are 0, the only point at which it is false."""
        return 0.0, 0.0

    def judge(self, claim: Claim, samples: Sequence[Repetitions], times: int, alpha: float) -> Verdict | None:
        """The verdict at the first look whose interval does not contain 0, or at the last one that is planned."""
        found = super().judge(claim, samples, times, alpha)
        if found is None or found.outcome is not Outcome.FAILS:
            return found
        return dataclasses.replace(found, outcome=Outcome.HOLDS, reason="interval does not contain 0")

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """Its name in the table: ``quick against usual (stall)``."""
        return f"{names[0]} against {names[1]} ({metric})"

    def range_text(self, claim: Claim) -> str:
        """Nothing."""
        return differs.range_text(claim)

    def word(self, outcome: Outcome) -> str:
        """Whether the variants differ."""
        return differs.word(outcome)

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``stall of usual less that of quick is not 0 s``."""
        return f"{metric} of {names[1]} less that of {names[0]} is not 0 {unit}"

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool, count: int) -> str:
        """``stall of quick is 2.96 s shorter than that of usual``, or longer."""
        by, sign = ratio.removeprefix("-"), "longer" if ratio.startswith("-") else "shorter"
        return f"{metric} of {names[0]} is {by} {sign} than that of {names[1]}"

    def sentence(self, claim: Claim, outcome: Outcome, names: Sequence[str], metric: str, unit: str) -> str:
        """``no difference between quick and usual, by stall is shown`` while it is inconclusive."""
        if outcome is Outcome.INCONCLUSIVE:
            return differs.sentence(claim, outcome, names, metric, unit)
        return self.says(claim, names, metric, unit)


event_differs = register(DiffersAfter())
