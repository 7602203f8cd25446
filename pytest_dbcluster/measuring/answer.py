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
from pytest_dbcluster.claims.race.standing import Standing
from pytest_dbcluster.claims.race.wording import message as race_message
from pytest_dbcluster.claims.repetitions.wording import message as event_message
from pytest_dbcluster.claims.wording import message
from pytest_dbcluster.errors import ClaimFailed, Inconclusive
from pytest_dbcluster.measuring.evidence import Evidence
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.measuring.round_trips import RoundTripsTaken
from pytest_dbcluster.measuring.why.compared import ServerComparison
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round


@dataclasses.dataclass(frozen=True)
class Compared:
    """One variant of a claim."""

    number: int
    """Its 0-based number in the measurement."""

    name: str
    """Its short name."""

    rounds: Sequence[Round]
    """The rounds of the verdict, in the order in which they ran."""


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
    True`` is the same as ``bool(answer)``. ``answer is True`` is always False, as for every object but True.
    """

    claim: Claim
    """The claim."""

    verdict: Verdict
    """Its verdict."""

    variants: tuple[Compared, ...]
    """Candidate and baseline, each with the rounds of the verdict.

    For an order it has all variants, fastest first; for a race all in the order of ``standings``. For ``fades`` it has
    candidate and baseline of the second pair, then those of the first.
    """

    metric: str
    """The metric of the claim."""

    usual: str
    """The default metric of the workload."""

    load: str
    """The name of the workload."""

    seed: int
    """The seed of the order of rounds."""

    content: str = ""
    """The digest of the workload's files; empty without files."""

    instances: int = 1
    """The instances of each variant, which the blocks use in turn."""

    arrival_rate: ArrivalRate | None = None
    """The rate of an open loop; None for a closed loop."""

    difference: ClusterDifference | None = None
    """How far equal clusters can differ, if the variants run on separate ones; None for a counter."""

    asserted: bool = True
    """False for a comparison without a claim (``against``), which is always True."""

    notes: Sequence[str] = ()
    """The last lines of the message."""

    void: Sequence[Sequence[Round]] = ()
    """Rounds and blocks that did not count and were drawn again."""

    carry_over: Sequence[CarryOver | None] = ()
    """The carry-over of each comparison of the claim; None if too few rounds show it."""

    round_trips: RoundTripsTaken | None = None
    """The round trips of an operation, if the variants differ in their round-trip time; else None."""

    standings: tuple[Standing, ...] = ()
    """Of a race the place of each variant, the winner or the leader first; empty for other claims."""

    tries: int = 1
    """The number of this try; earlier ones decided nothing."""

    interrupted: bool = False
    """Whether the run ended while the rounds were drawn. A run that continues it measures the claim again."""

    read: bool = False
    """Whether ``bool`` or ``show`` was called. If nobody reads an answer, its test has an error."""

    shown: bool = False
    """Whether only ``show`` was called, so that its test claims nothing with it."""

    earlier_message: str = ""
    """The message of an answer of an earlier run; empty for an answer of this run."""

    servers: ServerComparison | None = None
    """What the servers of candidate and baseline did in extra rounds; None if nobody asked for it."""

    evidence: Evidence = dataclasses.field(default_factory=Evidence)
    """What is known about the clusters; empty for an answer of an earlier run."""

    reported: Callable[[Answer], None] | None = None
    """Is called once, before the answer is read."""

    @property
    def question(self) -> Question:
        """What was asked."""
        numbers = [variant.number for variant in self.variants]
        candidate, *others = sorted(numbers) if self.standings else numbers
        baseline = others.pop(0) if others else None
        return Question(self.claim, candidate, baseline, self.metric, tuple(others), self.asserted)

    @property
    def contrast(self) -> tuple[Compared, ...]:
        """Candidate and baseline: for an order those of its smallest step, for ``fades`` those of its second pair.

        Only the candidate, for a claim about one variant.
        """
        return self.variants[self._faster : self._faster + 2]

    @property
    def contrast_carry_over(self) -> CarryOver | None:
        """The carry-over of the two variants of ``contrast``; None if it is unknown."""
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
        if self.earlier_message:
            return self.earlier_message
        if self.standings:
            return self._race_message
        variants = self._as_written
        rounds = list({id(done): done for variant in variants for done in variant.rounds}.values())
        if not self.claim.of_kind.is_ratio:
            return event_message(
                self.verdict,
                names=tuple(variant.name for variant in variants),
                metric=self.metric,
                unit=metrics.unit(self.metric),
                samples={one.name: metrics.samples(one.rounds, self.metric, self.load) for one in variants},
                seconds=sum(done.wall for done in rounds),
                seed=self.seed,
                load=self.load,
                extra=self.notes,
            )
        seconds = sum(done.seconds for done in rounds)
        medians = [self._median(variant) for variant in variants]
        return message(
            self.verdict,
            names=tuple(variant.name for variant in variants),
            metric=self.metric,
            usual=self.usual,
            instances=self.instances,
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

    @property
    def _race_message(self) -> str:
        return race_message(
            self.verdict,
            self.standings,
            metric=self.metric,
            usual=self.usual,
            unit=metrics.unit(self.metric),
            seconds=sum(done.seconds for variant in self.variants for done in variant.rounds),
            seed=self.seed,
            load=self.load,
            carried=any(found and found.warned for found in self.carry_over),
            extra=self.notes,
        )

    def _median(self, variant: Compared) -> float:
        return statistics.median(
            [metrics.display_value(done, self.metric, self.load) for done in variant.rounds] or [math.nan]
        )

    def report(self) -> None:
        """Report the answer, once."""
        report, self.reported = self.reported, None
        if report:
            report(self)

    def show(self) -> None:
        """Show the answer without a claim, whatever it says. It counts as read, and as a comparison in the results."""
        self.shown = self.shown or not self.read
        self.read = True
        report, self.reported = self.reported, None
        if report:
            report(dataclasses.replace(self, asserted=False))

    def __bool__(self) -> bool:
        self.read, self.shown = True, False
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
