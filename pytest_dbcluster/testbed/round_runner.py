"""One round on one running cluster: ``measured`` runs it.

``measured`` reads the counters, runs the workload, waits for the drain, reads the counters again, and decides whether
the round counts or is void. The workload reports its own seconds (``RunResult.seconds``: ``workloads.mysqlslap.parse``,
``workloads.sysbench_driver.outcome``); ``drain`` times the drain. ``testbed.Testbed.round`` prepares the cluster and
calls ``measured``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.errors import NotReady, WorkloadError
from pytest_dbcluster.hosts.host import together
from pytest_dbcluster.rounds import counters, load_generator, open_loop, turned_away
from pytest_dbcluster.rounds.counters import Reading
from pytest_dbcluster.rounds.ledger import Ledger
from pytest_dbcluster.rounds.round import LoadHost, Round, RunResult
from pytest_dbcluster.testbed import sampler
from pytest_dbcluster.testbed.sampler import Sampler
from pytest_dbcluster.testbed.timeline import Place, Timeline
from pytest_dbcluster.workloads.workload import Setting, Workload

DRAIN_SECONDS = 30.0  # limit of a drain
SETTLE_SECONDS = 1.0
POLL = 0.01  # seconds between two readings of the backlog
TAIL = 200  # characters of a failed workload's error in the reason of a void round


def run_round(
    workload: Workload, setting: Setting, *, variant: str, block: int, position: int, timeline: Timeline | None = None
) -> Round:
    """Run one round: run the workload once between two readings of the counters, then wait for the drain.

    The steps: read the counters, sample the machine while the workload runs, drain, read the counters again. The
    workload itself reports the seconds that throughput and latency are computed from (``RunResult.seconds``). Counters
    cover these seconds plus the drain. ``wall`` is 0 here; ``Testbed`` sets it. timeline: samples every second of the
    measurement; None for no such samples.

    A round is void (``Round.void`` says why) when the topology noticed a change such as a new primary, when it did not
    drain within DRAIN_SECONDS, when servers turned clients away, when it fell behind the arrival rate of an open loop,
    or when no operation succeeded. When the workload fails, the round is void if the topology noticed a change or
    clients were turned away, otherwise the WorkloadError is raised.
    """
    in_round = timeline.during(Place(variant, block, position), setting) if timeline else contextlib.nullcontext()
    with in_round:
        return _run_and_read(workload, setting, variant, block, position)


def _run_and_read(workload: Workload, setting: Setting, variant: str, block: int, position: int) -> Round:
    cluster, failed = setting.cluster, ""
    watched = cluster.topology.watch(cluster.nodes)
    servers, hosts = {node.name: node.process for node in cluster.nodes if node.process}, cluster.hosts
    samples = Sampler(servers, setting.client, [node.host for node in cluster.nodes], others=setting.others)
    before, _ = together(functools.partial(sampler.read_counters, cluster.nodes), samples.take, hosts)
    started, began = time.time(), time.monotonic()
    with cluster.ending_loads(setting.clients):
        try:
            result = workload.run(setting)
        except WorkloadError as error:
            with contextlib.suppress(SQLError):  # a node does not answer; the error raised below (NodeDied) says more
                after = sampler.read_counters(cluster.nodes)
                failed = topology_change(cluster, watched) or refusal(workload, cluster, before, after, str(error))
            if not failed:
                raise
            failed += f"; the workload failed: {_last_line(str(error))}"
            result = RunResult(time.monotonic() - began, 0)
    _, (drained, after) = together(samples.take, functools.partial(_drain_and_read, cluster), hosts)
    void = failed or topology_change(cluster, watched) or refusal(workload, cluster, before, after)
    void = void or drained.late or result.void or open_loop.saturation(result) or result.idle
    seconds = (result.seconds if result.span is None else result.span) + drained.seconds  # between the two readings
    deltas = counters.deltas(before, after, seconds=seconds, commits=result.commits, ledger=result.ledger)
    done = Round(
        variant=variant,
        block=block,
        position=position,
        outcome=result,
        wall=0.0,
        started=started,
        counters={**deltas, "drain_seconds": drained.seconds},
        samples={**samples.rates(), load_generator.CORES: load_generator.cores_of(result) or setting.client.cores()},
        void=void,
    )
    late_by = open_loop.is_behind(result, workload.round_seconds)
    return dataclasses.replace(done, limited=load_generator.limit(done), behind=late_by)


def refusal(workload: Workload, cluster: Cluster, before: Reading, after: Reading, said: str = "") -> str:
    """Why a round between two readings is void in which servers turned clients away; empty when none was.

    said: the message of a workload that failed.
    """
    if not said and not any(turned_away.counts(before, after)):
        return ""
    limits = []
    for node in cluster.nodes:
        ((connections, of_user),) = node.query("SELECT @@GLOBAL.max_connections, @@GLOBAL.max_user_connections")
        limits.append(turned_away.ConnectionLimits(node.name, int(connections), int(of_user)))
    return turned_away.reason(before, after, limits, workload.clients, said)


def void_round(void: str, *, variant: str, block: int, position: int) -> Round:
    """A void round for which the workload is not run, because the reset before it did not drain.

    void: the reason. Its seconds are DRAIN_SECONDS, the time already spent on waiting.
    """
    waited = RunResult(DRAIN_SECONDS, 0)
    return Round(variant, block, position, waited, wall=0.0, started=time.time(), settled=False, void=void)


def _last_line(error: str) -> str:
    """The last line of an error, which says what happened, cut to its last TAIL characters."""
    line = error.strip().splitlines()[-1]
    return line if len(line) <= TAIL else f"... {line[-TAIL:]}"


def reset(workload: Workload, setting: Setting) -> tuple[str, bool]:
    """Return the tables of a writing workload to their preload, and wait until the servers have come to rest.

    Returns why the next round is void, or an empty text: a reset that did not drain would be charged to the round. And
    whether every server has applied and flushed everything.
    """
    cluster = setting.cluster
    if workload.writes:
        workload.reset(setting)
        drained = drain(cluster, lambda node: node.flushing)
        if drained.late:
            return f"after its reset {drained.late}", False
        if drained.answers is not None and not any(
            node.left_unflushed(rows[-1]) for node, rows in zip(cluster.nodes, drained.answers, strict=True)
        ):
            return "", True
    return "", cluster.settle(SETTLE_SECONDS)


@dataclasses.dataclass(frozen=True)
class Drain:
    """A drain."""

    seconds: float
    late: str = ""
    """What is left after DRAIN_SECONDS, or ""."""

    answers: Sequence[Sequence[Sequence[tuple[Any, ...]]]] | None = None
    """Of the last reading, as ``drain`` describes."""


def drain(cluster: Cluster, along: Callable[[Node], Sequence[str]] | None = None) -> Drain:
    """Wait until every node has applied all writes.

    The clock starts when the workload's program has ended, not at its last commit. It stops at the first reading
    without a backlog. Readings are 10 ms apart and take a few ms themselves, so the resolution is about 10 ms, and a
    drain without a backlog takes as long as one reading. It is 0.0 where the topology does not replicate.

    along: statements that each node runs after each reading, in its round trip. The rows of each, node by node, are
    the answers; None where the topology does not ask each server.
    """
    answers = None

    def backlog() -> list[str]:
        nonlocal answers
        if along is None:
            return cluster.topology.backlog(cluster.nodes)
        lines, answers = cluster.backlog_with(along)
        return lines

    if not cluster.topology.replicates:
        return Drain(0.0)
    try:
        return Drain(wait.until(backlog, "the drain", seconds=DRAIN_SECONDS, poll=POLL), answers=answers)
    except NotReady as error:
        return Drain(DRAIN_SECONDS, f"not drained after {DRAIN_SECONDS:g} s: {'; '.join(error.problems)}")


def _drain_and_read(cluster: Cluster) -> tuple[Drain, Reading]:
    """Drain, and read the counters afterwards; in one round trip where servers are elsewhere.

    Locally the counters would only make each reading of the drain longer.
    """
    elsewhere = any(host.machine for host in cluster.hosts)
    drained = drain(cluster, sampler.counter_statements if elsewhere else None)
    if drained.answers is None:
        return drained, sampler.read_counters(cluster.nodes)
    return drained, [sampler.counters_of(rows) for rows in drained.answers]


def topology_change(cluster: Cluster, before: Mapping[str, str]) -> str:
    """Why the topology makes a round void that began with the reading ``before``; empty when the round counts."""
    return cluster.topology.void(before, cluster.topology.watch(cluster.nodes))


def merge(rounds: Sequence[Round]) -> Round:
    """The rounds of one start as a single round: run results and drains added up, counters and samples averaged.

    The result is void when one of the rounds is void.
    """
    results = [item.outcome for item in rounds]
    drained = [item.counters["drain_seconds"] for item in rounds if "drain_seconds" in item.counters]
    return dataclasses.replace(
        rounds[-1],
        outcome=_add_results(results),
        started=rounds[0].started,
        settled=all(item.settled for item in rounds),
        counters=_means([item.counters for item in rounds]) | ({"drain_seconds": sum(drained)} if drained else {}),
        samples=_means([item.samples for item in rounds]),
        void=next((item.void for item in rounds if item.void), ""),
        limited=next((item.limited for item in rounds if item.limited), ""),
        behind=any(item.behind for item in rounds),
    )


def _add_results(results: Sequence[RunResult]) -> RunResult:
    """Several run results as one: counts, times and their steps added up, ``figures`` averaged."""
    ledgers = [result.ledger for result in results if result.ledger is not None]
    spans = [result.span for result in results if result.span is not None]
    used = [result.client_seconds for result in results if result.client_seconds is not None]
    return RunResult(
        seconds=sum(result.seconds for result in results),
        operations=sum(result.operations for result in results),
        commits=_sum([result.commits for result in results]),
        good=_sum([result.good for result in results]),
        ledger=sum(ledgers, Ledger()) if ledgers else None,
        by_second=tuple(number for result in results for number in result.by_second),
        by_tenth=tuple(number for result in results for number in result.by_tenth),
        rate=results[0].rate,
        offered=_sum([result.offered for result in results]),
        span=sum(spans) if spans else None,
        client_seconds=sum(used) if used else None,
        busiest=max((result.busiest for result in results if result.busiest is not None), default=None),
        figures=_means([result.figures for result in results]),
        resolution=sum(result.resolution for result in results),
        load_hosts=_add_hosts([result.load_hosts for result in results]),
    )


def _add_hosts(runs: Sequence[Sequence[LoadHost]]) -> tuple[LoadHost, ...]:
    """The hosts that divided several runs, with the CPU time of all of them; the busiest thread is that of any run."""
    added: dict[str, LoadHost] = {}
    for host in (host for run in runs for host in run):
        before = added.get(host.name, dataclasses.replace(host, client_seconds=0.0))
        seconds, busiest = before.client_seconds + host.client_seconds, max(before.busiest, host.busiest)
        added[host.name] = dataclasses.replace(host, client_seconds=seconds, busiest=busiest)
    return tuple(added.values())


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _means(mappings: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each name of the first mapping, over the mappings that have it."""
    return {name: statistics.fmean(item[name] for item in mappings if name in item) for name in mappings[0]}
