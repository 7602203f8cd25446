"""``Recall`` looks up the answer of a claim in the run that is continued, when a test makes the claim.

``CurveRecall`` looks up a curve, when a test declares it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from pytest_dbcluster.measuring.answer import Answer, Compared
from pytest_dbcluster.measuring.curve import Curve, Drawn
from pytest_dbcluster.measuring.drawing.round_source import RoundSource
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.reporting.documents.claim_id import claim_id
from pytest_dbcluster.reporting.recording import SHARED, Asked, releases
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord, Reading
from pytest_dbcluster.reporting.resume.digests import (
    ROUNDS,
    Conditions,
    changed_parts,
    digests,
    digests_of_curve,
)
from pytest_dbcluster.reporting.resume.earlier import Earlier, Key, curve_key


class AnswerEvents(Protocol):
    """Learns what becomes of earlier answers, as ``sinks.Sink`` does."""

    def take_over(self, key: Key, reading: Reading) -> None:
        """A test takes over an answer, and reads it so."""

    def drop(self, key: Key, changed: Sequence[str]) -> None:
        """An answer no longer counts."""

    def line(self, text: str) -> None:
        """Show a line."""


@dataclasses.dataclass(frozen=True)
class Recall:
    """The claims of one measurement, and the answers that an earlier run gave to them."""

    source: RoundSource
    """The source of the measurement's rounds."""

    loads: Sequence[object]
    """The workload of each variant."""

    asked: Asked
    """The test that measures."""

    conditions: Conditions
    """What all claims of the run depend on."""

    earlier: Earlier | None
    """The earlier run's answers; None in a run that continues no other."""

    report: AnswerEvents
    """Learns what becomes of the earlier answers."""

    def depends_on(self, question: Question) -> Mapping[str, str]:
        """What the answer to a question depends on."""
        return digests(
            question,
            [self.source.resolved[number] for number in question.variants],
            [self.loads[number] for number in question.variants],
            self.conditions,
            instances=self.source.instances,
        )

    def id_of(self, question: Question) -> str:
        """The id of the claim, as in results and history."""
        releases = [self.source.resolved[number].document.release for number in question.variants]
        source = self.source
        return claim_id(self.asked.test, releases, question.identity(source.names), source.load, source.content)

    def of_answer(self, answer: Answer) -> Mapping[str, str]:
        """What an answer depends on. An interrupted one also depends on its rounds, so its claim is measured again."""
        depends_on = self.depends_on(answer.question)
        return {**depends_on, ROUNDS: "interrupted"} if answer.interrupted else depends_on

    def __call__(self, question: Question) -> Answer | None:
        """The answer of the earlier run; None without one, and if something that it depends on has changed."""
        if self.earlier is None:
            return None
        wanted, depends_on = self.id_of(question), self.depends_on(question)
        key = self.earlier.find(wanted, depends_on)
        if key is None:
            releases = [self.source.resolved[number].document.release for number in question.variants]
            for other in self.earlier.find_outdated(wanted, list(dict.fromkeys(releases)), depends_on):
                self.report.drop(other, self.earlier.outdated[other])
            return None
        answer = _answer(self.earlier.answers[key], question, self.source)
        answer.reported = functools.partial(self._take_over, key)
        return answer

    def _take_over(self, key: Key, answer: Answer) -> None:
        """Take over an answer when its test reads it: only then it is known whether the test asserts it."""
        verdict, asked = answer.verdict, self.asked
        reading = (asked.test, asked.repeat, answer.asserted, verdict.outcome, verdict.reason, answer.message)
        self.report.take_over(key, Reading(*reading))


def _answer(record: ClaimRecord, question: Question, source: RoundSource) -> Answer:
    """The answer of a record to the question as it is asked now, of variants of this source."""
    numbers = question.variants
    if record.standings:
        numbers = tuple(map(list(source.names).index, record.rounds))
    by_name = zip(numbers, record.rounds.items(), strict=True)
    variants = tuple(Compared(number, name, rounds) for number, (name, rounds) in by_name)
    return Answer(
        question.claim,
        variants=variants,
        usual=source.metric,
        difference=record.cluster_difference,
        void=record.void_rounds,
        carry_over=[record.carry_over] * (len(variants) - 1),
        earlier_message=record.message,
        **{name: getattr(record, name) for name in SHARED} | {"asserted": question.asserted},
    )


class CurveRecall:
    """A curve of a test, and its record in the run that is continued. number: its number in its test, from 0.

    depends_on: what the curve depends on. before: its record in the earlier run; None without one. If something that
    it depends on has changed, ``before`` is None and a line says so.
    """

    def __init__(self, curve: Curve, number: int) -> None:
        points = [recall for point in curve.points if isinstance(recall := point.measurement.recall, Recall)]
        first = points[0]
        self.depends_on = digests_of_curve(
            [point.value for point in curve.points],
            first.source.metric,
            first.source.resolved,
            [load for point in points for load in point.loads],
            first.conditions,
            instances=first.source.instances,
        )
        self.before = self._before(curve, first, number)

    def _before(self, curve: Curve, recall: Recall, number: int) -> CurveRecord | None:
        if recall.earlier is None:
            return None
        key = curve_key(recall.asked.test, releases(recall.source.resolved), curve.load, curve.field, number)
        before = recall.earlier.curve(key)
        if before and (parts := changed_parts(before.depends_on, self.depends_on)):
            if before.drawn or before.points:
                recall.report.line(f"drawn again ({', '.join(parts)} changed): {curve.load} over {curve.field}")
            return None
        return before


def earlier_rounds(curve: Curve, before: CurveRecord | None, tell: Callable[[str], None]) -> Drawn | None:
    """What ``curve.draw`` has drawn in an earlier run; None without a record. before: the record of that run.

    If the earlier run drew only some points, ``tell`` gets a line about it.
    """
    if before is None:
        return None
    known = {(str(point.value), point.variant): point.rounds for point in before.points}
    of_points = tuple(tuple(known.get((str(point.value), name), ()) for name in point.series) for point in curve.points)
    if not before.drawn:
        there = f"{len(before.values)} of {len(curve.points)} values were drawn before"
        tell(f"{curve.load} over {curve.field}: {there}; values with all their rounds are kept")
    return Drawn(before.drawn, of_points)
