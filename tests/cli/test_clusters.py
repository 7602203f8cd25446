"""What runs have left and what the cache holds: listed, ended, removed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile

import psutil

from pytest_dbcluster import wait
from pytest_dbcluster.cli import clusters, main
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.container import engine
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.spec import ClusterSpec
from tests.support.command import left, sleeping_run
from tests.support.facts import missing


def test_ps_lists_runs_of_others_and_down_does_not_end_them(data, capsys):
    """A run whose owner lives is shown with its process number, and only that process ends it."""
    provisioner = sleeping_run(leave=False)
    try:
        assert main.main(["ps"]) == 0
        listed = capsys.readouterr().out
        assert main.main(["down", provisioner.run_id]) == 2
        refused = capsys.readouterr().err
    finally:
        provisioner.close()

    assert re.search(rf"{provisioner.run_id} +asleep +- +- +- +\d+ s +\w+ \(pid {os.getpid()}\) +running", listed)
    owner = f"run {provisioner.run_id} belongs to process {os.getpid()}"
    assert missing(refused, f"dbcluster: {owner}", "still runs", "end that process\n") == []


def test_ps_shortens_the_names_of_a_suites_clusters(data, capsys):
    """A run of many clusters names the first three once and counts the others, so that its line fits a terminal."""
    provisioner = sleeping_run(leave=False)
    try:
        for number in range(1, 6):
            (provisioner.directory / f"{90 + number}-galera{number}").mkdir()
            (provisioner.directory / f"{95 + number}-galera1").mkdir()
        assert main.main(["ps"]) == 0
    finally:
        provisioner.close()

    assert re.search(r"  asleep, galera1, galera2 and 3 more  ", capsys.readouterr().out)


def test_ps_names_the_test_that_a_run_measures(data, capsys):
    """From the begin of the test to its end, whether it begins before the first cluster or after it."""
    provisioner = LocalProvisioner()
    try:
        provisioner.note_test("test_a.py::test_first")
        provisioner.acquire(ClusterSpec("standalone", name="alone"))
        states = [shown_state(capsys)]
        for test in ("test_b.py::" + "test_with_a_long_name" * 4, ""):
            provisioner.note_test(test)
            states.append(shown_state(capsys))
    finally:
        provisioner.close()

    assert states[0] == "running test_a.py::test_first"
    assert states[1].startswith("running test_b.py::test_with_")
    assert len(states[1]) == len("running ") + clusters.WIDEST_TEST
    assert states[2] == "running"


def shown_state(capsys):
    """The state in the only line of ``dbcluster ps``."""
    assert main.main(["ps"]) == 0
    return capsys.readouterr().out.splitlines()[1].partition(f"(pid {os.getpid()})")[2].strip()


KILLED = """
import sys
from pytest_dbcluster.hosts.local_run import LocalRun

run = LocalRun()
run.clean_up_by(["sh", "-c", "while [ -e busy ]; do sleep 0.05; done"], {})
print(run.run_id, flush=True)
sys.stdin.read()
"""


def test_ps_says_that_a_killed_run_is_being_cleaned_up(data, tmp_path, capsys):
    """To end machines elsewhere takes minutes after the run itself has ended; afterwards nothing of it is listed."""
    (tmp_path / "busy").touch()
    command = [sys.executable, "-c", KILLED]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        run_id = owner.stdout.readline().strip()
        owner.kill()
    try:
        assert main.main(["ps"]) == 0
        assert re.search(rf"{run_id} .* ended: its supervisor cleans up\n", capsys.readouterr().out)
    finally:
        (tmp_path / "busy").unlink()
    wait.until(lambda: [row.state for row in clusters.rows()], "the end of the run", seconds=60)


def test_ps_of_nothing_is_a_head(data, capsys):
    """Without runs, ``ps`` prints only the head of its table."""
    assert main.main(["ps"]) == 0
    assert capsys.readouterr().out == "id  name  topology  nodes  release  age  owner  state\n"


def test_down_all_ends_what_was_kept_and_nothing_else(data, capsys):
    """``down --all`` does not end a run whose process is alive."""
    mine, other = sleeping_run(leave=True), sleeping_run(leave=False)
    try:
        assert main.main(["down", "--all"]) == 0
        assert capsys.readouterr().out == f"ended run {mine.run_id} (1 process)\n"
        assert len(left(other.run_id)) == 1
    finally:
        other.close()

    assert not left(mine.run_id)


def test_a_kept_run_whose_servers_ended_says_so(data):
    """A kept run without processes, as after a reboot, is listed as ended, and ``down`` removes its directory."""
    provisioner = sleeping_run(leave=True)
    for process in left(provisioner.run_id):
        process.kill()
        psutil.wait_procs([process], timeout=60)

    assert [row.state for row in clusters.rows()] == ["kept, its servers have ended"]
    assert clusters.down(provisioner.run_id)[1] == 0
    assert not provisioner.directory.exists()


def test_reap_ends_what_a_dead_run_left(data, capsys, tmp_path, monkeypatch):
    """A run whose owner is gone and that was not kept is ended and named; a second call has nothing to do."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # another run of this machine may just have been killed
    monkeypatch.setattr(engine, "has_socket", lambda: False)
    dead = sleeping_run(leave=True)
    file = dead.directory / runs.FILE
    file.write_text('{"owner": 999999999, "born": 1.0, "kept": false, "began": 1.0}')
    shown = [row.state for row in clusters.rows()]

    assert shown == ["dead: dbcluster reap"]
    assert main.main(["reap"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert missing(line, f"ended dead run {dead.run_id}", "of process 999999999", "(1 process)") == []
    assert main.main(["reap"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert missing(line, "nothing to remove", "no dead run left") == []


def test_reap_lists_the_dead_runs_of_others_and_has_nothing_of_its_own(data, capsys, tmp_path, monkeypatch):
    """The last line speaks of the user's own runs, because runs of others have left something."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(engine, "has_socket", lambda: False)
    dead = sleeping_run(leave=True)
    file = dead.directory / runs.FILE
    alive = file.read_text()
    file.write_text('{"owner": 999999999, "born": 1.0, "kept": false, "began": 1.0}')
    try:
        with monkeypatch.context() as others:
            others.setattr(runs.Run, "mine", False)
            assert main.main(["reap"]) == 0
        told = capsys.readouterr()
    finally:
        file.write_text(alive)
        runs.end(next(run for run in runs.list_runs() if run.run_id == dead.run_id))

    assert f"left dead run {dead.run_id}, which belongs to " in told.err
    (line,) = told.out.splitlines()
    assert missing(line, "nothing to remove", "no dead run of yours") == []


def test_a_process_that_ends_meanwhile_is_no_error(monkeypatch):
    """Processes come and go while those of a run are looked for."""

    class Ending:
        def environ(self):
            return {runs.RUN_VARIABLE: "ab12"}

        def status(self):
            raise psutil.NoSuchProcess(1)

    monkeypatch.setattr(runs.psutil, "process_iter", lambda: [Ending()])

    assert left("ab12") == []
