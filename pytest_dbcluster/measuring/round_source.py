"""RoundSource: what a measurement draws its rounds from, whether real clusters or made-up numbers."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager

from pytest_dbcluster.rounds.open_loop import ArrivalRate
from pytest_dbcluster.rounds.round import Round


class RoundSource(abc.ABC):
    """Runs the rounds of one workload on the variants of one measurement.

    Variants are numbered from 0, in the order of ``names``.
    names: the short name of each variant. load: the name of the workload. metric: what claims are about that name no
    metric. arrival_rate: that of an open loop, None for a closed one.
    """

    names: Sequence[str]
    load: str
    metric: str
    arrival_rate: ArrivalRate | None

    @abc.abstractmethod
    def round(self, variant: int, *, block: int, position: int) -> Round:
        """One round of a variant: switch, reset, settle, run. Its ``void`` says why it does not count.

        ``block`` is the number of its block, negative in a warm-up; ``position`` its place in the block, from 0.
        Where a variant has several instances, the block's number modulo theirs says which one it runs on.
        """

    @abc.abstractmethod
    def check(self) -> None:
        """Raise SeriesVoid when something is wrong with the clusters or the tables after the rounds."""

    def alone(self) -> AbstractContextManager[None]:
        """A context in which nothing else on the machine runs between the rounds of one block."""
        return contextlib.nullcontext()

    def permit(self, metric: str) -> None:  # noqa: B027 (by default every metric is permitted)
        """Raise ConfigError for a metric or counter that the workload cannot have on these variants."""

    def blind_spot(self, kind: str, *numbers: int) -> str:
        """Why no claim of this kind about these variants can be trusted on this machine; empty when it can."""
        return ""

    def notes(self, *numbers: int) -> Sequence[str]:
        """Lines that every message about these variants has: durability, effective differences, the one client."""
        return []
