"""WarmUp: blocks that do not count, until rounds stop getting faster."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from pytest_dbcluster.claims.block_order import PER_OPENING
from pytest_dbcluster.errors import SeriesVoid
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.measuring.drawing import reach
from pytest_dbcluster.measuring.drawing.block_runner import BlockRunner, LiveClaim
from pytest_dbcluster.measuring.drawing.pace import Pace
from pytest_dbcluster.rounds import open_loop, round_length
from pytest_dbcluster.rounds.round import Round

MAX_BLOCKS = 5
STEADY = 0.05  # the warm-up ends when a block's mean log cost falls by less than this
MAX_VOID = 2  # void blocks of a warm-up that has no other: the measurement ends


@dataclasses.dataclass
class WarmUp:
    """The warm-up of a measurement. It runs once, before the first block that counts."""

    runner: BlockRunner
    """Runs its blocks."""

    pace: Pace
    """Gets the length of the rounds from it."""

    done: bool = False
    """Whether the clusters are warm."""

    blocks: list[list[Round]] = dataclasses.field(default_factory=list)
    """Its blocks without those that were void, each by variant number."""

    means: list[float] = dataclasses.field(default_factory=list)
    """The mean log cost of each of these blocks."""

    def run(self, variants: Sequence[int]) -> None:
        """Run blocks, five at most, until the mean cost of a block stops falling; nothing if it was done before.

        Each instance has a block. That is enough on clusters that other rounds have used. A chosen length of rounds may
        take more blocks.
        The mean is over all variants, so the end of the warm-up favours none. It is the mean logarithm of the seconds
        per operation; a void block has no mean. Then the length of the rounds is chosen. variants: those of the
        claim. Raises SeriesVoid when the first two blocks are void.
        """
        if self.done:
            return
        order, void = self.runner.blocks.warm_up_order(), 0
        for number in range(MAX_BLOCKS):
            rounds = self.runner.run(next(order), number - MAX_BLOCKS, LiveClaim()) or []
            if any(done.void for done in rounds):
                void += 1
                self._check_void(void, number + 1, rounds)
                continue
            self._add(rounds)
            if self._is_enough:
                break
        self.done = True
        self.pace.choose(self.blocks, variants)
        self._choose_openings(variants)

    @property
    def _is_enough(self) -> bool:
        source, means = self.runner.source, self.means
        if len(means) < self.runner.instances:
            return False
        rounds = [done for block in self.blocks for done in block]
        if source.is_used and (not source.free_length or round_length.has_batches(rounds)):
            return True
        return len(means) > 1 and means[-1] > means[-2] - STEADY

    def _add(self, rounds: Sequence[Round]) -> None:
        self.blocks.append(self.runner.blocks.by_variant(rounds))
        self.means.append(sum(math.log(done.cost) for done in rounds) / len(rounds))

    def _check_void(self, void: int, blocks: int, rounds: Sequence[Round]) -> None:
        """Raise SeriesVoid if all blocks so far were void, unless a lower arrival rate may help."""
        late = [open_loop.too_high([done], 1) for done in rounds]
        if void >= MAX_VOID and not self.means and not self.pace.lower(late):
            of = f"{void} of {blocks} blocks of the warm-up of {self.runner.source.load}"
            raise SeriesVoid(f"{of} were void: {remarks.reason(rounds)}")

    def _choose_openings(self, variants: Sequence[int]) -> None:
        """Leave out the opening blocks if none fits the budget: its few rounds show an estimate."""
        seconds = self.pace.length.seconds if self.pace.length else reach.fastest_round(self.blocks, variants)
        if PER_OPENING * len(variants) * seconds > reach.LEEWAY * self.runner.rules.budget:
            self.runner.blocks.leave_out_openings()

    @property
    def remark(self) -> list[str]:
        """One line if the warm-up ended at its maximum of blocks, while they still got faster; else no line."""
        return remarks.warm_up_line(self.means, MAX_BLOCKS, STEADY)
