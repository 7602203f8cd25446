"""The local provisioner: real processes in real directories, which end with the run."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import sys
import time
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import CommandFailed, ProvisionError
from pytest_dbcluster.hosts import local_host, runs, supervisor
from pytest_dbcluster.hosts.network import local_paths
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.hosts.supervisor import RUN_VARIABLE
from pytest_dbcluster.spec import ClusterSpec
from tests.support.facts import missing

ONE = ClusterSpec("standalone")


@pytest.fixture
def local(tmp_path, monkeypatch):
    """A run whose directory lies in the test's own place."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path / "runs"))
    made = LocalProvisioner()
    yield made
    made.close()


@pytest.fixture
def host(local):
    """Its first host."""
    return local.acquire(ONE)[0]


def alive(pid):
    """Whether a process runs; one whose parent has not asked for its status yet does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def sleeping(host):
    """A program that stays."""
    return host.spawn(["sleep", "600"], log=f"{host.directory}/log", directory=host.directory)


def test_a_command_gives_back_what_it_printed(host):
    """Standard output and error apart; the command got its input and its variables."""
    done = host.run(["sh", "-c", "cat; echo $WORD >&2"], text="in", environment={"WORD": "said"})

    assert (done.stdout, done.stderr) == ("in", "said\n")


def test_a_command_runs_in_the_hosts_directory(host):
    """So that what it leaves behind is removed with the host."""
    assert host.run(["pwd"]).stdout.strip() == host.directory


def test_a_failed_command_gives_its_own_words(host):
    """The error holds the command, its status and what it said."""
    with pytest.raises(CommandFailed) as caught:
        host.run(["sh", "-c", "echo no such luck >&2; exit 3"])

    command = "sh -c echo no such luck >&2; exit 3"
    assert missing(caught.value, command, "on node1", "ended with 3: no such luck") == []


def test_a_command_that_takes_too_long_is_ended_with_its_children(host):
    """The whole group dies, so nothing that it started stays behind."""
    with pytest.raises(CommandFailed) as caught:
        host.run(["sh", "-c", "sleep 600 & echo $! ; wait"], seconds=2)

    assert "did not end within 2 s" in str(caught.value)
    child = int(caught.value.stdout)
    wait.until(lambda: [f"{child} lives"] if alive(child) else [], "its end", seconds=5)  # init reaps it


def test_what_outlives_a_killed_command_holds_nobody_up(host, monkeypatch):
    """A program in another session may have its pipes; what the command has printed is in the error."""
    monkeypatch.setattr(local_host, "KILLED_SECONDS", 0.3)
    began = time.monotonic()
    with pytest.raises(CommandFailed) as caught:
        host.run(["sh", "-c", "echo so far; setsid sleep 20 & wait"], seconds=2)

    assert missing(str(caught.value), "2 s", "so far") == []
    assert time.monotonic() - began < 15


def test_a_program_that_does_not_exist_is_a_failed_command(host):
    """The error names it, as that of a command that ended badly does."""
    with pytest.raises(CommandFailed) as caught:
        host.run(["/no/program", "-x"])

    reason = "ended with 127: No such file or directory: /no/program"
    assert missing(caught.value, "/no/program -x", "on node1", reason) == []


def test_a_program_that_cannot_be_spawned_says_why(host):
    """The supervisor's words reach the caller, and the supervisor lives on."""
    with pytest.raises(ProvisionError) as caught:
        host.spawn(["/no/program"], log=f"{host.directory}/log", directory=host.directory)

    reason = "FileNotFoundError: [Errno 2] No such file or directory: '/no/program'"
    assert missing(caught.value, "could not spawn ['/no/program']: ", reason) == []
    assert sleeping(host).status() is None


def test_a_spawned_program_has_a_status_and_takes_signals(host):
    """None while it runs, then the signal that ended it; one more signal is no error."""
    process = sleeping(host)
    assert process.status() is None
    process.signal(signal.SIGTERM)

    wait.until(lambda: [] if process.status() is not None else ["it runs"], "its end", seconds=60)
    process.signal(signal.SIGTERM)
    assert process.status() == -signal.SIGTERM


def test_everything_that_runs_carries_the_runs_mark(host, local):
    """Commands and servers can be found by it, whatever became of the one who started them."""
    marked = host.run([sys.executable, "-c", f"import os; print(os.environ['{RUN_VARIABLE}'])"]).stdout.strip()

    assert marked == local.run_id
    process = psutil.Process(sleeping(host).pid)
    wait.until(lambda: [] if process.environ() else ["it is being loaded"], "a program", seconds=60)
    assert process.environ()[RUN_VARIABLE] == local.run_id


def test_close_ends_every_program_and_removes_the_directory(host, local):
    """What was started, what that started in a session of its own, and the run's files are gone."""
    pid_file = Path(host.directory) / "pid"
    script = f"setsid sleep 600 & echo $! > {pid_file}; wait"
    outer = host.spawn(["sh", "-c", script], log=f"{host.directory}/log", directory=host.directory)
    wait.until(lambda: [] if pid_file.exists() and pid_file.read_text() else ["no pid"], "its child", seconds=60)
    inner = int(pid_file.read_text())
    local.close()

    # A killed process has lost its mark, and is no longer looked for, a moment before it is gone.
    wait.until(lambda: [str(pid) for pid in (outer.pid, inner) if alive(pid)], "the end of both", seconds=5)
    assert not local.directory.exists()


def test_only_the_owner_can_read_a_run(host, local):
    """Passwords lie in its files."""
    host.push(b"secret", f"{host.directory}/my.cnf")

    assert stat.S_IMODE(local.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(Path(f"{host.directory}/my.cnf").stat().st_mode) == 0o600


def test_a_run_says_whose_it_is(host, local):
    """So that a later run can tell whether it is dead."""
    said = json.loads((local.directory / runs.FILE).read_text())

    assert (said["owner"], said["kept"]) == (os.getpid(), False)


def test_a_stale_answer_is_never_taken_for_a_new_one(host):
    """Ctrl-C between a request and its answer leaves the answer in the pipe; the next request skips it."""
    process = sleeping(host)
    client = host._client
    client._send("own", directory=host.directory)  # as if the one who asked had been interrupted

    assert process.status() is None


def test_a_supervisor_that_does_not_answer_is_said(host, monkeypatch):
    """It may be stopped. Later requests wait for a second only, and go on when it does."""
    process, client = sleeping(host), host._client
    monkeypatch.setattr(client, "_patience", 0.3)
    supervisor = psutil.Process(client.pid)
    supervisor.suspend()
    try:
        for limit in ("0.3 s", "1 s"):
            with pytest.raises(ProvisionError) as caught:
                process.status()
            assert (
                missing(str(caught.value), f"pid {supervisor.pid}", "did not answer 'status'", limit, "stopped") == []
            )
    finally:
        supervisor.resume()
    monkeypatch.setattr(client, "_patience", 60.0)  # now it has three answers to give
    assert process.status() is None


def test_a_dead_supervisor_is_said_with_its_servers(host):
    """Its servers die with it, and whoever asks for them learns why."""
    process = sleeping(host)
    supervisor = psutil.Process(process.pid).parent()
    supervisor.kill()

    with pytest.raises(ProvisionError) as caught:
        process.status()
    gone = f"the supervisor of the local servers (pid {supervisor.pid}) is gone"
    assert missing(caught.value, gone, "its servers ended") == []
    wait.until(lambda: ["alive"] if alive(process.pid) else [], "the server's end", seconds=5)


def test_the_end_has_as_long_as_its_commands_may_take(host, local, monkeypatch):
    """Beyond that it is said, once, and the ports are given back; the supervisor goes on with what it has to end."""
    client, port = host._client, host.port(3306)
    monkeypatch.setattr(supervisor, "CLEAN_SECONDS", 0)
    monkeypatch.setattr(local_host, "SLACK_SECONDS", 0.1)
    for seconds in ("0.3", "1"):
        client.ask("after", argv=["sleep", seconds], environment=dict(os.environ), seconds=60.0)
    assert client._after == 120
    monkeypatch.setattr(client, "_after", 0.4)
    process = client._process

    with pytest.raises(ProvisionError) as caught:
        local.close()
    assert str(caught.value).startswith(
        f"the supervisor of the local servers (pid {process.pid}) has not ended them within 0.5 s; it "
        f"continues: `dbcluster ps` lists run {local.run_id}, "
    )
    assert port not in local._run.ports._held
    local.close()
    process.wait(20)
    assert not local.directory.exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    """The error says which directory, why, and how to choose another."""
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path / "file"))

    with pytest.raises(ProvisionError) as caught:
        LocalProvisioner().acquire(ONE)
    why = f"{os.strerror(errno.ENOTDIR)}; set DBCLUSTER_DATA_DIR to another directory"
    assert str(caught.value) == f"cannot keep data in {tmp_path / 'file'}: {why}"


def test_a_run_without_keep_is_not_left_running(host, local):
    """Leaving has to be asked for at the beginning, because servers are started otherwise."""
    with pytest.raises(ProvisionError, match=r"^only a run made with keep=True that has a host can be left running$"):
        local.leave()


def test_a_left_run_outlives_its_owner_until_it_is_ended(tmp_path, monkeypatch):
    """Closing leaves its servers and its directory; runs.end ends both."""
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path / "runs"))
    local = LocalProvisioner(keep=True)
    process = sleeping(local.acquire(ONE)[0])
    local.leave()
    local.close()

    (run,) = runs.list_runs()
    assert (run.run_id, run.kept, alive(process.pid)) == (local.run_id, True, True)
    assert runs.reap() == []
    assert runs.end(run) == 1
    assert not alive(process.pid)
    assert not local.directory.exists()


@pytest.mark.parametrize("name", ["../../../../evil", "/tmp/evil", "..", "a b/c", "x" * 300])
def test_a_name_leads_to_no_other_directory(local, tmp_path, name):
    """The directory of a cluster lies in that of its run, whatever the cluster is called."""
    host = local.acquire(ClusterSpec("standalone", name=name))[0]
    directory = Path(host.directory).resolve()

    assert directory.is_dir()
    assert directory.parent.parent == (tmp_path / "runs" / local.run_id).resolve()
    assert list(tmp_path.rglob("*evil")) == list((tmp_path / "runs" / local.run_id).glob("*evil"))


def test_a_network_that_cannot_be_made_is_named_with_the_reason(local, monkeypatch):
    """A test that asks for it is skipped with these words, before a server is fetched."""
    monkeypatch.setattr(local_paths, "why_not", lambda: "it takes something else")

    reason = local.unmet(ClusterSpec("galera", nodes=3).with_needs(rtt=0.005))
    needs = "cluster galera3_rtt_0.005 needs rtt=0.005 of its hosts"
    assert missing(reason, needs, "does not offer here: it takes something else") == []
