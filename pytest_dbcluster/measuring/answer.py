"""Answer: a claim that has been asked, with its verdict. Its truth is read with ``assert``."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_dbcluster.claims import verdict
from pytest_dbcluster.claims.claim import Claim
from pytest_dbcluster.claims.verdict import Outcome, Verdict
from pytest_dbcluster.claims.wording import message
from pytest_dbcluster.errors import ClaimFailed, Inconclusive
from pytest_dbcluster.rounds import metrics

if TYPE_CHECKING:
    from pytest_dbcluster.measuring.measurement import Measurement, Series


@dataclasses.dataclass(eq=False)
class Answer:
    """A claim with its verdict. ``bool`` of it is True, or raises ClaimFailed or Undecided: never False.

    So ``assert not a.beats(b)`` is never a pass. ``series`` are candidate and baseline, or all of an order,
    fastest first. ``read`` says whether anybody has looked; a verdict that nobody read is an error of the test.
    """

    claim: Claim
    verdict: Verdict
    series: tuple[Series, ...]
    metric: str
    asserted: bool = True
    notes: Sequence[str] = ()
    read: bool = False

    @property
    def measurement(self) -> Measurement:
        """The measurement it was asked of."""
        return self.series[0].measurement

    @property
    def compared(self) -> tuple[Series, Series]:
        """Candidate and baseline; of an order its weakest neighbours, whose ratio the verdict gives."""
        steps = self.verdict.neighbours
        fast = len(steps) - 1 - verdict.weakest(steps) if steps else 0
        return self.series[fast], self.series[fast + 1]

    @property
    def text(self) -> str:
        """The claim as a test writes it."""
        names = tuple(item.name for item in self.series)
        ordered = tuple(reversed(names)) if self.claim.kind == "ordered" else names
        return self.claim.call(ordered, self.metric, self.measurement.metric)

    @property
    def message(self) -> str:
        """The whole text: ratio, interval, claim, smallest detectable difference, noise, seed."""
        found = self.verdict
        shown = self.series[::-1] if self.claim.kind == "ordered" else self.series
        used = [item.rounds[: found.pairs] for item in shown]
        rounds = [one for many in used for one in many]
        seconds = sum(one.seconds for one in rounds)
        values = [statistics.median(item.values(self.metric)[: found.pairs] or [math.nan]) for item in shown]
        return message(
            found,
            names=tuple(item.name for item in shown),
            metric=self.metric,
            usual=self.measurement.metric,
            seconds_per_round=seconds / max(1, len(rounds)),
            seed=self.measurement.rules.seed,
            absolute=(values[0], values[1]) if len(values) == 2 else None,
            settle_timeouts=sum(not one.settled for one in rounds),
            unit=metrics.unit(self.metric),
            seconds=seconds,
            extra=self.notes,
        )

    def __bool__(self) -> bool:
        self.read = True
        if not self.asserted or self.verdict.outcome is Outcome.HOLDS:
            return True
        if self.verdict.outcome is Outcome.FAILS:
            raise ClaimFailed(self.message)
        raise Inconclusive(self.message)

    def __repr__(self) -> str:
        return f"<{self.text}: {self.verdict.outcome.value}>"
