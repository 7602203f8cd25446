"""One repetition of an event under load.

The phases: the load runs for some seconds, the event happens, the load commits again, and the load is stopped.
Then the cluster is made whole, and the books of the load are compared with its tables.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import random
import time
from collections.abc import Callable, Iterator, Sequence

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.events.event import Event, Happened
from pytest_dbcluster.clusters.events.roles.hand_over import hand_over
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import REFUSAL, SwitchesRoles
from pytest_dbcluster.errors import DBClusterError, ProvisionError, WorkloadError
from pytest_dbcluster.hosts.host import EndsCommands
from pytest_dbcluster.rounds.outages import outage, states
from pytest_dbcluster.rounds.outages.outage import Outage, Returned
from pytest_dbcluster.rounds.round import Round, RunResult
from pytest_dbcluster.system.tracing.recorder import span
from pytest_dbcluster.testbed.events.watch import Watch
from pytest_dbcluster.testbed.timeline import Askers
from pytest_dbcluster.workloads.until_stopped import RunsUntilStopped, StoppedLoad, UntilStopped
from pytest_dbcluster.workloads.workload import Setting, Workload

BASELINE_SECONDS, JITTER_SECONDS = 4.0, 2.0  # of the load before the event, and at most so many more by the draw
BEGIN_SECONDS = 60.0  # until the load must have written something
RECOVERY_SECONDS = 120.0  # after this time the stall is censored
# Until a load that is told to stop must have ended; a blocked one gets the longer time when the cluster is whole.
END_SECONDS, BLOCKED_SECONDS = 20.0, 120.0
CONTROL_SECONDS = 9.0  # of a repetition in which nothing happens, for the expected time
POLL = 0.25
ANSWER_SECONDS = 5.0  # of a server, for its count of rows
LOOKS, WRITING = 12, 8  # the load has recovered if it wrote between so many of the last looks
RECOVERED_SECONDS = LOOKS * POLL  # of these looks
SETTLED_SECONDS = 120.0  # until all nodes must have applied everything
# Statuses that a load changes, by whether it writes. MySQL has the first ones, and its own queries change the others.
STATUSES = {
    True: (("innodb_rows_inserted", "innodb_rows_updated"), ("handler_write", "handler_update", "handler_delete")),
    False: (("innodb_rows_read",), ("handler_read_key",)),
}
Running = concurrent.futures.Future[StoppedLoad]


class NotWhole(ProvisionError):
    """After an event, the cluster did not become whole again."""


def repeat(load: Workload, setting: Setting, event: Event, coin: random.Random, **of_round: object) -> Round:
    """Let an event happen once, and return the round with its figures. It is void if the event is not proven.

    coin: draws the moment of the event. of_round: variant, block and position of the round. Raises WorkloadError if the
    load itself fails, and NotWhole.
    """
    assert isinstance(load, RunsUntilStopped), "``event_testbed`` refuses others"
    cluster = setting.cluster
    _prepare(event, cluster)
    before, writer = BASELINE_SECONDS + coin.uniform(0, JITTER_SECONDS), cluster.writers[0]
    with (
        contextlib.closing(_Work(cluster, writes=load.writes)) as work,
        contextlib.closing(Watch(cluster)) as watch,
        _load_in_thread(load, setting) as (running, until),
    ):
        happened, recovered = _through(running, setting, event, work, before)
        told = time.time()
        until.stop()
        blocked = not _ends(running, END_SECONDS)
        if not blocked:
            running.result()  # its error says more than that of a cluster that is not whole
        returned = _make_whole(event, cluster, happened, writer)
        if blocked and not _ends(running, BLOCKED_SECONDS):
            raise NotWhole(_why_not_whole(event, cluster, ProvisionError(f"{load} was told to stop and did not end")))
        stopped = running.result()
        _settle(event, cluster)
    void = _why_void(happened, stopped.result)
    # What a repetition lost that does not count stays in the cluster's own books, for the check after the rounds.
    books = stopped.balance() if stopped.balance and not void else None
    broken = _violations(stopped.violations or functools.partial(load.violations, cluster), event, cluster)
    figures = _figures(stopped, happened, event, cluster, stopped_at=told, recovered=recovered)
    whole = figures.marks["whole"] + happened.seconds_before if returned else None
    figures = dataclasses.replace(figures, books=books, returned=returned, without_redundancy=whole)
    figures = dataclasses.replace(figures, events_before=cluster.events, violations=broken)
    figures = _with_states(figures, watch, primary=writer.name if _has_primary(cluster) else "", until=told)
    make: Callable[..., Round] = Round
    return make(**of_round, outcome=stopped.result, wall=0.0, started=stopped.times.began, void=void, outage=figures)


@contextlib.contextmanager
def _load_in_thread(load: RunsUntilStopped, setting: Setting) -> Iterator[tuple[Running, UntilStopped]]:
    """Run the load in another thread. At the end of the block it is stopped, or else killed."""
    until = UntilStopped()
    with wait.threads(1, "dbcluster-load") as threads:
        running = threads.submit(load.run_until_stopped, setting, until)
        try:
            yield running, until
        except Exception:
            until.stop()
            _ends(running, END_SECONDS)
            raise
        finally:
            until.stop()
            for client in setting.clients if not running.done() else ():
                if isinstance(client, EndsCommands):
                    client.end_commands()


def _ends(running: Running, seconds: float) -> bool:
    """Whether the load ends within so many seconds."""
    limit = time.monotonic() + seconds
    while not running.done() and time.monotonic() < limit:
        wait.raise_if_interrupted()
        concurrent.futures.wait([running], POLL)
    return running.done()


def _through(running: Running, setting: Setting, event: Event, work: _Work, before: float) -> tuple[Happened, bool]:
    """Let the event happen under the load, and return whether the load recovered. before: seconds until the event."""
    wait.until(lambda: _begin_problems(work, running), "the first rows of the load", seconds=BEGIN_SECONDS)
    _sleep(before, running)
    happened = _act(event, setting.cluster)
    return happened, _recovers(work, running)


def _make_whole(event: Event, cluster: Cluster, happened: Happened, writer: Node) -> Returned | None:
    """Make the cluster whole, with the primary that it had before. Raises NotWhole."""
    try:
        returned = event.restore(cluster, happened)
        wait.until(cluster.problems, f"cluster {cluster.spec} after {event}", seconds=SETTLED_SECONDS)
        if returned:
            happened.marks.setdefault("whole", time.time() - happened.at)
        if event.reusable and _has_other_primary(cluster, writer):
            hand_over(writer, cluster)
    except (SQLError, ProvisionError) as error:
        raise NotWhole(_why_not_whole(event, cluster, error)) from error
    return returned


def _settle(event: Event, cluster: Cluster) -> None:
    """Wait until all nodes have applied everything, after the end of the load. Raises NotWhole."""
    try:
        wait.until(cluster.backlog, f"cluster {cluster.spec} after {event}", seconds=SETTLED_SECONDS)
        if violations := cluster.topology.violations(cluster.nodes):
            raise ProvisionError("; ".join(violations))
    except (SQLError, ProvisionError) as error:
        raise NotWhole(_why_not_whole(event, cluster, error)) from error


def _violations(ask: Callable[[], Sequence[str]], event: Event, cluster: Cluster) -> tuple[str, ...]:
    """The conditions of the load that do not hold. Raises NotWhole if a node does not answer."""
    try:
        with span("check"):
            return tuple(ask())
    except (SQLError, ProvisionError) as error:
        raise NotWhole(_why_not_whole(event, cluster, error)) from error


def _has_primary(cluster: Cluster) -> bool:
    return cluster.topology.has_primary(dict(cluster.spec.options))


def _has_other_primary(cluster: Cluster, before: Node) -> bool:
    """Whether the topology elected another primary than the one before, and can switch back to it."""
    topology, options = cluster.topology, dict(cluster.spec.options)
    one = isinstance(topology, SwitchesRoles) and _has_primary(cluster) and not topology.refuses_roles(options)
    return one and not isinstance(cluster.spec.release, tuple) and cluster.writers[0] is not before


def _prepare(event: Event, cluster: Cluster) -> None:
    try:
        event.prepare(cluster)
    except (SQLError, ProvisionError) as error:
        raise NotWhole(f"before the event {event} of the cluster {cluster.spec}: {error}") from error


def _act(event: Event, cluster: Cluster) -> Happened:
    try:
        return event.act(cluster)
    except (SQLError, ProvisionError) as error:
        raise NotWhole(_why_not_whole(event, cluster, error)) from error


class _Work:
    """Whether the load did something since the last look, as the running servers count rows.

    A server without an answer keeps nobody waiting for longer than ``timeline.PATIENCE``. ``close`` ends the threads.
    """

    def __init__(self, cluster: Cluster, *, writes: bool) -> None:
        self._cluster = cluster
        self._names = STATUSES[writes]
        self._last: dict[str, int] = {}
        self._askers = Askers()

    def went_on(self) -> bool:
        """Look at the servers."""
        asks = {node.name: functools.partial(self._of_node, node) for node in self._cluster.nodes if node.running}
        before, found = self._last, self._askers.answers(asks, together=False)
        self._last = before | found
        return any(rows != before.get(name, rows) for name, rows in found.items())

    def close(self) -> None:
        """End the threads that ask."""
        self._askers.close()

    def _of_node(self, node: Node) -> int:
        every = ", ".join(f"'{name}'" for names in self._names for name in names)
        status = node.sql.pairs(f"SHOW GLOBAL STATUS WHERE Variable_name IN ({every})", ANSWER_SECONDS)
        found = next((names for names in self._names if names[0] in status), ())
        return sum(int(status[name]) for name in found)


def _begin_problems(work: _Work, running: Running) -> list[str]:
    _raise_if_over(running)
    return [] if work.went_on() else ["no row is written yet"]


def _raise_if_over(running: Running) -> None:
    """Raise the error of a load that ended too early."""
    if running.done():
        running.result()
        raise WorkloadError("the load ended before we stopped it")


def _sleep(seconds: float, running: Running) -> None:
    limit = time.monotonic() + seconds
    while (left := limit - time.monotonic()) > 0:
        wait.raise_if_interrupted()
        _raise_if_over(running)
        time.sleep(min(POLL, left))


def _recovers(work: _Work, running: Running) -> bool:
    """Wait until the load goes on, at most RECOVERY_SECONDS. Returns whether it does."""
    limit, looks = time.monotonic() + RECOVERY_SECONDS, list[bool]()
    while time.monotonic() < limit:
        wait.raise_if_interrupted()
        _raise_if_over(running)
        time.sleep(POLL)
        looks = [*looks, work.went_on()][-LOOKS:]
        if len(looks) == LOOKS and looks[-1] and sum(looks) >= WRITING:
            return True
    return False


def _figures(
    stopped: StoppedLoad, happened: Happened, event: Event, cluster: Cluster, *, stopped_at: float, recovered: bool
) -> Outage:
    ledger, usual = stopped.result.ledger, happened.at - happened.seconds_before
    found = outage.measure(stopped.times, happened.at, usual_until=usual, stopped_at=stopped_at, recovered=recovered)
    return dataclasses.replace(
        found,
        event=str(event),
        node=happened.node,
        failed=ledger.total.failed if ledger else 0,
        unknown=ledger.total.unknown if ledger else 0,
        connections_lost=stopped.connections_lost,
        marks={name: round(seconds, 3) for name, seconds in happened.marks.items()},
        logged=_error_lines(event, cluster),
    )


def _with_states(figures: Outage, watch: Watch, *, primary: str, until: float) -> Outage:
    """The figures with what was seen of the cluster. until: the end of the load, in seconds since 1970.

    An event that proves the new writer has its own marks for it. A node that was refused is synced by our rebuild only.
    """
    at = figures.event_at
    nodes, routes = watch.nodes(at), watch.routes(at)
    seen = states.marks(nodes, routes, primary=primary, lost=figures.node, until=until - at)
    refused = figures.returned is not None and figures.returned.how == REFUSAL
    hidden = [*(states.OF_WRITER if states.ROUTED in figures.marks else ()), *([states.SYNCED] if refused else ())]
    seen = {name: at for name, at in seen.items() if name not in hidden}
    marks = sorted({**seen, **figures.marks}.items(), key=lambda mark: mark[1])
    return dataclasses.replace(figures, states=nodes, routes=routes, marks=dict(marks))


def _error_lines(event: Event, cluster: Cluster) -> tuple[str, ...]:
    """The [ERROR] lines so far. From now on those that the event causes are no fault of the cluster."""
    lines = cluster.new_errors()
    cluster.expected_errors.update(event.errors)
    return tuple(lines)


def _why_void(happened: Happened, result: RunResult) -> str:
    """Why a repetition does not count; empty if it counts."""
    return f"the event is not proven: {happened.void}" if happened.void else result.idle


def _why_not_whole(event: Event, cluster: Cluster, error: DBClusterError) -> str:
    """Why a repetition does not count, and why its cluster serves no other one."""
    return f"after the event {event} the cluster {cluster.spec} did not become whole: {error}"
