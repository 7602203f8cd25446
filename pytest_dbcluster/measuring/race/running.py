"""Run a race: draw blocks until a variant has won, and let those that are beaten run no more."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_dbcluster.claims import critical_values, estimators, intervals, verdict
from pytest_dbcluster.claims.claim import Outcome, Verdict
from pytest_dbcluster.claims.cluster_difference import ClusterDifference
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.claims.race.rule import RaceRule, lead
from pytest_dbcluster.claims.race.standing import Standing
from pytest_dbcluster.errors import Inconclusive, LockHeld
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.measuring import decision, remarks
from pytest_dbcluster.measuring.answer import Answer, Compared
from pytest_dbcluster.measuring.drawing import reach
from pytest_dbcluster.measuring.drawing.block_runner import LiveClaim
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.measuring.race import terms
from pytest_dbcluster.measuring.race.winner import Winner
from pytest_dbcluster.rounds import busy_machine, load_generator, metrics, open_loop


def run(measurement: Measurement, by: float | None = None, metric: str | None = None) -> Winner:
    """Run the race of all variants of a measurement, check the clusters, and return the result.

    by: the margin, a fraction; None for the default. metric: None for that of the workload. Raises ConfigError for a
    wrong margin or metric, and for rounds too long for the budget. Raises SeriesVoid if rounds are void too often, or
    if a check fails. Raises Inconclusive if the time ends before the first block.
    """
    source = measurement.source
    metric = measurement.metric if metric is None else metric
    measurement.check_metric(metric)
    claim, difference = terms.of(source, by, metric)
    question = Question(claim, 0, 1, metric, tuple(range(2, len(source.names))))
    measurement.claims.declare(question)
    if (known := measurement.take_over(question)) is not None:
        return Winner(known)
    rule = RaceRule(len(source.names), claim.margin, measurement.rules.alpha, terms.differences_of(source, metric))
    look = reach.first_look_at(rule.level, measurement.drawing.instances, claim.of_kind.looks_from)
    decision.check_reach(question, measurement, look)
    source.permit(metric)
    return Winner(RaceRun(measurement, question, rule, look, difference).ask())


@dataclasses.dataclass
class RaceRun:
    """One race, from its first block to its answer."""

    measurement: Measurement
    """Draws the rounds."""

    question: Question
    """The claim about all variants."""

    rule: RaceRule
    """Which variants leave, and when the race ends."""

    look: int
    """The number of pairs at the first look."""

    difference: ClusterDifference | None
    """How far equal clusters can differ; None if all variants share them."""

    beaten: dict[int, int] = dataclasses.field(default_factory=dict)
    """The variants that left, in this order, each with the variant that beat it."""

    @property
    def remaining(self) -> list[int]:
        """The variants that remain."""
        return [number for number in self.question.variants if number not in self.beaten]

    def pairs_of(self, candidate: int, baseline: int) -> Pairs:
        """The pairs of two variants."""
        return self.measurement.values.pairs(candidate, baseline, self.question.metric)

    def ask(self) -> Answer:
        """Draw blocks until the race ends, check the clusters, and return the answer. Raises as ``run`` does."""
        measurement, variants = self.measurement, self.question.variants
        untrusted = measurement.source.blind_spot(*variants)
        untrusted = untrusted or metrics.near_capacity(self.question.metric, measurement.source.arrival_rate)
        cap = min(measurement.rules.cap, decision.SHOWN_PAIRS if untrusted else verdict.CAP)
        if not untrusted and (why := decision.why_too_slow(self.question, measurement, self.look)):
            raise Inconclusive(f"{measurement.source.load}: the race cannot be decided: {why}")
        winner, end = None, ""
        while winner is None and not end:
            winner, end = self._draw(cap)
        untrusted = untrusted or self._late()
        measurement.drawing.check()
        answer = self._answer(None if untrusted else winner, untrusted or end)
        measurement.claims.add(answer)
        return answer

    def _draw(self, cap: int) -> tuple[int | None, str]:
        """Draw a block, and judge if it ends at a look. Return the winner, and why the race ends without one."""
        measurement, drawing = self.measurement, self.measurement.drawing
        try:
            drawing.draw_for(LiveClaim(self.question.variants, None, cap, self.look, name=self.question.claim.kind))
        except Inconclusive as error:  # the run's time was used while it waited for the machine
            if not measurement.pairs:
                raise
            return None, str(error)
        except LockHeld as error:
            drawing.keep_interrupted()
            if measurement.pairs:
                answer = dataclasses.replace(self._answer(None, str(error)), interrupted=True)
                measurement.claims.add(answer)
                answer.report()  # its test never reads it
            raise
        if measurement.pairs >= self.look:
            drawing.pace.fixed = True
            measurement.claims.begin_try(self.question)
            if measurement.pairs in critical_values.looks(drawing.instances) and measurement.pairs <= cap:
                self._leave()
                if (winner := self.rule.winner(self.remaining, self.pairs_of)) is not None:
                    return winner, ""
        over = drawing.stop_reason(self.question.variants)
        return None, over or (f"cap of {cap} pairs" if measurement.pairs >= cap else "")

    def _leave(self) -> None:
        """Let the variants leave that are beaten at this look, and show who."""
        gone, measurement = self.rule.beaten(self.remaining, self.pairs_of), self.measurement
        if not gone:
            return
        names = measurement.source.names
        lines = []
        for loser, by in gone.items():
            first = self._standing(loser, by)
            lines.append(
                f"{names[loser]} leaves the race after {quantity(measurement.pairs, 'round')}: it has {first.estimate} "
                f"of the speed of {names[by]}"
            )
        self.beaten |= gone
        measurement.drawing.blocks.left |= set(gone)
        measurement.source.leave(list(gone), lines)

    def _late(self) -> str:
        """Why no verdict on a latency can be trusted: a variant did not keep the arrival rate; empty if all did."""
        if metrics.unit(self.question.metric) != metrics.LATENCY:
            return ""
        return next(filter(None, (open_loop.above_capacity(rounds) for rounds in self.measurement.rounds)), "")

    def _standing(self, number: int, first: int, *, wins: bool = False) -> Standing:
        """The place of a variant, compared with another one."""
        names, rounds = self.measurement.source.names, len(self.measurement.rounds[number])
        beaten_by = names[self.beaten[number]] if number in self.beaten else ""
        if number == first:
            return Standing(names[number], 1.0, 1.0, 1.0, rounds, beaten_by, wins)
        pairs = self.pairs_of(number, first)
        centre = intervals.estimate(pairs)
        low, high = estimators.widen(intervals.interval(pairs, self.rule.level), centre)
        ratio, low, high = map(estimators.factor, (centre, low, high))
        return Standing(names[number], ratio, low, high, rounds, beaten_by)

    def _order(self, winner: int | None) -> list[int]:
        """All variants: the winner or the leader, the others that remain by their speed, those that left last first."""
        rest = self.remaining
        first = winner
        if first is None:
            first = max(rest, key=lambda one: lead(one, [other for other in rest if other != one], self.pairs_of))
        rounds, others = self.measurement.rounds, [number for number in self.question.variants if number != first]
        speed = {number: lead(number, [first], self.pairs_of) for number in others}
        return [first, *sorted(others, key=lambda one: (one not in self.beaten, len(rounds[one]), speed[one]))[::-1]]

    def _answer(self, winner: int | None, end: str) -> Answer:
        """The answer. end: why the race ended without a winner."""
        measurement, question, source = self.measurement, self.question, self.measurement.source
        order = self._order(winner)
        variants = tuple(Compared(number, source.names[number], measurement.rounds[number]) for number in order)
        rounds = {variant.name: variant.rounds for variant in variants}
        decided = self._verdict(order, winner, end)
        decided = load_generator.discount(decided, load_generator.mark(rounds))
        decided = busy_machine.add_reason(decided, rounds)
        asked = dataclasses.replace(question, candidate=order[0], baseline=order[1], others=tuple(order[2:]))
        evidence = source.evidence(asked)
        won = decided.outcome is Outcome.HOLDS
        carried = measurement.values.carry_over(order[0], order[1], question.metric, len(self.pairs_of(*order[:2])))
        lines = [
            *([terms.line(question.claim, self.difference)] if self.difference else []),
            *remarks.carry_over_lines([(variants[0].name, variants[1].name)], [carried]),
        ]
        answer = decision.answer_of(measurement, question.claim, decided, variants, question.metric)
        return dataclasses.replace(
            answer,
            difference=self.difference,
            notes=[*lines, *evidence.notes, *self._notes(variants)],
            evidence=evidence,
            carry_over=(carried,),
            standings=tuple(self._standing(number, order[0], wins=won) for number in order),
            tries=measurement.claims.try_number(question),
        )

    def _verdict(self, order: Sequence[int], winner: int | None, end: str) -> Verdict:
        """The verdict, with the figures of the first variant beside the second one."""
        outcome, reason = Outcome.INCONCLUSIVE, end
        if winner is not None:
            outcome = Outcome.HOLDS
            left = f"{quantity(len(self.beaten), 'variant')} left"
            reason = f"{left}, and no other remains" if len(self.remaining) == 1 else self._no_slower(left)
        apart = self.difference.bound if self.difference else 0.0
        claim = dataclasses.replace(self.question.claim, apart=apart)
        found = verdict.complete(outcome, reason, claim, self.pairs_of(order[0], order[1]), self.rule.level)
        return dataclasses.replace(found, pairs=self.measurement.pairs, alpha=self.rule.alpha)

    def _no_slower(self, left: str) -> str:
        others = quantity(len(self.remaining) - 1, "other")
        return f"{left}; it is less than {100 * self.rule.margin:.3g} % slower than the {others} that remain"

    def _notes(self, variants: Sequence[Compared]) -> list[str]:
        """The last lines of the message."""
        measurement, metric = self.measurement, self.question.metric
        rounds = {variant.name: variant.rounds for variant in variants}
        shared = len(self.pairs_of(variants[0].number, variants[1].number))
        contrast = {variant.name: variant.rounds[:shared] for variant in variants[:2]}
        return [
            *decision.closing_lines(measurement, metric, measurement.pairs, rounds, contrast),
            *remarks.try_line(measurement.claims.try_number(self.question), measurement.rules.alpha),
        ]
