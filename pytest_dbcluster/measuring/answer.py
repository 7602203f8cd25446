"""Answer: a claim that has been asked, with its verdict. Its truth is read with ``assert``."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence

from pytest_dbcluster.claims import verdict
from pytest_dbcluster.claims.claim import Claim, Outcome, Verdict
from pytest_dbcluster.claims.wording import message
from pytest_dbcluster.errors import ClaimFailed, Inconclusive
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round


@dataclasses.dataclass(frozen=True)
class Compared:
    """One variant of a claim: its number in the measurement (from 0), its name, and its rounds in the order drawn."""

    number: int
    name: str
    rounds: Sequence[Round]


@dataclasses.dataclass(eq=False)
class Answer:
    """A claim with its verdict. ``bool`` of it is True, or raises ClaimFailed or Inconclusive: never False.

    So ``assert not a.beats(b)`` is never a pass.

    variants: candidate and baseline, or all variants of an order, fastest first; each with the rounds that decided.
    metric: what the claim is about. usual: the metric of claims that name none. load: the name of the workload.
    seed: that of the order of the rounds. arrival_rate: that of an open loop, None for a closed one.
    asserted: False for a ratio that is measured beside and claimed by nobody.
    notes: the lines that the message ends with. void: blocks that did not count and were drawn again.
    read: whether anybody has looked at the verdict; one that nobody read is an error of the test.
    """

    claim: Claim
    verdict: Verdict
    variants: tuple[Compared, ...]
    metric: str
    usual: str
    load: str
    seed: int
    arrival_rate: ArrivalRate | None = None
    asserted: bool = True
    notes: Sequence[str] = ()
    void: Sequence[Sequence[Round]] = ()
    read: bool = False

    @property
    def compared(self) -> tuple[Compared, Compared]:
        """Candidate and baseline; of an order its weakest neighbours, whose ratio the verdict gives."""
        steps = self.verdict.neighbours
        fast = len(steps) - 1 - verdict.weakest(steps) if steps else 0
        return self.variants[fast], self.variants[fast + 1]

    @property
    def text(self) -> str:
        """The claim as a test writes it."""
        return self.claim.call(tuple(variant.name for variant in self._as_written), self.metric, self.usual)

    @property
    def _as_written(self) -> Sequence[Compared]:
        """The variants in the order in which a test writes them: of an order the slowest first."""
        return self.variants[::-1] if self.claim.kind == "ordered" else self.variants

    @property
    def message(self) -> str:
        """The whole text: ratio, interval, claim, smallest detectable difference, noise, seed."""
        shown = self._as_written
        rounds = [done for variant in shown for done in variant.rounds]
        seconds = sum(done.seconds for done in rounds)
        medians = [self._median(variant) for variant in shown]
        return message(
            self.verdict,
            names=tuple(variant.name for variant in shown),
            metric=self.metric,
            usual=self.usual,
            seconds_per_round=seconds / max(1, len(rounds)),
            seed=self.seed,
            absolute=(medians[0], medians[1]) if len(medians) == 2 else None,
            settle_timeouts=sum(not done.settled for done in rounds),
            unit=metrics.unit(self.metric),
            seconds=seconds,
            extra=self.notes,
        )

    def _median(self, variant: Compared) -> float:
        return statistics.median([metrics.shown(done, self.metric, self.load) for done in variant.rounds] or [math.nan])

    def __bool__(self) -> bool:
        self.read = True
        if not self.asserted or self.verdict.outcome is Outcome.HOLDS:
            return True
        if self.verdict.outcome is Outcome.FAILS:
            raise ClaimFailed(self.message)
        raise Inconclusive(self.message)

    def __repr__(self) -> str:
        return f"<{self.text}: {self.verdict.outcome.value}>"
