"""``Sampler``: CPU, disk, network, steal and pressure of a round. ``read_counters``: the servers' status counters."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from pytest_dbcluster.clusters.servers.node import Node, of_each
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.host import Host, Process, at_once
from pytest_dbcluster.rounds import busy_machine
from pytest_dbcluster.rounds.busy_machine import OTHERS, USABLE, OthersLoad
from pytest_dbcluster.rounds.counters import DELTAS, STATES, Reading
from pytest_dbcluster.system import probes, processes
from pytest_dbcluster.system.probes import CpuReading

PRESSURE = ("cpu", "io", "memory")
LOOK_SECONDS, REPORT_SECONDS = 0.5, 5.0  # observation before the first round; measured time before a report
BUSY, RUN = "cpu_busy", "cpu_run"  # CPU time of the usable CPUs, and of this run; only between two samples
Sample = dict[str, float]
_WANTED = ", ".join(f"'{name}'" for names in (*DELTAS.values(), *STATES.values()) for name in names)
_STATUS = "SELECT variable_value FROM performance_schema.global_status WHERE variable_name = "
_MEMBER = "performance_schema.replication_group_member_stats WHERE member_id = @@server_uuid"
# Counters that a vendor does not report in SHOW GLOBAL STATUS: one statement that returns names and values.
_MORE = {
    "mysql": " UNION ALL ".join(
        [
            # Operations on the binlog other than reads and writes: each is a flush to disk.
            "SELECT 'binlog_fsyncs', count_misc FROM performance_schema.file_summary_by_event_name "
            "WHERE event_name = 'wait/io/file/sql/binlog'",
            "SELECT name, count FROM information_schema.innodb_metrics "
            "WHERE name IN ('lock_deadlocks', 'trx_rseg_history_len')",
            f"SELECT 'redo_log_checkpoint_age', ({_STATUS}'innodb_redo_log_current_lsn') - "
            f"({_STATUS}'innodb_redo_log_checkpoint_lsn')",
            *(
                f"SELECT '{name}', {name} FROM {_MEMBER}"
                for names in (*DELTAS.values(), *STATES.values())
                for name in names
                if name.startswith("count_")
            ),
        ]
    )
}


class Growth:
    """The growth of counters of things that come and go, such as network interfaces.

    Their sum jumps when the interface of a container appears with its counts, and falls when it disappears. counters:
    the number of counters of each thing.
    """

    def __init__(self, counters: int) -> None:
        self._before: Mapping[str, Sequence[float]] = {}
        self._total = [0.0] * counters
        self._lock = threading.Lock()  # a round and the timeline sample at once

    def add(self, now: Mapping[str, Sequence[float]]) -> list[float]:
        """Add the growth since the last call, and return the total growth of all things.

        now: the counters of each thing, by name. A counter that is smaller than before started again from 0.
        """
        with self._lock:
            total = self._total
            for name, counts in now.items():
                before = self._before.get(name, counts)
                total = [sum_ + max(0.0, new - old) for sum_, new, old in zip(total, counts, before, strict=True)]
            self._before, self._total = now, total
            return total


_SENT, _RECEIVED = Growth(2), Growth(1)
# The metrics of whole machines that hosts elsewhere count (``Host.usage``), as the sampler names them.
_ELSEWHERE: Mapping[str, Sequence[str]] = {
    "cpu_all": ("cpu_user", "cpu_system"),
    "steal": ("cpu_steal",),
    "iowait": ("cpu_iowait",),
    "disk_write_bytes": ("disk_write_bytes",),
    "disk_writes": ("disk_writes",),
    "disk_read_bytes": ("disk_read_bytes",),
    "network_bytes": ("network_sent_bytes",),
    "network_packets": ("network_packets",),
    **{f"pressure_{resource}": (f"pressure_{resource}",) for resource in PRESSURE},
}
_ALSO = {name: (name,) for name in ("cpu_user", "cpu_system", "cpu_idle", "network_received_bytes")}


class Sampler:
    """Samples the machine at the start and at the end of a round; ``timeline`` takes the samples of every second.

    - processes: by name; ``node1`` gives the metric ``cpu_node1``.
    - client: the host of the load generator. ``cpu_client`` is the CPU of that host, if the host can report it.
      Without a host it is the CPU of this process's ended children.
    - hosts: the hosts of the nodes.
    - others: more hosts of the load generator.

    Each sample in ``samples`` is a time (``time.monotonic``) with cumulative values.
    """

    def __init__(
        self,
        processes: Mapping[str, Process],
        client: Host | None = None,
        hosts: Sequence[Host] = (),
        *,
        others: Sequence[Host] = (),
    ) -> None:
        self._clients = [client, *others] if client else []
        self._processes = processes
        self._hosts = hosts
        self.samples: list[tuple[float, Sample]] = []

    def take(self) -> None:
        """Take one sample."""
        self.samples.append((time.monotonic(), self._now()))

    def rates(self) -> dict[str, float]:
        """The average of each metric over the round: its change a second between the first and the last sample.

        - ``cpu_NAME``, ``cpu_all``, ``cpu_plugin``, ``cpu_client``, ``steal``, ``iowait``: cores (CPU seconds a
          second).
        - ``disk_write_bytes``, ``disk_read_bytes``, ``network_bytes`` (sent): bytes a second.
        - ``disk_writes``, ``network_packets`` (sent): operations and packets a second.
        - ``pressure_cpu``, ``pressure_io``, ``pressure_memory``: share (0 to 1) of the time in which a task waited.
        - ``cpu_others``: cores that other programs took, of the ``usable_cores`` of this machine.

        All but ``cpu_NAME``, ``cpu_plugin`` and ``cpu_client`` cover the whole machine. If nodes are on other machines,
        they are sums over those machines. Metrics that a machine does not report are missing.
        """
        (begin, first), (end, last) = self.samples[0], self.samples[-1]
        seconds = max(end - begin, 1e-6)
        rates = {name: (last[name] - first[name]) / seconds for name in first if name in last}
        if BUSY in rates:
            named = sum(rates.get(name, 0.0) for name in (*(f"cpu_{own}" for own in self._processes), "cpu_client"))
            # Containers are not children of this process, and proxies have no name here.
            own = max(rates.pop(RUN), named + rates["cpu_plugin"])
            rates |= {OTHERS: max(0.0, rates.pop(BUSY) - own), USABLE: probes.usable_cores()}
        return rates

    def _now(self) -> Sample:
        def client_seconds() -> float | None:
            return load_seconds(self._clients, lambda host: host.cpu_seconds()) if self._clients else _ended_children()

        seconds, used = read_cpu(self._processes, client_seconds, machines(self._hosts))
        here = {} if used else {BUSY: probes.busy_seconds(), RUN: processes.run_seconds()}
        return sample(seconds, used.values()) | here


class BusyWatch:
    """Reports once in a run that other programs take cores of this machine, before the first rounds or during rounds.

    Other runs of this package do not count: they wait while this one measures. ``before`` has the cores that other
    programs took before the first round; None until then.
    """

    def __init__(self, progress: Report) -> None:
        self._progress = progress
        self.before: OthersLoad | None = None
        self._told = False
        self._depth = 0
        self._seconds = self._taken = 0.0  # of all turns so far; cores * seconds of other programs in them

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """A context for a turn to measure. The first one observes the machine for LOOK_SECONDS before it begins."""
        if self._told or self._depth:
            yield
            return
        before = CpuReading.now()
        if not self._seconds:
            time.sleep(LOOK_SECONDS)
            others = CpuReading.now().others_since(before)
            self.before = OthersLoad(probes.usable_cores(), before=others, load=os.getloadavg()[0])
            self._note(others, "before the first round")
            before = CpuReading.now()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        after = CpuReading.now()
        self._seconds += after.at - before.at
        self._taken += after.others_since(before) * (after.at - before.at)
        if self._seconds >= REPORT_SECONDS:
            self._note(self._taken / self._seconds, "while rounds run")

    def _note(self, others: float, when: str) -> None:
        if (taken := busy_machine.busy(others, probes.usable_cores())) and not self._told:
            self._told = True
            load = os.getloadavg()[0]
            self._progress(f"busy machine: {taken} {when} (load average {load:.1f}); {busy_machine.WHAT_HELPS}")


def local_processes(processes: Mapping[str, Process]) -> dict[str, psutil.Process]:
    """The running processes of this machine, by name."""
    return {name: psutil.Process(own.pid) for name, own in processes.items() if own.pid and psutil.pid_exists(own.pid)}


def load_seconds(clients: Iterable[Host], ask: Callable[[Host], float | None]) -> float | None:
    """The CPU seconds of the load generator on all its machines so far; None if one machine does not know.

    ask: asks one host of each machine.
    """
    known = [ask(host) for host in {host.machine: host for host in clients}.values()]
    return None if None in known else sum(filter(None, known))


def machines(hosts: Iterable[Host]) -> dict[str, Host]:
    """One of these hosts for each machine, without this machine."""
    return {host.machine: host for host in hosts if host.machine}


def read_cpu(
    processes: Mapping[str, Process], client_seconds: Callable[[], float | None], elsewhere: Mapping[str, Host]
) -> tuple[Sample, dict[str, Mapping[str, float]]]:
    """The CPU seconds of each process and of the load generator so far, and the counters of each other machine.

    client_seconds: returns the CPU seconds of the load generator, or None. elsewhere: a host of each other machine. If
    there is one, all answers are read at once.
    """
    names = {f"cpu_{name}": process.cpu_seconds for name, process in processes.items()} | {"cpu_client": client_seconds}
    asks: list[Callable[[], Any]] = [*names.values(), *(host.usage for host in elsewhere.values())]
    answers = at_once(asks, lambda ask: ask(), list(elsewhere.values()))
    seconds = {name: value for name, value in zip(names, answers, strict=False) if value is not None}
    return seconds, dict(zip(elsewhere, answers[len(names) :], strict=True))


def sample(seconds: Sample, used: Collection[Mapping[str, float]]) -> Sample:
    """One sample: cumulative values, with the names of ``Sampler.rates``.

    seconds: those of processes, from ``read_cpu``. used: counters of the nodes' machines; empty for this machine.
    """
    own = os.times()
    return {**seconds, "cpu_plugin": own.user + own.system, **(_sums(_ELSEWHERE, used) if used else _of_this_machine())}


def _sums(metrics: Mapping[str, Sequence[str]], used: Collection[Mapping[str, float]]) -> Sample:
    """The sums over other machines. A metric is missing if one machine does not report it."""
    return {
        metric: sum(counts[name] for counts in used for name in names)
        for metric, names in metrics.items()
        if all(name in counts for counts in used for name in names)
    }


def _of_this_machine() -> Sample:
    whole = psutil.cpu_times()
    values: Sample = {"cpu_all": sum(whole[:3])}
    values["steal"] = getattr(whole, "steal", 0.0)
    values["iowait"] = getattr(whole, "iowait", 0.0)
    if disk := psutil.disk_io_counters():
        values |= {"disk_write_bytes": disk.write_bytes, "disk_writes": disk.write_count}
        values["disk_read_bytes"] = disk.read_bytes
    sent = psutil.net_io_counters(pernic=True, nowrap=False)
    network = _SENT.add({name: (one.bytes_sent, one.packets_sent) for name, one in sent.items()})
    values |= dict(zip(("network_bytes", "network_packets"), network, strict=True))
    return values | _pressure()


def of_machine(used: Collection[Mapping[str, float]] = ()) -> Sample:
    """The machine's values in the timeline besides ``sample``: CPU seconds by kind, and received bytes.

    used: as in ``sample``.
    """
    if used:
        return _sums(_ALSO, used)
    whole, received = psutil.cpu_times(), psutil.net_io_counters(pernic=True, nowrap=False)
    return {
        "cpu_user": whole.user + getattr(whole, "nice", 0.0),
        "cpu_system": whole.system + getattr(whole, "irq", 0.0) + getattr(whole, "softirq", 0.0),
        "cpu_idle": whole.idle,
        "network_received_bytes": _RECEIVED.add({name: (one.bytes_recv,) for name, one in received.items()})[0],
    }


def of_process(process: psutil.Process) -> Sample:
    """The values of a server's process in the timeline, with the names of ``Host.usage``, if this machine knows them.

    The network values are those of its network namespace, if that is not the namespace of this process.
    """
    values: Sample = {}
    with contextlib.suppress(psutil.Error, OSError):
        times = process.cpu_times()
        values |= {"cpu_user": times.user, "cpu_system": times.system}
        disk = process.io_counters()
        values |= {"disk_read_bytes": disk.read_bytes, "disk_write_bytes": disk.write_bytes}
        namespaces = [Path(f"/proc/{pid}/ns/net").stat().st_ino for pid in ("self", process.pid)]
        if namespaces[0] != namespaces[1]:
            values |= _network(Path(f"/proc/{process.pid}/net/dev").read_text())
    return values


def _network(text: str) -> Sample:
    """The bytes of all interfaces but the local one, from the text of /proc/net/dev."""
    lines = [line.split(":") for line in text.splitlines() if ":" in line]
    numbers = [figures.split() for name, figures in lines if name.strip() != "lo"]
    return {
        "network_received_bytes": float(sum(int(figures[0]) for figures in numbers)),
        "network_sent_bytes": float(sum(int(figures[8]) for figures in numbers)),
    }


def _ended_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _pressure() -> Sample:
    """Seconds in which a task waited for each resource (/proc/pressure, which has microseconds)."""
    seconds: Sample = {}
    for resource in PRESSURE:
        try:
            line = Path(f"/proc/pressure/{resource}").read_text().splitlines()[0]
        except OSError:
            continue
        seconds[f"pressure_{resource}"] = float(line.rsplit("total=", 1)[1]) / 1e6
    return seconds


def counter_statements(node: Node) -> list[str]:
    """The statements that read the status counters of a node."""
    more = _MORE.get(node.release.upstream)
    return [f"SHOW GLOBAL STATUS WHERE LOWER(variable_name) IN ({_WANTED})", *([more] if more else [])]


def counters_of(answers: Sequence[Sequence[tuple[Any, ...]]]) -> dict[str, float]:
    """The status counters of a node from the rows of ``counter_statements``."""
    return {str(name).lower(): float(value) for rows in answers for name, value in rows if value not in (None, "")}


def read_counters(nodes: Sequence[Node]) -> Reading:
    """The status counters of each node, in order. Counters that a release does not have are missing."""
    return of_each(nodes, lambda node: counters_of(node.batch(counter_statements(node))))
