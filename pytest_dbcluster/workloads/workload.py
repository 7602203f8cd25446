"""Workload: what is run against a cluster, and the setting it is run in."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import ClassVar, Protocol, runtime_checkable

from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.rounds.round import USUAL, RunResult


@dataclasses.dataclass(frozen=True)
class Setting:
    """What a load may use: the cluster, the host of the client, and the one client release of a comparison.

    ``block`` is the number of the block that a round belongs to; all variants of a block get the same inputs.
    """

    cluster: Cluster
    client: Host
    release: Release
    profile: str
    progress: Report
    block: int = 0


class Workload(abc.ABC):
    """A load. Frozen and hashable; equal workloads on one cluster share their prepared tables.

    metric: what claims about it are about that name none.
    """

    metric: ClassVar[str] = USUAL

    @property
    @abc.abstractmethod
    def writes(self) -> bool:
        """Whether a run changes its tables, so that they are returned to their preload before each round."""

    @property
    @abc.abstractmethod
    def tables(self) -> Sequence[str]:
        """The tables that have to be equal on all nodes after the rounds, each as ``schema.table``."""

    @abc.abstractmethod
    def prepare(self, setting: Setting) -> None:
        """Make the tables; a second call on the same cluster costs nothing."""

    @abc.abstractmethod
    def reset(self, setting: Setting) -> None:
        """Return the tables to what ``prepare`` made; unmeasured."""

    @abc.abstractmethod
    def run(self, setting: Setting) -> RunResult:
        """One round. Raises WorkloadError with the tool's own words."""

    @abc.abstractmethod
    def clean(self, setting: Setting) -> None:
        """Drop the tables."""

    @property
    def mode_name(self) -> str:
        """The tool's mode, under which published results are found; empty where it has none."""
        return ""

    @property
    def round_seconds(self) -> float | None:
        """For how long a round starts operations; None where it ends with their number."""
        return None

    @property
    def data_set_bytes(self) -> int:
        """About what its tables take on disk; 0 where that is not known beforehand."""
        return 0

    def repeats(self, profile: str) -> bool:
        """Whether in this profile the load's program does all by itself, and more than once in a round.

        It makes, populates and drops its tables each time: none is left to be compared, and what was counted and what
        has to drain is that of all its repetitions.
        """
        return False

    def violations(self, cluster: Cluster) -> list[str]:
        """Which conditions of its own do not hold on a cluster that has drained, and on which node; empty for none."""
        return []


@runtime_checkable
class HasDataSet(Protocol):
    """An optional power: its tables are a data set, made once for each release and scale and kept in the cache.

    Servers of a measurement of this load start from a copy of it.
    """

    @property
    def data_set(self) -> str:
        """Which data set: tool, version of the schema, scale; equal names mean equal tables."""

    @property
    def data_set_bytes(self) -> int:
        """About what it takes on disk; 0 where that is not known beforehand."""

    def populate(self, setting: Setting) -> None:
        """Make the tables on a lone fresh server. Raises WorkloadError with the tool's own words."""

    def violations(self, cluster: Cluster) -> list[str]:
        """Which of its own conditions the data set does not meet; empty when it meets all."""


@runtime_checkable
class OpenLoop(Protocol):
    """An optional power: operations can start at an arrival rate instead of one after the other."""

    @property
    def rate(self) -> float | str | None:
        """Operations a second; ``"70 %"`` of what the slowest variant can do; None is a closed loop."""

    def at_rate(self, rate: float | None) -> Workload:
        """The same load at this rate; None is the closed loop. It keeps its tables."""
