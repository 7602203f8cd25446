"""Rules: the run's options on drawing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from pytest_dbcluster.claims import verdict
from pytest_dbcluster.measuring.drawing import reach
from pytest_dbcluster.rounds import round_length


@dataclasses.dataclass(frozen=True)
class Rules:
    """The run's options on drawing."""

    seed: int
    """The seed of the run; each measurement draws its own order from it."""

    alpha: float = 0.0005
    """The maximum chance of a wrong verdict, per claim and side."""

    cap: int = verdict.CAP
    """The maximum number of pairs of a claim."""

    budget: float = 120.0
    """The maximum measured seconds of a claim."""

    event_budget: float = math.inf
    """The maximum seconds of all repetitions of one measurement of events."""

    run_over: Callable[[], str] = lambda: ""
    """Returns why the whole run must draw no more, such as its used time; empty while it may."""

    run_left: Callable[[], float] = lambda: math.inf
    """Returns the seconds left of the run."""

    fixed_seed: bool = False
    """Whether the user chose the seed."""

    budget_name: str = round_length.BUDGET
    """What the user calls the budget, such as the name of its option."""

    larger_budget: Callable[[int], str] = reach.LARGER
    """Returns what the user has to write for a budget of this many seconds."""

    time_left: Callable[[], float] = lambda: math.inf
    """Returns the seconds of wall time until ``run_over`` ends the draws of this claim."""

    longest: float = round_length.LONGEST
    """The maximum seconds of a round whose length is chosen."""

    wider: float = 0.0
    """The wider margin that an open guard may still show, as in ``verdict.Terms``; 0 for none."""

    @property
    def whole_budget(self) -> str:
        """The budget of a claim in words."""
        return f"the {self.budget:.4g} s of measured time ({self.budget_name})"
