"""Values: what the rounds of a measurement say, by metric: for print, for ratios, in pairs, and their carry-over."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from pytest_dbcluster.claims import carry_over
from pytest_dbcluster.claims.carry_over import CarryOver
from pytest_dbcluster.claims.factorial import design
from pytest_dbcluster.claims.factorial.trial import FactorialTrial
from pytest_dbcluster.claims.pairs import Pairs, log
from pytest_dbcluster.measuring.drawing.blocks import DrawnBlocks
from pytest_dbcluster.measuring.drawing.levels import LevelBlocks
from pytest_dbcluster.rounds import metrics, pairing
from pytest_dbcluster.rounds.round import Round


@dataclasses.dataclass
class Values:
    """The values of drawn rounds. Variants are numbered as in ``blocks``. It changes no round."""

    blocks: DrawnBlocks
    """The rounds."""

    load: str
    """The name of the workload, for messages."""

    instances: int = 1
    """The instances of each variant, which the blocks use in turn."""

    taken_over: dict[int, Sequence[Round]] = dataclasses.field(default_factory=dict)
    """By variant, the rounds of an earlier run, which are shown if this run draws none."""

    def __post_init__(self) -> None:
        self._computed: dict[tuple[int, str, str, int], list[float]] = {}

    def rounds(self, variant: int) -> Sequence[Round]:
        """The rounds of a variant: those that were drawn, else those that were taken over."""
        return self.blocks.rounds[variant] or self.taken_over.get(variant, ())

    def to_print(self, variant: int, metric: str) -> list[float]:
        """One value per round of a variant, in the unit that is printed: operations/s, milliseconds, or a count."""
        if not self.blocks.rounds[variant]:
            return [metrics.display_value(done, metric, self.load) for done in self.rounds(variant)]
        return self._of_rounds(metrics.display_value, variant, metric)

    def to_compare(self, variant: int, metric: str) -> list[float]:
        """One value per round of a variant, for ratios: latencies as speeds (1 / seconds).

        Raises ConfigError if the rounds have too few operations for the percentile.
        """
        metrics.require_operations(self.blocks.rounds[variant], metric, self.load)
        return self._of_rounds(metrics.ratio_value, variant, metric)

    def _of_rounds(self, value: Callable[[Round, str, str], float], variant: int, metric: str) -> list[float]:
        """The value of each round, computed once: claims ask for all values after every pair."""
        computed = self._computed.setdefault((self.blocks.restarts, value.__name__, metric, variant), [])
        computed += [value(done, metric, self.load) for done in self.blocks.rounds[variant][len(computed) :]]
        return list(computed)

    def pairs(self, candidate: int, baseline: int, metric: str) -> Pairs:
        """The pairs of two variants, by this metric. Raises ConfigError as ``to_compare`` does.

        If one of them has left, these are its rounds and as many of the other one.
        """
        both = candidate, baseline
        shared = min(len(self.blocks.rounds[number]) for number in both)
        rounds = self.blocks.rounds[candidate][:shared], self.blocks.rounds[baseline][:shared]
        values = self.to_compare(candidate, metric)[:shared], self.to_compare(baseline, metric)[:shared]
        pairs = pairing.pairs_of(*rounds, values, instances=self.instances, counts=metrics.is_counter(metric))
        pairs = pairing.with_ends(pairs, *rounds) if metric == metrics.CAPACITY else pairs
        rounding = pairing.rounding(*rounds) if metrics.of_seconds(metric) else ()
        void = self.blocks.void_rounds(candidate, baseline)
        return dataclasses.replace(pairs, openings=self.blocks.openings, void=void, rounding=rounding)

    def trial(self, metric: str) -> FactorialTrial:
        """All rounds of a measurement of options with their levels.

        Raises TooFewOperations as ``metrics.values_above_zero`` does.
        """
        blocks = self.blocks
        assert isinstance(blocks, LevelBlocks)
        rounds = blocks.in_order
        values = metrics.values_above_zero(rounds, metric, self.load)
        blur = pairing.rounding(rounds, rounds) if metrics.of_seconds(metric) else ()
        return FactorialTrial(
            logs=tuple(map(log, values)),
            combinations=tuple(design.number_of(done.variant) for done in rounds),
            options=blocks.options,
            rounding=max(blur, default=0.0),
            void=tuple(
                (done.block, design.number_of(done.variant)) for block in blocks.void for done in block if done.void
            ),
        )

    def carry_over(self, candidate: int, baseline: int, metric: str, pairs: int) -> CarryOver | None:
        """The carry-over of two variants in the first pairs; None for a counter, and if too few rounds show it."""
        if metrics.is_counter(metric):
            return None
        times = {
            number: [-log(value) for value in self.to_compare(number, metric)[:pairs]]
            for number in (candidate, baseline)
        }
        void = [done for block in self.blocks.void for done in block]
        ran = self.blocks.ran_among((candidate, baseline))
        placed = pairing.placements([of_variant[:pairs] for of_variant in ran], times, void)
        return carry_over.of(placed, candidate, baseline)
