"""Standing: the place of one variant in a race."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims.claim import EQUAL


@dataclasses.dataclass(frozen=True)
class Standing:
    """The place of one variant in a race. The first one is the winner, or the leader of a race without one."""

    name: str
    """The short name of the variant."""

    ratio: float
    """Its speed / the speed of the first one, by the rounds that both have; 1 for the first one."""

    low: float
    """The lower end of the interval of the ratio, at the level of the race."""

    high: float
    """The upper end of the same interval."""

    rounds: int
    """The rounds that count; a variant that was beaten left after them."""

    beaten_by: str = ""
    """The variant that beat it; empty if it remains."""

    wins: bool = False
    """Whether it has won."""

    @property
    def end(self) -> str:
        """``wins``, ``remains``, or ``left after 17 rounds, beaten by flush_0``."""
        if not self.beaten_by:
            return "wins" if self.wins else "remains"
        return f"left after {formatting.quantity(self.rounds, 'round')}, beaten by {self.beaten_by}"

    @property
    def estimate(self) -> str:
        """The ratio with its interval: ``0.71x (0.65 .. 0.77)``."""
        return formatting.with_interval(self.ratio, self.low, self.high, EQUAL)


def columns(standings: Sequence[Standing]) -> tuple[str, ...]:
    """The heading of each column of ``rows``."""
    return "variant", f"speed / {standings[0].name}", "rounds", "end"


def rows(standings: Sequence[Standing]) -> list[tuple[str, ...]]:
    """A row for each variant, in their order. The first one has no ratio, because the others are compared with it."""
    return [
        (one.name, one.estimate if number else formatting.NOTHING, str(one.rounds), one.end)
        for number, one in enumerate(standings)
    ]
