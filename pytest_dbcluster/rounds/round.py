"""RunResult: what a workload reports of one run. Round: that result with counters, samples and whether it counts."""

from __future__ import annotations

import array
import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping

from pytest_dbcluster.rounds.capacity.capacity_curve import CapacityCurve
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger
from pytest_dbcluster.rounds.outages.outage import Outage

# Properties of a Round in operations/s -> the same with the drain included.
DRAINED = {"throughput": "drained_throughput", "goodput": "drained_goodput"}
SPEEDS = (*DRAINED, *DRAINED.values())
USUAL = "throughput"  # the metric of claims about a workload that names no default metric


@functools.lru_cache(maxsize=256)
def _places(names: tuple[str, ...]) -> Mapping[str, int]:
    return {name: place for place, name in enumerate(names)}


class RoundFigures(Mapping[str, float]):
    """Figures of a round by name. Rounds with the same names share them, so a figure takes 8 bytes."""

    __slots__ = ("_places", "_values")

    def __init__(self, figures: Mapping[str, float]) -> None:
        self._places = _places(tuple(figures))
        self._values = array.array("d", figures.values())

    def __getitem__(self, name: str) -> float:
        return self._values[self._places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(dict(self))


@dataclasses.dataclass(frozen=True)
class LoadHost:
    """The CPU use of one of several load hosts in its part of a run."""

    name: str
    """Name of its machine, or of the host."""

    machine: str
    """``Host.machine``; hosts of one machine share its cores."""

    cores: float
    """Number of cores that the host may use."""

    client_seconds: float
    """CPU seconds of the load generator on this host, as in RunResult."""

    busiest: float
    """Share of its busiest thread, as in RunResult."""


@dataclasses.dataclass(frozen=True)
class RunResult:
    """What a workload reports of one run."""

    seconds: float
    """The measured time."""

    operations: int
    """Statements or transactions that the workload tried in this time, with those that ended in a conflict."""

    commits: int | None = None
    """Writing statements or transactions that committed between the two readings of the counters; None for a workload
    that writes nothing.
    """

    least: float | None = None
    """Seconds of the shortest repetition, if the tool repeats its work and reports the average."""

    most: float | None = None
    """Seconds of the longest repetition."""

    good: int | None = None
    """Operations that ended as intended; None for all."""

    ledger: Ledger | None = None
    """Outcomes of all transactions, if the workload keeps a ledger."""

    by_second: tuple[int, ...] = ()
    """Good operations of each second of the run."""

    by_tenth: tuple[int, ...] = ()
    """Good operations of each tenth of a second."""

    rate: float | None = None
    """Operations/s that an open loop offers; None for a closed loop."""

    offered: int | None = None
    """Operations that an open loop had to start in the measured time, if the workload counts them."""

    delay: float | None = None
    """Mean seconds by which the last operations of an open loop's threads began late."""

    span: float | None = None
    """Seconds that counters and backlog cover, if a tool prepares and repeats its work; None for the measured time.
    """

    client_seconds: float | None = None
    """CPU seconds of the load generator in the measured time."""

    busiest: float | None = None
    """The largest share (0 to 1) of the measured time in which one load generator thread was on a CPU."""

    figures: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """More figures that a workload reports, such as tpmC."""

    statements: Mapping[str, Histogram] = dataclasses.field(default_factory=dict)
    """Latencies of each statement, if the workload keeps them; ``order:7`` is line 7 of order.sql. They have all
    attempts, and no time between statements.
    """

    resolution: float = 0.0
    """The step in which the tool prints the time, in seconds; 0 if the workload reads the clock."""

    load_hosts: tuple[LoadHost, ...] = ()
    """The hosts that divided the run; empty for a run on one host."""

    ended_early: bool = False
    """Whether an open loop ended before its time, because it must miss its objective."""

    void: str = ""
    """Why the run does not count although it ended; empty if it counts."""

    @property
    def done(self) -> int:
        """The number of operations that ended as intended."""
        return self.operations if self.good is None else self.good

    @property
    def idle(self) -> str:
        """Why the run does not count: no operation ended as intended. Empty if one did."""
        return "" if self.done else f"no operation succeeded: 0 of {self.operations}"


@dataclasses.dataclass(frozen=True)
class Round:
    """One measurement of one variant."""

    variant: str
    """The spec's short name."""

    block: int
    """Number of its block, 0-based, or negative for a warm-up block. The first blocks have four rounds of each variant,
    later ones one (``claims.block_order``). A repeated round has the block and position of the void one.
    """

    position: int
    """Place in its block, 0-based."""

    outcome: RunResult
    """The report of the workload."""

    wall: float
    """Seconds with reset, switch and settle."""

    started: float
    """Start of the workload, in seconds since 1970 (UTC)."""

    settled: bool = True
    """Whether the servers were at rest before the start."""

    counters: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Values by name (``rounds.counters.NAMES``). DELTAS are increases from before the start until the drain has ended.
    They are sums over the nodes, but ``certified`` and ``conflicts`` are the maximum. The name ends with the unit
    (``_ms``, ``_us``, ``_ns``, ``_bytes``); names without a unit are counts. STATES are readings after the round, the
    maximum of all nodes. ``_per_commit`` is by commit, ``_share`` a fraction, ``drain_seconds`` in seconds.
    """

    samples: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Averages over the round by name; see ``testbed.sampler.Sampler.rates``. ``client_cores`` is the number of cores
    that the load generator could use.
    """

    void: str = ""
    """Why the round does not count; empty if it counts."""

    limited: str = ""
    """Which part of the load generator limited the speed of the round; empty if no part did."""

    behind: bool = False
    """Whether an open loop fell behind its rate; see ``open_loop.is_behind``."""

    outage: Outage | None = None
    """What an event in this round cost the load; None for a round without an event."""

    capacity: CapacityCurve | None = None
    """The latency at several arrival rates, if the round measures a capacity; else None."""

    def __post_init__(self) -> None:
        # A run keeps all its rounds, and most of the memory of a round was these two dictionaries.
        for name in ("counters", "samples"):
            if not isinstance(figures := getattr(self, name), RoundFigures):
                object.__setattr__(self, name, RoundFigures(figures))

    @property
    def seconds(self) -> float:
        """The measured time."""
        return self.outcome.seconds

    @property
    def throughput(self) -> float:
        """Operations a second; higher is better."""
        return self.outcome.operations / self.outcome.seconds

    @property
    def drained_throughput(self) -> float:
        """Operations a second until every node has applied them, so that a backlog counts. Higher is better."""
        return self.outcome.operations / self.drained_seconds

    @property
    def goodput(self) -> float:
        """Operations a second that ended as intended, without those that ended in a conflict. Higher is better."""
        return self.outcome.done / self.outcome.seconds

    @property
    def drained_goodput(self) -> float:
        """Goodput until every node has applied the operations."""
        return self.outcome.done / self.drained_seconds

    @property
    def drained_seconds(self) -> float:
        """The measured time with the drain after it; nan if other operations than the measured ones drained too."""
        if self.outcome.span is not None:
            return math.nan
        return self.outcome.seconds + self.counters.get("drain_seconds", 0.0)

    @functools.cached_property
    def cost(self) -> float:
        """Seconds of one good operation, for comparisons between rounds of any length; infinite without any.

        It is the inverse of the goodput, or of the capacity. The speed of an open loop is fixed, so its cost is the
        mean latency.
        """
        if self.capacity:
            return 1 / self.capacity.value
        if self.outcome.rate is not None and self.outcome.ledger:
            mean = self.outcome.ledger.total.latencies.mean
            return math.inf if math.isnan(mean) else mean
        return 1 / self.goodput if self.outcome.done else math.inf
