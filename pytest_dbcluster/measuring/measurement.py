"""Measurement: the rounds of one workload on several variants, drawn in blocks when a claim needs them.

The first blocks are opening blocks, which run each variant four times; later blocks run each variant once
(``claims.block_order``). Blocks are drawn whole, so every variant has the same number of rounds. ``decision`` draws for
a claim; the next claim starts with the blocks that are there already.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from pytest_dbcluster.claims import block_order, carry_over, verdict
from pytest_dbcluster.claims.block_order import PER_OPENING, Block
from pytest_dbcluster.claims.carry_over import CarryOver
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.claims.pairs import Pairs, log
from pytest_dbcluster.errors import ConfigError, Inconclusive, SeriesVoid
from pytest_dbcluster.measuring import reach, remarks
from pytest_dbcluster.measuring.answer import Answer, Tries
from pytest_dbcluster.measuring.progress import RoundProgress
from pytest_dbcluster.measuring.question import Question
from pytest_dbcluster.measuring.round_source import RoundSource
from pytest_dbcluster.rounds import metrics, open_loop, pairing, round_length
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.rounds.round_length import RoundLength

MAX_WARM_UPS = 5  # blocks
STEADY = 0.05  # warm-up ends when a block's mean log cost falls by less than this
MAX_VOID = 0.1  # void rounds and void blocks, as a share of the pairs, above which the series is void
MAX_VOID_WARM_UPS = 2  # void blocks of a warm-up that has no other: the measurement ends


@dataclasses.dataclass(frozen=True)
class Rules:
    """The run's options on drawing.

    seed: of the run; each measurement draws its own order from it. alpha: the maximum chance of a wrong verdict per
    claim and side. cap: the maximum number of pairs of a claim. budget: the maximum measured seconds of a claim.
    run_over: returns why the whole run must draw no more, such as its used time; empty while it may. run_left: returns
    the seconds left of the run. fixed_seed: whether the user chose the seed. budget_name: what the user calls the
    budget, such as the name of its option. larger_budget: returns what the user has to ask for, to get a budget of so
    many seconds.
    """

    seed: int
    alpha: float = 0.0005
    cap: int = verdict.CAP
    budget: float = 120.0
    run_over: Callable[[], str] = lambda: ""
    run_left: Callable[[], float] = lambda: math.inf
    fixed_seed: bool = False
    budget_name: str = round_length.BUDGET
    larger_budget: Callable[[int], str] = reach.LARGER


Recall = Callable[[Question], Answer | None]


@dataclasses.dataclass
class Measurement:
    """The rounds of one workload on several variants, and the answers of every claim about them.

    source: runs the rounds. progress: is called after each round. finished: is called with each answer once it is
    read, and with a comparison at once; a claim that its test never reads counts as a comparison. test: node id of the
    test. release: the releases of the variants, as text. number: of the measurement in its test; with the names of
    test, workload and variants it makes the order of its rounds its own. claimed: (workload, claim) of all claims of
    the test so far; None where equal claims need not be told apart. recall: returns the answer of an earlier run that
    this one continues, None where the claim has to be measured. tries: knows earlier tries of claims; may be None.

    Of the blocks that count; variants are numbered from 0, in the order of ``source.names``. rounds: per variant; the
    n-th rounds of all variants belong together, as the n-th pair. blocks: in the order in which they ran. answers: of
    the claims so far. void: what did not count, as it ran: of an opening block each void round, of a later
    block all its rounds. length: of the rounds, once it was chosen. repeat: how many times a round runs its fixed
    amount of work. dropped: the pairs that counted until the rate was lowered. taken_over: of an earlier run, the
    rounds of a variant that are shown where none is drawn. begun: the block that runs, or ran last, as drawn.
    """

    source: RoundSource
    rules: Rules
    progress: Callable[[RoundProgress], None] = lambda _: None
    finished: Callable[[Answer], None] = lambda _: None
    test: str = ""
    release: str = ""
    number: int = 0
    claimed: set[tuple[str, str]] | None = None
    recall: Recall = lambda question: None
    tries: Tries | None = None

    def __post_init__(self) -> None:
        self.rounds: list[list[Round]] = [[] for _ in self.source.names]
        self.answers: list[Answer] = []
        self.blocks: list[Block] = []
        names = (self.test, self.source.load, *self.source.names, self.number)
        self._seed = block_order.seed_of(self.rules.seed, *names)
        self.instances = self.source.alternating()
        # With a cap below one opening block no look can come, so the rounds need not be an opening block.
        self.openings = 0 if self.rules.cap < PER_OPENING else block_order.openings(self.instances)
        self._next_blocks = block_order.blocks(len(self.rounds), self._seed, self.openings)
        self._upcoming: Block | None = None
        self.begun: tuple[Block, list[Round]] = (Block((), (0,)), [])
        self._warm = False
        self.void: list[list[Round]] = []
        self._checked = 0
        self._looked = False
        self.tried: dict[tuple[str, tuple[int, ...], str], int] = {}
        self.drawn_without_claim = False
        self._warm_up_means: list[float] = []
        self._warm_ups: list[list[Round]] = []
        self._asked = ""  # the metric of the claim that draws
        self.length: RoundLength | None = None
        self.repeat = 1
        self.dropped = 0
        self._values: dict[tuple[str, str, int], list[float]] = {}
        self.taken_over: dict[int, Sequence[Round]] = {}

    @property
    def metric(self) -> str:
        """The default metric of claims about this workload."""
        return self.source.metric

    def check_metric(self, metric: str) -> None:
        """Raise ConfigError for a metric that claims about this workload cannot have, before any round is drawn."""
        metrics.check(metric, self.source.arrival_rate, self.source.load)

    def _begin(self) -> None:
        if not self.pairs and (why := self.rules.run_over()):
            raise Inconclusive(f"{self.source.load}: {why}; nothing was drawn")

    def check_reach(self, question: Question) -> None:
        """Before the first block: end a claim that cannot reach its first look. Starts and draws nothing.

        A comparison without a claim draws what its budget allows. Raises ConfigError when the budget is too small for
        the rounds, and Inconclusive when the rest of the run's time is.
        """
        self._asked = question.metric
        self._begin()
        seconds = reach.shortest(self.source.round_seconds, self.source.free_length)
        if self.pairs or not question.asserted or seconds is None:
            return
        claim, several = question.claim, len(question.variants)
        look, given = reach.first_look(claim, self.rules.alpha, self.instances), not self.source.free_length
        if why := reach.beyond_budget(
            look, several, seconds, self.rules.budget, given=given, larger=self.rules.larger_budget
        ):
            raise ConfigError(f"{self.source.load}: {claim.kind} cannot be decided: {why}")
        if why := reach.beyond_run(look, several, seconds, self.rules.run_left()):
            raise Inconclusive(f"{self.source.load}: {why}; nothing was started for it")

    def take_over(self, question: Question) -> Answer | None:
        """The answer of an earlier run that this one continues; None where the claim has to be measured.

        Its rounds are shown where none were drawn. No claim is judged by them: a later claim draws its own.
        """
        answer = self.recall(question)
        if answer is not None:
            self.answers.append(answer)
            self.taken_over |= {variant.number: variant.rounds for variant in answer.variants}
        return answer

    def declare(self, question: Question) -> None:
        """Note a claim before it draws. Raises ConfigError when its test has made it before, whatever the margin.

        Two equal claims of one test could not be told apart in results and over time.
        """
        identity = question.identity(self.source.names)
        if self.claimed is None:
            return
        if (self.source.load, identity) in self.claimed:
            raise ConfigError(
                f"the test claims {identity} on {self.source.load} twice, so the results could not be told apart over "
                "time; keep one of the two, or give a cluster another name: spec.named(...)"
            )
        self.claimed.add((self.source.load, identity))

    def too_slow(self, question: Question) -> str:
        """Why rounds as long as those of the warm-up cannot reach the first look of a claim; warms up where needed."""
        if self.pairs:
            return ""
        self._begin()
        self._warm_up(question.variants)
        if self.length:
            return ""
        look = reach.first_look(question.claim, self.rules.alpha, self.instances)
        return reach.measured_too_slow(
            self._warm_ups, question.variants, look, self.rules.budget, larger=self.rules.larger_budget
        )

    @property
    def pairs(self) -> int:
        """The number of pairs that count: the rounds of each variant."""
        return len(self.rounds[0])

    def draw(
        self, numbers: Sequence[int], seen: tuple[float, float, float] | None = None, cap: int | None = None
    ) -> None:
        """Draw one block, after a warm-up before the first.

        Void rounds run again: in an opening block each in its place, in a later block with the whole block. When the
        arrival rate turns out too high, it is lowered once, all blocks so far are dropped, and a first one is drawn
        anew. numbers: the variants of the claim that draws. For display, seen: the ratio so far and the ends of its
        interval, cap: the maximum number of pairs. Raises SeriesVoid for more void rounds or blocks than a tenth of the
        pairs (and more than one), and Inconclusive when the run's time is used before the first block.
        """
        drawn = False
        while not drawn:
            self._begin()
            self._warm_up(numbers)
            drawn = self._counted(numbers, seen, cap) and not self._begun_again()

    def _counted(self, numbers: Sequence[int], seen: tuple[float, float, float] | None, cap: int | None) -> bool:
        """Draw the next block until it counts; False when the measurement began again at a lower rate instead.

        A block that was interrupted is drawn again, so that the opening blocks come first in any case.
        """
        block = self._upcoming = self._upcoming or next(self._next_blocks)
        rounds = self._block(block, len(self.blocks), numbers, seen, cap)
        while rounds is not None and any(item.void for item in rounds):
            rounds = None if self._too_void(rounds, block) else self._block(block, len(self.blocks), numbers, seen, cap)
        if rounds is None:
            return False
        self._upcoming = None
        self.blocks.append(block)
        in_pairs = sorted(zip(block.pairs, block.order, rounds, strict=True), key=lambda placed: placed[0])
        for _, number, item in in_pairs:
            self.rounds[number].append(item)
        return True

    def _begun_again(self, least: int = open_loop.MIN_LATE, running: Sequence[Round] = ()) -> bool:
        """Lower an arrival rate that a variant does not keep, once, and drop all rounds at that rate.

        least: rounds that did not keep it. running: the rounds so far of an opening block that is not finished. Returns
        False when all variants keep the rate, or it may not be lowered.
        """
        late = []
        if self.source.arrival_rate is not None:
            for number, name in enumerate(self.source.names):
                others = [done for block in (*self.void, running) for done in block if done.variant == name]
                late.append(open_loop.too_high([*self.rounds[number], *others], least))
        if not self._lowered(late):
            return False
        self.dropped = self.pairs
        self.rounds = [[] for _ in self.source.names]
        self.blocks, self.void, self._checked = [], [], 0
        self._values.clear()
        self._upcoming = None
        self._next_blocks = block_order.blocks(len(self.rounds), self._seed + 2, self.openings)
        return True

    def _too_void(self, rounds: list[Round], block: Block, running: Sequence[Round] = ()) -> bool:
        """Keep what was void. Raises SeriesVoid when it is too much, or returns True: begun again at a lower rate."""
        self.void.append(rounds)
        pairs = self.pairs + block.length
        if len(self.void) <= max(1, MAX_VOID * pairs):
            return False
        times = f"{len(self.void)} times a round of {self.source.load} was void in the first {pairs} pairs"
        if not self._begun_again(len(self.void), running):
            raise SeriesVoid(f"{times}: {remarks.reason(rounds)}")
        return True

    def _block(
        self,
        block: Block,
        number: int,
        numbers: Sequence[int] = (),
        seen: tuple[float, float, float] | None = None,
        cap: int | None = None,
    ) -> list[Round] | None:
        """Run the rounds of a block. After as many rounds as there are variants, others may have the machine.

        None when the rate was too high in the middle of an opening block, and the measurement began again at a lower
        one.
        """
        self.begun = block, (rounds := list[Round]())
        measured, several = self.seconds(numbers), len(self.rounds)
        for start in range(0, len(block.order), several):
            with self.source.alone():
                while len(rounds) < start + several:
                    position = len(rounds)
                    done = self.source.round(block.order[position], block=number, position=position)
                    measured += done.seconds if block.order[position] in numbers else 0.0
                    shown = self._progress(done, seen, cap or self.rules.cap, measured)
                    if done.void and block.length > 1:  # of an opening block, only this round is repeated
                        self.progress(dataclasses.replace(shown, last=False))
                        if self._too_void([done], block, rounds):
                            return None
                        continue
                    self.progress(shown)
                    rounds.append(done)
        return rounds

    def _progress(
        self, done: Round, seen: tuple[float, float, float] | None, cap: int, measured: float
    ) -> RoundProgress:
        named = {"test": self.test, "load": self.source.load, "measured": measured, "budget": self.rules.budget}
        counts = (self.pairs, self.instances, len(self.rounds))
        return RoundProgress.of(done, counts, seen, cap, **named)

    def _warm_up(self, numbers: Sequence[int]) -> None:
        """Run blocks that do not count, five at most, until the mean cost of a block stops falling; once.

        The mean is over all variants, so the end of the warm-up favours none. It is the mean logarithm of the seconds
        per operation; a void block has no mean. Then choose the length of the rounds. numbers: the variants of the
        claim. Raises SeriesVoid when the first two blocks are void.
        """
        if self._warm:
            return
        means, void = self._warm_up_means, 0
        warm_up_blocks = block_order.blocks(len(self.rounds), self._seed + 1, 0)
        for number in range(MAX_WARM_UPS):
            rounds = self._block(next(warm_up_blocks), number - MAX_WARM_UPS) or []
            if any(item.void for item in rounds):
                void += 1
                late = [open_loop.too_high([done], 1) for done in rounds]
                if void >= MAX_VOID_WARM_UPS and not means and not self._lowered(late):
                    of = f"{void} of {number + 1} blocks of the warm-up of {self.source.load}"
                    raise SeriesVoid(f"{of} were void: {remarks.reason(rounds)}")
                continue
            self._warm_ups.append(sorted(rounds, key=lambda done: self.source.names.index(done.variant)))
            means.append(sum(math.log(item.cost) for item in rounds) / len(rounds))
            if len(means) > 1 and means[-1] > means[-2] - STEADY:
                break
        self._warm = True
        self._choose_length(numbers)
        self._choose_blocks(numbers)

    def _lowered(self, late: Sequence[tuple[str, float]]) -> bool:
        """Lower the arrival rate to what the slowest of these did, and lengthen its rounds as much; else False.

        Only before the first look, so that no dropped round has decided anything.
        late: of each variant why the rate is too high, and what it did at that rate, as ``open_loop.too_high``.
        """
        too_high, before = sorted((done, why) for why, done in late if why), self.source.arrival_rate
        if self._looked or not too_high or not self.source.lower_rate(too_high[0][1], too_high[0][0]):
            return False
        now = self.source.arrival_rate
        if self.length and before and now and before.rate and now.rate:
            self.length = self.length.longer(before.rate / now.rate)
            self.source.set_length(self.length)
        return True

    def _choose_length(self, numbers: Sequence[int]) -> None:
        """Choose the length of the rounds from the warm-up, where the test leaves it to us; it stays for all claims.

        Rounds of a fixed amount of work repeat it where they are too short for the clock of the tool.
        """
        most = self.rules.budget / (round_length.PAIRS * max(2, len(numbers)))
        if not self.source.free_length:
            self.repeat = round_length.repeats(self._warm_ups, most)
            self.source.set_repeat(self.repeat)
            return
        rounds = [done for block in self._warm_ups for done in block]
        least = metrics.seconds_needed(rounds, self._asked, self.source.load)
        self.length = round_length.choose(self._warm_ups, least=least, most=most, budget=self.rules.budget_name)
        self.source.set_length(self.length)

    def _choose_blocks(self, numbers: Sequence[int]) -> None:
        """Draw no opening blocks if none fits the budget: its few rounds show an estimate, and decide nothing."""
        seconds = self.length.seconds if self.length else reach.fastest(self._warm_ups, numbers)
        if PER_OPENING * len(numbers) * seconds > reach.LEEWAY * self.rules.budget:
            self.openings, self._next_blocks = 0, block_order.blocks(len(self.rounds), self._seed, 0)

    def draw_without_claim(self, blocks: int, *, warm: bool) -> None:
        """Draw so many blocks for no claim; no opening blocks if those are fewer. warm: the clusters are warm."""
        self.drawn_without_claim = True
        if not self.pairs and blocks < PER_OPENING:
            self.openings, self._next_blocks = 0, block_order.blocks(len(self.rounds), self._seed, 0)
        self._warm = self._warm or (warm and self.source.round_seconds is not None and not self.source.free_length)

    def pairs_of(self, candidate: int, baseline: int, metric: str) -> Pairs:
        """The pairs of two variants (numbers), by this metric. Raises ConfigError as ``compared`` does."""
        rounds = self.rounds[candidate], self.rounds[baseline]
        values = self.compared(candidate, metric), self.compared(baseline, metric)
        pairs = pairing.pairs_of(*rounds, values, instances=self.instances, counts=metrics.is_counter(metric))
        rounding = pairing.rounding(*rounds) if metrics.of_seconds(metric) else ()
        void = self._void_rounds(candidate, baseline)
        return dataclasses.replace(pairs, openings=self.openings, void=void, rounding=rounding)

    def _void_rounds(self, candidate: int, baseline: int) -> tuple[tuple[int, bool], ...]:
        """Each void round of two variants, as ``Pairs.void``; rounds that were repeated with it are not counted."""
        names = {self.source.names[candidate]: True, self.source.names[baseline]: False}
        return tuple(
            (self._pairs_before(done), names[done.variant])
            for block in self.void
            for done in block
            if done.void and done.variant in names
        )

    def _pairs_before(self, done: Round) -> int:
        return block_order.pairs_before(done.block, self.openings)

    def carry_over(self, candidate: int, baseline: int, metric: str, pairs: int) -> CarryOver | None:
        """The carry-over of two variants in the first pairs; None for a counter, and where too few rounds tell it."""
        if metrics.is_counter(metric):
            return None
        times = {
            number: [-log(value) for value in self.compared(number, metric)[:pairs]] for number in (candidate, baseline)
        }
        void = [done for block in self.void for done in block]
        placed = pairing.placements([of_variant[:pairs] for of_variant in self.rounds], times, void)
        return carry_over.of(placed, candidate, baseline)

    def void_blocks(self, pairs: int) -> list[list[Round]]:
        """What was void and repeated within the first ``pairs`` pairs, as ``void``."""
        return [block for block in self.void if self._pairs_before(block[0]) < pairs]

    def notes(self, numbers: Sequence[int], metric: str, pairs: int) -> list[str]:
        """The last lines of a message about the first ``pairs`` rounds of these variants, candidate first."""
        rounds = {self.source.names[number]: self.rounds[number][:pairs] for number in numbers}
        return [
            *([self.length.line] if self.length else []),
            *remarks.repeat_line(self.repeat),
            *remarks.dropped_line(self.dropped),
            *remarks.warm_up_line(self._warm_up_means, MAX_WARM_UPS, STEADY),
            *remarks.drain_line(rounds, metric),
            *remarks.round_lines(rounds, self.source.arrival_rate),
            *remarks.void_line(self.void_blocks(pairs)),
            *remarks.fixed_seed_line(self.rules.seed if self.rules.fixed_seed else None),
        ]

    def shown(self, number: int, metric: str) -> list[float]:
        """One value per round of a variant, in the unit that is printed: operations/s, milliseconds, or a count."""
        if not self.rounds[number]:
            return [metrics.display_value(done, metric, self.source.load) for done in self.known(number)]
        return self._of_rounds(metrics.display_value, number, metric)

    def compared(self, number: int, metric: str) -> list[float]:
        """One value per round of a variant, for ratios: latencies as speeds (1 / seconds).

        Raises ConfigError when the rounds have too few operations for the percentile.
        """
        metrics.require_operations(self.rounds[number], metric, self.source.load)
        return self._of_rounds(metrics.ratio_value, number, metric)

    def _of_rounds(self, value: Callable[[Round, str, str], float], number: int, metric: str) -> list[float]:
        """The value of each round, computed once: claims ask for all values after every pair."""
        known = self._values.setdefault((value.__name__, metric, number), [])
        known += [value(done, metric, self.source.load) for done in self.rounds[number][len(known) :]]
        return list(known)

    def known(self, number: int) -> Sequence[Round]:
        """The rounds of a variant that are known: those drawn, else those of an answer that was taken over."""
        return self.rounds[number] or self.taken_over.get(number, ())

    def look(self, question: Question) -> None:
        """Note before its first look that a claim is tried: ``tried`` has the number of the try, from 1.

        From now on the arrival rate stays: a look at rounds that are dropped later has a chance of error of its own.
        """
        self._looked = True
        if self.tries and question.key not in self.tried:
            self.tried[question.key] = self.tries.begin(question)

    def finish(self, answer: Answer) -> None:
        """Keep the answer. A claim is reported when its test reads it: only then it is a verdict of the test."""
        self.answers.append(answer)
        if self.tries and answer.asserted and answer.verdict.outcome is not Outcome.INCONCLUSIVE:
            self.tries.decide(answer.question)
        answer.reported = self.finished
        if not answer.asserted:
            answer.report()

    def end(self) -> None:
        """Report the answers that the test has not read, as comparisons: the body of the test has ended.

        The source learns from rounds after which the clusters were as they should be.
        """
        if self.pairs and self._checked == self.pairs:
            self.source.learn(self.rounds)
        for answer in self.answers:
            if answer.reported:
                answer.reported = None
                self.finished(dataclasses.replace(answer, asserted=False))

    def check(self) -> None:
        """Check clusters and tables, when rounds were drawn since the last check. Raises SeriesVoid."""
        if self._checked != self.pairs:
            self.source.check()
            self._checked = self.pairs

    def seconds(self, numbers: Sequence[int]) -> float:
        """The measured seconds of all rounds of these variants so far."""
        return sum(item.seconds for number in numbers for item in self.rounds[number])

    def over(self, numbers: Sequence[int]) -> str:
        """Why a claim about these variants must draw no more: budget or time is used, or its hosts will be gone."""
        return self.source.notice() or self.spent(numbers) or self.rules.run_over()

    def spent(self, numbers: Sequence[int]) -> str:
        """Why the budget of a claim about these variants allows no other block; empty while it does."""
        upcoming = PER_OPENING if len(self.blocks) < self.openings else 1
        return reach.spent(self.seconds(numbers), self.rules.budget, self.rules.budget_name, self.pairs, upcoming)
