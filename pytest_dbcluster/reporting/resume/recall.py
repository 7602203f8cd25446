"""``Recall`` looks up the answer of a claim in the run that is continued, when a test makes the claim.

``CurveRecall`` looks up a curve, when a test declares it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from pytest_dbcluster.claims.claim import Claim
from pytest_dbcluster.measuring.answer import Answer, Compared
from pytest_dbcluster.measuring.curve import Curve, Drawn
from pytest_dbcluster.measuring.interrupted import InterruptedAnswer
from pytest_dbcluster.reporting.documents.claim_id import claim_id
from pytest_dbcluster.reporting.records import Asked, ClaimRecord, CurveRecord, releases
from pytest_dbcluster.reporting.resume.digests import ROUNDS, Conditions, changed, digests, digests_of_curve
from pytest_dbcluster.reporting.resume.earlier import Earlier, Key, curve_key
from pytest_dbcluster.testbed.testbed import Testbed


class Told(Protocol):
    """What is told about earlier answers, as ``report.Reporting``."""

    def take_over(self, key: Key, test: str, repeat: str) -> None:
        """A test takes over an answer."""

    def outdated(self, key: Key, changed: Sequence[str]) -> None:
        """An answer does not count any more."""

    def line(self, text: str) -> None:
        """Something to show."""


@dataclasses.dataclass(frozen=True)
class Recall:
    """The claims of one measurement, and the answers that an earlier run gave to them.

    loads: the workload of each variant. earlier: None in a run that continues none. report: is told what becomes of the
    earlier answers.
    """

    testbed: Testbed
    loads: Sequence[object]
    asked: Asked
    conditions: Conditions
    earlier: Earlier | None
    report: Told

    def depends_on(self, claim: Claim, numbers: Sequence[int], metric: str, asserted: bool) -> Mapping[str, str]:
        """What the answer of a claim depends on. numbers: its variants, as in ``decision.ask``."""
        return digests(
            claim,
            metric,
            [self.testbed.variants[number] for number in numbers],
            [self.loads[number] for number in numbers],
            self.conditions,
            asserted=asserted,
            instances=self.testbed.instances,
        )

    def of_answer(self, answer: Answer) -> Mapping[str, str]:
        """What an answer depends on; an interrupted one on its rounds too, so that its claim is measured again."""
        numbers = [variant.number for variant in answer.variants]
        depends_on = self.depends_on(answer.claim, numbers, answer.metric, answer.asserted)
        return {**depends_on, ROUNDS: "interrupted"} if isinstance(answer, InterruptedAnswer) else depends_on

    def __call__(self, claim: Claim, numbers: Sequence[int], metric: str, asserted: bool) -> Answer | None:
        """The answer of the earlier run; None where there is none, or where what it depends on has changed."""
        if self.earlier is None:
            return None
        names = tuple(self.testbed.names[number] for number in numbers)
        identity = claim.identity(names[::-1] if claim.candidate_last else names, metric)
        releases = [str(self.testbed.variants[number].release.name) for number in numbers]
        wanted = claim_id(self.asked.test, releases, identity, self.testbed.load)
        depends_on = self.depends_on(claim, numbers, metric, asserted)
        key = self.earlier.find(wanted, depends_on)
        if key is None:
            for other in self.earlier.replaced(wanted, list(dict.fromkeys(releases)), depends_on):
                self.report.outdated(other, self.earlier.outdated[other])
            return None
        self.report.take_over(key, self.asked.test, self.asked.repeat)
        return _answer(self.earlier.answers[key], claim, numbers, self.testbed.metric)


def _answer(record: ClaimRecord, claim: Claim, numbers: Sequence[int], usual: str) -> Answer:
    """The answer of a record. claim, numbers: as they are made now. usual: the default metric of the workload."""
    by_name = list(record.rounds.items())
    variants = tuple(Compared(number, name, rounds) for number, (name, rounds) in zip(numbers, by_name, strict=True))
    return Answer(
        claim,
        record.verdict,
        variants,
        record.metric,
        usual=usual,
        load=record.load,
        seed=record.seed,
        instances=record.instances,
        arrival_rate=record.arrival_rate,
        difference=record.cluster_difference,
        asserted=record.asserted,
        void=record.void,
        carry_over=[record.carry_over] * (len(numbers) - 1),
        told=record.message,
    )


class CurveRecall:
    """A curve of a test, and what the run that is continued has of it. number: of the curve in its test, from 0.

    depends_on: what the curve depends on. before: its record in the earlier run; None where there is none, or where
    what it depends on has changed, which is told.
    """

    def __init__(self, curve: Curve, number: int) -> None:
        points = [recall for point in curve.points if isinstance(recall := point.measurement.recall, Recall)]
        first = points[0]
        self.depends_on = digests_of_curve(
            [point.value for point in curve.points],
            first.testbed.metric,
            first.testbed.variants,
            [load for point in points for load in point.loads],
            first.conditions,
            instances=first.testbed.instances,
        )
        self.before = self._before(curve, first, number)

    def _before(self, curve: Curve, recall: Recall, number: int) -> CurveRecord | None:
        if recall.earlier is None:
            return None
        key = curve_key(recall.asked.test, releases(recall.testbed.variants), curve.load, curve.field, number)
        before = recall.earlier.curve(key)
        if before and (parts := changed(before.depends_on, self.depends_on)):
            if before.drawn or before.points:
                recall.report.line(f"drawn again ({', '.join(parts)} changed): {curve.load} over {curve.field}")
            return None
        return before


def drawn(curve: Curve, before: CurveRecord | None, tell: Callable[[str], None]) -> Drawn | None:
    """What ``curve.draw`` has drawn in an earlier run. before: the record of that run; None where there is none.

    ``tell`` gets a line about a curve that goes on at a later point.
    """
    if before is None:
        return None
    known = {(str(point.value), point.variant): point.rounds for point in before.points}
    names = curve.points[0].measurement.source.names
    of_points = tuple(tuple(known.get((str(point.value), name), ()) for name in names) for point in curve.points)
    if not before.drawn:
        there = f"{len(before.values)} of {len(curve.points)} values were drawn before"
        tell(f"{curve.load} over {curve.field}: {there}; those with all their rounds are kept")
    return Drawn(before.drawn, of_points)
