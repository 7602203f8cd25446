"""FactorialTrial: the rounds of several options with their levels, and the residuals that a claim compares."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from pytest_dbcluster.claims.factorial.design import PER_LEVEL, ROUNDS

SMALLEST = 1e-9  # of a pivot: what is smaller is a sum of earlier columns

Strata = Sequence[Sequence[int]]


@dataclasses.dataclass(frozen=True)
class FactorialTrial:
    """The rounds of whole blocks, in the order in which they ran."""

    logs: tuple[float, ...]
    """The natural log of the speed of each round."""

    combinations: tuple[int, ...]
    """The combination of each round, as in ``design``."""

    options: int
    """The number of options."""

    rounding: float = 0.0
    """The possible error of a log ratio, because the tool prints times in steps; 0 if it does not."""

    void: tuple[tuple[int, int], ...] = ()
    """Each void round: (the number of blocks before it, its combination)."""

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return len(self.logs) // ROUNDS

    @property
    def pairs(self) -> int:
        """The number of rounds of each level."""
        return self.blocks * PER_LEVEL

    def part(self, start: int, end: int) -> FactorialTrial:
        """The blocks from ``start`` (0-based) to ``end``, without ``end``; void rounds as if it began the trial."""
        rounds = slice(ROUNDS * start, ROUNDS * end)
        void = tuple((before - start, number) for before, number in self.void if start <= before < end)
        return dataclasses.replace(self, logs=self.logs[rounds], combinations=self.combinations[rounds], void=void)

    def level(self, option: int, place: int) -> int:
        """The level of an option in a round: 0 or 1."""
        return self.combinations[place] >> option & 1

    def void_rounds(self, option: int) -> tuple[int, int]:
        """The number of void rounds at the (first, second) level of an option."""
        second = sum(number >> option & 1 for _, number in self.void)
        return len(self.void) - second, second

    def strata(self, given: int | None = None, level: int = 0) -> list[list[int]]:
        """The places of the rounds of each block; with ``given`` only those at this level of that option."""
        places = [range(start, start + ROUNDS) for start in range(0, len(self.logs), ROUNDS)]
        return [[one for one in block if given is None or self.level(given, one) == level] for block in places]

    def residuals(self, values: Sequence[float], others: Sequence[int], strata: Strata) -> list[float]:
        """What is left of ``values`` after the mean of each stratum and the levels of other options (least squares).

        Places outside of all strata are 0. It depends on no option but ``others`` and the one that made the strata.
        """
        left = within(values, strata)
        columns: list[list[float]] = []
        for option in others:
            column = within([self.level(option, place) for place in range(len(values))], strata)
            for before in columns:
                column = _without(column, before)
            if _product(column, column) > SMALLEST:
                columns.append(column)
                left = _without(left, column)
        return left

    def noise(self) -> list[float]:
        """What is left of the logs after the blocks and the levels of all options."""
        return self.residuals(self.logs, range(self.options), self.strata())


def within(values: Sequence[float], strata: Strata) -> list[float]:
    """The values without the mean of their stratum; 0 outside of all strata."""
    found = [0.0] * len(values)
    for places in strata:
        mean = math.fsum(values[place] for place in places) / max(1, len(places))
        for place in places:
            found[place] = values[place] - mean
    return found


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def _without(values: Sequence[float], column: Sequence[float]) -> list[float]:
    """The values without what the column explains."""
    share = _product(values, column) / _product(column, column)
    return [value - share * step for value, step in zip(values, column, strict=True)]
