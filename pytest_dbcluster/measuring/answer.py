"""Answer: a claim with its verdict. A test reads it with ``assert``."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence
from typing import Protocol

from pytest_dbcluster.claims import verdict
from pytest_dbcluster.claims.carry_over import CarryOver
from pytest_dbcluster.claims.claim import STATES, Claim, Outcome, Verdict
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.claims.wording import message
from pytest_dbcluster.errors import ClaimFailed, Inconclusive
from pytest_dbcluster.measuring.evidence import Evidence
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.measuring.round_trips import RoundTripsTaken
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round


@dataclasses.dataclass(frozen=True)
class Compared:
    """One variant of a claim.

    number: its 0-based number in the measurement. name: its short name. rounds: those of the verdict, as drawn.
    """

    number: int
    name: str
    rounds: Sequence[Round]


class Tries(Protocol):
    """Knows the tries of claims: measurements that looked at their rounds and decided nothing."""

    def begin(self, question: Question) -> int:
        """Note a try whose first look comes now; return its number, from 1."""

    def decide(self, question: Question) -> None:
        """Forget the tries of a claim that has a verdict."""


@dataclasses.dataclass(eq=False)
class Answer:
    """A claim with its verdict, to be used as ``assert answer``.

    ``bool(answer)`` is True when the claim holds, else it raises: ClaimFailed (an AssertionError) when the claim fails,
    Inconclusive when it is inconclusive. It is never False, so ``assert not a.beats(b)`` never passes. ``answer ==
    True`` is the same as ``bool(answer)``; ``answer is True`` is always False, as for every object but True.

    variants: candidate and baseline, or all variants of an order, fastest first, or of ``fades`` candidate and baseline
    of the second pair, then those of the first; each with the rounds of the verdict. metric: the metric of the claim.
    usual: the default metric of the workload. load: the name of the workload. seed: the seed of the order of rounds.
    arrival_rate: the rate of an open loop, None for a closed loop. asserted: False for a comparison without a claim
    (``against``), which is always True. difference: how far equal clusters can differ, where the variants run on
    separate ones and speed or time is claimed. notes: the last lines of the message. void: rounds and blocks that did
    not count and were drawn again. instances: of each variant, used in turn. carry_over: of each two neighbours in
    ``variants``, for ``fades`` of the two in each pair; None where it is not known. round_trips: that an operation
    takes, of variants that differ in their round-trip time alone; else None. tries: the number of this try, after
    earlier ones that decided nothing. read: whether ``bool`` was called; an answer that nobody reads is an error of the
    test. interrupted: the run ended while its rounds were drawn; a run that goes on measures it again. told: the
    message of an answer that was taken over from an earlier run; empty for an answer of this run. evidence: about its
    clusters; empty for an answer that was taken over. reported: is called once, before the answer is read.
    """

    claim: Claim
    verdict: Verdict
    variants: tuple[Compared, ...]
    metric: str
    usual: str
    load: str
    seed: int
    instances: int = 1
    arrival_rate: ArrivalRate | None = None
    difference: ClusterDifference | None = None
    asserted: bool = True
    notes: Sequence[str] = ()
    void: Sequence[Sequence[Round]] = ()
    carry_over: Sequence[CarryOver | None] = ()
    round_trips: RoundTripsTaken | None = None
    tries: int = 1
    interrupted: bool = False
    read: bool = False
    told: str = ""
    evidence: Evidence = dataclasses.field(default_factory=Evidence)
    reported: Callable[[Answer], None] | None = None

    @property
    def question(self) -> Question:
        """What was asked."""
        candidate, baseline, *others = (variant.number for variant in self.variants)
        return Question(self.claim, candidate, baseline, self.metric, tuple(others), self.asserted)

    @property
    def compared(self) -> tuple[Compared, Compared]:
        """Candidate and baseline; for an order those of its smallest step, for ``fades`` those of its second pair."""
        return self.variants[self._faster], self.variants[self._faster + 1]

    @property
    def carried(self) -> CarryOver | None:
        """The carry-over of the two variants of ``compared``; None where it is not known."""
        return self.carry_over[self._faster] if self.carry_over else None

    @property
    def _faster(self) -> int:
        """The place of the candidate in ``variants``: 0, or of an order that of its smallest step."""
        steps = self.verdict.neighbours
        return len(steps) - 1 - verdict.weakest(steps) if steps else 0

    @property
    def text(self) -> str:
        """The claim as a test writes it."""
        return self.claim.call(tuple(variant.name for variant in self._as_written), self.metric, self.usual)

    @property
    def identity(self) -> str:
        """The claim without its margin, as ``Claim.identity`` says."""
        return self.claim.identity(tuple(variant.name for variant in self._as_written), self.metric)

    @property
    def _as_written(self) -> Sequence[Compared]:
        """The variants as a test writes them: candidate and baseline, or last the candidate (``candidate_last``)."""
        return self.variants[::-1] if self.claim.of_kind.candidate_last else self.variants

    @property
    def message(self) -> str:
        """The whole text: ratio, interval, claim, smallest detectable difference, noise, seed."""
        if self.told:
            return self.told
        variants = self._as_written
        rounds = [done for variant in variants for done in variant.rounds]
        seconds = sum(done.seconds for done in rounds)
        medians = [self._median(variant) for variant in variants]
        return message(
            self.verdict,
            names=tuple(variant.name for variant in variants),
            metric=self.metric,
            usual=self.usual,
            seconds_per_round=seconds / max(1, len(rounds)),
            seed=self.seed,
            absolute=(medians[0], medians[1]) if len(medians) == 2 else None,
            settle_timeouts=sum(not done.settled for done in rounds),
            unit=metrics.unit(self.metric),
            seconds=seconds,
            load=self.load,
            carried=any(found and found.warned for found in self.carry_over),
            extra=self.notes,
        )

    def _median(self, variant: Compared) -> float:
        return statistics.median(
            [metrics.display_value(done, self.metric, self.load) for done in variant.rounds] or [math.nan]
        )

    def report(self) -> None:
        """Report the answer, unless that is done."""
        report, self.reported = self.reported, None
        if report:
            report(self)

    def __bool__(self) -> bool:
        self.read = True
        self.report()
        if not self.asserted or self.verdict.outcome is Outcome.HOLDS:
            return True
        if self.verdict.outcome is Outcome.FAILS:
            raise ClaimFailed(self.message)
        raise Inconclusive(self.message)

    def __eq__(self, other: object) -> bool:
        return bool(self) is other if isinstance(other, bool) else self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{self.text}: {STATES[self.verdict.outcome]}>"
