"""Objective: a latency percentile and the seconds that it must not exceed, such as a p95 of 20 ms."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Self

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import amount
from pytest_dbcluster.rounds.histogram import PERCENTILES

MOST = 1.0  # seconds: users of a database see a longer latency as an outage, and rounds would last for minutes
SIGMAS = 3.0  # standard deviations of a Poisson count


@dataclasses.dataclass(frozen=True)
class Objective:
    """A latency percentile and the seconds that it must not exceed."""

    percentile: str
    """The percentile: ``p50``, ``p95``, ``p99`` or ``p999``."""

    seconds: float
    """The seconds that it must not exceed."""

    @classmethod
    def of(cls, call: str, given: Mapping[str, object]) -> Self:
        """The objective of a call such as ``measure.capacity(..., p95=0.02)``.

        call: its name. given: its keyword arguments. Raises ConfigError unless there is one known percentile, with
        seconds above 0 and at most 1.
        """
        if unknown := next((name for name in given if name not in PERCENTILES), ""):
            raise registry.unknown("percentile", unknown, PERCENTILES)
        if len(given) != 1:
            got = ", ".join(f"{name}={value!r}" for name, value in given.items()) or "none"
            raise ConfigError(f"{call} needs one objective, such as p95=0.02 for 20 ms; got {got}")
        [(name, seconds)] = given.items()
        number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not number or not 0 < float(str(seconds)) <= MOST:
            raise ConfigError(
                f"{call}: {name}={seconds!r} must be seconds, 0 < {name} <= {MOST:g}; 20 ms is {name}=0.02"
            )
        return cls(name, float(str(seconds)))

    @property
    def share(self) -> float:
        """The share of the operations that must not take longer: .95 for ``p95``."""
        return PERCENTILES[self.percentile]

    @property
    def keyword(self) -> str:
        """The objective as a test writes it: ``p95=0.02``."""
        return f"{self.percentile}={self.seconds:g}"

    def allowance(self, operations: float) -> int:
        """How many of about so many operations may take longer, if the objective is just met.

        The number of operations is a Poisson count, so it may be larger by three standard deviations.
        """
        return math.floor((1 - self.share) * (operations + SIGMAS * math.sqrt(operations)) + 1e-9)

    def options(self, operations: float) -> dict[str, float]:
        """The options of terminal.lua with which an open loop of about so many operations ends early."""
        return {"objective": self.seconds, "most_over": self.allowance(operations)}

    def name_of(self, load: object) -> str:
        """The name of a workload whose capacity is measured: ``tpcc w1 t4, capacity at a p95 of 20 ms``."""
        return f"{load}, capacity at a {self}"

    def __str__(self) -> str:
        """``p95 of 20 ms``."""
        return f"{self.percentile} of {amount(1e3 * self.seconds)} ms"
