"""``loses_nothing``: no repetition of an event loses or invents a transaction."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims.claim import Claim, Outcome, Shape, Verdict, register
from pytest_dbcluster.claims.repetitions import order_statistics
from pytest_dbcluster.claims.repetitions.kind import RepetitionKind, verdict_of
from pytest_dbcluster.claims.repetitions.samples import Repetitions

LEVEL = 0.05  # the error of the bound on the chance of a loss


class LosesNothing(RepetitionKind):
    """No repetition of the event loses an acknowledged transaction, or has one that nobody wrote.

    Fails at the first repetition that does. If none does, the message has a bound. It bounds the chance that a
    repetition loses a transaction, with 95 % confidence: after n repetitions it is below 1 - .05 ** (1 / n).
    """

    name = "loses_nothing"
    shape = Shape.PROPORTION
    no_margin = True
    sides = 1

    def bounds(self, margin: float) -> tuple[float, float]:
        """No repetition."""
        return -math.inf, 0.0

    def judge(self, claim: Claim, samples: Sequence[Repetitions], times: int, alpha: float) -> Verdict | None:
        """The verdict at the first loss, or after all repetitions."""
        [own] = samples
        lossy = sum(value > 0 for value in own.values)
        if not lossy and len(own) < times:
            return None
        ends = order_statistics.share_interval(lossy, len(own), LEVEL)
        outcome, why = (
            (Outcome.FAILS, f"{formatting.amount(sum(own.values))} transactions are lost or invented")
            if lossy
            else (Outcome.HOLDS, "each acknowledged transaction is there")
        )
        return verdict_of(outcome, claim, len(own), lossy / len(own), ends, LEVEL, why)

    def figure_text(self, value: float, limits: Sequence[float]) -> str:
        """``0 % of the events``."""
        return formatting.NOTHING if math.isnan(value) else f"{100 * value:.3g} % of the events"

    def interval_text(self, low: float, high: float, limits: Sequence[float]) -> str:
        """``0 .. 39 %``."""
        if math.isnan(low) or math.isnan(high):
            return formatting.NO_INTERVAL
        return f"{100 * low:.2g} .. {100 * high:.2g} %"

    def bound_text(self, bound: float) -> str:
        """``any loss``."""
        return "any loss"

    def range_text(self, claim: Claim) -> str:
        """``no loss``."""
        return "no loss"

    def call(self, claim: Claim, names: tuple[str, ...], metric: str, usual: str) -> str:
        """``galera3.loses_nothing()``."""
        return f"{names[0]}.{self.name}()"

    def says(self, claim: Claim, names: Sequence[str], metric: str, unit: str, *, true: bool = True) -> str:
        """``galera3 loses no acknowledged transaction``."""
        return f"{names[0]} loses {'no acknowledged transaction' if true else 'acknowledged transactions'}"

    def headline(self, ratio: str, names: Sequence[str], metric: str, unit: str, *, holds: bool) -> str:
        """``galera3 loses transactions in 0 % of the events``."""
        return f"{names[0]} loses transactions in {ratio}"


loses_nothing = register(LosesNothing())
