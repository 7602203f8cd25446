"""RepetitionKind: what the kinds of claims about repetitions of an event have in common."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import ClassVar

from pytest_dbcluster import formatting
from pytest_dbcluster.claims.claim import Claim, Kind, Outcome, Shape, Verdict
from pytest_dbcluster.claims.repetitions.samples import Repetitions

BUDGET = "--db-event-budget"  # the option that limits the seconds of all repetitions of one measure.event


class RepetitionKind(Kind):
    """A kind of claim about an event, or about one variant. The number of repetitions is fixed before the first one."""

    shape = Shape.DURATION
    variants: ClassVar[int] = 1
    """The number of variants that a claim compares."""

    repetition: ClassVar[str] = "repetition"
    """What is repeated, as a noun."""

    censored: ClassVar[str] = "lasted until the load ended"
    """Why a value is a lower bound, after the number of these values."""

    independent: ClassVar[bool] = True
    """Whether its error rests on independent repetitions; otherwise it rests on their random order."""

    @property
    def has_history(self) -> bool:
        """Its seconds, or its share, are those of the same variants in every run."""
        return True

    @abc.abstractmethod
    def judge(self, claim: Claim, samples: Sequence[Repetitions], times: int, alpha: float) -> Verdict | None:
        """The verdict after these repetitions, or None: then repeat the event again.

        samples: of the candidate, and of the baseline if there is one. times: the repetitions that are planned.
        """

    def refuses(self, claim: Claim, times: int, alpha: float) -> str:
        """Why so many repetitions can never decide a claim; empty if they can."""
        return ""

    def value(self, theta: float) -> float:
        """Seconds are shown as they are."""
        return theta

    def bound_text(self, bound: float) -> str:
        """``8 s``."""
        return f"{bound:.6g} s"

    def figure_text(self, value: float, limits: Sequence[float]) -> str:
        """``6.12 s``."""
        return formatting.NOTHING if math.isnan(value) else f"{seconds_text(value, limits)} s"

    def interval_text(self, low: float, high: float, limits: Sequence[float]) -> str:
        """``6.04 .. 6.26 s``."""
        if math.isnan(low) or math.isnan(high) or (low in (0, -math.inf) and high == math.inf):
            return formatting.NO_INTERVAL
        return f"{seconds_text(low, limits)} .. {seconds_text(high, limits)} s"

    def looks(self, instances: int) -> tuple[int, ...]:
        """None: it is judged once, after all repetitions."""
        return ()

    def hint(self, margin: float) -> str:
        """Seconds need no hint."""
        return ""

    def needs(self, verdict: Verdict) -> str:
        """More repetitions, or a larger budget if it ended them."""
        return f"a larger {BUDGET}" if BUDGET in verdict.reason else self.needed_times(verdict)

    def needed_times(self, verdict: Verdict) -> str:
        """More repetitions, which narrow the interval."""
        return f"more {self.repetition}s, such as times={2 * max(1, verdict.pairs)}, or another bound"

    def verdict(
        self, claim: Claim, samples: Sequence[Repetitions], estimate: float, ends: tuple[float, float], level: float
    ) -> Verdict:
        """The verdict that compares an interval with the bounds of the claim. level: the error of each end."""
        low, high = claim.bounds
        outcome, why = Outcome.INCONCLUSIVE, why_open(len(samples[0]), self.repetition)
        # A bound at infinity is none: a baseline that never ends has no upper end of its interval.
        if (low == -math.inf or ends[0] > low) and (high == math.inf or ends[1] < high):
            outcome, why = Outcome.HOLDS, "interval lies inside the claim"
        elif ends[1] < low or ends[0] > high:
            outcome, why = Outcome.FAILS, "interval lies outside the claim"
        return verdict_of(outcome, claim, len(samples[0]), estimate, ends, level, why)


def why_open(repetitions: int, noun: str) -> str:
    """Why a claim is inconclusive after these repetitions. noun: as ``RepetitionKind.repetition``."""
    return f"the interval of {formatting.quantity(repetitions, noun)} contains the bound of the claim"


def seconds_text(value: float, limits: Sequence[float] = ()) -> str:
    """Seconds with two decimals, or with as many as show on which side of each limit they lie."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    for digits in range(2, 10):
        text = f"{value:.{digits}f}"
        shown = float(text)
        if all((shown > limit, shown < limit) == (value > limit, value < limit) for limit in limits):
            return text
    return repr(value)


def verdict_of(
    outcome: Outcome,
    claim: Claim,
    repetitions: int,
    estimate: float,
    ends: tuple[float, float],
    level: float,
    reason: str,
) -> Verdict:
    """A verdict with these figures; those about pairs of rounds are unknown."""
    return Verdict(
        outcome=outcome,
        claim=claim,
        pairs=repetitions,
        ratio=estimate,
        low=ends[0],
        high=ends[1],
        decided_low=ends[0],
        decided_high=ends[1],
        reason=reason,
        detectable=math.inf,
        needed_pairs=None,
        pair_sd=math.inf,
        halves=(math.nan, math.nan),
        order_effect=math.nan,
        lag1=math.nan,
        alpha=level,
    )
