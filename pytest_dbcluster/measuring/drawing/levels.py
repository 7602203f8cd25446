"""LevelBlocks: the blocks of a measurement of several options, in which each round has a level of every option.

The variants of such a measurement are the levels: variant ``2 k`` is the first level of option ``k``, and ``2 k + 1``
its second one. So a round belongs to as many variants as there are options. The source runs combinations instead, as in
``claims.factorial.design``; the name of a combination is the variant of its round.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from pytest_dbcluster.claims.block_order import Block
from pytest_dbcluster.claims.factorial import design
from pytest_dbcluster.claims.factorial.design import PER_LEVEL
from pytest_dbcluster.measuring.drawing.blocks import BlockPlan, DrawnBlocks
from pytest_dbcluster.rounds.round import Round

IN_TURN = 2  # rounds after which others may have the machine


@dataclasses.dataclass(frozen=True)
class LevelPlan(BlockPlan):
    """The blocks of a measurement of options."""

    openings: int = 0
    warms_up: bool = True

    def begin(self, names: Sequence[str], seed: int) -> DrawnBlocks:
        """The blocks before the first round. names: of the levels, the first level of each option first."""
        return LevelBlocks(names, seed, 0)


@dataclasses.dataclass
class LevelBlocks(DrawnBlocks):
    """The blocks of a measurement of options. The rounds of a level come in the order in which they ran."""

    @property
    def options(self) -> int:
        """The number of options."""
        return len(self.names) // 2

    @property
    def in_turn(self) -> int:
        """Two rounds."""
        return IN_TURN

    def draw(self, seed: int) -> Iterator[Block]:
        """Blocks of eight rounds, with a combination for each."""
        return design.blocks(self.options, seed)

    def warm_up_order(self) -> Iterator[Block]:
        """Blocks of two combinations without a common level."""
        return design.warm_ups(self.options, self.seed + 1)

    def concerns(self, number: int, variants: Sequence[int]) -> bool:
        """Every round has a level of every option."""
        return True

    def by_variant(self, rounds: Sequence[Round]) -> list[Round]:
        """For each level the round of the warm-up that has it."""
        return [next(done for done in rounds if self.has(done, number)) for number in range(len(self.names))]

    def has(self, done: Round, number: int) -> bool:
        """Whether a round has a level, by the number of the level."""
        return design.number_of(done.variant) >> number // 2 & 1 == number % 2

    def ran_among(self, numbers: Sequence[int]) -> list[list[Round]]:
        """The rounds of these levels only; those of one option are all rounds."""
        return [rounds if number in numbers else [] for number, rounds in enumerate(self.rounds)]

    @property
    def in_order(self) -> list[Round]:
        """All rounds that count, each once, in the order in which they ran."""
        return sorted(self.rounds[0] + self.rounds[1], key=lambda done: (done.block, done.position))

    @property
    def next_pairs(self) -> int:
        """Four rounds of each level."""
        return PER_LEVEL

    def count(self, block: Block, rounds: Sequence[Round]) -> None:
        """Add a block with its rounds, in the order of the block."""
        self._upcoming = None
        self.counted.append(block)
        for number, of_level in enumerate(self.rounds):
            of_level += [done for done in rounds if self.has(done, number)]

    def count_whole_pairs(self, block: Block, rounds: Sequence[Round]) -> None:
        """A part of a block does not count."""

    def leave_out_openings(self) -> None:
        """There is no other kind of block."""

    def pairs_before(self, done: Round) -> int:
        """The rounds of each level before the block of a round."""
        return PER_LEVEL * done.block

    def void_rounds(self, candidate: int, baseline: int) -> tuple[tuple[int, bool], ...]:
        """Each void round, as ``Pairs.void``: whether it had the level ``candidate``."""
        void = [done for block in self.void for done in block if done.void]
        return tuple((self.pairs_before(done), self.has(done, candidate)) for done in void)
