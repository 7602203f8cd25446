"""``span``: a context that times a phase of a run. ``Recorder``: adds the seconds, and writes a file of all spans.

Every room opens spans, and no room knows who records them. Without a recorder, a span only knows its own seconds.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_dbcluster.system.tracing import trace_file
from pytest_dbcluster.system.tracing.trace_file import TraceFile

RUN = "run"  # the row of spans that belong to no cluster
WHOLE = ("warm-up", "capacity")  # phases that have the seconds of all spans inside them
_of_this_thread = threading.local()
_recorders: list[Recorder] = []  # the newest is last


class Span:
    """A phase. ``seconds`` is its length so far; ``details`` are shown in the trace."""

    def __init__(self, phase: str, row: str, details: dict[str, object]) -> None:
        self.phase = phase
        self.row = row
        self.details = details
        self.inside = 0.0  # seconds of the spans directly inside it
        self.began = time.monotonic()
        self._seconds: float | None = None

    @property
    def seconds(self) -> float:
        """The seconds since its begin; after its end, its length."""
        return time.monotonic() - self.began if self._seconds is None else self._seconds

    def end(self) -> None:
        """Fix its length."""
        self._seconds = self.seconds


@contextlib.contextmanager
def span(phase: str, row: str = "", **details: object) -> Iterator[Span]:
    """A context for a phase, such as ``start`` or ``round``; the newest recorder records it at its end.

    row: the cluster or variant of the phase; by default that of the span around it in this thread. details: facts that
    the trace shows. An error in the block is one of them.
    """
    stack = _open_spans()
    recorder = current()
    made = Span(phase, row or (stack[-1].row if stack else RUN), details)
    row_in_file = recorder.enter(made.row) if recorder else ""
    stack.append(made)
    try:
        yield made
    except BaseException as error:
        details["error"] = type(error).__name__
        raise
    finally:
        made.end()
        stack.remove(made)
        if stack:
            stack[-1].inside += made.seconds
        if recorder:
            recorder.add(made, row_in_file, next((one.phase for one in stack if one.phase in WHOLE), phase))


def _open_spans() -> list[Span]:
    """The open spans of this thread, the outermost first."""
    spans: list[Span] = _of_this_thread.__dict__.setdefault("spans", [])
    return spans


class Recorder:
    """Adds the seconds of the spans of one thread, and writes the spans of all threads.

    The seconds of a span do not include those of the spans inside it. So the sum of all phases is real time.

    - began: the start of the run by ``time.monotonic``, which all processes of a machine share; None for now.
    - file: the file of all spans; None for none.
    """

    def __init__(self, file: TraceFile | None = None, began: float | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self.workers = 0
        self._file = file
        self._began = time.monotonic() if began is None else began
        self._thread = threading.get_ident()
        self._guard = threading.Lock()
        self._users: dict[str, list[int]] = {}  # row of the file -> its thread, and the number of its open spans

    @property
    def whole_seconds(self) -> float:
        """The seconds since the start of the run, times the number of its workers."""
        return (time.monotonic() - self._began) * max(1, self.workers)

    def add_worker(self, seconds: Mapping[str, float]) -> None:
        """Add the seconds of a worker process that has ended."""
        self.workers += 1
        for phase, more in seconds.items():
            self.seconds[phase] = self.seconds.get(phase, 0.0) + more

    def enter(self, row: str) -> str:
        """The row of the file for a span of this thread.

        If another thread uses the row, it is a row with the next number. A viewer can only show spans of one row that
        lie inside each other.
        """
        thread, number, name = threading.get_ident(), 1, row
        with self._guard:
            while (user := self._users.setdefault(name, [thread, 0]))[1] and user[0] != thread:
                number += 1
                name = f"{row} ({number})"
            user[0] = thread
            user[1] += 1
        return name

    def add(self, ended: Span, row: str, phase: str) -> None:
        """Record a span. row: the result of ``enter``. phase: the one that gets its seconds."""
        with self._guard:
            self._users[row][1] -= 1
        if threading.get_ident() == self._thread:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + ended.seconds - ended.inside
        if self._file:
            self._file.add(ended.phase, row, ended.began - self._began, ended.seconds, ended.details)


def current() -> Recorder | None:
    """The newest recorder of this process; None without one."""
    return _recorders[-1] if _recorders else None


@contextlib.contextmanager
def recording(file: TraceFile | None = None, began: float | None = None) -> Iterator[Recorder]:
    """A context with a recorder. Contexts may end in any order, as those of runs of pytest in one process do."""
    made = Recorder(file, began)
    _recorders.append(made)
    try:
        yield made
    finally:
        _recorders.remove(made)


@contextlib.contextmanager
def tracing_to(path: Path | None, option: str, process: str, began: float | None = None) -> Iterator[Recorder]:
    """A context with the recorder of a run in one process. path: the file of all spans; None for none.

    option: the user's option for it. process: the name in the file. began: as in ``Recorder``. Raises ConfigError if it
    cannot be written.
    """
    began = time.monotonic() if began is None else began
    if path is None:
        with recording(began=began) as made:
            yield made
        return
    trace_file.begin(path, option, time.time() - (time.monotonic() - began))
    try:
        with recording(TraceFile(path, process), began) as made:
            yield made
    finally:
        trace_file.end(path)
