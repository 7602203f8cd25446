"""The history file: what is written is read back, whoever else writes and whatever a killed run left."""

from __future__ import annotations

import math
import multiprocessing
import subprocess

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting.history import history_file
from pytest_dbcluster.reporting.history.entry import entry_of
from pytest_dbcluster.system import shared_directory
from tests.support.facts import missing
from tests.support.histories import CLAIM, claimed, entries, healthy, run


def test_what_is_added_is_read_back(tmp_path):
    """Numbers that are not finite too; the directory is made."""
    path = tmp_path / "reports" / "history.jsonl"
    added = [*entries(healthy(3)), *entries([0.0], first=3, low=0.0, high=math.inf)]
    history_file.add(path, added[:2])
    history_file.add(path, added[2:])
    history = history_file.read(path)

    assert list(history.entries) == added
    assert history.runs == ["run00", "run01", "run02", "run03"]
    assert history.problems == ()


def test_a_history_that_is_not_there_is_empty(tmp_path):
    """The first run of a project has none."""
    assert history_file.read(tmp_path / "history.jsonl").entries == ()


def test_an_entry_says_what_a_claim_was_and_where(tmp_path):
    """Release without its exact version, medians by variant, the hardware, and the error of the log ratio."""
    made = entry_of(claimed(), run(7))

    assert (made.claim_id, made.run, made.release, made.version) == (
        CLAIM, "run07", "mariadb:10.11", "mariadb:10.11 10.11.19",
    )  # fmt: skip
    assert made.machine == "2 x a CPU, 1.5 usable, 8.0 GiB, ext4"
    assert made.outcome == "holds"
    assert made.medians["flush_2"] / made.medians["galera3"] == pytest.approx(made.ratio, rel=0.02)
    assert made.error == pytest.approx(0.01 * math.sqrt(2 / 20), rel=0.4)


def test_a_torn_last_line_stays_and_spoils_nothing(tmp_path):
    """A run that was killed while writing leaves a part of a line; the next run begins a new one."""
    path = tmp_path / "history.jsonl"
    first, second, third = entries(healthy(3))
    history_file.add(path, [first, second])
    path.write_bytes(path.read_bytes()[:-100])
    torn = path.read_bytes()
    history_file.add(path, [third])
    history = history_file.read(path)

    assert path.read_bytes().startswith(torn)
    assert list(history.entries) == [first, third]
    (problem,) = history.problems
    assert problem.startswith(f"{path}, line 2: it is not JSON")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"garbage\n", "it is not JSON"),
        (b"\xff\xfe\n", "it is not JSON"),
        (b"[]\n", "it is not a line of a history"),
        (b'{"kind": "claim"}\n', "it has no format number"),
        (b'{"kind": "claim", "format": 99}\n', "it has format 99, and this version reads format 1"),
        (b'{"kind": "claim", "format": 1}\n', "required field"),
    ],
)
def test_a_line_that_cannot_be_read_is_reported_and_stays(tmp_path, line, reason):
    """File, line and reason are named; the lines around it count."""
    path = tmp_path / "history.jsonl"
    first, second = entries(healthy(2))
    history_file.add(path, [first])
    with path.open("ab") as file:
        file.write(line)
    history_file.add(path, [second])
    history = history_file.read(path)

    assert list(history.entries) == [first, second]
    assert line in path.read_bytes()
    (problem,) = history.problems
    assert problem.startswith(f"{path}, line 2: ")
    assert reason in problem


def test_many_lines_that_cannot_be_read_are_counted(tmp_path):
    """Three are named."""
    path = tmp_path / "history.jsonl"
    path.write_text("x\n" * 9)
    problems = history_file.read(path).problems

    assert len(problems) == 4
    assert missing(problems[-1], f"{path}: ", "cannot read", "6 more lines") == []


def _add(path, number):
    history_file.LOCK_SECONDS = 300.0  # the one that has the lock may take it again before others look
    for entry in entries(healthy(50, seed=number), first=100 * number):
        history_file.add(path, [entry])


def test_two_runs_at_once_lose_no_line(tmp_path):
    """Three processes add 50 lines each."""
    path = tmp_path / "history.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_add, args=(path, number)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(300)
    history = history_file.read(path)

    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert (len(history.entries), history.problems) == (150, ())


def test_a_file_that_another_process_keeps_locked_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    """The error names the process, and the file has no part of the lines."""
    monkeypatch.setattr(history_file, "LOCK_SECONDS", 0.05)
    path = tmp_path / "history.jsonl"
    path.touch()
    with subprocess.Popen(["flock", path, "cat"], stdin=subprocess.PIPE) as other:
        wait.until(lambda: [] if shared_directory.lockers(path.stat()) else ["no lock"], "the lock", seconds=60)
        with pytest.raises(OSError, match=rf"pid {other.pid} \(\w+\) has locked it"):
            history_file.add(path, [])
        other.stdin.close()

    assert path.read_bytes() == b""


def test_a_series_has_one_entry_of_each_run(tmp_path):
    """The later of two; other releases, machines and profiles are series of their own."""
    path = tmp_path / "history.jsonl"
    history_file.add(path, [*entries([1.8, 1.9]), *entries([1.7]), *entries([1.5], release="mariadb:11.8")])
    history_file.add(path, entries([1.2], machine="64 x another CPU"))
    series = list(history_file.read(path).series().values())

    assert [[entry.ratio for entry in one] for one in series] == [[1.7, 1.9], [1.5], [1.2]]


def test_an_accepted_run_begins_a_new_level(tmp_path):
    """Runs before it do not count any more; the reason is kept."""
    path = tmp_path / "history.jsonl"
    history_file.add(path, entries(healthy(6)))
    (accepted,) = history_file.accept(path, "test_flush_2", "run04", " another disk ")
    history = history_file.read(path)
    (series,) = history.series().values()

    assert accepted.run == "run04"
    assert [entry.run for entry in history.level(series)] == ["run04", "run05"]
    assert history.accepted[0].reason == "another disk"


@pytest.mark.parametrize(
    ("claim", "run_id", "reason", "said"),
    [
        ("test_flush_2", "run04", " ", "accept needs a reason"),
        ("nothing", "run04", "why", "the history has no claim 'nothing'; the last ones are:\n  test_flush::"),
        ("test_flush_2", "run99", "why", "the history has no run 'run99'; the last ones are:\n  run00\n  run01"),
        ("test_flush_2", "run", "why", "6 runs fit 'run'; the last ones are:\n  run00"),
        ("", "run04", "why", "the history has no claim ''"),
    ],
)
def test_what_is_accepted_must_be_one_claim_and_one_run(tmp_path, claim, run_id, reason, said):
    """The error lists what there is; nothing is written."""
    path = tmp_path / "history.jsonl"
    history_file.add(path, entries(healthy(6)))
    before = path.read_bytes()
    with pytest.raises(ConfigError) as caught:
        history_file.accept(path, claim, run_id, reason)

    assert said in str(caught.value)
    assert path.read_bytes() == before
