"""One round on one running cluster.

``run_round`` reads the counters, runs the workload, waits for the drain, and reads the counters again. Then it decides
whether the round counts or is void. The workload reports its seconds (``RunResult.seconds``:
``workloads.mysqlslap.parse``, ``workloads.sysbench_driver.outcome``); ``drain`` times the drain.
``testbed.Testbed.round`` prepares the cluster and calls ``run_round``.
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
from pytest_dbcluster.errors import CommandFailed, NotReady, WorkloadError
from pytest_dbcluster.hosts.host import ask_both
from pytest_dbcluster.rounds import counters, load_generator, open_loop, turned_away
from pytest_dbcluster.rounds.capacity import capacity_curve
from pytest_dbcluster.rounds.counters import Reading
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger
from pytest_dbcluster.rounds.round import LoadHost, Round, RunResult
from pytest_dbcluster.system.tracing.recorder import span
from pytest_dbcluster.testbed import sampler
from pytest_dbcluster.testbed.sampler import Sampler
from pytest_dbcluster.testbed.timeline import Place, Timeline
from pytest_dbcluster.workloads.workload import Setting, Workload

DRAIN_SECONDS = 30.0  # limit of a drain
SETTLE_SECONDS = 1.0
POLL, RESET_POLL = 0.01, 0.002  # seconds between two readings of the backlog, after a round and after a reset
TAIL = 200  # characters of a failed workload's error in the reason of a void round


def run_round(
    workload: Workload, setting: Setting, *, variant: str, block: int, position: int, timeline: Timeline | None = None
) -> Round:
    """Run one round: run the workload once between two readings of the counters, then wait for the drain.

    The steps: read the counters, sample the machine while the workload runs, drain, read the counters again. The
    workload reports the seconds for throughput and latency (``RunResult.seconds``). Counters cover these seconds and
    the drain. ``wall`` is 0 here; ``Testbed`` sets it. timeline: samples every second of the measurement; may be None.

    A round is void (``Round.void`` says why) in these cases:

    - the topology noticed a change, such as a new primary
    - the cluster did not drain within DRAIN_SECONDS
    - servers turned clients away
    - the workload did less than 95 % of the offered operations of an open loop; not with an objective
    - no operation succeeded

    If the workload fails, the round is void if the topology noticed a change or servers turned clients away. Otherwise
    this raises the WorkloadError.
    """
    in_round = timeline.during(Place(variant, block, position), setting) if timeline else contextlib.nullcontext()
    with in_round:
        return _run_and_read(workload, setting, variant, block, position)


def _run_and_read(workload: Workload, setting: Setting, variant: str, block: int, position: int) -> Round:
    cluster, failed = setting.cluster, ""
    watched = cluster.topology.watch(cluster.nodes)
    servers, hosts = {node.name: node.process for node in cluster.nodes if node.process}, cluster.hosts
    samples = Sampler(servers, setting.client, [node.host for node in cluster.nodes], others=setting.others)
    with span("read counters"):
        before, _ = ask_both(functools.partial(sampler.read_counters, cluster.nodes), samples.take, hosts)
    started = time.time()
    with cluster.ending_loads(setting.clients), span("workload") as ran:
        try:
            result = _run(workload, setting)
        except WorkloadError as error:
            with contextlib.suppress(SQLError):  # a node does not answer; the error raised below (NodeDied) says more
                after = sampler.read_counters(cluster.nodes)
                failed = topology_change(cluster, watched) or refusal(workload, cluster, before, after, str(error))
            if not failed:
                raise
            failed += f"; the workload failed: {_last_line(str(error))}"
            result = RunResult(ran.seconds, 0)
    with span("drain"):
        _, (drained, after) = ask_both(samples.take, functools.partial(_drain_and_read, cluster), hosts)
    void = failed or topology_change(cluster, watched) or refusal(workload, cluster, before, after)
    void = void or drained.late or result.void or result.idle
    void = void or ("" if setting.objective else open_loop.saturation(result))
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


def _run(workload: Workload, setting: Setting) -> RunResult:
    """Run the workload once. If a command that it ran failed, raises WorkloadError with the command's output."""
    try:
        return workload.run(setting)
    except CommandFailed as error:
        said = error.stderr.strip() or error.stdout
        raise setting.cluster.load_failure(f"{workload} {error.ended} on {setting.where}", said) from error


def refusal(workload: Workload, cluster: Cluster, before: Reading, after: Reading, said: str = "") -> str:
    """Why a round is void, if servers turned clients away between two readings; empty if they did not.

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
    """A void round without a run of the workload, because the reset before it did not drain.

    void: the reason. Its seconds are DRAIN_SECONDS, the time that the drain waited.
    """
    waited = RunResult(DRAIN_SECONDS, 0)
    return Round(variant, block, position, waited, wall=0.0, started=time.time(), settled=False, void=void)


def _last_line(error: str) -> str:
    """The last line of an error, which says what happened, cut to its last TAIL characters."""
    line = error.strip().splitlines()[-1]
    return line if len(line) <= TAIL else f"... {line[-TAIL:]}"


def reset(workload: Workload, setting: Setting) -> tuple[str, bool]:
    """Return the tables of a writing workload to their initial rows, and wait until the servers are at rest.

    Returns why the next round is void, or an empty text. The round would pay for a reset that did not drain. The second
    value is whether every server has applied and flushed everything.
    """
    cluster = setting.cluster
    if workload.writes:
        workload.reset(setting)
        elsewhere = any(host.machine for host in cluster.hosts)  # there a flush costs no more than a round trip
        drained = drain(cluster, lambda node: node.flush_statements) if elsewhere else drain(cluster, poll=RESET_POLL)
        if drained.late:
            return f"after its reset {drained.late}", False
        if drained.answers is None:
            flushed = not cluster.flush()
        else:
            answers = zip(cluster.nodes, drained.answers, strict=True)
            flushed = not any(node.flush_backlog(rows[-1]) for node, rows in answers)
        if flushed:
            return "", True
    return "", cluster.settle(SETTLE_SECONDS)


@dataclasses.dataclass(frozen=True)
class Drain:
    """The result of a drain."""

    seconds: float
    """Its time."""

    late: str = ""
    """The backlog after DRAIN_SECONDS; empty if there is none."""

    answers: Sequence[Sequence[Sequence[tuple[Any, ...]]]] | None = None
    """Results of ``along`` in the last reading; see ``drain``."""


def drain(cluster: Cluster, along: Callable[[Node], Sequence[str]] | None = None, *, poll: float = POLL) -> Drain:
    """Wait until every node has applied all writes.

    The clock starts when the workload's program has ended, not at its last commit. It stops at the first reading
    without a backlog. Readings are ``poll`` apart and take a few ms, so the resolution after a round is about
    10 ms. A drain without a backlog takes as long as one reading. It is 0.0 if the topology does not replicate.

    along: statements that each node runs after each reading, in the same round trip. ``answers`` has their rows by
    node; None if the topology does not ask each server.
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
        return Drain(wait.until(backlog, "the drain", seconds=DRAIN_SECONDS, poll=poll), answers=answers)
    except NotReady as error:
        return Drain(DRAIN_SECONDS, f"not drained after {DRAIN_SECONDS:g} s: {'; '.join(error.problems)}")


def _drain_and_read(cluster: Cluster) -> tuple[Drain, Reading]:
    """Drain, and read the counters afterwards; in one round trip if servers are on other machines.

    On this machine, the counters would make each reading of the drain longer.
    """
    elsewhere = any(host.machine for host in cluster.hosts)
    drained = drain(cluster, sampler.counter_statements if elsewhere else None)
    if drained.answers is None:
        return drained, sampler.read_counters(cluster.nodes)
    return drained, [sampler.counters_of(rows) for rows in drained.answers]


def topology_change(cluster: Cluster, before: Mapping[str, str]) -> str:
    """Why the topology voids a round that began with the reading ``before``; empty if the round counts."""
    return cluster.topology.void(before, cluster.topology.watch(cluster.nodes))


def merge(rounds: Sequence[Round]) -> Round:
    """The rounds of one start as a single round: sums of results and drains, means of counters and samples.

    The result is void if one of the rounds is void.
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
        capacity=capacity_curve.mean(curves) if (curves := [one.capacity for one in rounds if one.capacity]) else None,
    )


def _add_results(results: Sequence[RunResult]) -> RunResult:
    """Several run results as one: sums of counts, times and steps, and means of ``figures``."""
    ledgers = [result.ledger for result in results if result.ledger is not None]
    spans = [result.span for result in results if result.span is not None]
    used = [result.client_seconds for result in results if result.client_seconds is not None]
    kinds = dict.fromkeys(name for result in results for name in result.statements)
    least = [result.least for result in results if result.least is not None]
    most = [result.most for result in results if result.most is not None]
    return RunResult(
        seconds=sum(result.seconds for result in results),
        least=min(least, default=None),
        most=max(most, default=None),
        statements={
            name: sum((result.statements.get(name, Histogram()) for result in results), Histogram()) for name in kinds
        },
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
        ended_early=any(result.ended_early for result in results),
    )


def _add_hosts(runs: Sequence[Sequence[LoadHost]]) -> tuple[LoadHost, ...]:
    """The hosts that divided several runs, with the sum of their CPU time and the maximum of their busiest threads."""
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
