"""Pace: the length of the rounds and their arrival rate, the same for all variants."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from pytest_dbcluster.measuring.drawing.round_source import RoundSource
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.rounds import metrics, round_length
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.rounds.round_length import RoundLength

TAIL = "p95"  # the percentile for which rounds of a clear difference stay long enough


def _has_ledger(done: Round) -> bool:
    return done.outcome.ledger is not None


@dataclasses.dataclass
class Pace:
    """How long the rounds of a source last, and how fast their operations arrive."""

    source: RoundSource
    """Runs the rounds; it is set to each change."""

    rules: Rules
    """The budget that the rounds have to fit."""

    metric: str = ""
    """The metric of the claim that draws: a percentile needs longer rounds. Empty for no metric."""

    distance: Callable[[Sequence[Sequence[Round]]], float] = lambda blocks: 0.0
    """The log ratio between a warm-up and what would decide the claim otherwise; 0 if it is not known."""

    length: RoundLength | None = None
    """The length of the rounds, once it was chosen."""

    repeat: int = 1
    """How many times a round runs its fixed amount of work."""

    fixed: bool = False
    """Whether the arrival rate stays as it is, because a claim has looked at the rounds.

    If rounds were dropped after a look, that look would add its own chance of error.
    """

    def choose(self, warm_ups: Sequence[Sequence[Round]], variants: Sequence[int]) -> None:
        """Choose the length of the rounds from the warm-up, if the test leaves it open; it stays for all claims.

        Rounds of a fixed amount of work repeat it, if they are too short for the clock of the tool. warm_ups: the
        blocks of the warm-up. variants: those of the claim.
        """
        most = self.rules.budget / (round_length.PAIRS * max(2, len(variants)) * self.source.rounds_of_value)
        if not self.source.free_length:
            self.repeat = round_length.repeats(warm_ups, most)
            self.source.set_repeat(self.repeat)
            return
        rounds = [done for block in warm_ups for done in block]
        least = metrics.seconds_needed(rounds, self.metric, self.source.load)
        most = min(most, self.rules.longest)
        tail = metrics.seconds_needed(rounds, TAIL, self.source.load) if all(map(_has_ledger, rounds)) else 0.0
        away = self.distance(warm_ups)
        self.length = round_length.choose(
            warm_ups, least=least, most=most, budget=self.rules.budget_name, distance=away, tail=tail
        )
        self.source.set_length(self.length)

    def lower(self, late: Sequence[tuple[str, float]]) -> bool:
        """Lower the arrival rate to what the slowest variant did, and lengthen the rounds as much.

        Returns False if the rate stays. late: for each variant why the rate is too high, and what it did at that rate,
        as ``open_loop.too_high``.
        """
        too_high, before = sorted((done, why) for why, done in late if why), self.source.arrival_rate
        if self.fixed or not too_high or not self.source.lower_rate(too_high[0][1], too_high[0][0]):
            return False
        now = self.source.arrival_rate
        if self.length and before and now and before.rate and now.rate:
            self.length = self.length.longer(before.rate / now.rate)
            self.source.set_length(self.length)
        return True
