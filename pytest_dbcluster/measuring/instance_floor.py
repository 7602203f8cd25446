"""The instance floor: how far two fresh instances of the same variant differ.

Two servers of the same release differ by the locations of their memory and files. A comparison of two servers, as
opposed to two settings of one server, contains that difference. A margin below the difference cannot be tested. So the
baseline is measured against itself, instance against instance, before a claim with a margin is judged.
"""

from __future__ import annotations

import dataclasses
import math
from contextlib import AbstractContextManager

from pytest_dbcluster.claims.claim import Claim
from pytest_dbcluster.measuring.round_source import RoundSource
from pytest_dbcluster.rounds.round import Round


class Twins(RoundSource):
    """A round source for one variant of another source: its two variants are the first two instances of that one."""

    def __init__(self, source: RoundSource, number: int, instances: int) -> None:
        self._source, self._number, self._instances = source, number, instances
        self.load, self.metric, self.arrival_rate = source.load, source.metric, source.arrival_rate
        self.names = [f"{source.names[number]} instance {instance + 1}" for instance in range(2)]

    def round(self, variant: int, *, block: int, position: int) -> Round:
        """Run one round on one instance; ``variant`` is the 0-based number of the instance."""
        done = self._source.round(self._number, block=block * self._instances + variant, position=position)
        return dataclasses.replace(done, variant=self.names[variant], block=block)

    def alone(self) -> AbstractContextManager[None]:
        """The context of the other source."""
        return self._source.alone()

    def check(self) -> None:
        """Check the other source. Raises SeriesVoid."""
        self._source.check()


@dataclasses.dataclass(frozen=True)
class InstanceFloor:
    """The ratio of two instances of one variant. name: the variant. ratio: second / first. pairs: pairs measured."""

    name: str
    ratio: float
    pairs: int

    @property
    def distance(self) -> float:
        """The distance of the two instances as an absolute log ratio."""
        return abs(math.log(self.ratio))

    @property
    def line(self) -> str:
        """The line of a claim's message."""
        percent = 100 * math.expm1(self.distance)
        return f"instance floor: two instances of {self.name} differ by {percent:.1f} % ({self.pairs} pairs)"

    def refuses(self, claim: Claim) -> str:
        """Why the margin of a claim is too small to test; empty when it can be tested or the claim has no margin."""
        margins = margins_of(claim)
        if not margins or min(margins) >= self.distance:
            return ""
        return f"{self.line}, and the margin of {claim.kind} is smaller: no verdict would be about the variants"


def margins_of(claim: Claim) -> list[float]:
    """The margins of a claim as absolute log ratios; none for a claim without a margin or about a counter."""
    if claim.kind == "lower":
        return []
    return [abs(bound) for bound in claim.bounds if math.isfinite(bound) and bound]
