"""``Workload``: the base class of everything that is run against a cluster. ``Setting``: what a workload runs in."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from pytest_dbcluster.errors import WorkloadError
from pytest_dbcluster.rounds.round import USUAL, RunResult

if TYPE_CHECKING:  # what only a run needs makes the collection of tests slower
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.formatting import Report
    from pytest_dbcluster.hosts.host import Host
    from pytest_dbcluster.releases.release import Release


@dataclasses.dataclass(frozen=True)
class Setting:
    """What a workload runs in."""

    cluster: Cluster
    client: Host
    """The host of the load generator."""

    release: Release
    """Gives the client programs; one release for all variants of a comparison."""

    profile: str
    """``quick`` or ``paper``."""

    progress: Report
    """Takes each line of progress."""

    block: int = 0
    """The number of the round's block, from 0; all variants of a block get the same inputs."""

    repeat: int = 1
    """How many times a workload with a fixed amount of work runs it in a round, where it can; it reports the operations
    of all of them.
    """

    others: tuple[Host, ...] = ()
    """More hosts, between which a workload that ``divides`` divides a run."""

    @property
    def clients(self) -> tuple[Host, ...]:
        """All hosts of the load generator; ``client`` is the first."""
        return (self.client, *self.others)


class LoadEnded(WorkloadError):
    """An error of a server ended a workload. result: what the workload had done until then."""

    def __init__(self, message: str, result: RunResult) -> None:
        super().__init__(message)
        self.result = result


class Workload(abc.ABC):
    """A workload: frozen and hashable. Equal workloads on one cluster share their prepared tables.

    metric: the metric of claims that name none. divides: whether a run is divided between all hosts of the load
    generator; otherwise the first host runs all of it.
    """

    metric: ClassVar[str] = USUAL
    divides: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def writes(self) -> bool:
        """Whether a run changes the tables. Then ``reset`` is called before each round."""

    @property
    @abc.abstractmethod
    def tables(self) -> Sequence[str]:
        """The tables, as ``schema.table``, that must be equal on all nodes after the rounds."""

    @abc.abstractmethod
    def prepare(self, setting: Setting) -> None:
        """Make the tables. A second call on the same cluster is cheap."""

    @abc.abstractmethod
    def reset(self, setting: Setting) -> None:
        """Return the tables to what ``prepare`` made. This is not part of the measured round."""

    @abc.abstractmethod
    def run(self, setting: Setting) -> RunResult:
        """Run one round, and return its result. Raises WorkloadError with the tool's own message."""

    @abc.abstractmethod
    def clean(self, setting: Setting) -> None:
        """Drop the tables."""

    @property
    def mode_name(self) -> str:
        """The name of the tool's mode in published results; empty where there is none."""
        return ""

    @property
    def round_seconds(self) -> float | None:
        """Seconds in which a round starts operations; None where a fixed number of operations ends the round."""
        return None

    @property
    def clients(self) -> int:
        """Connections that a round opens; 0 where that is not known."""
        return 0

    @property
    def data_set_bytes(self) -> int:
        """Approximate bytes of the tables on disk; 0 where that is not known beforehand."""
        return 0

    def lacks(self, release: Release) -> str:
        """Why this release cannot run the load generator, and the way out; empty where it can. Starts nothing."""
        return ""

    def repeats(self, profile: str) -> bool:
        """Whether the tool itself makes, populates and drops its tables in this profile, several times in a round.

        Then no table is left to compare between nodes, and counters and drain cover all repetitions.
        """
        return False

    def violations(self, cluster: Cluster) -> list[str]:
        """The workload's own conditions that do not hold on a drained cluster, with their node; empty when all hold.

        ``Cluster.check`` has found the tables equal on all nodes before.
        """
        return []


@runtime_checkable
class HasDataSet(Protocol):
    """An optional power of a workload: its tables are a data set in the cache, populated once a release and scale.

    Servers that run this workload start from a copy of the data set.
    """

    @property
    def data_set(self) -> str:
        """The name of the data set: tool, version of the schema, scale. Equal names mean equal tables."""

    @property
    def data_set_bytes(self) -> int:
        """Approximate bytes of the data set on disk; 0 where that is not known beforehand."""

    def populate(self, setting: Setting) -> None:
        """Make the tables on a new standalone server. Raises WorkloadError with the tool's own message."""

    def violations(self, cluster: Cluster) -> list[str]:
        """The workload's own conditions that do not hold on the data set; empty when all hold."""


@runtime_checkable
class Timed(Protocol):
    """An optional power of a workload: its rounds last for a time, and not for a number of operations."""

    @property
    def seconds(self) -> float | None:
        """Seconds of a round as the test gives them; None where they are chosen from the warm-up of a claim."""

    def lasting(self, seconds: float | None) -> Workload:
        """The same workload, with the same tables, in rounds of so many seconds; None: to be chosen."""


@runtime_checkable
class OpenLoop(Protocol):
    """An optional power of a workload: an open loop, in which operations start at an arrival rate."""

    @property
    def rate(self) -> float | str | None:
        """Operations a second, or a share such as ``"70 %"`` of the slowest variant's capacity; None: closed loop."""

    def at_rate(self, rate: float | None) -> Workload:
        """The same workload, with the same tables, at this rate in operations a second; None: closed loop."""
