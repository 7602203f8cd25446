"""EventSeries: the repetitions of an event on one variant, and the claims that a test makes about them.

The number of repetitions is fixed before the first one (``times``). All claims share the repetitions.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

from pytest_dbcluster import calls, registry
from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Claim, Outcome, Verdict
from pytest_dbcluster.claims.repetitions.kind import RepetitionKind, verdict_of
from pytest_dbcluster.claims.repetitions.permutation import PER_BLOCK
from pytest_dbcluster.errors import ConfigError, Inconclusive
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.measuring.answer import Answer, Compared
from pytest_dbcluster.measuring.drawing import reach
from pytest_dbcluster.measuring.drawing.blocks import BlockPlan
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.outages.outage import Outage
from pytest_dbcluster.rounds.round import Round

SPEED_AFTER = "speed_after"
DURATIONS = tuple(name for name, unit in metrics.OF_EVENTS.items() if unit == "s")
FIGURES = (*DURATIONS, SPEED_AFTER, "lost")
APART = (
    "separate clusters, the same in all repetitions: it is unknown by how much equal clusters differ in {metric}; such "
    "a difference counts as one of the variants"
)
NOT_WHOLE = "did not become whole"  # in the reason of a void repetition, as in ``reasons``


@dataclasses.dataclass(frozen=True)
class EventSeries:
    """The repetitions of an event on one variant, and the claims about them. Nothing happens before a claim is made.

    A claim lets the event happen ``times`` times on each variant, in random order. ``assert answer`` passes if the
    claim holds, raises ClaimFailed if it fails, and Inconclusive otherwise. Making a claim raises ConfigError for a
    wrong bound or metric, and for repetitions that can decide nothing. It raises SeriesVoid if too many repetitions are
    void, or if a check of the clusters fails.
    """

    measurement: Measurement = dataclasses.field(repr=False)
    """The measurement that draws the repetitions."""

    number: int
    """The number of the variant in the measurement, 0-based."""

    times: int
    """The repetitions of each variant."""

    keeps_books: bool = True
    """Whether the workload knows what became of its acknowledged transactions."""

    @property
    def name(self) -> str:
        """The variant's short name."""
        return self.measurement.source.names[self.number]

    @property
    def rounds(self) -> Sequence[Round]:
        """The repetitions that count so far; if this run drew none, those of an answer of an earlier run."""
        return self.measurement.values.rounds(self.number)

    @property
    def outages(self) -> list[Outage]:
        """The figures of each repetition so far, in the order in which they ran."""
        return [done.outage for done in self.rounds if done.outage]

    def __repr__(self) -> str:
        return f"<{self.name}: {quantity(len(self.rounds), 'repetition')}>"

    @calls.check_arguments('galera.below("stall", 8)', instead={"by": "seconds", "than": "seconds"})
    def below(self, metric: str, seconds: float, *, share: float = 0.5) -> Answer:
        """Claim that a duration is below so many seconds in half of the events, or in another share of them.

        It needs ``times=6`` for a 95 % interval, and ``times=11`` for an error of at most .0005. With ``share=.9`` it
        needs ``times=36`` and ``times=73``. The repetitions must be independent. metric: a duration in seconds, such as
        ``stall``, ``without_commit``, ``read_stall``, ``returned`` or ``without_redundancy``.
        """
        _check_metric(metric)
        if metric in metrics.NEED_CONTROL:
            raise ConfigError(
                f"below({metric!r}): it depends on how steady the load is, so it needs a control in the same order: "
                f'event, none = measure.event(workload, {{"event": ..., "none": Nothing()}}, on=spec), then '
                f"none.shorter({metric!r}, than=event)"
            )
        if not isinstance(share, int | float) or isinstance(share, bool) or not 0 < share < 1:
            raise ConfigError(f"below(share={share!r}): it must be a number, 0 < share < 1; .9 is nine of ten events")
        return self._claim(dataclasses.replace(kinds.below(seconds), share=float(share)), None, metric)

    @calls.check_arguments('quick.shorter("stall", than=usual, seconds=2)', instead={"by": "seconds"})
    def shorter(self, metric: str, than: EventSeries, seconds: float = 0.0) -> Answer:
        """Claim that a duration is shorter than with another variant, by more than so many seconds.

        An exact permutation test, with an error of at most .0005 for any noise. It needs ``times=7``, 14 or 21. metric:
        as in ``below``, or ``below_half`` or ``missing``, which compare the load with its rate before the event.
        """
        _check_metric(metric)
        return self._claim(kinds.shorter(seconds), self._number_of(than), metric)

    @calls.check_arguments('quick.against(usual, "stall")')
    def against(self, other: EventSeries, metric: str = "stall") -> Answer:
        """Print how much shorter a duration is than with another variant, without a claim.

        ``bool`` of the answer is always True. times and metric: as in ``shorter``.
        """
        _check_metric(metric)
        return self._claim(kinds.event_differs(), self._number_of(other), metric, asserted=False)

    @calls.check_arguments("killed.no_slower_than(none, by=.1)", instead={"than": "other"})
    def no_slower_than(self, other: EventSeries, by: float) -> Answer:
        """Claim that after the event the load is slower than with another variant by less than the fraction ``by``.

        ``by`` is a fraction of the usual rate before the event. The other variant is usually ``Nothing()``, because
        tables grow without an event, too. The same test, ``times`` and error as ``shorter``.
        """
        if self.measurement.source.arrival_rate:
            raise ConfigError(
                f"{self.name}.no_slower_than: a load with rate= is as fast as this rate, and faster while it does what "
                "it missed; use a workload without rate="
            )
        return self._claim(kinds.event_no_slower_than(by), self._number_of(other), SPEED_AFTER)

    def _number_of(self, other: EventSeries) -> int:
        """The number of another variant of this measurement. Raises ConfigError for any other one."""
        if not isinstance(other, EventSeries) or other.measurement is not self.measurement:
            raise ConfigError(
                f"{self.name} and {other!r} were not measured together; give both to one measure.event(..., on=[...])"
            )
        if other.number == self.number:
            raise ConfigError(f"{self.name} is compared with itself; a claim needs two variants")
        return other.number

    @calls.check_arguments("galera.loses_nothing()")
    def loses_nothing(self) -> Answer:
        """Claim that no repetition loses an acknowledged transaction, or has one that the load did not write.

        Fails at the first loss. If there is none, the message bounds the chance of a loss, with 95 % confidence.
        After n repetitions the bound is 1 - .05 ** (1 / n). It needs a workload that keeps books, such as TPCC.
        """
        if not self.keeps_books:
            raise ConfigError(
                f"{self.measurement.source.load} keeps no books, so what it lost is unknown; loses_nothing needs TPCC"
            )
        return self._claim(kinds.loses_nothing(), None, "lost")

    @calls.check_arguments('galera.returned_by("IST")')
    def returned_by(self, way: str) -> Answer:
        """Claim that the node gets what it missed in this way after each event: ``IST`` or ``SST`` of Galera.

        Fails at the first node that comes back in another way, and names it with its repetition. If there is none, the
        message bounds the chance of another way, as ``loses_nothing`` does. Group Replication has ``incremental`` and
        ``clone``. Other topologies with replicas have ``GTID``, ``rebuild`` and ``refusal``. Raises ConfigError for a
        topology that does not say how a node comes back.
        """
        known = self.measurement.source.ways_back(self.number)
        if not known:
            raise ConfigError(
                f"{self.name}: its topology does not say how a node gets what it missed; returned_by needs one that "
                "does, such as galera"
            )
        if way not in known:
            raise registry.unknown("way back", way, known)
        return self._claim(kinds.returned_by(), None, f"{metrics.RETURNED_BY}:{way}")

    @calls.check_arguments('galera.values("stall")')
    def values(self, metric: str) -> list[float]:
        """One value per repetition so far: seconds, for ``lost`` transactions, for ``speed_after`` a percentage.

        Raises ConfigError before a claim.
        """
        if metric not in FIGURES:
            raise registry.unknown("metric of an event", metric, FIGURES)
        if not self.rounds:
            raise ConfigError(f"{self.name}.values({metric!r}): the event has not happened yet; make a claim first")
        return [metrics.of_event(done, metric, self.measurement.source.load) for done in self.rounds]

    def _claim(self, claim: Claim, baseline: int | None, metric: str, *, asserted: bool = True) -> Answer:
        measurement = self.measurement
        if why := _kind_of(claim).refuses(claim, self.times, measurement.rules.alpha):
            called = claim.of_kind.method or claim.kind
            raise ConfigError(f"{measurement.source.load}: {called} cannot be decided: {why}")
        question = Question(claim, self.number, baseline, metric, asserted=asserted)
        measurement.claims.declare(question)
        if (known := measurement.take_over(question)) is not None:
            return known
        return ask(question, measurement, self.times, functools.partial(self._discount_lost_clusters, baseline))

    def _discount_lost_clusters(self, baseline: int | None, verdict: Verdict, measurement: Measurement) -> Verdict:
        """The verdict, or an inconclusive one if a cluster that did not become whole could change it.

        Its repetition may be the worst one of its variant. So a claim about the candidate does not hold, and one
        against a baseline does not fail.
        """
        names = measurement.source.names
        blamed = {self.name} if verdict.outcome is Outcome.HOLDS else set[str]()
        if baseline is not None and (verdict.outcome is Outcome.FAILS or verdict.claim.of_kind.claims_nothing):
            blamed |= {names[baseline]}
        void = [done for block in measurement.drawing.blocks.void for done in block if done.variant in blamed]
        lost = [done.void for done in void if NOT_WHOLE in done.void]
        if not lost or verdict.outcome is Outcome.INCONCLUSIVE:
            return verdict
        reason = f"{verdict.reason}, {_without_end(lost)}"
        return dataclasses.replace(verdict, outcome=Outcome.INCONCLUSIVE, reason=reason)


def _without_end(lost: Sequence[str]) -> str:
    """Why a claim is open: repetitions without figures, which may be the worst ones, with their reasons."""
    return f"but {quantity(len(lost), 'repetition')} beside it had no end: {lost[0]}"


def _kind_of(claim: Claim) -> RepetitionKind:
    kind = claim.of_kind
    assert isinstance(kind, RepetitionKind)
    return kind


def _check_metric(metric: object) -> None:
    if metric not in DURATIONS:
        raise registry.unknown("duration", str(metric), DURATIONS)


def plan(variants: int, times: int) -> BlockPlan:
    """The blocks of so many repetitions: in several variants of seven each in random order, else one after the other.

    Raises ConfigError for a number of repetitions that is not whole, and for parts of a block.
    """
    if not isinstance(times, int) or isinstance(times, bool) or times < 1:
        raise ConfigError(f"measure.event(..., times={times!r}): it accepts the number of repetitions, from 1")
    if variants == 1:
        return BlockPlan(0, PER_BLOCK)
    if times % PER_BLOCK:
        raise ConfigError(
            f"measure.event(..., times={times}): several variants have blocks of {PER_BLOCK} in random order; "
            f"use times={PER_BLOCK}, {2 * PER_BLOCK} or {3 * PER_BLOCK}"
        )
    return BlockPlan(times // PER_BLOCK, PER_BLOCK)


def event_series_of(measurement: Measurement, times: int, keeps_books: Sequence[bool]) -> list[EventSeries]:
    """One series per variant of a measurement, in the order of the variants. keeps_books: of their workloads."""
    return [EventSeries(measurement, number, times, books) for number, books in enumerate(keeps_books)]


def ask(
    question: Question,
    measurement: Measurement,
    times: int,
    review: Callable[[Verdict, Measurement], Verdict] = lambda decided, measurement: decided,
) -> Answer:
    """Repeat the event, or the round, until the claim is decided, check the clusters, and return the answer.

    times: the planned repetitions. review: returns the verdict that counts. Raises Inconclusive if the time is used
    before the first repetition, and SeriesVoid.
    """
    drawing, over = measurement.drawing, ""
    if not measurement.pairs:
        drawing.begin()
    while (decided := _judge(question, measurement, times)) is None and not (over := _time_is_over(measurement)):
        drawing.draw(question.variants)
    measurement.claims.begin_try(question)
    if decided is None:
        if not measurement.pairs:
            raise Inconclusive(f"{measurement.source.load}: {over}; nothing was drawn")
        known = math.nan, (math.nan, math.nan), measurement.rules.alpha
        decided = verdict_of(Outcome.INCONCLUSIVE, question.claim, measurement.pairs, *known, over)
    drawing.check()
    measurement.claims.add(answer := _answer(question, review(decided, measurement), measurement))
    return answer


def _time_is_over(measurement: Measurement) -> str:
    """Why no other repetition may begin; empty while it may."""
    source, rules, blocks = measurement.source, measurement.rules, measurement.drawing.blocks
    used = [done.wall for several in (*blocks.rounds, *blocks.void) for done in several]
    upcoming = blocks.next_pairs * len(blocks.rounds)
    beyond = reach.out_of_event_budget(used, upcoming, source.usual_seconds, rules.event_budget)
    return source.notice() or beyond or rules.run_over()


def _judge(question: Question, measurement: Measurement, times: int) -> Verdict | None:
    load, claim = measurement.source.load, question.claim
    samples = [metrics.samples(measurement.rounds[number], question.metric, load) for number in question.variants]
    alpha = measurement.rules.alpha
    return _kind_of(claim).judge(claim, samples, times, alpha) if measurement.pairs else None


def _answer(question: Question, decided: Verdict, measurement: Measurement) -> Answer:
    source, void = measurement.source, measurement.drawing.blocks.void_within(decided.pairs)
    variants = tuple(
        Compared(number, source.names[number], measurement.rounds[number][: decided.pairs])
        for number in question.variants
    )
    evidence = source.evidence(question)
    number, rules = measurement.claims.try_number(question), measurement.rules
    return Answer(
        question.claim,
        decided,
        variants,
        question.metric,
        usual="",
        load=source.load,
        seed=rules.seed,
        content=source.content,
        arrival_rate=source.arrival_rate,
        asserted=question.asserted,
        notes=[
            *_apart_line(question, measurement),
            *_figures(variants),
            *_of_rounds(variants, source.arrival_rate),
            *evidence.notes,
            *remarks.void_line(void),
            *remarks.fixed_seed_line(rules.seed if rules.fixed_seed else None),
            *remarks.try_line(number, rules.alpha),
        ],
        evidence=evidence,
        void=void,
        tries=number,
    )


def _apart_line(question: Question, measurement: Measurement) -> list[str]:
    """The line about two variants on separate clusters that serve all repetitions; none for others."""
    numbers = question.variants
    if len(numbers) < 2 or not measurement.source.cluster_difference(*numbers, metric=measurement.metric):
        return []
    return [APART.format(metric=question.metric)]


def _figures(variants: Sequence[Compared]) -> list[str]:
    """A line for each variant about its usual load, its lost connections, and how its node came back."""
    lines = []
    for variant in variants:
        found = [done.outage for done in variant.rounds if done.outage]
        if not found:
            continue
        rates = ", ".join(f"{one.usual.rate:.0f}" for one in found)
        lost = sum(one.connections_lost for one in found)
        lines.append(f"{variant.name}: commits a second before the event {rates}; {quantity(lost, 'connection')} lost")
        back = [str(one.returned) for one in found if one.returned]
        lines += [f"{variant.name}: whole again after {', '.join(back)}"] if back else []
        before = [one.events_before for one in found if one.events_before is not None]
        repaired = sum(number > 0 for number in before)
        if before:
            lines.append(f"{variant.name}: {repaired} of {len(before)} on a cluster that had an event before")
    return lines


def _of_rounds(variants: Sequence[Compared], rate: ArrivalRate | None) -> list[str]:
    """The lines about rounds without an event: rate, latencies, load generator, and a busy machine."""
    rounds = {variant.name: variant.rounds for variant in variants}
    plain = not any(done.outage for series in rounds.values() for done in series)
    return remarks.round_lines(rounds, rate) if plain else []
