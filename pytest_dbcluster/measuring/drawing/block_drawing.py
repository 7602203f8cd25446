"""BlockDrawing: draws the blocks of a measurement, after a warm-up, and repeats what was void.

The first blocks are opening blocks, which run each variant four times; later blocks run each variant once
(``claims.block_order``). A claim asks for blocks until it is decided; the next claim starts with those that are there.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dbcluster.claims import block_order
from pytest_dbcluster.claims.block_order import PER_OPENING, Block
from pytest_dbcluster.errors import Inconclusive, SeriesVoid
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.measuring.drawing import reach
from pytest_dbcluster.measuring.drawing.block_runner import BlockRunner, LiveClaim, Show
from pytest_dbcluster.measuring.drawing.blocks import BlockPlan, DrawnBlocks
from pytest_dbcluster.measuring.drawing.pace import Pace
from pytest_dbcluster.measuring.drawing.round_source import RoundSource
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.drawing.warm_up import WarmUp
from pytest_dbcluster.rounds import open_loop
from pytest_dbcluster.rounds.round import Round

MAX_VOID = 0.1  # void rounds and void blocks, as a share of the pairs, above which the series is void


class BlockDrawing:
    """Draws the rounds of one measurement from a source."""

    blocks: DrawnBlocks
    """The rounds so far."""

    pace: Pace
    """Their length and arrival rate."""

    warm_up: WarmUp
    """What ran before them."""

    instances: int
    """The instances of each variant, which the blocks use in turn."""

    def __init__(
        self,
        source: RoundSource,
        rules: Rules,
        seed: int,
        test: str = "",
        show: Show = lambda progress: None,
        plan: BlockPlan | None = None,
    ) -> None:
        """seed: of the order of the rounds. test: node id of the test. show: is called after each round.

        plan: the blocks of a measurement; None for those of claims about pairs of variants.
        """
        self.source, self.rules = source, rules
        self.instances = source.instances_in_turn()
        # With a cap below one opening block no look can come, so the rounds need not be an opening block.
        openings = 0 if rules.cap < PER_OPENING else block_order.openings(self.instances)
        plan = plan or BlockPlan(openings, warms_up=True)
        self.blocks = plan.begin(source.names, seed)
        self.pace = Pace(source, rules)
        self._runner = BlockRunner(source, rules, self.blocks, self.instances, test, show)
        self.warm_up = WarmUp(self._runner, self.pace, done=not plan.warms_up or source.warm)
        self._checked = 0  # pairs at the last check

    def begin(self) -> None:
        """Raise Inconclusive if the run's time was used before the first block."""
        if not self.blocks.pairs and (why := self.rules.run_over()):
            raise Inconclusive(f"{self.source.load}: {why}; nothing was drawn")

    def prepare(self, variants: Sequence[int]) -> None:
        """Run the warm-up, if it did not run before. variants: those of the claim. Raises as ``draw`` does."""
        self.begin()
        self.warm_up.run(variants)

    def prepare_without_claim(self, blocks: int, *, warm: bool) -> None:
        """Prepare to draw ``blocks`` blocks without a claim. If they are fewer than an opening block has, draw pairs.

        warm: whether other rounds have warmed the clusters.
        """
        if not self.blocks.pairs and blocks < PER_OPENING:
            self.blocks.leave_out_openings()
        known_length = self.source.round_seconds is not None and not self.source.free_length
        self.warm_up.done = self.warm_up.done or (warm and known_length)

    def draw(self, variants: Sequence[int]) -> None:
        """Draw one block without a claim, as ``draw_for`` does. variants: those whose seconds use the budget."""
        self.draw_for(LiveClaim(variants))

    def draw_for(self, claim: LiveClaim) -> None:
        """Draw one block, after a warm-up before the first.

        Void rounds run again: in an opening block each in its place, in a later block with the whole block. If the
        arrival rate is too high, it is lowered once. All blocks so far are dropped, and a first one is drawn again.
        Raises SeriesVoid for more void rounds or blocks than a tenth of the pairs (and more than one). Raises
        Inconclusive if the run's time was used before the first block.
        """
        counted = False
        while not counted:
            self.prepare(claim.variants)
            counted = self._count_next(claim) and not self._begin_again()

    def _count_next(self, claim: LiveClaim) -> bool:
        """Draw the next block until it counts; False if the measurement began again at a lower rate instead."""
        block = self.blocks.upcoming()
        rounds = self._run(block, claim)
        while rounds is not None and any(done.void for done in rounds):
            rounds = None if self._keep_void(block, rounds) else self._run(block, claim)
        if rounds is None:
            return False
        self.blocks.count(block, rounds)
        return True

    def _run(self, block: Block, claim: LiveClaim) -> list[Round] | None:
        def on_void(rounds: list[Round], running: Sequence[Round]) -> bool:
            return self._keep_void(block, rounds, running)

        return self._runner.run(block, len(self.blocks.counted), claim, on_void)

    def _keep_void(self, block: Block, rounds: list[Round], running: Sequence[Round] = ()) -> bool:
        """Keep what was void. If it is too much, begin again at a lower rate and return True, or raise SeriesVoid."""
        self.blocks.void.append(rounds)
        void, pairs = len(self.blocks.void), self.blocks.pairs + block.length
        if void <= max(1, MAX_VOID * pairs):
            return False
        times = f"{void} times a round of {self.source.load} was void in the first {pairs} pairs"
        if not self._begin_again(void, running):
            raise SeriesVoid(f"{times}: {remarks.reason(rounds)}")
        return True

    def _begin_again(self, least: int = open_loop.MIN_LATE, running: Sequence[Round] = ()) -> bool:
        """Lower an arrival rate that a variant does not keep, once, and drop all rounds at that rate.

        least: rounds that did not keep it. running: the rounds so far of an opening block that is not finished. Returns
        False if all variants keep the rate, or it may not be lowered.
        """
        late = []
        if self.source.arrival_rate is not None:
            for number in range(len(self.source.names)):
                drawn = [done for block in (*self.blocks.void, running) for done in block]
                others = [done for done in drawn if self.blocks.has(done, number)]
                late.append(open_loop.too_high([*self.blocks.rounds[number], *others], least))
        if not self.pace.lower(late):
            return False
        self.blocks.begin_again()
        self._checked = 0
        return True

    def keep_interrupted(self) -> None:
        """Count the whole pairs of the block that was interrupted, if it is an opening block."""
        self.blocks.count_whole_pairs(*self._runner.begun)

    def check(self) -> None:
        """Check clusters and tables, if rounds were drawn since the last check. Raises SeriesVoid."""
        if self._checked != self.blocks.pairs:
            self.source.check()
            self._checked = self.blocks.pairs

    def learn(self) -> None:
        """Let the source learn from the rounds, if the clusters were as they should be after the last one."""
        if self.blocks.pairs and self._checked == self.blocks.pairs:
            self.source.learn(self.blocks.rounds)

    def stop_reason(self, variants: Sequence[int]) -> str:
        """Why a claim about these variants must draw no more: budget or time is used, or its hosts will be gone."""
        return self.source.notice() or self.out_of_budget(variants) or self.rules.run_over()

    def reachable(self, variants: Sequence[int]) -> tuple[int, str]:
        """The number of pairs that the budget of a claim about these variants allows, and the name of the budget."""
        rules, rounds = self.rules, [done for number in variants for done in self.blocks.rounds[number]]
        return reach.reachable(rounds, self.blocks.pairs, rules.budget, rules.time_left()), rules.whole_budget

    def out_of_budget(self, variants: Sequence[int]) -> str:
        """Why the budget of a claim about these variants allows no other block; empty while it does."""
        used, name = self.blocks.seconds(variants), self.rules.budget_name
        return reach.out_of_budget(used, self.rules.budget, name, self.blocks.pairs, self.blocks.next_pairs)
