"""RunResult: what a workload reports of one run. Round: that result with counters, samples and whether it counts."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping

from pytest_dbcluster.rounds.ledger import Ledger

# Properties of a Round in operations/s -> the same with the drain included.
DRAINED = {"throughput": "drained_throughput", "goodput": "drained_goodput"}
SPEEDS = (*DRAINED, *DRAINED.values())
USUAL = "throughput"  # the metric of claims about a workload that names no default metric


@dataclasses.dataclass(frozen=True)
class LoadHost:
    """What one of several hosts of the load generator took for its part of a run.

    client_seconds, busiest: as in RunResult, of this host.
    """

    name: str
    """Of its machine, or of the host."""

    machine: str
    """As ``Host.machine``; hosts of one machine share its cores."""

    cores: float
    """That it may use."""

    client_seconds: float
    busiest: float


@dataclasses.dataclass(frozen=True)
class RunResult:
    """What a workload reports of one run.

    least, most: seconds of the shortest and of the longest repetition, of a tool that repeats by itself and reports its
    average.
    by_second, by_tenth: good operations of each second, and of each tenth of a second, of the run. Of an open loop:
    rate: operations/s offered, None for a closed loop.
    """

    seconds: float
    """The measured time."""

    operations: int
    """Statements or transactions tried in this time, with those that a conflict ended."""

    commits: int | None = None
    """Committed writing statements or transactions between the two readings of the counters; None for a workload that
    writes nothing.
    """

    least: float | None = None
    most: float | None = None
    good: int | None = None
    """Operations that ended as intended, None for all."""

    ledger: Ledger | None = None
    """Outcomes of all transactions, of workloads that keep a ledger."""

    by_second: tuple[int, ...] = ()
    by_tenth: tuple[int, ...] = ()
    rate: float | None = None
    offered: int | None = None
    """Operations that were to start in the measured time, if counted."""

    delay: float | None = None
    """Mean seconds by which the last operations of the threads began late."""

    span: float | None = None
    """Seconds that counters and backlog cover, of a tool that prepares and repeats by itself; None when they cover the
    measured time.
    """

    client_seconds: float | None = None
    """CPU seconds of the load generator in the measured time."""

    busiest: float | None = None
    """The largest share (0 to 1) of the measured time that one of its threads was on a CPU."""

    figures: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """More figures that a workload reports, such as tpmC."""

    resolution: float = 0.0
    """The step in which the tool prints this time, in seconds; 0 where the clock itself was read."""

    load_hosts: tuple[LoadHost, ...] = ()
    """The hosts that divided the run; empty for a run on one host."""

    void: str = ""
    """Why the run does not count although it ended; empty when it does."""

    @property
    def done(self) -> int:
        """The number of operations that ended as intended."""
        return self.operations if self.good is None else self.good

    @property
    def idle(self) -> str:
        """Why the run does not count: no operation ended as intended, so nothing was measured. Empty when one did."""
        return "" if self.done else f"no operation succeeded: 0 of {self.operations}"


@dataclasses.dataclass(frozen=True)
class Round:
    """One measurement of one variant."""

    variant: str
    """The spec's short name."""

    block: int
    """Number of its block, 0-based; of warm-up blocks negative. The first blocks have four rounds of each variant,
    later ones one (``claims.block_order``). A round that was drawn again has the block and position of the one that did
    not count.
    """

    position: int
    """Place in its block, 0-based."""

    outcome: RunResult
    """What the load said."""

    wall: float
    """Seconds with reset, switch and settle."""

    started: float
    """When the load was started, in seconds since 1970 (UTC)."""

    settled: bool = True
    """Whether the servers had come to rest before that."""

    counters: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """By name (``rounds.counters.NAMES``). Those of DELTAS are increases from before the load until its drain has
    ended, summed over the nodes (``certified`` and ``conflicts``: the largest of a node), in the unit that the name
    ends with (``_ms``, ``_us``, ``_ns``, ``_bytes``) or else a count. Those of STATES are readings after the round, the
    largest of all nodes. ``_per_commit`` is by commit, ``_share`` a fraction, ``drain_seconds`` in seconds.
    """

    samples: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Averages over the round by name, see ``testbed.sampler.Sampler.rates``; ``client_cores`` is the number of cores
    that the load generator could use.
    """

    void: str = ""
    """Why the round does not count; empty when it does."""

    limited: str = ""
    """What of the load generator set the speed of the round, so that it says little about the servers; empty when
    nothing did.
    """

    behind: bool = False
    """Whether an open loop took notably longer than its time to do what was to start in it."""

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
        """Operations a second until every node has applied them: a backlog is not free. Higher is better."""
        return self.outcome.operations / self.drained_seconds

    @property
    def goodput(self) -> float:
        """Operations a second that ended as asked; what a conflict ended is not among them. Higher is better."""
        return self.outcome.done / self.outcome.seconds

    @property
    def drained_goodput(self) -> float:
        """The same until every node has applied them."""
        return self.outcome.done / self.drained_seconds

    @property
    def drained_seconds(self) -> float:
        """The measured time and the drain after it; nan where other operations than the measured ones drained too."""
        if self.outcome.span is not None:
            return math.nan
        return self.outcome.seconds + self.counters.get("drain_seconds", 0.0)

    @functools.cached_property
    def cost(self) -> float:
        """Seconds of one good operation, to be compared between rounds of any length; infinite without any.

        The inverse of the goodput. An open loop, whose speed is given, has its mean latency instead.
        """
        if self.outcome.rate is not None and self.outcome.ledger:
            mean = self.outcome.ledger.total.latencies.mean
            return math.inf if math.isnan(mean) else mean
        return 1 / self.goodput if self.outcome.done else math.inf
