"""One round on one running cluster: what happens between two readings, and whether it counts."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import statistics
import time
from collections.abc import Mapping, Sequence

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.errors import NotReady, WorkloadError
from pytest_dbcluster.rounds import counters, load_generator, open_loop
from pytest_dbcluster.rounds.ledger import Ledger
from pytest_dbcluster.rounds.round import Round, RunResult
from pytest_dbcluster.system import probes
from pytest_dbcluster.testbed import sampler
from pytest_dbcluster.testbed.sampler import Sampler
from pytest_dbcluster.workloads.workload import Setting, Workload

DRAIN_SECONDS = 30.0
POLL = 0.01
TAIL = 200  # characters of a failed load's words in the reason of a void round


def measured(load: Workload, setting: Setting, *, variant: str, block: int, position: int) -> Round:
    """Run the load once between two readings of the counters, then wait until all nodes are equal.

    A round in which the topology noticed something, that did not drain, or that fell behind the rate of an open loop
    is void. So is one whose load failed when the topology noticed something; without that the load's WorkloadError is
    raised.
    """
    cluster, failed = setting.cluster, ""
    watched = cluster.topology.watch(cluster.nodes)
    before = sampler.read_counters(cluster.nodes)
    started, began = time.time(), time.monotonic()
    servers = {node.name: node.process.pid for node in cluster.nodes if node.process}
    with Sampler(servers, client=setting.client) as samples:
        try:
            outcome = load.run(setting)
        except WorkloadError as error:
            with contextlib.suppress(SQLError):  # of a node that does not answer; NodeDied says more than the load
                failed = noticed(cluster, watched) and f"; the load failed: {_end(str(error))}"
            if not failed:
                raise
            outcome = RunResult(time.monotonic() - began, 0)
    drained, late = drain(cluster)
    void = noticed(cluster, watched) + failed or late or open_loop.saturated(outcome)
    after, commits = sampler.read_counters(cluster.nodes), outcome.commits
    seconds = (outcome.seconds if outcome.span is None else outcome.span) + drained  # between the two readings
    found = counters.deltas(before, after, seconds=seconds, commits=commits, ledger=outcome.ledger)
    done = Round(
        variant=variant,
        block=block,
        position=position,
        outcome=outcome,
        wall=0.0,
        started=started,
        counters={**found, "drain_seconds": drained},
        samples={**samples.rates(), load_generator.CORES: probes.usable_cores()},
        void=void,
    )
    late_by = open_loop.behind(outcome, load.round_seconds)
    return dataclasses.replace(done, limited=load_generator.limit(done), behind=late_by)


def unmeasured(void: str, *, variant: str, block: int, position: int) -> Round:
    """A round that cannot count, known before its load has run: nothing is run, and nothing drains once more.

    Its time is that of the drain which was not enough.
    """
    waited = RunResult(DRAIN_SECONDS, 0)
    return Round(variant, block, position, waited, wall=0.0, started=time.time(), settled=False, void=void)


def _end(words: str) -> str:
    """The last line, which says what happened; of a long one its end."""
    line = words.strip().splitlines()[-1]
    return line if len(line) <= TAIL else f"... {line[-TAIL:]}"


def reset(load: Workload, setting: Setting) -> str:
    """Return the tables of a load that writes to their preload; what that wrote is no backlog of the round.

    Why the round after it does not count, empty when it does: what did not drain would be charged to it.
    """
    if not load.writes:
        return ""
    load.reset(setting)
    _, late = drain(setting.cluster)
    return late and f"after its reset {late}"


def drain(cluster: Cluster) -> tuple[float, str]:
    """Seconds until every node has applied what was written, and what is left when it was not all in 30 s.

    The clock starts when the load's program has ended, not at its last commit. It stops at the first reading that
    finds nothing left: readings are 10 ms apart and take a few themselves, so a drain is known to about 10 ms, and
    one of nothing takes as long as a reading (0.0 where the topology does not replicate).
    """
    if not cluster.topology.replicates:
        return 0.0, ""
    try:
        backlog = functools.partial(cluster.topology.backlog, cluster.nodes)
        return wait.until(backlog, "the drain", seconds=DRAIN_SECONDS, poll=POLL), ""
    except NotReady as error:
        return DRAIN_SECONDS, f"not drained after {DRAIN_SECONDS:g} s: {'; '.join(error.problems)}"


def noticed(cluster: Cluster, before: Mapping[str, str]) -> str:
    """Why a round that began with this reading does not count; empty when it does."""
    return cluster.topology.void(before, cluster.topology.watch(cluster.nodes))


def merged(rounds: Sequence[Round]) -> Round:
    """The rounds of one start as one: what was counted and drains added up, the rest as means.

    One void round makes it void.
    """
    outcomes = [item.outcome for item in rounds]
    drained = [item.counters["drain_seconds"] for item in rounds if "drain_seconds" in item.counters]
    return dataclasses.replace(
        rounds[-1],
        outcome=_added(outcomes),
        started=rounds[0].started,
        settled=all(item.settled for item in rounds),
        counters=_means([item.counters for item in rounds]) | ({"drain_seconds": sum(drained)} if drained else {}),
        samples=_means([item.samples for item in rounds]),
        void=next((item.void for item in rounds if item.void), ""),
        limited=next((item.limited for item in rounds if item.limited), ""),
        behind=any(item.behind for item in rounds),
    )


def _added(outcomes: Sequence[RunResult]) -> RunResult:
    """What loads said of several runs, as of one: counts and times added up."""
    kept = [one.ledger for one in outcomes if one.ledger is not None]
    spans = [one.span for one in outcomes if one.span is not None]
    used = [one.client_seconds for one in outcomes if one.client_seconds is not None]
    return RunResult(
        seconds=sum(one.seconds for one in outcomes),
        operations=sum(one.operations for one in outcomes),
        commits=_sum([one.commits for one in outcomes]),
        good=_sum([one.good for one in outcomes]),
        ledger=sum(kept, Ledger()) if kept else None,
        by_second=tuple(number for one in outcomes for number in one.by_second),
        rate=outcomes[0].rate,
        offered=_sum([one.offered for one in outcomes]),
        span=sum(spans) if spans else None,
        client_seconds=sum(used) if used else None,
        busiest=max((one.busiest for one in outcomes if one.busiest is not None), default=None),
        figures=_means([one.figures for one in outcomes]),
    )


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _means(many: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: statistics.fmean(one[name] for one in many if name in one) for name in many[0]}
