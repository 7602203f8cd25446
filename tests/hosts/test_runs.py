"""The runs on this machine: which are alive, which are dead, and what is done about the dead."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.supervisor import RUN_VARIABLE
from pytest_dbcluster.system import cache


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data directory of the test's own."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path))
    return tmp_path


def make(data, name, **said):
    """A run with a directory; a dead one unless ``said`` names a living owner."""
    (data / name).mkdir()
    fields = {"owner": 2**22 + 1, "born": 0.0, "kept": False, "began": 1.0, **said}
    (data / name / runs.FILE).write_text(json.dumps(fields))
    return data / name


def test_data_lies_where_it_is_told_to(data, monkeypatch):
    """In DBCLUSTER_DATA_DIR, or in the cache."""
    assert runs.directory() == data
    monkeypatch.delenv("DBCLUSTER_DATA_DIR")
    assert runs.directory() == cache.root() / "runs"


def test_a_run_that_this_process_claims_is_alive(data):
    """Until this process ends."""
    (data / "mine").mkdir()
    runs.claim(data / "mine")

    (run,) = runs.list_runs()
    assert (run.run_id, run.owner, run.alive, run.kept) == ("mine", os.getpid(), True, False)


def test_a_change_of_the_clock_does_not_end_a_run(data, monkeypatch):
    """Or the next run would end its servers."""
    (data / "mine").mkdir()
    runs.claim(data / "mine")
    born = psutil.Process().create_time()
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: born + 3600)

    (run,) = runs.list_runs()
    assert run.alive


def test_a_number_that_was_given_to_another_process_is_not_the_owner(data):
    """Owner and birth together name a process."""
    make(data, "old", owner=os.getpid(), born=psutil.Process().create_time() - 100)

    (run,) = runs.list_runs()
    assert run.alive is False


def test_reaping_ends_the_dead_and_nobody_else(data):
    """A dead run's processes and directory go; kept and living ones stay."""
    dead = make(data, "feeddead")
    kept = make(data, "feedkept", kept=True)
    (data / "mine").mkdir()
    runs.claim(data / "mine")
    with subprocess.Popen(["sleep", "600"], env={**os.environ, RUN_VARIABLE: "feeddead"}) as its_server:
        reaped = runs.reap()
        its_server.wait(10)

    assert [(run.run_id, number) for run, number in reaped] == [("feeddead", 1)]
    assert not psutil.pid_exists(its_server.pid)
    assert (dead.exists(), kept.exists(), (data / "mine").exists()) == (False, True, True)


def test_files_that_say_nothing_are_left_alone(data):
    """Half a file is being written by a run that has just begun."""
    make(data, "good")
    (data / "half").mkdir()
    (data / "half" / runs.FILE).write_text('{"owner": 1')
    assert [run.run_id for run in runs.list_runs()] == ["good"]
    assert [run.run_id for run, _ in runs.reap()] == ["good"]
    assert (data / "half").exists()


def test_a_run_that_ends_while_it_is_looked_at_is_no_error(data, monkeypatch):
    """Its owner removes its directory; nothing is left to be reaped."""
    run, read = make(data, "ending"), runs.owned_files.read

    def read_and_lose(directory, name):
        found = read(directory, name)
        shutil.rmtree(run)
        return found

    monkeypatch.setattr(runs.owned_files, "read", read_and_lose)

    assert runs.reap() == []


def test_runs_are_listed_in_the_order_in_which_they_began(data):
    """The oldest first, whatever their names are."""
    make(data, "a", began=3.0)
    make(data, "b", began=1.0)
    make(data, "c", began=2.0)

    assert [run.run_id for run in runs.list_runs()] == ["b", "c", "a"]


def test_processes_are_found_by_their_mark(data):
    """Whoever started them; a zombie is none."""
    run = runs.Run(make(data, "feed0001"), 0, 0.0, kept=False)
    words = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
    with subprocess.Popen(words, env={**os.environ, RUN_VARIABLE: "feed0001"}, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        found = [one.pid for one in run.processes()]
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        after = run.processes()

    assert found == [process.pid]
    assert after == []


def test_a_server_whose_directory_was_removed_is_reaped(data):
    """No run.json tells of it any more; its working directory, which is gone, does."""
    place = data / "gone"
    place.mkdir()
    environment = {**os.environ, RUN_VARIABLE: "feedgone"}
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], cwd=place, env=environment) as lost:
        try:
            # A program that is just being loaded has no environment yet.
            marked = runs.Run(Path("feedgone"), 0, 0.0, kept=False).processes
            wait.until(lambda: [] if lost.pid in [one.pid for one in marked()] else ["no mark"], "it", seconds=60)
            assert psutil.Process(lost.pid) not in runs.orphans()
            place.rmdir()

            runs.reap()

            with contextlib.suppress(psutil.NoSuchProcess):  # another run may have killed it first
                assert psutil.Process(lost.pid).status() == psutil.STATUS_ZOMBIE
        finally:
            lost.kill()
