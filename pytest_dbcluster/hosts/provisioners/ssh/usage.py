"""The counters of a remote machine's kernel, from the text of ``Agent.use``."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Mapping, Sequence

SECTOR = 512  # bytes, in /proc/diskstats (Documentation/admin-guide/iostats.rst of Linux)
TICKS = 100  # per second, in CPU times for programs (USER_HZ, time(7))
PARTITION = re.compile(r"(nvme\d+n\d+|mmcblk\d+)p\d+|(sd|hd|vd|xvd)[a-z]+\d+")
VIRTUAL = ("loop", "ram", "zram", "dm-", "md")  # their blocks are in memory or belong to other disks


@dataclasses.dataclass(frozen=True)
class Ran:
    """A process."""

    number: int
    """The process id."""

    parent: int
    """The process id of its parent."""

    cpu: float
    """CPU time of the process and its ended children, in seconds."""


@dataclasses.dataclass(frozen=True)
class Usage:
    """The counters of a machine."""

    machine: Mapping[str, float]
    """Figures of the whole machine, by the names of ``Host.usage``."""

    processes: Sequence[Ran]
    """The processes of the host."""

    def of_all(self) -> float | None:
        """The CPU seconds of all processes of the host so far; None without an answer."""
        return sum(one.cpu for one in self.processes) if self.processes else None

    def of_program(self, number: int) -> float | None:
        """The CPU seconds of a process and its children; None if it is not among the processes."""
        if all(one.number != number for one in self.processes):
            return None
        family = {number}
        for _ in self.processes:
            more = {one.number for one in self.processes if one.parent in family} - family
            if not more:
                break
            family |= more
        return sum(one.cpu for one in self.processes if one.number in family)


def read(text: str) -> Usage:
    """Parse the figures of a text. Unknown lines are skipped."""
    figures: dict[str, float] = {}
    processes: list[Ran] = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError, IndexError):
            _read_line(line, figures, processes)
    return Usage(figures, processes)


def _read_line(line: str, figures: dict[str, float], processes: list[Ran]) -> None:
    kind, _, rest = line.partition(" ")
    if kind == "cpu":
        figures |= _cpu([int(word) for word in rest.split()])
    elif kind == "disk":
        _add(figures, _disk(rest.split()))
    elif kind == "net":
        _add(figures, _network(rest.replace(":", " ", 1).split()))
    elif kind == "pressure":
        resource, total = rest.split()
        figures[f"pressure_{resource}"] = int(total) / 1e6
    elif kind == "process":
        processes.append(_process(rest))


def _add(figures: dict[str, float], more: Mapping[str, float]) -> None:
    for name, value in more.items():
        figures[name] = figures.get(name, 0.0) + value


def _cpu(ticks: Sequence[int]) -> dict[str, float]:
    """The CPU time by kind: user nice system idle iowait irq softirq steal (proc(5))."""
    user, nice, system, idle, iowait, irq, soft, steal = (*ticks, 0)[:8]
    seconds = {"user": user + nice, "system": system + irq + soft, "iowait": iowait, "idle": idle, "steal": steal}
    return {f"cpu_{name}": value / TICKS for name, value in seconds.items()}


def _disk(words: Sequence[str]) -> dict[str, float]:
    """Bytes and writes of a disk; empty for a partition, because its disk counts them too."""
    name = words[2]
    if name.startswith(VIRTUAL) or PARTITION.fullmatch(name):
        return {}
    read_sectors, writes, written_sectors = int(words[5]), int(words[7]), int(words[9])
    return {
        "disk_read_bytes": read_sectors * SECTOR,
        "disk_write_bytes": written_sectors * SECTOR,
        "disk_writes": writes,
    }


def _network(words: Sequence[str]) -> dict[str, float]:
    if words[0] == "lo" or not words[1].isdigit():  # the second word: the head of the table
        return {}
    return {
        "network_received_bytes": int(words[1]),
        "network_sent_bytes": int(words[9]),
        "network_packets": int(words[10]),
    }


def _process(text: str) -> Ran:
    """A line of /proc/PID/stat; its second field, the program's name, may have spaces and brackets."""
    number, _, rest = text.partition(" ")
    words = rest.rpartition(")")[2].split()
    parent, ticks = int(words[1]), sum(int(word) for word in words[11:15])
    return Ran(int(number), parent, ticks / TICKS)
