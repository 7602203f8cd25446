"""``Timeline``: a sample of every second of a measurement, as CSV: the machine, each node, the load generator.

One thread samples over the whole measurement, also between its rounds. It queries servers only during a round, on the
plugin's control connections: another connection could take one that the workload needs. A node that does not answer has
a gap until it answers; the samples of all others continue. ``benchmarks/timeline_cost.py`` measures the cost.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import functools
import io
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import psutil

from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Pulse
from pytest_dbcluster.hosts.host import Host, Process
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.testbed.sampler import (
    Sample,
    load_seconds,
    local_processes,
    machines,
    of_machine,
    of_process,
    sample,
)
from pytest_dbcluster.workloads.workload import Setting

INTERVAL = 1.0  # seconds
STOP_SECONDS = 5.0
PATIENCE = 1.0  # seconds: whoever has not answered by then is left out until the answer comes
ABOUT = ("time", "seconds", "variant", "block", "position")
LOADS = "client"  # the name of the load generator's host
NODE, CLIENT = "_node", "_client"  # in the names of one node's values; at the end of those of the load host
GAUGES = (
    "receive_queue",
    "certification_queue",
    "replica_lag",
)  # values at one moment; all other values are changes a second


Ask = Callable[[], Any]
Key = frozenset[tuple[str, str, int]]  # of the nodes: name, directory, process


@dataclasses.dataclass(frozen=True)
class Place:
    """The round of a sample."""

    variant: str
    """The spec's short name."""

    block: int
    """Number of the block, 0-based, or negative for a warm-up block."""

    position: int
    """Place in the block, 0-based."""


@dataclasses.dataclass(frozen=True)
class Moment:
    """A sample."""

    time: float
    """Seconds since 1970 (UTC), which the system may correct."""

    clock: float
    """Seconds by ``time.monotonic``."""

    place: Place | None
    """The round; None between rounds."""

    processes: int
    """Number of the set of server processes; see ``SampledNow.number``."""

    values: Sample
    """Cumulative values and gauges by name."""

    client: int = 0
    """Identity of the load generator's host."""


@dataclasses.dataclass(frozen=True)
class SampledNow:
    """The current subject of the samples."""

    place: Place | None
    """The round; None between rounds."""

    cluster: Cluster | None
    """The cluster; None before the first round."""

    client: Host | None
    """The host of the load generator; None before the first round."""

    programs: Mapping[str, Process]
    """The servers by node."""

    processes: Mapping[str, psutil.Process]
    """The servers that are processes of this machine, by node."""

    hosts: Mapping[str, Host]
    """The hosts of the nodes and of the load generator, by name."""

    number: int
    """Number of this set of processes and hosts."""

    others: Sequence[Host] = ()
    """More hosts of the load generator."""


class Timeline:
    """The samples of one measurement. ``during`` starts the thread, ``stop`` ends it; ``during`` may follow again.

    interval: seconds between two samples.
    """

    def __init__(self, interval: float = INTERVAL) -> None:
        self.moments: list[Moment] = []
        self._interval = interval
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()  # each thread has its own
        self._known: Key | None = None
        self._numbers: dict[Key, int] = {}
        self._now = SampledNow(None, None, None, {}, {}, {}, 0)
        self._askers = Askers()

    @contextlib.contextmanager
    def during(self, place: Place, setting: Setting) -> Iterator[None]:
        """Sample the cluster of this setting, and its servers until the block ends; then only its processes."""
        cluster = setting.cluster
        programs = {node.name: node.process for node in cluster.nodes if node.process}
        # Processes of guests have no number of this machine; each guest has a directory.
        key = frozenset(
            (node.name, f"{node.host.machine}:{node.host.directory}", node.process.pid if node.process else 0)
            for node in cluster.nodes
        )
        hosts = {node.name: node.host for node in cluster.nodes} | {LOADS: setting.client}
        now = dataclasses.replace(
            self._now, place=place, cluster=cluster, client=setting.client, others=setting.others, hosts=hosts
        )
        if key != self._known:
            self._known = key
            self._known = key
            # A cluster that comes again keeps its number: two samples of one round are rare.
            number = self._numbers.setdefault(key, len(self._numbers) + 1)
            now = dataclasses.replace(now, programs=programs, processes=local_processes(programs), number=number)
        # One assignment, no lock: the thread may wait for a server that does not answer, and a round must not.
        self._now = now
        self._start()
        try:
            yield
        finally:
            self._now = dataclasses.replace(now, place=None)

    def stop(self) -> None:
        """End the threads. A second call does nothing. A thread that waits for a server ends with its statement."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stopped.set()
            thread.join(STOP_SECONDS)
        self._askers.close()

    def _start(self) -> None:
        if self._thread is None:
            self._stopped = threading.Event()
            self._thread = threading.Thread(
                target=self._sample, args=(self._stopped,), daemon=True, name="dbcluster-timeline"
            )
            self._thread.start()

    def _sample(self, stopped: threading.Event) -> None:
        due = time.monotonic()
        while not stopped.wait(max(0.0, due - time.monotonic())):
            self.moments.append(_moment(self._now, self._askers))
            due = next_due(due, self._interval, time.monotonic())

    def as_csv(self, rounds: Sequence[Round]) -> str:
        """The samples from the first to the last of these rounds as CSV, with a header; empty without any.

        Each sample is one line. An empty cell is unknown. The columns:

        - ``time`` (seconds since 1970), ``seconds`` since the first round.
        - ``variant``, ``block`` and ``position`` of the round; empty between rounds.
        - the metrics of ``Sampler.rates``, as averages since the last sample that has them.
        - ``cpu_user``, ``cpu_system``, ``cpu_idle`` (cores), ``network_received_bytes``: of this machine, or sums over
          the machines of the nodes.
        - ``flow_control_paused_NODE`` (share of the time, 0 to 1), ``flow_control_held_NODE`` (mean of held sessions),
          ``receive_queue_NODE``, ``certification_queue_NODE`` (transactions), ``replica_lag_NODE`` (seconds).
        - the metrics of the machine, ``cpu_iowait``, ``network_sent_bytes``, ``disk_read_bytes`` and
          ``disk_write_bytes``, with ``_NODE``. They cover the node's guest, its machine, or its process.
        - the same with ``_client`` for the guest or machine of the first load host; ``cpu_client`` covers all hosts.
        """
        if not rounds:
            return ""
        moments = list(self.moments)
        began = min(done.started for done in rounds)
        ended = max(done.started + done.seconds + done.counters.get("drain_seconds", 0.0) for done in rounds)
        lines = [
            (moment, rates)
            for moment, rates in zip(moments, _rates(moments), strict=True)
            if began - self._interval <= moment.time <= ended + self._interval
        ]
        if not lines:
            return ""
        names = list(dict.fromkeys(name for _, rates in lines for name in rates))
        text = io.StringIO()
        add = csv.writer(text, lineterminator="\n").writerow
        add([*ABOUT, *names])
        for moment, rates in lines:
            place = dataclasses.astuple(moment.place) if moment.place else ("", "", "")
            cells = [f"{rates[name]:.6g}" if name in rates else "" for name in names]
            add([f"{moment.time:.3f}", f"{moment.time - began:.3f}", *place, *cells])
        return text.getvalue()


def next_due(due: float, interval: float, now: float) -> float:
    """The time of the next sample after the one that was due at ``due`` and ended at ``now``.

    It leaves half an interval after a late sample: changes a second over a few milliseconds are noise.
    """
    return max(due + interval, now + interval / 2)


def _moment(of: SampledNow, askers: Askers) -> Moment:
    """Take a sample."""
    at, clock = time.time(), time.monotonic()

    def client_seconds() -> float | None:
        return load_seconds([of.client, *of.others], lambda host: host.running_cpu_seconds()) if of.client else None

    elsewhere = machines(of.hosts.values())
    asks: dict[str, Ask] = {f"cpu_{name}": process.cpu_seconds for name, process in of.programs.items()}
    asks["cpu_client"] = client_seconds
    machine = {f"machine {name}": host.usage for name, host in elsewhere.items()}
    own = {f"host {name} {id(host)}": host.usage for name, host in of.hosts.items() if not host.machine}
    answers = askers.answers(asks | machine, together=not elsewhere) | askers.answers(own, together=False)
    used = {name: answers.get(f"machine {name}") or {} for name in elsewhere}
    of_nodes = [used[name] for name in machines(host for name, host in of.hosts.items() if name != LOADS)]
    values = sample({name: answers[name] for name in asks if answers.get(name) is not None}, of_nodes)
    values |= of_machine(of_nodes)
    owners = {name: of_process(process) for name, process in of.processes.items()}
    for name, host in of.hosts.items():
        counted = used[host.machine] if host.machine else answers.get(f"host {name} {id(host)}") or {}
        owners[name] = {**owners.get(name, {}), **counted}
    values |= {f"{metric}_{name}": value for name, counted in owners.items() for metric, value in counted.items()}
    if of.place and of.cluster:
        values |= of_servers(of.cluster, askers)
    return Moment(at, clock, of.place, of.number, values, id(of.client))


class Askers:
    """Threads that ask, so that no caller waits for a missing answer. ``close`` ends them."""

    def __init__(self) -> None:
        self._idle: list[_Asker] = []
        self._silent: dict[str, _Asker] = {}  # name without an answer -> the thread that waits for it

    def answers(self, asks: Mapping[str, Ask], *, together: bool) -> dict[str, Any]:
        """The answers by name, without those that fail or take longer than PATIENCE.

        A name without an answer is not asked again before it answers. together: ask one after the other in one thread.
        On this machine threads cost more CPU time than the answers take.
        """
        self._idle += [asker for asker in self._silent.values() if asker.idle]
        self._silent = {name: asker for name, asker in self._silent.items() if not asker.idle}
        left = {name: ask for name, ask in asks.items() if name not in self._silent}
        collected: dict[str, Any] = {}
        while left:
            parts = [left] if together else [{name: ask} for name, ask in left.items()]
            asking = [(self._idle.pop() if self._idle else _Asker()) for _ in parts]
            for asker, part in zip(asking, parts, strict=True):
                asker.begin(part)
            limit = time.monotonic() + PATIENCE
            for asker in asking:
                if not asker.done.wait(max(0.0, limit - time.monotonic())) and (silent := asker.leave()):
                    self._silent[silent] = asker
                else:
                    self._idle.append(asker)
                collected |= asker.found
            over = {*self._silent, *(name for asker in asking for name in asker.tried)}
            left = {name: ask for name, ask in left.items() if name not in over}
        return collected

    def close(self) -> None:
        """End the threads, each when it has its answer."""
        for asker in (*self._idle, *self._silent.values()):
            asker.close()
        self._idle, self._silent = [], {}


class _Asker:
    """A thread that asks one after the other. found: the answers. tried: the names so far. idle: whether it is free."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self.tried: list[str] = []
        self.done = threading.Event()
        self.idle = True
        self._left = False
        self._first = ""  # the first name
        self._guard = threading.Lock()
        self._given: queue.SimpleQueue[Mapping[str, Ask] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True, name="dbcluster-timeline-asks").start()

    def begin(self, asks: Mapping[str, Ask]) -> None:
        """Ask all of these, one after the other."""
        self.found, self.tried, self.idle, self._left = {}, [], False, False
        self._first = next(iter(asks))
        self.done.clear()
        self._given.put(asks)

    def leave(self) -> str:
        """Stop after the current name, and return it; empty if all have answered."""
        with self._guard:
            self._left = not self.idle
            return [self._first, *self.tried][-1] if self._left else ""

    def close(self) -> None:
        """End the thread."""
        self._given.put(None)

    def _run(self) -> None:
        while asks := self._given.get():
            for name, ask in asks.items():
                with self._guard:
                    if self._left:
                        break
                    self.tried.append(name)
                answer = None
                with contextlib.suppress(Exception):  # the thread must not end because of a lost host
                    answer = ask()
                with self._guard:
                    if not self._left and answer is not None:
                        self.found[name] = answer
            with self._guard:
                self.idle = True
            self.done.set()


def _rates(moments: Sequence[Moment]) -> list[dict[str, float]]:
    """For each moment, the changes a second since the last one with the value, and the gauges.

    Processes and servers of another cluster have separate values, which have no change at first.
    """
    rates = []
    known: dict[tuple[str, int], tuple[float, float]] = {}
    for moment in moments:
        changes: dict[str, float] = {}
        for name, value in moment.values.items():
            number = moment.client if name.endswith(CLIENT) else moment.processes if NODE in name else 0
            key = (name, number)
            if name.startswith(GAUGES):
                changes[name] = value
            elif key in known and value >= known[key][1]:  # a restarted host counts from 0
                clock, before = known[key]
                changes[name] = (value - before) / max(moment.clock - clock, 1e-6)
            known[key] = (moment.clock, value)
        rates.append(changes)
    return rates


def of_servers(cluster: Cluster, askers: Askers) -> Sample:
    """The values of each server, by ``NAME_NODE``. Servers that do not answer are missing; the round notices them."""

    def ask(node: Node, pulse: Pulse) -> Sample:
        answer = _answer(node.sql.records(pulse.statement))
        return {f"{name}_{node.name}": value for name, value in _read(pulse, answer).items()}

    nodes = cluster.nodes
    pulses = [(node, pulse) for node in nodes if (pulse := cluster.topology.pulse(node, nodes)) is not None]
    asks = {f"server {node.name} {id(node)}": functools.partial(ask, node, pulse) for node, pulse in pulses}
    here = not any(node.host.machine or node.host.connects for node in nodes)
    found = askers.answers(asks, together=here)
    return {name: value for values in found.values() for name, value in values.items()}


def _answer(rows: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    """The values by lower-case name, from a list of statuses (name, value) or from one row."""
    if rows and set(rows[0]) == {"variable_name", "value"}:
        return {row["variable_name"].lower(): row["value"] for row in rows}
    return rows[0] if rows else {}


def _read(pulse: Pulse, answer: Mapping[str, str]) -> dict[str, float]:
    """The values of a pulse that the server knows; a replica that reads nothing has no lag."""
    return {
        name: float(answer[column]) * unit for name, (column, unit) in pulse.values.items() if answer.get(column, "")
    }
