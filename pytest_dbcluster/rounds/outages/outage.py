"""Outage: the figures of one repetition of an event, from the times of the load's commits.

A *gap* is the time between two commits of writing transactions that follow each other. The first gap begins at the
event, the last one ends with the load. The *stall* is the longest gap. If it is the last one, nobody
knows how long it would have become: it is *censored*, and its value is a lower bound. A load that never writes has no
stall, and rates of its reads.

Other figures compare the load with its usual rate before the event. They depend on how steady the load is.
So only a comparison with a control, in random order, says what the event costs.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
from collections.abc import Mapping, Sequence

from pytest_dbcluster.rounds.outages.load_times import LoadTimes, TimedErrors
from pytest_dbcluster.rounds.outages.states import StateChange

SHORTEST = 0.1  # seconds of a gap that counts as time without a commit
USUAL_GAPS = 5  # it also has to be this many times as long as the usual gap
RAMP = 1  # seconds at the begin of the load that do not count for its usual rate
CENSORED = ("stall", "without_commit", "below_half")  # figures that end with the load if the stall does
LAST_SECONDS = 2  # of the load, for its speed after the event
PER_SECOND = 10  # parts of a second in ``commits_by_tenth``


@dataclasses.dataclass(frozen=True)
class UsualLoad:
    """The load before the event."""

    rate: float
    """Commits a second of writing transactions: the median of its seconds; nan without a whole second."""

    low: float
    """The slowest of these seconds."""

    high: float
    """The fastest of these seconds."""

    gap: float
    """The median gap between two commits, in seconds; nan for fewer than two commits."""

    longest_gap: float
    """The longest gap between two commits, in seconds; nan for fewer than two commits."""


@dataclasses.dataclass(frozen=True)
class Books:
    """The acknowledged transactions of a repetition, compared with the tables of the whole cluster."""

    acknowledged: int
    """Transactions whose COMMIT returned."""

    lost: int
    """Acknowledged transactions that are not in the tables."""

    invented: int
    """Transactions in the tables that the load did not write, or wrote twice."""

    unknown_there: int
    """Transactions in the tables whose COMMIT did not return."""

    unknown_gone: int
    """Transactions whose COMMIT did not return and that are not in the tables."""


@dataclasses.dataclass(frozen=True)
class Returned:
    """How a node came back after the event."""

    seconds: float
    """Seconds from its start until the cluster was whole."""

    how: str
    """How it got what it missed, such as ``IST``, ``SST`` or ``GTID``; empty if the topology does not say it."""

    errant: int = 0
    """Transactions that only this node had, and that are removed from it (errant transactions)."""

    def __str__(self) -> str:
        errant = f" ({self.errant} errant)" if self.errant else ""
        return f"{self.seconds:.1f} s {self.how}".strip() + errant


@dataclasses.dataclass(frozen=True)
class Outage:
    """What one event cost the load. Seconds count from the event."""

    event: str
    """The event as text, such as ``kill other``."""

    node: str
    """The node that it happened to; empty for an event without a node."""

    event_at: float
    """The time of the event, in seconds since 1970 (UTC)."""

    stall: float
    """The longest gap between commits of writing transactions, in seconds; nan for a load that never writes."""

    stall_at: float
    """When this gap began; nan without one."""

    without_commit: float
    """The sum of all gaps of at least .1 s and five usual gaps, in seconds. nan for a load that never writes."""

    censored: bool
    """Whether the stall is at least this long: the load ended in it, or had not recovered when we stopped it."""

    read_stall: float
    """The longest gap between commits of transactions that only read, in seconds; nan without such a commit."""

    usual: UsualLoad
    """The load before the event."""

    committed: int
    """Commits of writing transactions in the whole load."""

    errors: tuple[TimedErrors, ...]
    """The errors of the load; those before the event have negative seconds."""

    commits_by_tenth: tuple[int, ...]
    """Commits of writing transactions in each tenth of a second."""

    first_tenth: int
    """The place of the first of these tenths; 0 begins at the event."""

    failed: int = 0
    """Transactions that are certainly not in the database."""

    unknown: int = 0
    """Transactions that may or may not be committed."""

    connections_lost: int = 0
    """Connections that the load lost."""

    books: Books | None = None
    """What became of the acknowledged transactions; None for a workload that keeps no books."""

    marks: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """By name of a step, such as ``ended``, when it was seen."""

    returned: Returned | None = None
    """How the node came back; None if it did not leave."""

    logged: tuple[str, ...] = ()
    """The [ERROR] lines of the servers."""

    below_half: float | None = None
    """Seconds with less than half of the usual rate, counted in tenths; None without a usual rate."""

    missing: float | None = None
    """Commits that are missing until the usual rate is back, in seconds of the usual load.

    None without a usual rate.
    """

    back_at: float | None = None
    """When the usual rate was back: a second after the stall began that was not slower than ``usual.low``. None if the
    load ended before, so that ``missing`` is a lower bound.
    """

    without_redundancy: float | None = None
    """Seconds from the loss of a node until the cluster was whole again; None if no node left it."""

    read_censored: bool = False
    """Whether ``read_stall`` is at least this long, as ``censored`` says of the stall."""

    speed_after: float | None = None
    """The rate in the last 2 s of the load, in percent of the usual rate. None without a usual rate.

    If the load ends earlier after the event, it is the rate since the event.
    """

    states: Mapping[str, tuple[StateChange, ...]] = dataclasses.field(default_factory=dict)
    """By name of a node, the states that were seen: ``writes``, ``reads``, ``not ready``, ``no answer``, ``down``."""

    routes: tuple[StateChange, ...] = ()
    """The nodes that the proxy led writes to. Empty for a proxy that does not say it, and without a proxy."""

    events_before: int | None = None
    """How many events its cluster had before, after each of which it was made whole. None in older results."""

    violations: tuple[str, ...] = ()
    """The conditions of the workload that did not hold when the cluster was whole again, each with its first row."""

    @property
    def observed_seconds(self) -> float:
        """Seconds from the event to the end of the load."""
        return (len(self.commits_by_tenth) + self.first_tenth) / PER_SECOND

    @property
    def lost_or_invented(self) -> int | None:
        """Transactions that are lost or invented; None for a workload that keeps no books."""
        return None if self.books is None else self.books.lost + self.books.invented

    @property
    def way_back(self) -> str:
        """How the node got what it missed, such as ``IST``; ``nothing missed`` if the node did not say."""
        return (self.returned.how if self.returned else "") or "nothing missed"

    def figure(self, metric: str) -> float:
        """A metric of events (``metrics.OF_EVENTS``) as a number; nan if the repetition has no such figure."""
        name, _, way = metric.partition(":")
        value = self.lost_or_invented if name == "lost" else vars(self).get(name)
        if name == "speed_after" and value is None:  # of a repetition in results of an older version
            value = _speed_after(self.commits_by_tenth[-self.first_tenth : -1], self.usual)
        if self.returned:
            of_return = {"returned": self.returned.seconds, "returned_by": float(self.returned.how == way)}
            value = of_return.get(name, value)
        return math.nan if value is None else float(value)

    def is_lower_bound(self, metric: str) -> bool:
        """Whether this figure would be larger if the load had not ended."""
        if metric in ("missing", "read_stall"):
            return self.back_at is None if metric == "missing" else self.read_censored
        last = self.commits_by_tenth[-self.first_tenth : -1][-PER_SECOND:]
        slow = metric == "below_half" and len(last) == PER_SECOND and 2 * sum(last) < self.usual.rate
        return slow or (self.censored and metric in CENSORED)


def measure(
    times: LoadTimes,
    event_at: float,
    *,
    usual_until: float | None = None,
    stopped_at: float = math.inf,
    recovered: bool = True,
) -> Outage:
    """The figures of a load through an event. The fields that other sources know keep their defaults.

    event_at: seconds since 1970. usual_until: the end of the usual load; None is the event. stopped_at: when we
    stopped the load; nothing counts after it, because one thread may still wait. recovered: whether the load went on
    before that. Raises ValueError for an event outside of the load.
    """
    at = event_at - times.began
    if not 0 <= at <= times.seconds:
        raise ValueError(f"the event came {at:.3f} s after the begin of a load of {times.seconds:.3f} s")
    end = max(at, min(times.seconds, stopped_at - times.began))
    writes, reads = times.moments(reading=False), times.moments(reading=True)
    usual = usual_load(counted := writes or reads, at if usual_until is None else max(0.0, usual_until - times.began))
    least = max(SHORTEST, USUAL_GAPS * (0.0 if math.isnan(usual.gap) else usual.gap))
    stall = _Longest.of(gaps := _gaps(writes, at, end), least, recovered=recovered)
    read_stall = _Longest.of(_gaps(reads, at, end), least, recovered=recovered)
    longest = stall if writes else read_stall  # nan without a commit
    tenths, first = _by_tenth(counted, at, end)
    below_half, missing, back_at = _against_usual(after := tenths[-first:-1], usual, longest.end - at)
    return Outage(
        event="",
        node="",
        event_at=event_at,
        stall=stall.length,
        stall_at=stall.begin - at,
        without_commit=math.fsum(length for _, length in gaps if length >= least) if gaps else math.nan,
        censored=stall.censored,
        read_stall=read_stall.length,
        read_censored=read_stall.censored,
        usual=usual,
        committed=len(counted),
        errors=tuple(dataclasses.replace(one, seconds=round(one.seconds - at, 3)) for one in times.errors),
        commits_by_tenth=tenths,
        first_tenth=first,
        below_half=below_half,
        missing=missing,
        back_at=back_at,
        speed_after=_speed_after(after, usual),
    )


@dataclasses.dataclass(frozen=True)
class _Longest:
    """The longest of some gaps: its begin and length, and whether it would be longer if the load had not ended."""

    begin: float = math.nan
    length: float = math.nan
    censored: bool = False

    @property
    def end(self) -> float:
        """When the gap ended."""
        return self.begin + self.length

    @classmethod
    def of(cls, gaps: Sequence[tuple[float, float]], least: float, *, recovered: bool) -> _Longest:
        """Of these gaps, the last of which ends with the load; nan for none. least: of a gap that counts."""
        if not gaps:
            return cls()
        begin, length = max(gaps, key=lambda gap: gap[1])
        last = gaps[-1]
        return cls(begin, length, (begin, length) == last or (not recovered and last[1] >= least))


def usual_load(writes: Sequence[float], until: float) -> UsualLoad:
    """The load from its begin to ``until``. writes: the seconds of its commits since the begin, in rising order.

    The first second does not count for the rate. A second that is not whole does not count either.
    """
    whole = range(RAMP, math.floor(until))
    counts = [sum(second <= moment < second + 1 for moment in writes) for second in whole]
    before = [moment for moment in writes if moment <= until]
    gaps = [later - earlier for earlier, later in itertools.pairwise(before)]
    return UsualLoad(
        rate=float(statistics.median(counts)) if counts else math.nan,
        low=float(min(counts, default=math.nan)),
        high=float(max(counts, default=math.nan)),
        gap=statistics.median(gaps) if gaps else math.nan,
        longest_gap=max(gaps, default=math.nan),
    )


def _against_usual(
    after: Sequence[int], usual: UsualLoad, stalled_until: float
) -> tuple[float | None, float | None, float | None]:
    """``below_half``, ``missing`` and ``back_at``.

    after: the commits in each whole tenth after the event. stalled_until: the end of the stall, in seconds since the
    event.
    """
    if not usual.rate > 0:
        return None, None, None
    seconds = range(math.ceil(stalled_until * PER_SECOND), len(after) - PER_SECOND + 1)  # by their first tenth
    back = next((first for first in seconds if sum(after[first : first + PER_SECOND]) >= usual.low), None)
    until = len(after) if back is None else back
    missing = until / PER_SECOND - sum(after[:until]) / usual.rate
    below_half = sum(2 * PER_SECOND * count < usual.rate for count in after) / PER_SECOND
    return below_half, max(0.0, missing), None if back is None else back / PER_SECOND


def _speed_after(after: Sequence[int], usual: UsualLoad) -> float | None:
    """``Outage.speed_after``; after: as in ``_against_usual``."""
    last = after[-LAST_SECONDS * PER_SECOND :]
    return 100 * sum(last) * PER_SECOND / len(last) / usual.rate if usual.rate > 0 and last else None


def _gaps(moments: Sequence[float], at: float, end: float) -> list[tuple[float, float]]:
    """Begin and length of each gap from the event on; the last one ends with the load. None without any moment."""
    if not moments:
        return []
    ends = [at, *(moment for moment in moments if at < moment < end), end]
    return [(begin, round(later - begin, 6)) for begin, later in itertools.pairwise(ends)]


def _by_tenth(moments: Sequence[float], at: float, end: float) -> tuple[tuple[int, ...], int]:
    """The commits in each tenth of a second, and the place of the first tenth: the tenth 0 begins at the event."""
    places = [math.floor((moment - at) * PER_SECOND) for moment in moments]
    first, last = math.floor(-at * PER_SECOND), math.floor((end - at) * PER_SECOND)
    counts = [0] * (last - first + 1)
    for place in places:
        if first <= place <= last:
            counts[place - first] += 1
    return tuple(counts), first
