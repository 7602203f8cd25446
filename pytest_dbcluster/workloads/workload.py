"""Workload: what is run against a cluster, and the setting it is run in."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.rounds.round import RunResult


@dataclasses.dataclass(frozen=True)
class Setting:
    """What a load may use: the cluster, the host of the client, and the one client release of a comparison.

    ``block`` is the number of the block that a round belongs to; all variants of a block get the same inputs.
    """

    cluster: Cluster
    client: Host
    release: Release
    profile: str
    progress: Callable[[str], None]
    block: int = 0


class Workload(Protocol):
    """A load. Frozen and hashable; equal workloads on one cluster share their prepared tables.

    Its attribute ``metric``, where it has one, is what claims about it are about that name none.
    """

    @property
    def writes(self) -> bool:
        """Whether a run changes its tables, so that they are returned to their preload before each round."""

    @property
    def tables(self) -> Sequence[str]:
        """The tables that have to be equal on all nodes after the rounds."""

    def prepare(self, setting: Setting) -> None:
        """Make the tables; a second call on the same cluster costs nothing."""

    def reset(self, setting: Setting) -> None:
        """Return the tables to what ``prepare`` made; unmeasured."""

    def run(self, setting: Setting) -> RunResult:
        """One round. Raises WorkloadError with the tool's own words."""

    def clean(self, setting: Setting) -> None:
        """Drop the tables."""


class Repeats(Protocol):
    """An extra power: in some profile the load's program does all by itself, and more than once in a round.

    It makes its tables, fills and drops them each time: none is left to be compared, and what was counted and what
    has to drain is that of all its repetitions.
    """

    def repeats(self, profile: str) -> bool:
        """Whether it does so in this profile."""


class Stored(Protocol):
    """An extra power: the tables are made once for each release and scale, and kept as a data directory.

    Servers of a measurement of this load start from a copy of it.
    """

    @property
    def store(self) -> str:
        """What the tables hold: tool, version of the schema, scale; equal names mean equal tables."""

    def fill(self, setting: Setting) -> None:
        """Make the tables on a lone fresh server. Raises WorkloadError with the tool's own words."""


class Paced(Protocol):
    """An extra power: operations can start at a rate instead of one after the other."""

    @property
    def rate(self) -> float | str | None:
        """Operations a second; ``"70 %"`` of what the slowest variant can do; None is a closed loop."""

    def at_rate(self, rate: float | None) -> Workload:
        """The same load at this rate; None is the closed loop. It keeps its tables."""


class Verifies(Protocol):
    """An extra power: the load has conditions of its own that must hold after any of its rounds."""

    def violations(self, cluster: Cluster) -> list[str]:
        """Which of them do not hold on a cluster that has drained, and on which node; empty when all do."""
