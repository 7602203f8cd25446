"""DrawnBlocks: the order that was drawn for the blocks of a measurement, the rounds that count, and what was void."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from pytest_dbcluster.claims import block_order
from pytest_dbcluster.claims.block_order import PER_OPENING, Block
from pytest_dbcluster.rounds.round import Round


@dataclasses.dataclass(frozen=True)
class BlockPlan:
    """The blocks of a measurement."""

    openings: int
    """The number of opening blocks."""

    per_opening: int = PER_OPENING
    """The pairs of an opening block."""

    warms_up: bool = False
    """Whether a warm-up comes first; False if the number of rounds is fixed before the first one."""

    def begin(self, names: Sequence[str], seed: int) -> DrawnBlocks:
        """The blocks before the first round. names: of the variants. seed: of the order."""
        return DrawnBlocks(names, seed, self.openings, self.per_opening)


@dataclasses.dataclass
class DrawnBlocks:
    """The blocks of a measurement. Variants are numbered from 0, in the order of ``names``.

    Blocks count whole, so every variant that has not left has the same number of rounds.
    """

    names: Sequence[str]
    """The short name of each variant."""

    seed: int
    """The seed of the order."""

    openings: int
    """The number of opening blocks."""

    per_opening: int = PER_OPENING
    """The pairs of an opening block."""

    rounds: list[list[Round]] = dataclasses.field(init=False)
    """The rounds that count, by variant. The n-th rounds of all variants belong together, as the n-th pair."""

    counted: list[Block] = dataclasses.field(init=False)
    """The blocks that count, in the order in which they ran."""

    void: list[list[Round]] = dataclasses.field(init=False)
    """What did not count, in the order in which it ran: of an opening block a void round, of a later one all rounds."""

    dropped: int = 0
    """The pairs that counted until all began again."""

    restarts: int = 0
    """How many times all rounds were dropped and the measurement began again."""

    left: set[int] = dataclasses.field(default_factory=set)
    """The variants that run no more, in a race."""

    def __post_init__(self) -> None:
        self._empty()
        self._order = self.draw(self.seed)

    def draw(self, seed: int) -> Iterator[Block]:
        """The blocks that a seed draws, without end."""
        return block_order.blocks(len(self.names), seed, self.openings, self.per_opening)

    def _empty(self) -> None:
        self.rounds, self.counted, self.void = [[] for _ in self.names], [], []
        self._upcoming: Block | None = None

    @property
    def pairs(self) -> int:
        """The number of pairs that count: the rounds of each variant that has not left."""
        return max(map(len, self.rounds))

    @property
    def running(self) -> int:
        """The number of variants that have not left."""
        return len(self.names) - len(self.left)

    @property
    def in_turn(self) -> int:
        """The rounds after which others may have the machine."""
        return self.running

    def concerns(self, number: int, variants: Sequence[int]) -> bool:
        """Whether a round of a block, by its number in ``Block.order``, is one of these variants."""
        return number in variants

    def by_variant(self, rounds: Sequence[Round]) -> list[Round]:
        """The round of each variant in a block of the warm-up."""
        return sorted(rounds, key=lambda done: self.names.index(done.variant))

    def ran_among(self, numbers: Sequence[int]) -> list[list[Round]]:
        """By variant, the rounds among which those of ``numbers`` ran, each once."""
        return self.rounds

    @property
    def next_pairs(self) -> int:
        """The number of pairs of the next block."""
        return self.per_opening if len(self.counted) < self.openings else 1

    def upcoming(self) -> Block:
        """The next block. It stays the same until it counts, so the opening blocks come first in any case.

        Variants that left are left out of it; the order of the others stays random.
        """
        self._upcoming = self._upcoming or next(self._order)
        if not self.left:
            return self._upcoming
        block = self._upcoming
        kept = [place for place, number in enumerate(block.order) if number not in self.left]
        return Block(tuple(block.order[place] for place in kept), tuple(block.pairs[place] for place in kept))

    def count(self, block: Block, rounds: Sequence[Round]) -> None:
        """Add a block with its rounds, in the order of the block."""
        self._upcoming = None
        self.counted.append(block)
        for _, number, done in sorted(zip(block.pairs, block.order, rounds, strict=True), key=lambda placed: placed[0]):
            self.rounds[number].append(done)

    def count_whole_pairs(self, block: Block, rounds: Sequence[Round]) -> None:
        """Count the whole pairs of an opening block that was interrupted after ``rounds``, as later blocks.

        No look comes after these pairs, so they change the estimate and decide nothing.
        """
        if not rounds or block.length == 1 or rounds[0].block != len(self.counted):  # such as a warm-up
            return
        self.openings = len(self.counted)
        begun = block.order[: len(rounds)], block.pairs[: len(rounds)], rounds
        for pair in range(block.length):
            mine = [(number, done) for number, its, done in zip(*begun, strict=True) if its == pair]
            if len(mine) == len(self.rounds):
                self.counted.append(Block(tuple(number for number, _ in mine), (0,) * len(mine)))
                for number, done in mine:
                    self.rounds[number].append(done)

    def leave_out_openings(self) -> None:
        """Draw no opening blocks: few rounds then show an estimate, and decide nothing."""
        self.openings = 0
        self._order = block_order.blocks(len(self.names), self.seed, 0)

    def begin_again(self) -> None:
        """Drop all rounds, and draw a new order."""
        self.dropped = self.pairs
        self.restarts += 1
        self._empty()
        self._order = self.draw(self.seed + 2)

    def warm_up_order(self) -> Iterator[Block]:
        """Blocks for rounds that do not count."""
        return block_order.blocks(len(self.names), self.seed + 1, 0)

    def seconds(self, variants: Sequence[int]) -> float:
        """The measured seconds of all rounds of these variants that count."""
        return sum(done.seconds for number in variants for done in self.rounds[number])

    def pairs_before(self, done: Round) -> int:
        """The number of pairs that were drawn before the block of a round."""
        return block_order.pairs_before(done.block, self.openings, self.per_opening)

    def void_within(self, pairs: int) -> list[list[Round]]:
        """What was void and drawn again within the first ``pairs`` pairs, as ``void``."""
        return [block for block in self.void if self.pairs_before(block[0]) < pairs]

    def has(self, done: Round, number: int) -> bool:
        """Whether a round is of a variant, by its number."""
        return done.variant == self.names[number]

    def void_rounds(self, candidate: int, baseline: int) -> tuple[tuple[int, bool], ...]:
        """Each void round of two variants, as ``Pairs.void``; rounds that were drawn again with it are left out."""
        names = {self.names[candidate]: True, self.names[baseline]: False}
        return tuple(
            (self.pairs_before(done), names[done.variant])
            for block in self.void
            for done in block
            if done.void and done.variant in names
        )
