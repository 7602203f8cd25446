"""OS metrics of a round: CPU of each node and of the client, disk, network, steal, pressure."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.rounds.counters import DELTAS, STATES, Reading

PRESSURE = ("cpu", "io", "memory")
Sample = dict[str, float]
_WANTED = ", ".join(f"'{name}'" for names in (*DELTAS.values(), *STATES.values()) for name in names)
_STATUS = "SELECT variable_value FROM performance_schema.global_status WHERE variable_name = "
_MEMBER = "performance_schema.replication_group_member_stats WHERE member_id = @@server_uuid"
# What a vendor tells elsewhere than in its statuses: one statement of names and values.
_MORE = {
    "mysql": " UNION ALL ".join(
        [
            # Of the binlog's operations those that neither read nor write: each is a flush to disk.
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


class Sampler:
    """Samples at the start, at the end, and once a second between; ``rates`` are averages over the round.

    ``processes`` are process numbers by the name that their metrics carry: ``cpu_node1`` is in cores. ``client``: where
    the load generator runs; what is on it counts where it can, else what were children of ours.
    """

    def __init__(self, processes: Mapping[str, int], interval: float = 1.0, client: Host | None = None) -> None:
        self._interval = interval
        self._client = client
        self._processes = {name: psutil.Process(pid) for name, pid in processes.items() if psutil.pid_exists(pid)}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True, name="dbcluster-sampler")
        self.samples: list[tuple[float, Sample]] = []

    def __enter__(self) -> Sampler:
        self.samples.append((time.monotonic(), self._now()))
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()
        self.samples.append((time.monotonic(), self._now()))

    def _sample(self) -> None:
        while not self._stop.wait(self._interval):
            self.samples.append((time.monotonic(), self._now()))

    def rates(self) -> dict[str, float]:
        """The average of each metric over the round: its change a second between the first and the last sample.

        ``cpu_NAME``, ``cpu_all``, ``cpu_plugin``, ``cpu_client``, ``steal`` and ``iowait`` are in cores (CPU seconds a
        second); ``disk_write_bytes``, ``disk_read_bytes`` and ``network_bytes`` (sent) in bytes a second;
        ``disk_writes`` and ``network_packets`` (sent) in operations and packets a second. ``pressure_cpu``,
        ``pressure_io`` and ``pressure_memory`` are shares from 0 to 1 of the time in which some task waited for it.
        All but ``cpu_NAME``, ``cpu_plugin`` and ``cpu_client`` are of the whole machine. What this machine does not
        tell is missing.
        """
        (begin, first), (end, last) = self.samples[0], self.samples[-1]
        seconds = max(end - begin, 1e-6)
        return {name: (last[name] - first[name]) / seconds for name in first if name in last}

    def _now(self) -> Sample:
        found = {f"cpu_{name}": _cpu(process) for name, process in self._processes.items()}
        whole = psutil.cpu_times()
        found["cpu_all"] = sum(whole[:3])
        found["steal"] = getattr(whole, "steal", 0.0)
        found["iowait"] = getattr(whole, "iowait", 0.0)
        children = psutil.Process().cpu_times()
        found["cpu_plugin"] = children.user + children.system
        if self._client is None:
            found["cpu_client"] = children.children_user + children.children_system
        elif (used := self._client.cpu_seconds()) is not None:
            found["cpu_client"] = used
        if disk := psutil.disk_io_counters():
            found |= {"disk_write_bytes": disk.write_bytes, "disk_writes": disk.write_count}
            found["disk_read_bytes"] = disk.read_bytes
        network = psutil.net_io_counters()
        found |= {"network_bytes": network.bytes_sent, "network_packets": network.packets_sent}
        return found | _pressure()


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def _pressure() -> Sample:
    """Seconds in which some task waited for the resource (proc/pressure, in microseconds there)."""
    found: Sample = {}
    for resource in PRESSURE:
        try:
            line = Path(f"/proc/pressure/{resource}").read_text().splitlines()[0]
        except OSError:
            continue
        found[f"pressure_{resource}"] = float(line.rsplit("total=", 1)[1]) / 1e6
    return found


def read_counters(nodes: Sequence[Node]) -> Reading:
    """The statuses of each node now; what a release lacks is missing."""
    statement = f"SHOW GLOBAL STATUS WHERE LOWER(variable_name) IN ({_WANTED})"
    readings = []
    for node in nodes:
        more = _MORE.get(node.release.product)
        found = {**node.pairs(statement), **(node.pairs(more) if more else {})}
        readings.append({name: float(value) for name, value in found.items() if value})
    return readings
