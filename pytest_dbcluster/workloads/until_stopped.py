"""A load that runs until we stop it, through an event such as a killed server.

Each load host gets a file that tells its terminals to stop. Their reports have the time of each commit and error.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.rounds.outages.load_times import LoadTimes, TimedErrors
from pytest_dbcluster.rounds.outages.outage import Books
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.workloads import load_hosts
from pytest_dbcluster.workloads.load_hosts import Share
from pytest_dbcluster.workloads.workload import Setting

LONGEST = 900.0  # seconds after which a load ends that nobody tells to stop
TENTHS = 10


class UntilStopped:
    """Tells a load to stop. longest: seconds after which it stops in any case."""

    def __init__(self, longest: float = LONGEST) -> None:
        self.longest = longest
        self._files: list[tuple[Host, str]] = []
        self._stopped = False
        self._lock = threading.Lock()

    def options(self, host: Host, directory: str, token: str) -> dict[str, object]:
        """The options of terminal.lua for the share of a load host. directory: for files of the host's reports."""
        path = f"{directory}/stop-{token}"
        with self._lock:
            self._files.append((host, path))
            if self._stopped:
                host.push(b"", path)
        return {"stop": path, "times": True, "outlives": True}

    def stop(self) -> None:
        """Tell the load to stop: each terminal ends its transaction, and starts no other. A second call does nothing.

        A load that has not begun yet stops when it begins.
        """
        with self._lock:
            if not self._stopped:
                self._stopped = True
                for host, path in self._files:
                    host.push(b"", path)


@dataclasses.dataclass(frozen=True)
class StoppedLoad:
    """What a load did until we stopped it."""

    result: RunResult
    """The result of the whole run."""

    times: LoadTimes
    """When its transactions committed, and when it got errors."""

    connections_lost: int
    """Connections that it lost."""

    balance: Callable[[], Books] | None = None
    """Compares the acknowledged transactions with the tables. Call it when the cluster is whole and has applied
    everything. None for a workload that keeps no books.
    """

    violations: Callable[[], Sequence[str]] | None = None
    """As ``Workload.violations`` after the load, without the books. None: the same as ``Workload.violations``."""


@runtime_checkable
class RunsUntilStopped(Protocol):
    """An optional protocol of a workload: it runs through an event."""

    keeps_books: ClassVar[bool]
    """Whether it knows what became of its acknowledged transactions."""

    def run_until_stopped(self, setting: Setting, until: UntilStopped) -> StoppedLoad:
        """Run until ``until`` says so, whatever errors the servers return. Raises WorkloadError."""


def with_our_clock(reports: list[dict[str, Any]], share: Share) -> list[dict[str, Any]]:
    """The reports of a share, whose load began by the clock of this machine. Raises WorkloadError as ``clock``."""
    ahead = load_hosts.clock(share).ahead
    return [{**report, "began_at": report["began_at"] - ahead} for report in reports]


def load_times(reports: Sequence[Mapping[str, Any]], *, reading: frozenset[str]) -> LoadTimes:
    """The times of all threads together.

    reports: as ``sysbench_driver.run`` returns them. reading: the types of transactions that only read.
    """
    began = min(report["began_at"] for report in reports)
    seconds = max(report["began_at"] - began + report["ended"] - report["begun"] for report in reports)
    commits: dict[str, list[int]] = {}
    errors = Counter[tuple[int, int, bool, str]]()
    for report in reports:
        late = report["began_at"] - began
        for kind, moments in dict(report["commits"] or {}).items():
            commits.setdefault(kind, []).extend(round(moment + 1000 * late) for moment in moments)
        for (tenth, number, committing, node), times in report["failures"]:
            errors[tenth + int(TENTHS * late), number, committing, node] += times
    return LoadTimes(
        began,
        seconds,
        {kind: tuple(sorted(moments)) for kind, moments in commits.items()},
        reading,
        tuple(
            TimedErrors(tenth / TENTHS, number, node, committing, times)
            for (tenth, number, committing, node), times in sorted(errors.items())
        ),
    )


def read_failures(report: Mapping[str, Any], names: Mapping[str, str]) -> list[tuple[tuple[int, int, bool, str], int]]:
    """The errors of a thread: (tenth of a second, number, whether committing, node), and how often.

    names: by address of a node, as terminals know it, its name.
    """
    found = []
    for key, times in report.get("failures", ()):
        tenth, number, committing, address = str(key).split(" ", 3)
        found.append(((int(tenth), int(number), committing == "1", names.get(address, address)), int(times)))
    return found
