"""Repetitions: the values of the repetitions of one variant."""

from __future__ import annotations

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Repetitions:
    """One value for each repetition, in the order in which they ran."""

    values: tuple[float, ...]
    """Seconds, or transactions."""

    censored: tuple[bool, ...] = ()
    """For each value, whether it is only a lower bound; empty if none is."""

    texts: tuple[str, ...] = ()
    """Each value in words; empty for numbers."""

    def __len__(self) -> int:
        return len(self.values)

    def first(self, count: int) -> Repetitions:
        """The first repetitions."""
        return Repetitions(self.values[:count], self.censored[:count], self.texts[:count])

    @property
    def most(self) -> tuple[float, ...]:
        """The largest possible value of each repetition: infinite for a lower bound."""
        if not self.censored:
            return self.values
        return tuple(math.inf if more else value for value, more in zip(self.values, self.censored, strict=True))
