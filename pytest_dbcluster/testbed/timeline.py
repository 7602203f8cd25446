"""``Timeline``: a sample of every second of a measurement, as CSV: the machine, each node, the load generator.

One thread samples over the whole measurement, also between its rounds. Servers are asked only during a round, on the
control connections that the plugin has anyway: another connection would take a place that the workload may need. A node
that does not answer has a gap from then on until it answers; the samples of all others go on.
``benchmarks/timeline_cost.py`` measures what the samples cost.
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
PATIENCE = 1.0  # seconds: who has not answered by then is left out until he does
ABOUT = ("time", "seconds", "variant", "block", "position")
LOADS = "client"  # the name of the load generator's host
NODE, CLIENT = "_node", "_client"  # in the names of values that are of one node; at the end of those of the load's host
GAUGES = (
    "receive_queue",
    "certification_queue",
    "replica_lag",
)  # read as they are; all other values are changes a second


Ask = Callable[[], Any]
Key = frozenset[tuple[str, str, int]]  # of the nodes: name, directory, process


@dataclasses.dataclass(frozen=True)
class Place:
    """The round in which a sample was taken."""

    variant: str
    block: int
    position: int


@dataclasses.dataclass(frozen=True)
class Moment:
    """A sample.

    processes, client: the numbers of the servers' processes and of the load generator's host that it is of.
    """

    time: float
    """Seconds since 1970 (UTC), which the system may correct; clock: seconds by ``time.monotonic``."""

    clock: float
    place: Place | None
    """None between rounds."""

    processes: int
    values: Sample
    client: int = 0


@dataclasses.dataclass(frozen=True)
class SampledNow:
    """What is sampled at present."""

    place: Place | None
    cluster: Cluster | None
    client: Host | None
    programs: Mapping[str, Process]
    """The servers by node."""

    processes: Mapping[str, psutil.Process]
    """Those of them that this machine sees."""

    hosts: Mapping[str, Host]
    """Of the nodes and of the load generator, by name."""

    number: int
    """Of these processes and hosts; place: None between rounds."""

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
        """Sample the cluster of this setting, and its servers until the block ends; then its processes alone."""
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
            # The number of before, when a cluster's turn comes again: two samples of one round are rare.
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
        """End the threads. A second call does nothing. One that waits for a server ends when that statement does."""
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

        A line for each sample: ``time`` (seconds since 1970), ``seconds`` since the first round, then ``variant``,
        ``block`` and ``position`` of the round in which it was taken (empty between rounds), then the metrics: those of
        ``Sampler.rates`` as averages since the last sample that has them, and by node ``flow_control_paused_NODE``
        (share of the time, 0 to 1), ``flow_control_held_NODE`` (sessions that it held, on average),
        ``receive_queue_NODE`` and ``certification_queue_NODE`` (transactions), ``replica_lag_NODE`` (seconds). An
        empty cell is unknown. ``cpu_user``, ``cpu_system``, ``cpu_idle`` (cores) and ``network_received_bytes`` are of
        this machine, or the sums over the machines that the nodes are on. With ``_NODE`` these, ``cpu_iowait``,
        ``network_sent_bytes``, ``disk_read_bytes`` and ``disk_write_bytes`` are of a node: of its guest or of its
        machine, as the kernel there counts them, or of its process; with ``_client`` of the guest or the machine of the
        load generator, the first one where there are several; ``cpu_client`` is that of all of them.
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
    """When the next sample is due after the one that was due at ``due``, and that has ended ``now``.

    A late sample is not followed by a second one at once: changes a second over a few milliseconds are noise.
    """
    return max(due + interval, now + interval / 2)


def _moment(of: SampledNow, askers: Askers) -> Moment:
    """A sample of now."""
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
    """Threads that ask, so that nobody waits for who does not answer. ``close`` ends them."""

    def __init__(self) -> None:
        self._idle: list[_Asker] = []
        self._silent: dict[str, _Asker] = {}  # who has not answered, and the thread that waits for it

    def answers(self, asks: Mapping[str, Ask], *, together: bool) -> dict[str, Any]:
        """What each of these answers; those are left out who fail, or do not answer within PATIENCE.

        One that has not answered is not asked again before it does. together: ask in turn, with one thread: on this
        machine threads cost more CPU than the answers wait.
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
    """A thread that asks some in turn. found: their answers. tried: who was asked. idle: it may be used again."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self.tried: list[str] = []
        self.done = threading.Event()
        self.idle = True
        self._left = False
        self._first = ""  # who is asked first
        self._guard = threading.Lock()
        self._given: queue.SimpleQueue[Mapping[str, Ask] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True, name="dbcluster-timeline-asks").start()

    def begin(self, asks: Mapping[str, Ask]) -> None:
        """Ask all of these, in turn."""
        self.found, self.tried, self.idle, self._left = {}, [], False, False
        self._first = next(iter(asks))
        self.done.clear()
        self._given.put(asks)

    def leave(self) -> str:
        """Ask nobody after the present one, and return who that is; empty when all have just answered."""
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
                with contextlib.suppress(Exception):  # the thread must not end, whatever becomes of a host
                    answer = ask()
                with self._guard:
                    if not self._left and answer is not None:
                        self.found[name] = answer
            with self._guard:
                self.idle = True
            self.done.set()


def _rates(moments: Sequence[Moment]) -> list[dict[str, float]]:
    """For each moment the changes a second since the last one that has the value, and the gauges as they are.

    Processes and servers of another cluster have other values: of these there is no change at first.
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
            elif key in known and value >= known[key][1]:  # a host that was started again counts from 0
                clock, before = known[key]
                changes[name] = (value - before) / max(moment.clock - clock, 1e-6)
            known[key] = (moment.clock, value)
        rates.append(changes)
    return rates


def of_servers(cluster: Cluster, askers: Askers) -> Sample:
    """What each server says of itself, by ``NAME_NODE``; without those that do not answer, which the round notices."""

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
    """The values by lower-case name: of a list of statuses (name, value), or of one row."""
    if rows and set(rows[0]) == {"variable_name", "value"}:
        return {row["variable_name"].lower(): row["value"] for row in rows}
    return rows[0] if rows else {}


def _read(pulse: Pulse, answer: Mapping[str, str]) -> dict[str, float]:
    """The values of a pulse that the server knows: a replica that reads nothing has no lag."""
    return {
        name: float(answer[column]) * unit for name, (column, unit) in pulse.values.items() if answer.get(column, "")
    }
