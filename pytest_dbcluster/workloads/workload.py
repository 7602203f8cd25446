"""``Workload``: the base class of all workloads. ``Setting``: the cluster and the hosts that a workload uses.

These are public, and users write workloads with them: see docs/how-to/own-workload.md for the members that stay.
"""

from __future__ import annotations

import abc
import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from pytest_dbcluster import formatting
from pytest_dbcluster.errors import WorkloadError
from pytest_dbcluster.rounds.capacity.objective import Objective
from pytest_dbcluster.rounds.round import USUAL, RunResult

if TYPE_CHECKING:  # these imports would slow down the collection of tests
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.formatting import Report
    from pytest_dbcluster.hosts.host import Host
    from pytest_dbcluster.releases.release import Release

DIGITS = 10  # of the digest of a workload's files
SEEDS = 2**31 - 1  # of blocks; a warm-up has blocks below 0


@dataclasses.dataclass(frozen=True)
class Setting:
    """The environment of a workload."""

    cluster: Cluster
    """The cluster to run on."""

    client: Host
    """The host of the load generator."""

    release: Release
    """The release of the client programs, the same for all variants of a comparison."""

    profile: str
    """``quick`` or ``paper``."""

    progress: Report
    """Prints a line of progress."""

    block: int = 0
    """The number of the round's block, from 0. All variants of a block get the same inputs."""

    repeat: int = 1
    """How many times a workload with a fixed amount of work repeats it in a round, if it can. It reports the operations
    of all repetitions.
    """

    objective: Objective | None = None
    """An open loop may end once it must miss this objective, if the workload can; None for no objective."""

    others: tuple[Host, ...] = ()
    """More load hosts. If a workload ``divides``, they share its run."""

    variant: str = ""
    """The variant that runs. Several variants may share a cluster, whose spec is that of the first one."""

    @property
    def where(self) -> str:
        """The variant for messages, or the cluster outside of a round."""
        return self.variant or str(self.cluster.spec)

    @property
    def clients(self) -> tuple[Host, ...]:
        """All load hosts; ``client`` is the first."""
        return (self.client, *self.others)

    @property
    def seed(self) -> int:
        """The seed of the inputs, from 1: equal for all variants of a block, and different for the next block."""
        return 1 + self.block % SEEDS


class LoadEnded(WorkloadError):
    """An error of a server ended a workload. result: what the workload had done until then."""

    def __init__(self, message: str, result: RunResult) -> None:
        super().__init__(message)
        self.result = result


class Workload(abc.ABC):
    """A workload: a frozen dataclass with its own ``__str__``, which is its name in results and history.

    Equal workloads on one cluster share their prepared tables.
    """

    metric: ClassVar[str] = USUAL
    """The default metric of claims."""

    divides: ClassVar[bool] = False
    """Whether all load hosts share a run; otherwise the first one runs it."""

    @property
    @abc.abstractmethod
    def writes(self) -> bool:
        """Whether a run changes the tables. If so, ``reset`` is called before each round."""

    @property
    @abc.abstractmethod
    def tables(self) -> Sequence[str]:
        """The tables, as ``schema.table``, that must be equal on all nodes after the rounds."""

    @abc.abstractmethod
    def prepare(self, setting: Setting) -> None:
        """Make the tables. A second call on the same cluster returns quickly."""

    @abc.abstractmethod
    def reset(self, setting: Setting) -> None:
        """Restore the tables to the state after ``prepare``. This is not part of the measured round."""

    @abc.abstractmethod
    def run(self, setting: Setting) -> RunResult:
        """Run one round, and return its result. Raises WorkloadError with the tool's own message."""

    @abc.abstractmethod
    def clean(self, setting: Setting) -> None:
        """Drop the tables."""

    @property
    def mode_name(self) -> str:
        """The name of the tool's mode in published results; empty if it has no modes."""
        return ""

    @property
    def parts(self) -> Sequence[str]:
        """The types of transactions in the ledger, then the statements whose latencies are kept, such as ``order:7``.

        A metric can be limited to one of them: ``p95:order``. Empty if they are known only from the rounds.
        """
        return ()

    def names_in(self, field: str) -> Sequence[str] | None:
        """The keys of a field that is a mapping, over which a sweep may vary one; None for another field."""
        return None

    @property
    def round_seconds(self) -> float | None:
        """The seconds in which a round starts operations; None if a fixed number of operations ends the round."""
        return None

    @property
    def clients(self) -> int:
        """Number of connections of a round; 0 if it is not known."""
        return 0

    @property
    def files(self) -> Mapping[str, str]:
        """The SHA-256 of each file of the user that decides what this workload does; empty without such files.

        A name is relative, such as ``shop/order.sql``. A large file may have its size in place of it.
        """
        return {}

    @property
    def content_hash(self) -> str:
        """A digest of ``files``: another content is another workload, whose results no history continues."""
        files = sorted(self.files.items())
        return hashlib.sha256(repr(files).encode()).hexdigest()[:DIGITS] if files else ""

    @property
    def own_name(self) -> str:
        """The name of what the user wrote, such as ``shop`` of a directory; empty for a workload without ``files``.

        With ``content_hash`` it says what a calibration is valid for.
        """
        return ""

    @property
    def option(self) -> str:
        """The value of ``dbcluster calibrate --workload`` for what the user wrote, such as ``shop/``; empty if none."""
        return ""

    @property
    def data_set_bytes(self) -> int:
        """Approximate size of the tables on disk, in bytes; 0 if it is not known beforehand."""
        return 0

    @property
    def data_scale(self) -> str:
        """The size of the tables after ``prepare``, such as ``8 tables of 100000 rows``; empty if it is not known."""
        return ""

    @property
    def data_text(self) -> str:
        """Both sizes of the tables, as in ``8 tables of 100000 rows, about 199 MiB``; empty if neither is known."""
        size = f"about {formatting.whole_mebibytes(self.data_set_bytes)}" if self.data_set_bytes else ""
        return ", ".join(filter(None, [self.data_scale, size]))

    def check(self) -> None:  # noqa: B027  (most workloads check their parameters when they are made)
        """Raise ConfigError for a workload that cannot run. It is called before anything starts, and starts nothing."""

    def lacks(self, release: Release) -> str:
        """Why this release cannot run the load generator, and what to do; empty if it can. Does not start anything."""
        return ""

    def unfit(self, topology: str) -> str:
        """Why clusters of this topology cannot have the tables; empty if they can, or if only the servers know it.

        It is called before anything starts, and starts nothing.
        """
        return ""

    def repeats(self, profile: str) -> bool:
        """Whether the tool itself makes, populates and drops its tables in this profile, several times in a round.

        If so, no table is left to compare between nodes, and counters and drain cover all repetitions.
        """
        return False

    def violations(self, cluster: Cluster) -> list[str]:
        """The workload's conditions that do not hold on a drained cluster, with the node; empty if all hold.

        Call it after ``Cluster.check``, which compares the tables of all nodes.
        """
        return []


@runtime_checkable
class HasDataSet(Protocol):
    """An optional protocol: the tables are a data set in the cache, populated once per release and scale.

    Servers that run this workload start from a copy of the data set.
    """

    @property
    def data_set(self) -> str:
        """The name of the data set: tool, version of the schema, scale. Equal names mean equal tables."""

    @property
    def data_set_bytes(self) -> int:
        """Approximate size of the data set on disk, in bytes; 0 if it is not known beforehand."""

    def populate(self, setting: Setting) -> None:
        """Make the tables on a new standalone server. Raises WorkloadError with the tool's own message."""

    def violations(self, cluster: Cluster) -> list[str]:
        """The workload's conditions that do not hold on the data set; empty if all hold."""


@runtime_checkable
class Timed(Protocol):
    """An optional protocol: rounds last for a time instead of a number of operations."""

    @property
    def seconds(self) -> float | None:
        """The length of a round that the test sets; None if the claim chooses it from its warm-up."""

    def with_seconds(self, seconds: float | None) -> Workload:
        """The same workload on the same tables, with rounds of this length in seconds; None: the claim chooses."""


@runtime_checkable
class OpenLoop(Protocol):
    """An optional protocol: an open loop, in which operations start at an arrival rate."""

    @property
    def rate(self) -> float | str | None:
        """Operations per second, or a share such as ``"70 %"`` of the slowest variant's capacity; None: closed loop."""

    def at_rate(self, rate: float | None) -> Workload:
        """The same workload on the same tables, at this rate in operations per second; None: closed loop."""
