"""Blocks of alternating rounds, drawn until a claim about them is decided.

A Measurement holds the rounds of one workload on several variants. Nothing is drawn before a claim asks: then it draws
whole blocks, each variant once, until the claim is decided. The next claim replays the looks on what is there already.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from pytest_dbcluster.claims import block_order, critical_values, verdict
from pytest_dbcluster.claims.claim import Claim
from pytest_dbcluster.errors import Inconclusive, SeriesVoid
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.instance_floor import InstanceFloor, margins_of
from pytest_dbcluster.measuring.progress import RoundProgress
from pytest_dbcluster.measuring.round_source import RoundSource
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.round import Round

MOST_WARM_UPS = 5
STEADY = 0.05
MOST_VOID = 0.1


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

    ``floor`` measures how far two instances of a variant differ, where variants have several. Its attributes, of the
    blocks that count:

    rounds: by number of the variant, its rounds; the n-th belongs to the n-th block. Variants are numbered from 0 as
    ``source.names`` has them. orders: of each block, the numbers of its variants in the order in which they ran.
    answers: of the claims so far. void: the blocks that did not count, each with its rounds in the order in which
    they ran.
    """

    source: RoundSource
    rules: Rules
    progress: Callable[[RoundProgress], None] = lambda _: None
    finished: Callable[[Answer], None] = lambda _: None
    test: str = ""
    floor: Callable[[int, str], InstanceFloor] | None = None
    release: str = ""

    def __post_init__(self) -> None:
        self.rounds: list[list[Round]] = [[] for _ in self.source.names]
        self.answers: list[Answer] = []
        self.orders: list[tuple[int, ...]] = []
        self._order = block_order.block_orders(len(self.rounds), self.rules.seed)
        self._warm = False
        self.void: list[list[Round]] = []
        self._checked = 0
        self._floors: dict[tuple[int, str], InstanceFloor] = {}
        self.drawn_beside = False
        self._warm_up_means: list[float] = []
        self._values: dict[tuple[str, str, int], list[float]] = {}

    @property
    def metric(self) -> str:
        """What claims are about that name no metric."""
        return self.source.metric

    def check_metric(self, metric: str) -> None:
        """Raise ConfigError for a metric that no claim about this load can have; before any round is drawn.

        Raises Inconclusive when nothing is drawn yet and the run's time is used: nothing is begun then.
        """
        metrics.check(metric, self.source.arrival_rate, self.source.load)
        self._begin()

    def _begin(self) -> None:
        if not self.pairs and (why := self.rules.run_over()):
            raise Inconclusive(f"{self.source.load}: {why}; nothing was drawn")

    @property
    def pairs(self) -> int:
        """The number of whole blocks that count."""
        return len(self.orders)

    def draw(
        self, numbers: Sequence[int], seen: tuple[float, float, float] | None = None, cap: int | None = None
    ) -> None:
        """One more block; a void one is drawn again. Raises SeriesVoid when more than a tenth were void.

        Raises Inconclusive before the first block when the run's time is used, so that not even a warm-up is run.
        For display: ``seen`` is ratio, low and high so far of the claim about the variants ``numbers``, ``cap``
        its most pairs.
        """
        self._begin()
        if not self._warm:
            self._warm_up()
        order = next(self._order)
        while True:
            rounds = self._block(order, self.pairs, numbers, seen, cap)
            if not any(item.void for item in rounds):
                break
            self.void.append(rounds)
            if len(self.void) > max(1, MOST_VOID * (self.pairs + 1)):
                drawn = f"{len(self.void)} of {self.pairs + len(self.void)} blocks of {self.source.load}"
                raise SeriesVoid(f"{drawn} were void: {remarks.reason(rounds)}")
        self.orders.append(order)
        for number, item in zip(order, rounds, strict=True):
            self.rounds[number].append(item)

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
        with self.source.alone():
            for position, number in enumerate(order):
                done = self.source.round(number, block=block, position=position)
                rounds.append(done)
                measured += done.seconds if number in numbers else 0.0
                self.progress(self._progress(done, seen, cap or self.rules.cap, measured, position == len(order) - 1))
        return rounds

    def _progress(
        self, done: Round, seen: tuple[float, float, float] | None, cap: int, measured: float, last: bool
    ) -> RoundProgress:
        ratio, low, high = seen or (None, None, None)
        upcoming = critical_values.next_look(self.pairs)
        return RoundProgress(
            test=self.test,
            load=self.source.load,
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
        """Unmeasured blocks until their mean stops falling; it sees means alone, so it cannot favour a variant.

        The means are of the logarithms of seconds per operation; a void block has none.
        """
        means = self._warm_up_means
        warm_up_orders = block_order.block_orders(len(self.rounds), self.rules.seed + 1)
        for number in range(MOST_WARM_UPS):
            rounds = self._block(next(warm_up_orders), number - MOST_WARM_UPS)
            if any(item.void for item in rounds):
                continue
            means.append(sum(math.log(item.cost) for item in rounds) / len(rounds))
            if len(means) > 1 and means[-1] > means[-2] - STEADY:
                break
        self._warm = True

    def baseline_first(self, candidate: int, baseline: int) -> list[bool]:
        """Of each pair, whether the baseline ran before the candidate."""
        return [order.index(baseline) < order.index(candidate) for order in self.orders]

    def void_blocks(self, pairs: int) -> list[list[Round]]:
        """The blocks that did not count and were drawn again, among the first ``pairs`` that do."""
        return [block for block in self.void if block[0].block < pairs]

    def notes(self, numbers: Sequence[int], metric: str, pairs: int) -> list[str]:
        """The lines that a message about the first ``pairs`` rounds of these variants ends with, candidate first."""
        rounds = {self.source.names[number]: self.rounds[number][:pairs] for number in numbers}
        floor = self._floors.get((numbers[-1], metric))
        return [
            *self.source.notes(*numbers),
            *([floor.line] if floor else []),
            *remarks.warm_up_line(self._warm_up_means, MOST_WARM_UPS, STEADY),
            *remarks.drain_line(rounds, metric),
            *remarks.round_lines(rounds, self.source.arrival_rate),
            *remarks.void_line(self.void_blocks(pairs), pairs),
        ]

    def below_floor(self, claim: Claim, baseline: int, metric: str) -> str:
        """Why a margin cannot be known, because instances of the baseline differ by more; empty when it can.

        The first claim with a margin about a metric measures that.
        """
        if self.floor is None or not margins_of(claim):
            return ""
        if (baseline, metric) not in self._floors:
            if over := self.rules.run_over():
                return f"{over}, before two instances of {self.source.names[baseline]} were compared"
            self._floors[baseline, metric] = self.floor(baseline, metric)
        return self._floors[baseline, metric].refuses(claim)

    def shown(self, number: int, metric: str) -> list[float]:
        """One value per round of a variant, as it is shown: operations a second, milliseconds, or a counter."""
        return self._of_rounds(metrics.shown, number, metric)

    def compared(self, number: int, metric: str) -> list[float]:
        """One value per round of a variant, as ratios are made of it: a latency is a speed, and no count is zero.

        Raises ConfigError for a percentile that these rounds are too short for.
        """
        metrics.enough(self.rounds[number], metric, self.source.load)
        return self._of_rounds(metrics.compared, number, metric)

    def _of_rounds(self, value: Callable[[Round, str, str], float], number: int, metric: str) -> list[float]:
        """Rounds stay as they are once they are drawn, and a claim asks for their values after every pair."""
        known = self._values.setdefault((value.__name__, metric, number), [])
        known += [value(done, metric, self.source.load) for done in self.rounds[number][len(known) :]]
        return list(known)

    def finish(self, answer: Answer) -> None:
        """Keep the answer and tell whoever reports it."""
        self.answers.append(answer)
        self.finished(answer)

    def check(self) -> None:
        """Check clusters and tables once for the rounds drawn since the last check."""
        if self._checked != self.pairs:
            self.source.check()
            self._checked = self.pairs

    def seconds(self, numbers: Sequence[int]) -> float:
        """The measured seconds of these variants so far."""
        return sum(item.seconds for number in numbers for item in self.rounds[number])

    def over(self, numbers: Sequence[int]) -> str:
        """Why no more may be drawn for a claim about these variants; empty while it may."""
        if self.seconds(numbers) >= self.rules.budget:
            return f"budget of {self.rules.budget:g} s of measured time used (--db-budget)"
        return self.rules.run_over()
