"""Spans of a run: whose seconds count once, and what another thread adds."""

from __future__ import annotations

import json
import threading
import time

import pytest

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.system.tracing import recorder
from pytest_dbcluster.system.tracing.recorder import span


class Clock:
    """A clock that a test moves on."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        """The time of the clock."""
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The clock of all spans."""
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made)
    return made


def spans_in(path):
    """The spans in a file: (name, row, begin in seconds, seconds)."""
    events = json.loads(path.read_text())
    rows = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    return [(one["name"], rows[one["tid"]], one["ts"] / 1e6, one["dur"] / 1e6) for one in events if one["ph"] == "X"]


def test_the_seconds_of_a_span_inside_another_count_once(clock):
    """So the sum of all phases is the time of the outermost spans."""
    with recorder.recording() as made:
        with span("start") as outer:
            clock.now += 2
            for seconds in (3, 4):
                with span("load"):
                    clock.now += seconds
            clock.now += 1
        clock.now += 50
        with span("load"):
            clock.now += 5

    assert outer.seconds == 10
    assert made.seconds == {"start": 3, "load": 12}


@pytest.mark.parametrize("whole", recorder.WHOLE)
def test_a_warm_up_has_the_seconds_of_all_its_parts(clock, whole):
    """Its parts are as long as those of a round, but no claim uses them."""
    with recorder.recording() as made, span(whole):
        clock.now += 1
        with span("round"), span("workload"):
            clock.now += 2

    assert made.seconds == {whole: 3}


def test_the_file_has_the_spans_of_all_threads(clock, tmp_path):
    """The sums have those of one thread, since others run beside it. A row is inherited within a thread."""

    def start():
        with span("start", "cluster galera3"), span("form"):
            clock.now += 2

    with recorder.tracing_to(tmp_path / "trace.json", "--db-trace", "pytest") as made, span("start"):
        thread = threading.Thread(target=start)
        thread.start()
        thread.join()

    assert made.seconds == {"start": 2}
    assert spans_in(tmp_path / "trace.json") == [
        ("form", "cluster galera3", 0, 2),
        ("start", "cluster galera3", 0, 2),
        ("start", "run", 0, 2),
    ]


def test_spans_that_overlap_have_two_rows(clock, tmp_path):
    """A viewer shows only spans of one row that lie inside each other. A row that is free is used again."""
    inside, done = threading.Event(), threading.Event()

    def other():
        with span("check", "cluster galera3"):
            inside.set()
            assert done.wait(20)

    with recorder.tracing_to(tmp_path / "trace.json", "--db-trace", "pytest"):
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(20)
        with span("load", "cluster galera3"):
            clock.now += 1
        done.set()
        thread.join()
        with span("close", "cluster galera3"):
            clock.now += 1

    rows = {name: row for name, row, _, _ in spans_in(tmp_path / "trace.json")}
    assert rows == {"load": "cluster galera3 (2)", "check": "cluster galera3", "close": "cluster galera3"}


def test_an_interrupted_span_is_written_with_its_error(tmp_path):
    """The error goes on, and the file is whole."""
    path = tmp_path / "trace.json"
    with (
        pytest.raises(KeyboardInterrupt),
        recorder.tracing_to(path, "--db-trace", "pytest"),
        span("round", "flush_2", block=3),
    ):
        raise KeyboardInterrupt

    last = json.loads(path.read_text())[-1]
    assert (last["name"], last["args"]) == ("round", {"block": 3, "error": "KeyboardInterrupt"})


def test_a_span_without_a_recorder_knows_its_seconds(clock):
    """Every room opens spans, also in a process that records nothing."""
    with span("start") as made:
        clock.now += 2
        assert made.seconds == 2
    clock.now += 5

    assert made.seconds == 2
    assert recorder.current() is None


def test_a_trace_that_cannot_be_written_is_refused(tmp_path):
    """Before anything starts, with the option and the reason."""
    with (
        pytest.raises(ConfigError, match=r"^--db-trace .*no/trace\.json: cannot write it: No such file or directory$"),
        recorder.tracing_to(tmp_path / "no" / "trace.json", "--db-trace", "pytest"),
    ):
        pass
