"""``TraceFile``: spans in Chrome's trace event format, which Perfetto opens.

The file is a JSON array with one event in each line. Each event is appended with a single write, so several processes
write into one file. A killed run leaves an array without its end, which Perfetto opens too.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU describes the format.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from pytest_dbcluster.errors import ConfigError

MICROSECONDS = 1e6  # in a second: the unit of the format


def begin(path: Path, option: str, began: float) -> None:
    """Begin the file of a run; it replaces an earlier one.

    option: the user's option for it. began: the time of the run's start, in seconds since 1970. Raises ConfigError.
    """
    first = {"name": "run", "ph": "M", "pid": 0, "tid": 0, "args": {"began": began}}
    try:
        path.write_text(f"[\n{json.dumps(first)}")
    except OSError as error:
        raise ConfigError(f"{option} {path}: cannot write it: {error.strerror}") from None


def end(path: Path) -> None:
    """End the array, after the last event of all processes."""
    with contextlib.suppress(OSError):
        _append(path, b"\n]\n")


def _append(path: Path, text: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(file, text)
    finally:
        os.close(file)


class TraceFile:
    """Appends the events of this process to a file that ``begin`` has begun.

    process: the name of the process. If the disk is full, the remaining events are lost, and no error is raised.
    """

    def __init__(self, path: Path, process: str) -> None:
        self.path = path
        self._rows: dict[str, int] = {}
        self._guard = threading.Lock()
        self._lost = False
        self._write({"name": "process_name", "ph": "M", "pid": os.getpid(), "tid": 0, "args": {"name": process}})

    def add(self, name: str, row: str, began: float, seconds: float, details: Mapping[str, object]) -> None:
        """Write one span. began: seconds since the start of the run."""
        place = {"pid": os.getpid(), "tid": self._number(row)}
        times = {"ts": round(began * MICROSECONDS), "dur": round(seconds * MICROSECONDS)}
        self._write({"name": name, "cat": "dbcluster", "ph": "X", **place, **times, "args": details})

    def _number(self, row: str) -> int:
        """The number of a row, from 1. The first span of a row also writes its name."""
        with self._guard:
            if row in self._rows:
                return self._rows[row]
            number = self._rows[row] = len(self._rows) + 1
        named = {"ph": "M", "pid": os.getpid(), "tid": number}
        self._write({"name": "thread_name", **named, "args": {"name": row}})
        self._write({"name": "thread_sort_index", **named, "args": {"sort_index": number}})
        return number

    def _write(self, event: Mapping[str, object]) -> None:
        if self._lost:
            return
        try:
            _append(self.path, f",\n{json.dumps(event, default=str)}".encode())
        except OSError:
            self._lost = True
