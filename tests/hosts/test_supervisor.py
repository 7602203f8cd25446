"""The supervisor as a script of its own: requests, answers, and what it ends when its owner is gone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.hosts import supervisor
from tests.support.facts import missing
from tests.support.run_ids import RUN_ID


@pytest.fixture
def script():
    """The supervisor, as the provisioner starts it from a shell that allows few open files."""
    process = subprocess.Popen(
        ["sh", "-c", 'ulimit -Sn 256; exec "$@"', "sh", sys.executable, "-I", supervisor.__file__, RUN_ID],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield process
    if not process.stdin.closed:
        process.stdin.close()
    process.wait(20)
    process.stdout.close()


def ask(script, do, **what):
    """One request and its answer."""
    script.stdin.write(json.dumps({"do": do, "request": 1, **what}) + "\n")
    script.stdin.flush()
    return json.loads(script.stdout.readline())


def started(script, tmp_path, *argv, keep=False):
    """The process number of a program that it has started."""
    answer = ask(
        script,
        "spawn",
        argv=list(argv or ("sleep", "600")),
        environment=dict(os.environ),
        directory=str(tmp_path),
        log=str(tmp_path / "log"),
        keep=keep,
    )
    return answer["pid"]


def test_a_program_that_cannot_join_its_group_is_not_started(script, tmp_path):
    """Without its limits it would be another host's program; the supervisor goes on."""
    there = {
        "argv": ["true"],
        "environment": {},
        "directory": str(tmp_path),
        "log": str(tmp_path / "log"),
        "keep": False,
    }

    answer = ask(script, "spawn", joins=[str(tmp_path / "gone" / "cgroup.procs")], **there)

    assert missing(answer["error"], "OSError: ", "not join", "control groups", f"{tmp_path}/gone/cgroup.procs") == []
    assert "pid" in ask(script, "spawn", **there)


def test_a_process_that_begins_another_program_is_looked_at_again(tmp_path, monkeypatch):
    """Its environment is empty for a moment, and then a program of a run has the run's mark."""
    monkeypatch.setattr(supervisor, "LOADING_SECONDS", 60.0)
    (tmp_path / "statm").write_text("1234 56 7\n")
    (tmp_path / "environ").touch()
    begun = threading.Timer(0.2, (tmp_path / "environ").write_bytes, (b"A=1\0",))
    begun.start()

    assert supervisor.environment(tmp_path) == b"A=1\0"
    begun.join()


@pytest.mark.parametrize(("pages", "seconds"), [("0 0 0", 60.0), ("1234 56 7", 0.0)])
def test_an_environment_may_stay_empty(tmp_path, monkeypatch, pages, seconds):
    """That of a kernel thread at once, as it has no memory, and that of another process after a moment."""
    monkeypatch.setattr(supervisor, "LOADING_SECONDS", seconds)
    (tmp_path / "statm").write_text(f"{pages} 0 0 0 0\n")
    (tmp_path / "environ").touch()
    began = time.monotonic()

    assert supervisor.environment(tmp_path) == b""
    assert time.monotonic() - began < 30


def ended(pid):
    """Whether a process is gone."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_ended(pid):
    """Wait for its end."""
    wait.until(lambda: [] if ended(pid) else ["it runs"], f"the end of {pid}", seconds=10)


def test_a_child_may_open_as_many_files_as_the_system_allows(script, tmp_path):
    """A server and a proxy need one or two for each connection, and an ordinary user's shell allows 1024."""
    wait_ended(started(script, tmp_path, "sh", "-c", "ulimit -Sn; ulimit -Hn"))
    soft, hard = (tmp_path / "log").read_text().split()

    assert int(soft) == (65_536 if hard == "unlimited" else min(int(hard), 65_536)) > 256


def test_output_is_added_to_the_log(script, tmp_path):
    """Of both streams; what was in the file stays."""
    (tmp_path / "log").write_text("before\n")
    pid = started(script, tmp_path, "sh", "-c", "echo out; echo err >&2")

    wait.until(lambda: [] if ask(script, "status", pid=pid)["status"] == 0 else ["runs"], "its end", seconds=60)
    assert (tmp_path / "log").read_text() == "before\nout\nerr\n"


def test_the_end_of_its_owner_ends_everything(script, tmp_path):
    """Children in sessions of their own among it, and the directories that were handed over."""
    (tmp_path / "run").mkdir()
    ask(script, "own", directory=str(tmp_path / "run"))
    pid = started(script, tmp_path)
    script.stdin.close()
    script.wait(20)

    assert ended(pid)
    assert not (tmp_path / "run").exists()


def test_a_child_that_has_ended_is_not_signalled(tmp_path, monkeypatch):
    """Its number may be that of another run's program by then."""
    made, log = supervisor.Supervisor(RUN_ID), str(tmp_path / "log")
    ended, running = (
        made.spawn(argv, dict(os.environ), str(tmp_path), log, keep=False)["pid"] for argv in (["true"], ["sleep", "9"])
    )
    wait.until(lambda: [] if made.status(ended)["status"] == 0 else ["runs"], "its end", seconds=60)
    signalled, send = [], os.killpg
    monkeypatch.setattr(os, "killpg", lambda pid, number: signalled.append(pid) or send(pid, number))
    made.close()

    assert signalled == [running]


def test_its_own_death_ends_its_children(script, tmp_path):
    """The kernel sees to that."""
    pid = started(script, tmp_path)
    script.kill()

    wait_ended(pid)


def test_signals_of_a_terminal_do_not_end_it(script, tmp_path):
    """Ctrl-C is for its owner, who then closes the pipe; its children can be asked to end all the same."""
    pid = started(script, tmp_path)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        script.send_signal(number)
    assert ask(script, "status", pid=pid)["status"] is None

    ask(script, "signal", pid=pid, number=signal.SIGINT)
    wait_ended(pid)


def test_a_kept_run_stays(script, tmp_path):
    """After leave neither children nor directories are touched."""
    (tmp_path / "run").mkdir()
    ask(script, "own", directory=str(tmp_path / "run"))
    pid = started(script, tmp_path, keep=True)
    ask(script, "leave")
    script.stdin.close()
    script.wait(20)

    assert not ended(pid)
    assert (tmp_path / "run").exists()
    os.kill(pid, signal.SIGKILL)


def test_a_request_that_fails_is_answered(script):
    """With the error's own words; the next one is served."""
    assert ask(script, "status", pid=1) == {"error": "KeyError: 1", "request": 1}
    assert ask(script, "leave") == {"request": 1}


def test_only_the_marked_processes_of_one_run_are_killed(tmp_path):
    """Those of another run live on."""
    processes = [
        subprocess.Popen(["sleep", "600"], env={supervisor.RUN_VARIABLE: run}) for run in (RUN_ID, f"{RUN_ID}2")
    ]

    assert supervisor.kill_marked(RUN_ID) == 1
    assert processes[0].wait(10) == -signal.SIGKILL
    assert processes[1].poll() is None
    processes[1].kill()
    processes[1].wait(10)
