"""RoundSource: what a measurement draws its rounds from, whether real clusters or made-up numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, cast

from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round


class Rounds(Protocol):
    """What of a laboratory draws rounds and checks them: all that is needed to compare instances of one variant."""

    @property
    def names(self) -> Sequence[str]:
        """The short name of each variant."""

    @property
    def load(self) -> str:
        """The name of the workload."""

    def round(self, variant: int, *, block: int, position: int) -> Round:
        """One round: switch, reset, settle, run. Its ``void`` says why it does not count.

        Where variants have several instances, the block's number modulo theirs says which one it is on.
        """

    @property
    def metric(self) -> str:
        """What claims about the load are about that name no metric."""

    @property
    def pace(self) -> ArrivalRate | None:
        """The rate of an open loop; None of a closed one."""

    def check(self) -> None:
        """Raise SeriesVoid when something is wrong with the clusters or the tables after the rounds."""


class Alone(Protocol):
    """An extra power: rounds of one block that nothing else on the machine comes between."""

    def alone(self) -> AbstractContextManager[None]:
        """For the rounds inside of it."""


def alone(laboratory: Rounds) -> AbstractContextManager[None]:
    """The extra power of a laboratory that has it."""
    return cast(Alone, laboratory).alone() if hasattr(laboratory, "alone") else contextlib.nullcontext()


class RoundSource(Rounds, Protocol):
    """What runs the rounds of one workload on the variants of one measurement."""

    def blind(self, kind: str, *numbers: int) -> str:
        """Why no claim of this kind about these variants can be trusted on this machine; empty when it can."""

    def notes(self, *numbers: int) -> Sequence[str]:
        """Lines that every message about these variants has: durability, effective differences, the one client."""
