"""What is said when a run is added to its history."""

from pytest_dbcluster.reporting.history import history_file
from pytest_dbcluster.reporting.history.record_history import add_run
from pytest_dbcluster.reporting.unwritten import Unwritten
from tests.support.facts import missing
from tests.support.histories import entries, healthy


def said(tmp_path, before, new):
    """The lines about a new run after these ones."""
    file = tmp_path / "history.jsonl"
    history_file.add(file, before)
    return add_run(file, tmp_path, new, Unwritten()).lines


def test_runs_on_another_machine_are_named_and_not_compared(tmp_path):
    """Else a history that was copied would say nothing, and never why."""
    before = entries(healthy(8), machine="64 x another CPU, 64 usable, 256.0 GiB, xfs")
    lines = said(tmp_path, before, entries([0.5], first=8))

    assert "8 runs on another machine (64 x another CPU, 64 usable, 256.0 GiB, xfs)" in lines[-1]
    assert not any(line.startswith("DRIFT") for line in lines)


def test_a_history_of_this_machine_says_nothing_of_others(tmp_path):
    """With enough runs here, those elsewhere matter to nobody."""
    elsewhere = entries(healthy(3), machine="another", first=100)
    lines = said(tmp_path, [*elsewhere, *entries(healthy(8))], entries([1.84], first=8))

    (line,) = lines
    assert missing(line, f"history: {tmp_path}/history.jsonl", "12 runs", "1 claim of this run") == []
