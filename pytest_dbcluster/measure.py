"""Blocks of interleaved rounds, drawn until a claim about them is decided.

A Measurement owns the rounds of one workload on several variants. Its Series are lazy: a claim draws whole
blocks, each variant once, until it is decided; the next claim replays the looks on what is there already.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Protocol

from pytest_dbcluster import claim as claims
from pytest_dbcluster import counters, notes, ordering, registry, stalls, verdict
from pytest_dbcluster.answer import Answer, ask
from pytest_dbcluster.claim import Claim
from pytest_dbcluster.errors import ConfigError, SeriesVoid
from pytest_dbcluster.floor import Floor, Rounds, margins_of
from pytest_dbcluster.record import Progress
from pytest_dbcluster.workload import SPEEDS, Round

METRICS = SPEEDS
MOST_WARM_UPS = 5
STEADY = 0.05
MOST_VOID = 0.1
BESIDE_PAIRS = 20


class Laboratory(Rounds, Protocol):
    """What runs the rounds of one workload on the variants of one measurement."""

    def blind(self, candidate: int, baseline: int) -> str:
        """Why no answer about these two can be trusted on this machine; empty when it can."""

    def notes(self, *numbers: int) -> Sequence[str]:
        """Lines that every message about these variants has: durability, effective differences, the one client."""


@dataclasses.dataclass(frozen=True)
class Rules:
    """How long to draw: options of the run. ``run_over`` gives a reason when the whole run's time is used."""

    seed: int
    alpha: float = 0.0005
    cap: int = verdict.CAP
    budget: float = 120.0
    run_over: Callable[[], str] = lambda: ""


@dataclasses.dataclass
class Measurement:
    """The rounds of one workload on several variants, and every claim that was asked of them.

    ``floor`` measures how far two instances of a variant differ, where variants have several.
    """

    laboratory: Laboratory
    rules: Rules
    progress: Callable[[Progress], None] = lambda _: None
    finished: Callable[[Answer], None] = lambda _: None
    test: str = ""
    floor: Callable[[int], Floor] | None = None

    def __post_init__(self) -> None:
        self.series = [Series(self, number) for number in range(len(self.laboratory.names))]
        self.answers: list[Answer] = []
        self.orders: list[tuple[int, ...]] = []
        self._order = ordering.block_orders(len(self.series), self.rules.seed)
        self._warm = False
        self.void: list[list[Round]] = []
        self._checked = 0
        self._floors: dict[int, Floor] = {}

    @property
    def pairs(self) -> int:
        """The number of whole blocks that count."""
        return len(self.orders)

    def draw(
        self, numbers: Sequence[int], seen: tuple[float, float, float] | None = None, cap: int | None = None
    ) -> None:
        """One more block; a void one is drawn again. Raises SeriesVoid when more than a tenth were void.

        For display: ``seen`` is ratio, low and high so far of the claim about the variants ``numbers``, ``cap``
        its most pairs.
        """
        if not self._warm:
            self._warm_up()
        order = next(self._order)
        while True:
            rounds = self._block(order, self.pairs, numbers, seen, cap)
            if not any(item.void for item in rounds):
                break
            self.void.append(rounds)
            if len(self.void) > max(1, MOST_VOID * (self.pairs + 1)):
                drawn = f"{len(self.void)} of {self.pairs + len(self.void)} blocks of {self.laboratory.load}"
                raise SeriesVoid(f"{drawn} were void: {notes.reason(rounds)}")
        self.orders.append(order)
        for number, item in zip(order, rounds, strict=True):
            self.series[number].rounds.append(item)

    def _block(
        self,
        order: Sequence[int],
        block: int,
        numbers: Sequence[int] = (),
        seen: tuple[float, float, float] | None = None,
        cap: int | None = None,
    ) -> list[Round]:
        rounds: list[Round] = []
        measured = self.seconds(numbers)
        for position, number in enumerate(order):
            done = self.laboratory.round(number, block=block, position=position)
            rounds.append(done)
            measured += done.seconds if number in numbers else 0.0
            self.progress(self._progress(done, seen, cap or self.rules.cap, measured, position == len(order) - 1))
        return rounds

    def _progress(
        self, done: Round, seen: tuple[float, float, float] | None, cap: int, measured: float, last: bool
    ) -> Progress:
        ratio, low, high = seen or (None, None, None)
        upcoming = verdict.next_look(self.pairs)
        return Progress(
            test=self.test,
            load=self.laboratory.load,
            round=done,
            pair=done.block + 1,
            warm_up=done.block < 0,
            ratio=ratio,
            low=low,
            high=high,
            next_look=upcoming if upcoming is None or upcoming <= cap else None,
            last=last,
            cap=cap,
            measured=measured,
            budget=self.rules.budget,
        )

    def _warm_up(self) -> None:
        """Unmeasured blocks until their mean stops falling; it sees means alone, so it cannot favour a variant."""
        means: list[float] = []
        warm_up_orders = ordering.block_orders(len(self.series), self.rules.seed + 1)
        for number in range(MOST_WARM_UPS):
            rounds = self._block(next(warm_up_orders), number - MOST_WARM_UPS)
            means.append(sum(math.log(item.seconds) for item in rounds) / len(rounds))
            if number and means[-1] > means[-2] - STEADY:
                break
        self._warm = True

    def baseline_first(self, candidate: int, baseline: int) -> list[bool]:
        """Of each pair, whether the baseline ran before the candidate."""
        return [order.index(baseline) < order.index(candidate) for order in self.orders]

    def void_blocks(self, pairs: int) -> list[list[Round]]:
        """The blocks that did not count and were drawn again, among the first ``pairs`` that do."""
        return [block for block in self.void if block[0].block < pairs]

    def notes(self, series: Sequence[Series], metric: str, pairs: int) -> list[str]:
        """The lines that a message about the first ``pairs`` rounds of these series ends with, candidate first."""
        rounds = {item.name: item.rounds[:pairs] for item in series}
        said = self.laboratory.notes(*(item.number for item in series))
        floor = [found.line for number in (series[-1].number,) if (found := self._floors.get(number))]
        return [*said, *floor, *notes.drain_line(rounds, metric), *notes.void_line(self.void_blocks(pairs), pairs)]

    def below_floor(self, claim: Claim, baseline: int) -> str:
        """Why a margin cannot be known, because instances of the baseline differ by more; empty when it can.

        The first claim with a margin measures that.
        """
        if self.floor is None or not margins_of(claim):
            return ""
        if baseline not in self._floors:
            self._floors[baseline] = self.floor(baseline)
        return self._floors[baseline].refuses(claim)

    def finish(self, answer: Answer) -> None:
        """Keep the answer and tell whoever reports it."""
        self.answers.append(answer)
        self.finished(answer)

    def check(self) -> None:
        """Check clusters and tables once for the rounds drawn since the last check."""
        if self._checked != self.pairs:
            self.laboratory.check()
            self._checked = self.pairs

    def seconds(self, numbers: Sequence[int]) -> float:
        """The measured seconds of these variants so far."""
        return sum(item.seconds for number in numbers for item in self.series[number].rounds)

    def over(self, numbers: Sequence[int]) -> str | None:
        """Why no more may be drawn for a claim about these variants; None while it may."""
        if self.seconds(numbers) >= self.rules.budget:
            return f"budget of {self.rules.budget:g} s of measured time used (--db-budget)"
        return self.rules.run_over() or None


@dataclasses.dataclass(eq=False)
class Series:
    """The rounds of one variant, and the claims about it. Lazy: nothing is drawn before a claim is made."""

    measurement: Measurement = dataclasses.field(repr=False)
    number: int

    def __post_init__(self) -> None:
        self.rounds: list[Round] = []

    @property
    def name(self) -> str:
        """The variant's short name."""
        return self.measurement.laboratory.names[self.number]

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.rounds)} rounds>"

    def beats(self, other: Series, by: float = 0.0, *, metric: str = "throughput") -> Answer:
        """The claim: this variant is faster than the other by more than the fraction ``by``.

        The metric ``drained_throughput`` counts the time until all nodes are equal as well.
        """
        return self._claim(claims.beats(by), other, metric)

    def no_slower_than(self, other: Series, by: float, *, metric: str = "throughput") -> Answer:
        """The guard: this variant is slower than the other by less than the fraction ``by``."""
        return self._claim(claims.no_slower_than(by), other, metric)

    def same_as(self, other: Series, within: float, *, metric: str = "throughput") -> Answer:
        """The guard: neither is slower than the other by the fraction ``within``."""
        return self._claim(claims.same_as(within), other, metric)

    def scales(self, other: Series, at_least: float, *, metric: str = "throughput") -> Answer:
        """The claim: this variant is more than ``at_least`` times as fast as the other."""
        return self._claim(claims.scales(at_least), other, metric)

    def lower(self, counter: str, than: Series, by: float = 0.0) -> Answer:
        """The claim: a counter of this variant's rounds is lower than the other's; the cause has moved."""
        if counter not in counters.NAMES:
            raise registry.unknown("counter", counter, counters.NAMES)
        return self._claim(claims.lower(by), than, counter)

    def no_more_stalls_than(self, other: Series) -> Answer:
        """The guard: in 40 pairs, rounds that took twice their own median are no more frequent here."""
        return self._claim(Claim(stalls.KIND, 0.0), other, "throughput")

    def against(self, other: Series, *, metric: str = "throughput") -> Answer:
        """No claim: the ratio of the two, measured and printed beside; ``bool`` of it is always True."""
        claim = claims.differs()
        return self._claim(claim, other, metric, cap=min(BESIDE_PAIRS, self.measurement.rules.cap), asserted=False)

    def _claim(
        self, claim: Claim, other: Series, metric: str, *, cap: int | None = None, asserted: bool = True
    ) -> Answer:
        if metric not in METRICS and claim.kind != "lower":
            raise registry.unknown("metric", metric, METRICS)
        if not isinstance(other, Series) or other.measurement is not self.measurement:
            raise ConfigError(
                f"{self.name} and {other!r} were not measured together; give both to one measure(..., on=[...])"
            )
        if other is self:
            raise ConfigError(f"{self.name} is compared with itself; a claim needs two variants")
        return ask(claim, (self, other), metric, cap=cap, asserted=asserted)

    def values(self, metric: str) -> list[float]:
        """One value per round."""
        if metric in SPEEDS:
            return [getattr(item, metric) for item in self.rounds]
        load = self.measurement.laboratory.load
        return [
            counters.comparable(item.counters, metric, load=load, commits=item.outcome.commits) for item in self.rounds
        ]


def ordered(*slowest_first: Series, step: float = 0.0, metric: str = "throughput") -> Answer:
    """The claim: each of these series is faster than the one before it by more than ``step``."""
    if metric not in METRICS:
        raise registry.unknown("metric", metric, METRICS)
    if len(slowest_first) < 2 or any(item.measurement is not slowest_first[0].measurement for item in slowest_first):
        raise ConfigError("ordered(...) takes two or more series of one measure(..., on=[...]), the slowest first")
    return ask(claims.ordered(step), tuple(reversed(slowest_first)), metric)
