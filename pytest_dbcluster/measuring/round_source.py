"""RoundSource: the interface that a measurement draws its rounds from: real clusters, or made-up numbers in a test."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager

from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round


class RoundSource(abc.ABC):
    """Runs the rounds of one workload on the variants of one measurement. Variant numbers are 0-based.

    names: the short name of each variant. load: the name of the workload. metric: the default metric of claims.
    arrival_rate: the rate of an open loop, None for a closed loop.
    """

    names: Sequence[str]
    load: str
    metric: str
    arrival_rate: ArrivalRate | None

    @abc.abstractmethod
    def round(self, variant: int, *, block: int, position: int) -> Round:
        """Run one round of a variant: switch, reset, settle, run. A round with a ``void`` reason does not count.

        block: the number of the block, 0-based, negative in a warm-up; modulo the number of instances it chooses the
        instance of the variant. position: the 0-based position in the block.
        """

    @abc.abstractmethod
    def check(self) -> None:
        """Raise SeriesVoid when the clusters or their tables are not as they should be after the rounds."""

    def alone(self) -> AbstractContextManager[None]:
        """A context for the rounds of one block, in which nothing else measures or builds on this machine."""
        return contextlib.nullcontext()

    def permit(self, metric: str) -> None:  # noqa: B027 (by default every metric is permitted)
        """Raise ConfigError for a metric or counter that the workload does not have on these variants."""

    def blind_spot(self, kind: str, *numbers: int) -> str:
        """Why no claim of this kind about these variants can be trusted on this machine; empty when it can be."""
        return ""

    def notes(self, *numbers: int) -> Sequence[str]:
        """Lines for every message about these variants, such as durability and different effective options."""
        return []
