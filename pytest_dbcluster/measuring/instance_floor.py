"""The instance floor: how far two fresh instances of one and the same variant differ.

Two servers of the same release differ by where their memory and their files lie. Where a comparison is between
servers and not between settings of one server, that difference is part of it: a margin below it claims more than
anybody can know. So one variant is measured against itself, instance against instance, before such a margin counts.
"""

from __future__ import annotations

import dataclasses
import math
from contextlib import AbstractContextManager

from pytest_dbcluster.claims.claim import Claim
from pytest_dbcluster.measuring.round_source import RoundSource
from pytest_dbcluster.rounds.round import Round


class Twins(RoundSource):
    """A round source whose two variants are the first two instances of one variant of another round source."""

    def __init__(self, source: RoundSource, number: int, instances: int) -> None:
        self._source, self._number, self._instances = source, number, instances
        self.load, self.metric, self.arrival_rate = source.load, source.metric, source.arrival_rate
        self.names = [f"{source.names[number]} instance {instance + 1}" for instance in range(2)]

    def round(self, variant: int, *, block: int, position: int) -> Round:
        """One round of one instance."""
        done = self._source.round(self._number, block=block * self._instances + variant, position=position)
        return dataclasses.replace(done, variant=self.names[variant], block=block)

    def alone(self) -> AbstractContextManager[None]:
        """The other source's way to have the machine for a block."""
        return self._source.alone()

    def check(self) -> None:
        """What the other source checks."""
        self._source.check()


@dataclasses.dataclass(frozen=True)
class InstanceFloor:
    """The ratio of two instances of one variant, measured over so many pairs."""

    name: str
    ratio: float
    pairs: int

    @property
    def distance(self) -> float:
        """How far the two are apart, as a log ratio; never negative."""
        return abs(math.log(self.ratio))

    @property
    def line(self) -> str:
        """What a message says of it."""
        percent = 100 * math.expm1(self.distance)
        return f"instance floor: two instances of {self.name} differ by {percent:.1f} % ({self.pairs} pairs)"

    def refuses(self, claim: Claim) -> str:
        """Why a claim's margin cannot be known here; empty when it can, or when the claim has none."""
        margins = margins_of(claim)
        if not margins or min(margins) >= self.distance:
            return ""
        return f"{self.line}, and the margin of {claim.kind} is smaller: no answer would be about the variants"


def margins_of(claim: Claim) -> list[float]:
    """The margins of a claim about speed as log ratios; none for a claim that has none, or that counts something."""
    if claim.kind == "lower":
        return []
    return [abs(bound) for bound in claim.bounds if math.isfinite(bound) and bound]
