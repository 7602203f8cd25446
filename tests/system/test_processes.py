"""Whether a process is the one that it was: number and birth together."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster.system import processes

NOBODY = 2**22 + 1  # more than any kernel gives (proc(5), pid_max)


def test_a_process_is_its_number_and_its_birth():
    """A number that was given to another process, or to none, is not the process that had it."""
    born = psutil.Process().create_time()

    assert processes.is_running(os.getpid(), born)
    assert processes.is_running(os.getpid(), round(born))
    assert not processes.is_running(os.getpid(), born - 100)
    assert not processes.is_running(NOBODY, born)


def test_a_change_of_the_clock_ends_no_process(monkeypatch):
    """Seconds since the epoch move with the clock; ticks since boot do not."""
    born, ticks = psutil.Process().create_time(), processes.start_ticks(os.getpid())
    mine = Path(f"/tmp/some-{processes.mark()}")
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: born + 3600)

    assert processes.is_running(os.getpid(), born, ticks)
    assert processes.user_of(os.getpid(), born, ticks) == os.getuid()
    assert not processes.is_orphaned(mine)
    assert not processes.is_running(os.getpid(), born + 3600, ticks + 1)
    assert not processes.is_running(NOBODY, born, ticks)


def test_a_process_that_may_not_be_looked_at_counts_as_running(monkeypatch):
    """Else what belongs to it might be removed."""

    def refuse(pid):
        raise psutil.AccessDenied(pid)

    monkeypatch.setattr(psutil, "Process", refuse)

    assert processes.is_running(os.getpid(), 0.0)


def test_the_mark_in_a_name_says_whose_it_is():
    """The one who made the name, while it lives."""
    born = f"{psutil.Process().create_time():.0f}"

    assert processes.mark().endswith(f"-{os.getpid()}-{born}")
    assert not processes.is_orphaned(Path(f"/tmp/some-{processes.mark()}"))
    assert processes.is_orphaned(Path(f"/tmp/some-t1-{os.getpid()}-{born}"))
    assert not processes.is_orphaned(Path(f"/tmp/some-{os.getpid()}-{born}"))  # of an earlier version
    assert processes.is_orphaned(Path(f"/tmp/some-{os.getpid()}-1"))
    assert processes.is_orphaned(Path(f"/tmp/some-{NOBODY}-1"))


@pytest.mark.parametrize("name", ["dbcluster-some-other-thing", "thing", "", "12"])
def test_a_name_without_a_mark_is_left_alone(name):
    """It was made by somebody else."""
    assert not processes.is_orphaned(Path(name))


def test_a_child_that_ends_while_it_is_counted_counts_nothing(monkeypatch):
    """Its directory in /proc goes at any moment."""

    def ended(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "listdir", ended)

    assert processes.run_seconds() > 0
    assert processes.running_children_seconds() == 0


def test_a_thread_that_ends_while_its_children_are_read_counts_nothing(monkeypatch):
    """The kernel has the thread no longer, and the file of its children neither."""
    monkeypatch.setattr(os, "listdir", lambda path: [str(NOBODY)])

    assert processes.running_children_seconds() == 0
