"""The file of all spans: one array of several processes, also after a kill and on a full disk."""

from __future__ import annotations

import json
import multiprocessing

from pytest_dbcluster.system.tracing import trace_file
from pytest_dbcluster.system.tracing.trace_file import TraceFile

EVENTS = 200


def write(path, name):
    """Write many spans as another process would."""
    made = TraceFile(path, name)
    for number in range(EVENTS):
        made.add("round", f"variant {number % 2}", number, 0.5, {"block": number, "text": "x" * 500})


def test_several_processes_write_into_one_file(tmp_path):
    """Each has its name, and no event is torn or lost."""
    path = tmp_path / "trace.json"
    trace_file.begin(path, "--db-trace", 1_700_000_000.0)
    forks = multiprocessing.get_context("fork")
    processes = [forks.Process(target=write, args=(path, f"gw{number}")) for number in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    trace_file.end(path)

    first, *events = json.loads(path.read_text())
    assert first["args"] == {"began": 1_700_000_000.0}
    names = {one["args"]["name"]: one["pid"] for one in events if one["name"] == "process_name"}
    assert names == {f"gw{number}": process.pid for number, process in enumerate(processes)}
    for process in processes:
        spans = [one for one in events if one["pid"] == process.pid and one["ph"] == "X"]
        assert [one["args"]["block"] for one in spans] == list(range(EVENTS))
        assert {one["tid"] for one in spans} == {1, 2}
    assert events[-1]["dur"] == 500_000


def test_a_killed_run_leaves_an_array_without_its_end(tmp_path):
    """Perfetto reads it, since the format allows it."""
    path = tmp_path / "trace.json"
    trace_file.begin(path, "--db-trace", 0.0)
    TraceFile(path, "pytest").add("start", "run", 0.0, 1.0, {})

    assert [one["name"] for one in json.loads(path.read_text() + "]")][-1] == "start"


def test_a_file_that_disappears_ends_no_run(tmp_path):
    """Later spans are lost."""
    path = tmp_path / "trace.json"
    trace_file.begin(path, "--db-trace", 0.0)
    made = TraceFile(path, "pytest")
    path.unlink()
    made.add("start", "run", 0.0, 1.0, {})
    trace_file.end(path)

    assert not path.exists()
