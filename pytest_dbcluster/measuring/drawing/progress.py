"""RoundProgress: what is shown after each round while a test runs."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster import formatting
from pytest_dbcluster.claims.claim import EQUAL
from pytest_dbcluster.rounds.round import Round


@dataclasses.dataclass(frozen=True)
class RoundProgress:
    """One finished round, for the live display."""

    test: str
    """The node id of the test."""

    load: str
    """The name of the workload."""

    round: Round
    """The round."""

    pair: int
    """The number of the pair, from 1. In an opening block it counts as if its rounds ran pair by pair."""

    warm_up: bool
    """Whether the round does not count."""

    claim: str = ""
    """The claim that draws, as ``Question.brief``; empty without one."""

    opening: int = 0
    """The number of rounds of the opening block; 0 in a block of one pair.

    The order in an opening block is random over all rounds, so a variant may run twice in a row.
    """

    ratio: float | None = None
    """The ratio of the claim so far; None before the first look."""

    low: float | None = None
    """The lower end of its interval."""

    high: float | None = None
    """The upper end of its interval."""

    next_look: int | None = None
    """The number of pairs at which the claim is judged next; None after the last look."""

    repetition: int = 0
    """The number of the repetition of an event, from 1, of all variants; 0 for a round of a workload."""

    repetitions: int = 0
    """The planned number of repetitions of all variants; 0 for a round of a workload."""

    last: bool = True
    """Whether the round ends a turn: as many rounds as there are variants."""

    cap: int | None = None
    """The maximum number of pairs."""

    measured: float = 0.0
    """The measured seconds of the claim so far."""

    budget: float | None = None
    """The maximum measured seconds of the claim."""

    @property
    def estimate(self) -> str:
        """The ratio so far with its interval, ``1.84x (1.18 .. 3.08)``; empty before the first look."""
        if self.ratio is None or self.low is None or self.high is None:
            return ""
        return formatting.with_interval(self.ratio, self.low, self.high, EQUAL)
