"""Causes: the counters and resources that moved between two variants, and may explain why one is faster.

Everything that grows with the work is compared per operation. A counter is named only if its interval excludes 1, at
the same error as a claim. Claims about many options share theirs in parts that the table of critical values may lack.
Then the next smaller level of the table counts. That does not prove a cause: two things that moved together may both
follow a third.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence

from pytest_dbcluster.claims import critical_values, estimators, intervals
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.rounds import counters, pairing
from pytest_dbcluster.rounds.round import Round

RESOURCES = {
    "cpu_all": "CPU milliseconds, whole machine",
    "cpu_client": "CPU milliseconds, load generator",
    "disk_write_bytes": "bytes written to disk",
    "disk_writes": "writes to disk",
    "disk_read_bytes": "bytes read from disk",
    "network_bytes": "bytes sent over the network",
    "network_packets": "packets sent over the network",
}
SHARES = {
    "iowait": "cores that waited for the disk",
    "steal": "cores stolen by other virtual machines",
    "pressure_cpu": "share of time in which a task waited for a CPU",
    "pressure_io": "share of time in which a task waited for the disk",
    "pressure_memory": "share of time in which a task waited for memory",
}
ALWAYS = "cpu_all"  # is shown even if it did not move: readers ask for it first
LITTLE = 1e-3  # is added to shares, so 0 has a logarithm
MOST = 12
NEAR = 1e-6  # of a log ratio: we never show more digits; whether it excludes 1 is decided exactly


@dataclasses.dataclass(frozen=True)
class Cause:
    """A counter or resource, compared between two variants."""

    name: str
    """Its name in words."""

    per: str
    """What it is divided by; empty for a share or a reading."""

    baseline: float
    """The median over the baseline's rounds."""

    candidate: float
    """The median over the candidate's rounds."""

    ratio: float
    """The ratio candidate / baseline."""

    low: float
    """The lower end of the ratio's interval."""

    high: float
    """The upper end of the ratio's interval."""

    moved: bool
    """Whether the interval excludes 1."""


def causes(record: ClaimRecord) -> list[Cause]:
    """What moved between baseline and candidate, the largest movement first. CPU comes last if it did not move.

    Empty before the look at which an interval is possible.
    """
    rounds = record.rounds.get(record.candidate, ()), record.rounds.get(record.baseline, ())
    every = [*rounds[0], *rounds[1]]
    if not every or len(rounds[0]) != len(rounds[1]):
        return []
    commits = all(drawn.outcome.commits for drawn in every)
    found = [
        cause
        for name in _common_names(drawn.counters for drawn in every)
        if (cause := _counter(record, rounds, name, commits=commits))
    ]
    sampled = _common_names(drawn.samples for drawn in every)
    found += [cause for name in sampled if (cause := _sample(record, rounds, name, commits=commits))]
    moved = sorted((one for one in found if one.moved), key=lambda one: -abs(math.log(one.ratio)))[:MOST]
    return [*moved, *(one for one in found if not one.moved and one.name == RESOURCES[ALWAYS])]


def _common_names(groups: Iterable[object]) -> list[str]:
    """The names that all rounds have, in order."""
    sets = [dict.fromkeys(group) for group in groups]  # type: ignore[call-overload]
    return [name for name in sets[0] if all(name in one for one in sets)] if sets else []


Rounds = tuple[Sequence[Round], Sequence[Round]]


def _work(drawn: Round, *, commits: bool) -> float:
    return float(drawn.outcome.commits or 1) if commits else float(drawn.outcome.operations or 1)


def _counter(record: ClaimRecord, rounds: Rounds, name: str, *, commits: bool) -> Cause | None:
    """A counter per commit or operation, or a reading as it is."""
    if name in counters.PER_COMMIT or name == record.metric:
        return None  # is the same as its counter, or is the claim itself
    per = ("commit" if commits else "operation") if name in counters.DELTAS else ""
    little = 0.5 if name in counters.DELTAS or name not in counters.PER_ROUND else LITTLE
    values = [[drawn.counters[name] for drawn in many] for many in rounds]
    return _cause(record, rounds, (name.replace("_", " "), per), values, little, commits=commits)


def _sample(record: ClaimRecord, rounds: Rounds, name: str, *, commits: bool) -> Cause | None:
    """A resource per commit or operation, or a share."""
    if name in SHARES:
        values = [[drawn.samples[name] for drawn in many] for many in rounds]
        return _cause(record, rounds, (SHARES[name], ""), values, LITTLE, commits=commits)
    if name not in RESOURCES and not name.startswith("cpu_node"):
        return None
    unit = 1e3 if name.startswith("cpu_") else 1.0
    said = RESOURCES.get(name) or f"CPU milliseconds, {name.removeprefix('cpu_')}"
    values = [[drawn.samples[name] * drawn.seconds * unit for drawn in many] for many in rounds]
    little = 1e-6 if name.startswith("cpu_") else 0.5
    return _cause(record, rounds, (said, "commit" if commits else "operation"), values, little, commits=commits)


def _cause(
    record: ClaimRecord,
    rounds: Rounds,
    said: tuple[str, str],
    values: Sequence[Sequence[float]],
    little: float,
    *,
    commits: bool,
) -> Cause | None:
    """The comparison of these values, one for each round; None if no interval is possible, or if all are 0."""
    by = [[_work(drawn, commits=commits) if said[1] else 1.0 for drawn in many] for many in rounds]
    whole = [
        [(value + little) / one for value, one in zip(*each, strict=True)] for each in zip(values, by, strict=True)
    ]
    if not any(map(any, values)) or any(value <= 0 for many in whole for value in many):
        return None
    pairs = pairing.pairs_of(*rounds, (whole[0], whole[1]), instances=record.instances)
    look = critical_values.last_look(len(pairs), pairs.instances)
    if look is None:
        return None
    level = critical_values.table_level(record.verdict.alpha)
    moved = any(intervals.rejects(pairs.first(look), level, 0.0))
    if not moved and said[0] != RESOURCES[ALWAYS]:
        return None
    return _with_interval(pairs, level, said, values, by, moved=moved)


def _with_interval(
    pairs: Pairs,
    level: float,
    said: tuple[str, str],
    values: Sequence[Sequence[float]],
    by: Sequence[Sequence[float]],
    *,
    moved: bool,
) -> Cause:
    """The cause with its medians and its interval."""
    candidate, baseline = (
        statistics.median(value / one for value, one in zip(*each, strict=True))
        for each in zip(values, by, strict=True)
    )
    centre = intervals.estimate(pairs, NEAR)
    low, high = estimators.widen(intervals.interval(pairs, level, NEAR), centre)
    ratio, low, high = map(estimators.factor, (centre, low, high))
    return Cause(*said, baseline, candidate, ratio, low, high, moved)
