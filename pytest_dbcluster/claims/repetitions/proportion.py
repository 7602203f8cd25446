"""ProportionKind: what claims about each repetition of an event have in common. They fail at the first exception."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import ClassVar

from pytest_dbcluster import formatting
from pytest_dbcluster.claims.claim import Claim, Outcome, Shape, Verdict
from pytest_dbcluster.claims.repetitions import order_statistics
from pytest_dbcluster.claims.repetitions.kind import RepetitionKind, verdict_of
from pytest_dbcluster.claims.repetitions.samples import Repetitions

LEVEL = 0.05  # the error of the bound on the chance of an exception


class ProportionKind(RepetitionKind):
    """No repetition is an exception. The verdict has the share of those that are, and bounds its chance."""

    shape = Shape.PROPORTION
    no_margin = True
    sides = 1
    exception: ClassVar[str]
    """An exception as a noun, such as ``loss``."""

    an_exception: ClassVar[str]
    """The same with its article, such as ``a loss``."""

    @abc.abstractmethod
    def exceptions(self, own: Repetitions) -> Sequence[int]:
        """The places of the repetitions that are an exception, 0-based."""

    @abc.abstractmethod
    def why(self, own: Repetitions, exceptions: Sequence[int]) -> str:
        """The reason of the verdict; without exceptions that of a claim that holds."""

    def bounds(self, margin: float) -> tuple[float, float]:
        """No repetition."""
        return -math.inf, 0.0

    def judge(self, claim: Claim, samples: Sequence[Repetitions], times: int, alpha: float) -> Verdict | None:
        """The verdict at the first exception, or after all repetitions."""
        [own] = samples
        found = self.exceptions(own)
        if not found and len(own) < times:
            return None
        ends = order_statistics.share_interval(len(found), len(own), LEVEL)
        outcome = Outcome.FAILS if found else Outcome.HOLDS
        return verdict_of(outcome, claim, len(own), len(found) / len(own), ends, LEVEL, self.why(own, found))

    def figure_text(self, value: float, limits: Sequence[float]) -> str:
        """``a loss in 0 % of the events``."""
        if math.isnan(value):
            return formatting.NOTHING
        return f"{self.an_exception} in {100 * value:.3g} % of the events"

    def of_level(self, level: str, interval: str) -> str:
        """``95 %: a loss in 0 .. 39 % of the events``."""
        return f"{level}: {self.an_exception} in {interval} of the events"

    def interval_text(self, low: float, high: float, limits: Sequence[float]) -> str:
        """``0 .. 39 %``."""
        if math.isnan(low) or math.isnan(high):
            return formatting.NO_INTERVAL
        shown = [float(f"{100 * end:.2g}") for end in (low, high)]
        return f"{shown[0]:g} .. {shown[1]:g} %"

    def bound_text(self, bound: float) -> str:
        """``any loss``."""
        return f"any {self.exception}"

    def range_text(self, claim: Claim) -> str:
        """``no loss``."""
        return f"no {self.exception}"
