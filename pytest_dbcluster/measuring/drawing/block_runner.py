"""BlockRunner: runs the rounds of one block, and shows each."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

from pytest_dbcluster.claims import critical_values
from pytest_dbcluster.claims.block_order import Block
from pytest_dbcluster.measuring.drawing.blocks import DrawnBlocks
from pytest_dbcluster.measuring.drawing.progress import RoundProgress
from pytest_dbcluster.measuring.drawing.round_source import RoundSource
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.rounds.round import Round

Show = Callable[[RoundProgress], None]
OnVoid = Callable[[list[Round], Sequence[Round]], bool]


@dataclasses.dataclass(frozen=True)
class LiveClaim:
    """What is shown of the claim that draws, while its rounds run."""

    variants: Sequence[int] = ()
    """The variants of the claim; none in a warm-up."""

    estimate: tuple[float, float, float] | None = None
    """The ratio so far and the two ends of its interval; None before the first look."""

    cap: int | None = None
    """The maximum number of pairs; None for that of the run."""

    first_look: int = 0
    """The number of pairs before which no verdict is possible."""

    looks: Sequence[int] | None = None
    """The numbers of pairs at which it can be decided; None for those of claims about pairs."""

    name: str = ""
    """Its kind and metric, as ``Question.brief``."""


@dataclasses.dataclass
class BlockRunner:
    """Runs blocks of a source."""

    source: RoundSource
    """Runs the rounds."""

    rules: Rules
    """The budget and the cap that are shown."""

    blocks: DrawnBlocks
    """The rounds so far."""

    instances: int
    """The instances of each variant, which the blocks use in turn."""

    test: str
    """The node id of the test."""

    show: Show
    """Is called after each round."""

    begun: tuple[Block, list[Round]] = (Block((), (0,)), [])
    """The block that runs, or ran last, and its rounds so far."""

    def run(
        self, block: Block, number: int, claim: LiveClaim, on_void: OnVoid = lambda rounds, running: False
    ) -> list[Round] | None:
        """Run the rounds of a block. After each turn, as many rounds as variants, others may have the machine.

        Of an opening block a void round runs again in its place. Before that, ``on_void`` gets the round, and the
        rounds of the block so far. If it returns True, the block ends with None. number: of the block, negative in a
        warm-up.
        """
        self.begun = block, (rounds := list[Round]())
        measured, several = self.blocks.seconds(claim.variants), self.blocks.in_turn
        for start in range(0, len(block.order), several):
            with self.source.exclusive():
                while len(rounds) < start + several:
                    position = len(rounds)
                    done = self.source.round(block.order[position], block=number, position=position)
                    concerned = self.blocks.concerns(block.order[position], claim.variants)
                    measured += done.seconds if concerned else 0.0
                    shown = self._progress(done, block, claim, measured)
                    if done.void and block.length > 1:
                        self.show(dataclasses.replace(shown, last=False))
                        if on_void([done], rounds):
                            return None
                        continue
                    self.show(shown)
                    rounds.append(done)
        return rounds

    def _progress(self, done: Round, block: Block, claim: LiveClaim, measured: float) -> RoundProgress:
        pairs, variants, cap = self.blocks.pairs, self.blocks.in_turn, claim.cap or self.rules.cap
        ratio, low, high = claim.estimate or (None, None, None)
        ahead = max(pairs, claim.first_look - 1)
        look = critical_values.next_look(ahead, self.instances)
        if claim.looks is not None:
            look = next((one for one in claim.looks if one > ahead), None)
        budget = None if math.isinf(self.rules.budget) else self.rules.budget  # events have none, and other looks
        return RoundProgress(
            test=self.test,
            load=self.source.load,
            round=done,
            pair=pairs + 1 + done.position // variants,
            warm_up=done.block < 0,
            claim=claim.name,
            opening=len(block.order) if block.length > 1 else 0,
            repetition=pairs * variants + done.position + 1 if budget is None else 0,
            repetitions=cap * variants if budget is None else 0,
            ratio=ratio,
            low=low,
            high=high,
            next_look=None if look is None or look > cap or budget is None else look,
            last=(done.position + 1) % variants == 0,
            cap=cap,
            measured=measured,
            budget=budget,
        )
