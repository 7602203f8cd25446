"""What the workers of a run share: it goes with the process that it belongs to."""

from __future__ import annotations

import os
import tempfile

import pytest

from pytest_dbcluster.cli import main
from pytest_dbcluster.system import worker_files
from tests.support.facts import missing


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The place of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_directory_of_a_killed_process_is_removed_by_the_next_run(place):
    """Its number may belong to another process by now; that of a process which lives stays, and so do others' files."""
    (place / f"dbcluster-workers-old-{os.getpid()}-1").mkdir()
    (place / "dbcluster-workers-of-someone").mkdir()
    living = worker_files.make()
    (living / "gw0.json").touch()
    another = worker_files.make()

    assert {path.name for path in place.iterdir()} == {living.name, another.name, "dbcluster-workers-of-someone"}
    assert (living / "gw0.json").exists()


def test_reap_removes_it_too(place, data, capsys):
    """And says so; a second call has nothing to do."""
    dead = place / f"dbcluster-workers-dead-{2**22 + 1}-1"
    dead.mkdir()

    assert main.main(["reap"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert missing(line, f"removed {dead}", "ended run") == []
    assert not dead.exists()
    assert main.main(["reap"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert missing(line, "nothing to remove", "no dead run") == []
