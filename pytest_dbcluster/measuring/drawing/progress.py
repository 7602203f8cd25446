"""RoundProgress: what is shown after each round while a test runs."""

from __future__ import annotations

import dataclasses
from typing import Any

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import critical_values
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

    ratio: float | None = None
    """The ratio of the claim so far; None before the first look."""

    low: float | None = None
    """The lower end of its interval."""

    high: float | None = None
    """The upper end of its interval."""

    next_look: int | None = None
    """The number of pairs at which the claim is judged next; None after the last look."""

    last: bool = True
    """Whether the round ends a turn: as many rounds as there are variants."""

    cap: int | None = None
    """The maximum number of pairs."""

    measured: float = 0.0
    """The measured seconds of the claim so far."""

    budget: float | None = None
    """The maximum measured seconds of the claim."""

    @classmethod
    def of(
        cls,
        done: Round,
        counts: tuple[int, int, int],
        seen: tuple[float, float, float] | None,
        cap: int,
        **shown: Any,
    ) -> RoundProgress:
        """The progress after a round.

        counts: the pairs before its block, the instances of each variant, and the variants. seen: the ratio at the last
        look, and the ends of its interval. shown: the other fields, by name.
        """
        pairs, instances, variants = counts
        ratio, low, high = seen or (None, None, None)
        upcoming = critical_values.next_look(pairs, instances)
        return cls(
            round=done,
            pair=pairs + 1 + done.position // variants,
            warm_up=done.block < 0,
            ratio=ratio,
            low=low,
            high=high,
            next_look=upcoming if upcoming is None or upcoming <= cap else None,
            last=(done.position + 1) % variants == 0,
            cap=cap,
            **shown,
        )

    @property
    def estimate(self) -> str:
        """The ratio so far with its interval, ``1.84x (1.18 .. 3.08)``; empty before the first look."""
        if self.ratio is None or self.low is None or self.high is None:
            return ""
        return formatting.with_interval(self.ratio, self.low, self.high, EQUAL)
