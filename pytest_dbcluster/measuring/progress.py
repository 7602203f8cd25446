"""RoundProgress: one finished round, as it is shown while a test runs."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster.rounds.round import Round


@dataclasses.dataclass(frozen=True)
class RoundProgress:
    """One finished round, as it is shown while a test runs.

    ``warm_up`` rounds do not count. ratio, low and high are of the claim so far, None before the first look.
    ``last`` of its block. ``cap``: most pairs of the claim; ``measured`` seconds of ``budget`` are used so far.
    """

    test: str
    load: str
    round: Round
    pair: int
    warm_up: bool
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    next_look: int | None = None
    last: bool = True
    cap: int | None = None
    measured: float = 0.0
    budget: float | None = None
