"""Measurement: the rounds of one workload on several variants, drawn in blocks when a claim needs them.

A block runs each variant once. Blocks are drawn whole, so every variant has the same number of rounds. ``decision``
draws for a claim; the next claim starts with the blocks that are there already.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from pytest_dbcluster.claims import block_order, critical_values, verdict
from pytest_dbcluster.claims.claim import Claim
from pytest_dbcluster.errors import ConfigError, Inconclusive, SeriesVoid
from pytest_dbcluster.measuring import reach, remarks
from pytest_dbcluster.measuring.answer import Answer
from pytest_dbcluster.measuring.instance_floor import InstanceFloor, margins_of
from pytest_dbcluster.measuring.progress import RoundProgress
from pytest_dbcluster.measuring.round_source import RoundSource
from pytest_dbcluster.rounds import metrics, open_loop, round_length
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.rounds.round_length import RoundLength

MAX_WARM_UPS = 5  # blocks
STEADY = 0.05  # warm-up ends when a block's mean log cost falls by less than this
MAX_VOID = 0.1  # the share of void blocks above which the series is void
MAX_VOID_WARM_UPS = 2  # void blocks of a warm-up that has no other: the measurement ends


@dataclasses.dataclass(frozen=True)
class Rules:
    """The run's options on drawing.

    seed: of the order of rounds. alpha: the maximum chance of a wrong verdict per claim and side. cap: the maximum
    number of pairs of a claim. budget: the maximum measured seconds of a claim. run_over: returns why the whole run
    must draw no more, such as its used time; empty while it may. run_left: returns the seconds left of the run.
    """

    seed: int
    alpha: float = 0.0005
    cap: int = verdict.CAP
    budget: float = 120.0
    run_over: Callable[[], str] = lambda: ""
    run_left: Callable[[], float] = lambda: math.inf


@dataclasses.dataclass
class Measurement:
    """The rounds of one workload on several variants, and the answers of every claim about them.

    source: runs the rounds. progress: is called after each round. finished: is called with each answer. test: node id
    of the test. floor: measures the instance floor of a variant (number, metric) where variants have several
    instances, else None. release: the releases of the variants, as text.

    Attributes of the blocks that count. Variants are numbered from 0, in the order of ``source.names``.
    rounds: per variant its rounds; the n-th belongs to the n-th block. orders: per block the numbers of its variants,
    in the order in which they ran. answers: of the claims so far. void: the blocks that did not count, each with its
    rounds in the order in which they ran. length: of the rounds, once it was chosen. dropped: the blocks that counted
    until the arrival rate was lowered.
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
        self.drawn_without_claim = False
        self._warm_up_means: list[float] = []
        self._warm_ups: list[list[Round]] = []
        self._asked = ""  # the metric of the claim that draws
        self.length: RoundLength | None = None
        self.dropped = 0
        self._values: dict[tuple[str, str, int], list[float]] = {}

    @property
    def metric(self) -> str:
        """The default metric of claims about this workload."""
        return self.source.metric

    def check_metric(self, metric: str) -> None:
        """Raise ConfigError for a metric that claims about this workload cannot have, before any round is drawn.

        Raises Inconclusive when the run's time is used before the first block.
        """
        metrics.check(metric, self.source.arrival_rate, self.source.load)
        self._begin()

    def _begin(self) -> None:
        if not self.pairs and (why := self.rules.run_over()):
            raise Inconclusive(f"{self.source.load}: {why}; nothing was drawn")

    def check_reach(self, claim: Claim, numbers: Sequence[int], metric: str, *, asserted: bool = True) -> None:
        """Before the first block: end a claim that cannot reach its first look. Starts and draws nothing.

        numbers: its variants. asserted: False for a comparison without a claim, which draws what its budget allows.
        Raises ConfigError when the budget is too small for the rounds, and Inconclusive when the rest of the run's
        time is.
        """
        self._asked = metric
        self._begin()
        seconds = reach.shortest(self.source.round_seconds, self.source.free_length)
        if self.pairs or not asserted or seconds is None:
            return
        look, given = reach.first_look(claim, self.rules.alpha), not self.source.free_length
        if why := reach.beyond_budget(look, len(numbers), seconds, self.rules.budget, given=given):
            raise ConfigError(f"{self.source.load}: {claim.kind} cannot be decided: {why}")
        if why := reach.beyond_run(look, len(numbers), seconds, self.rules.run_left()):
            raise Inconclusive(f"{self.source.load}: {why}; nothing was started for it")

    def too_slow(self, claim: Claim, numbers: Sequence[int]) -> str:
        """Why rounds as long as those of the warm-up cannot reach the first look of a claim; warms up where needed."""
        if self.pairs:
            return ""
        self._begin()
        self._warm_up(numbers)
        if self.length:
            return ""
        blocks = [sorted(block, key=lambda done: self.source.names.index(done.variant)) for block in self._warm_ups]
        return reach.measured_too_slow(blocks, numbers, reach.first_look(claim, self.rules.alpha), self.rules.budget)

    @property
    def pairs(self) -> int:
        """The number of whole blocks that count."""
        return len(self.orders)

    def draw(
        self, numbers: Sequence[int], seen: tuple[float, float, float] | None = None, cap: int | None = None
    ) -> None:
        """Draw one block, after a warm-up before the first; a void block is repeated in the same order.

        When the arrival rate turns out too high, it is lowered once, all blocks so far are dropped, and the next one
        is drawn. numbers: the variants of the claim that draws. The other arguments are for display: seen: the ratio so
        far and the ends of its interval; cap: the maximum number of pairs. Raises SeriesVoid when more than a tenth of
        the blocks (and more than one) are void. Raises Inconclusive when the run's time is used before the first block.
        """
        while True:
            self._begin()
            self._warm_up(numbers)
            order = next(self._order)
            while self._is_void(rounds := self._block(order, self.pairs, numbers, seen, cap)):
                self.void.append(rounds)
                if len(self.void) > max(1, MAX_VOID * (self.pairs + 1)):
                    if self._begun_again(len(self.void)):
                        break
                    drawn = f"{len(self.void)} of {self.pairs + len(self.void)} blocks of {self.source.load}"
                    raise SeriesVoid(f"{drawn} were void: {remarks.reason(rounds)}")
            else:
                self.orders.append(order)
                for number, item in zip(order, rounds, strict=True):
                    self.rounds[number].append(item)
                if not self._begun_again():
                    return

    @staticmethod
    def _is_void(rounds: Sequence[Round]) -> bool:
        return any(item.void for item in rounds)

    def _begun_again(self, least: int = open_loop.MIN_LATE) -> bool:
        """Lower an arrival rate that a variant does not keep, once, and drop all rounds at that rate.

        least: rounds that did not keep it. Returns False when all variants keep the rate, or it may not be lowered.
        """
        late = []
        if self.source.arrival_rate is not None:
            for number, name in enumerate(self.source.names):
                void = [done for block in self.void for done in block if done.variant == name]
                late.append(open_loop.too_high([*self.rounds[number], *void], least))
        if not self._lowered(late):
            return False
        self.dropped = self.pairs
        self.rounds = [[] for _ in self.source.names]
        self.orders, self.void = [], []
        self._values.clear()
        self._checked = 0
        self._order = block_order.block_orders(len(self.rounds), self.rules.seed + 2)
        return True

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

    def _warm_up(self, numbers: Sequence[int]) -> None:
        """Run blocks that do not count, five at most, until the mean cost of a block stops falling; once.

        The mean is over all variants, so the end of the warm-up favours none. It is the mean logarithm of the seconds
        per operation; a void block has no mean. Then choose the length of the rounds. numbers: the variants of the
        claim. Raises SeriesVoid when the first two blocks are void.
        """
        if self._warm:
            return
        means, void = self._warm_up_means, 0
        warm_up_orders = block_order.block_orders(len(self.rounds), self.rules.seed + 1)
        for number in range(MAX_WARM_UPS):
            rounds = self._block(next(warm_up_orders), number - MAX_WARM_UPS)
            if self._is_void(rounds):
                void += 1
                late = [open_loop.too_high([done], 1) for done in rounds]
                if void >= MAX_VOID_WARM_UPS and not means and not self._lowered(late):
                    of = f"{void} of {number + 1} blocks of the warm-up of {self.source.load}"
                    raise SeriesVoid(f"{of} were void: {remarks.reason(rounds)}")
                continue
            self._warm_ups.append(rounds)
            means.append(sum(math.log(item.cost) for item in rounds) / len(rounds))
            if len(means) > 1 and means[-1] > means[-2] - STEADY:
                break
        self._warm = True
        self._choose_length(numbers)

    def _lowered(self, late: Sequence[tuple[str, float]]) -> bool:
        """Lower the arrival rate to what the slowest of these did, and lengthen its rounds as much; else False.

        late: of each variant why the rate is too high, and what it did at that rate, as ``open_loop.too_high``.
        """
        too_high, before = sorted((done, why) for why, done in late if why), self.source.arrival_rate
        if not too_high or not self.source.lower_rate(too_high[0][1], too_high[0][0]):
            return False
        now = self.source.arrival_rate
        if self.length and before and now and before.rate and now.rate:
            self.length = self.length.longer(before.rate / now.rate)
            self.source.set_length(self.length)
        return True

    def _choose_length(self, numbers: Sequence[int]) -> None:
        """Choose the length of the rounds from the warm-up, where the test leaves it to us; it stays for all claims."""
        if not self.source.free_length:
            return
        rounds = [done for block in self._warm_ups for done in block]
        least = metrics.seconds_needed(rounds, self._asked, self.source.load)
        most = self.rules.budget / (round_length.PAIRS * max(2, len(numbers)))
        self.length = round_length.chosen(self._warm_ups, least=least, most=most)
        self.source.set_length(self.length)

    def baseline_first(self, candidate: int, baseline: int) -> list[bool]:
        """For each pair, whether the baseline ran before the candidate. The arguments are variant numbers."""
        return [order.index(baseline) < order.index(candidate) for order in self.orders]

    def void_blocks(self, pairs: int) -> list[list[Round]]:
        """The void blocks that were repeated within the first ``pairs`` blocks that count."""
        return [block for block in self.void if block[0].block < pairs]

    def notes(self, numbers: Sequence[int], metric: str, pairs: int) -> list[str]:
        """The last lines of a message about the first ``pairs`` rounds of these variants, candidate first."""
        rounds = {self.source.names[number]: self.rounds[number][:pairs] for number in numbers}
        floor = self._floors.get((numbers[-1], metric))
        return [
            *self.source.notes(*numbers),
            *([floor.line] if floor else []),
            *([self.length.line] if self.length else []),
            *remarks.dropped_line(self.dropped),
            *remarks.warm_up_line(self._warm_up_means, MAX_WARM_UPS, STEADY),
            *remarks.drain_line(rounds, metric),
            *remarks.round_lines(rounds, self.source.arrival_rate),
            *remarks.void_line(self.void_blocks(pairs), pairs),
        ]

    def below_floor(self, claim: Claim, baseline: int, metric: str) -> str:
        """Why the margin of a claim is too small: two instances of the baseline differ by more. Empty when it is not.

        The first claim with a margin about a metric measures the instance floor of its baseline.
        """
        if self.floor is None or not margins_of(claim):
            return ""
        if (baseline, metric) not in self._floors:
            if over := self.rules.run_over():
                return f"{over}, before two instances of {self.source.names[baseline]} were compared"
            self._warm_up(range(len(self.source.names)))  # the floor is measured in rounds as long as those that count
            self._floors[baseline, metric] = self.floor(baseline, metric)
        return self._floors[baseline, metric].refuses(claim)

    def shown(self, number: int, metric: str) -> list[float]:
        """One value per round of a variant, in the unit that is printed: operations/s, milliseconds, or a count."""
        return self._of_rounds(metrics.shown, number, metric)

    def compared(self, number: int, metric: str) -> list[float]:
        """One value per round of a variant, for ratios: latencies as speeds (1 / seconds), counts never 0.

        Raises ConfigError when the rounds have too few operations for the percentile.
        """
        metrics.enough(self.rounds[number], metric, self.source.load)
        return self._of_rounds(metrics.compared, number, metric)

    def _of_rounds(self, value: Callable[[Round, str, str], float], number: int, metric: str) -> list[float]:
        """The value of each round, computed once: claims ask for all values after every pair."""
        known = self._values.setdefault((value.__name__, metric, number), [])
        known += [value(done, metric, self.source.load) for done in self.rounds[number][len(known) :]]
        return list(known)

    def finish(self, answer: Answer) -> None:
        """Keep the answer, and report it."""
        self.answers.append(answer)
        self.finished(answer)

    def check(self) -> None:
        """Check clusters and tables, when rounds were drawn since the last check. Raises SeriesVoid."""
        if self._checked != self.pairs:
            self.source.check()
            self._checked = self.pairs

    def seconds(self, numbers: Sequence[int]) -> float:
        """The measured seconds of all rounds of these variants so far."""
        return sum(item.seconds for number in numbers for item in self.rounds[number])

    def spent(self, numbers: Sequence[int]) -> bool:
        """Whether the budget of a claim about these variants is used."""
        return self.seconds(numbers) >= self.rules.budget

    def over(self, numbers: Sequence[int]) -> str:
        """Why a claim about these variants must draw no more: its budget or the run's time is used; else empty."""
        if self.spent(numbers):
            return f"budget of {self.rules.budget:g} s of measured time used (--db-budget)"
        return self.rules.run_over()
