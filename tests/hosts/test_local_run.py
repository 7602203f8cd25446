"""A run whose supervisor is killed: the next host has another one, and nothing of the first one stays."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.local_run import LocalRun


@pytest.fixture
def run(data):
    """A run of the test's own."""
    made = LocalRun()
    yield made
    made.close()


def host(run, name="node1"):
    """A host of the run."""
    return run.host(name, run.directory / name)


def sleeping(host, *argv):
    """A program that runs on a host."""
    return host.spawn(list(argv or ("sleep", "600")), log=f"{host.directory}/log", directory=host.directory)


def kill_supervisor(run):
    """The supervisor dies of SIGKILL."""
    process = run.client._process
    process.kill()
    process.wait(20)


def ended(pid):
    """Whether a process is gone, for ``wait.until``."""
    try:
        gone = psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return []
    return [] if gone else [f"{pid} runs"]


def test_the_next_host_has_another_supervisor(run):
    """Programs of the dead one are gone; hosts of it say so, and cannot be used any more."""
    old = host(run)
    process = sleeping(old)
    assert old.why_lost() == ""
    kill_supervisor(run)
    new = host(run, "node2")

    wait.until(lambda: ended(process.pid), "the old program", seconds=10)
    assert old.why_lost().startswith("the supervisor of the local servers (pid ")
    with pytest.raises(ProvisionError, match="is gone; its servers ended with it"):
        sleeping(old)
    assert new.why_lost() == ""
    assert sleeping(new).status() is None


def test_programs_that_survive_the_supervisor_are_ended_by_the_next_one(run, tmp_path):
    """The kernel kills its children alone; a program that a child has started is found by its session."""
    log = tmp_path / "pid"
    sleeping(host(run), "sh", "-c", f"sleep 600 & echo $! >{log}.new; mv {log}.new {log}; wait")
    wait.until(lambda: [] if log.exists() else ["not started"], "it", seconds=20)
    survivor = int(log.read_text())
    kill_supervisor(run)
    assert not ended(survivor) or os.getsid(survivor)
    host(run, "node2")

    assert ended(survivor) == []


def test_commands_that_run_beside_it_go_on(run):
    """The load generator is our own child: the death of a supervisor does not end it."""
    ours = host(run)._begin(["sleep", "600"], {})
    try:
        kill_supervisor(run)
        host(run, "node2")
        assert ours.poll() is None
    finally:
        os.killpg(ours.pid, signal.SIGKILL)
        ours.communicate()


def test_servers_are_no_part_of_the_cpu_time_of_the_load(run):
    """The kernel shows both as our children; those of the supervisor are servers and proxies."""
    host_of_both = host(run)
    computing = "n=0; while [ $n -lt 400000 ]; do n=$((n+1)); done; touch ended; read x"
    begun = host_of_both.running_cpu_seconds()
    server = host_of_both.spawn(
        ["sh", "-c", computing.replace("read x", "sleep 600")],
        log=f"{host_of_both.directory}/log",
        directory=host_of_both.directory,
    )
    done = Path(host_of_both.directory, "ended")
    wait.until(lambda: [] if done.exists() else ["it computes"], "the server", seconds=60)
    served = psutil.Process(server.pid).cpu_times().user
    assert host_of_both.running_cpu_seconds() - begun < served / 2

    done.unlink()
    load = host_of_both._begin(["sh", "-c", computing], {})
    try:
        wait.until(lambda: [] if done.exists() else ["it computes"], "the load", seconds=60)
        assert host_of_both.running_cpu_seconds() - begun > served / 2
    finally:
        load.communicate("x")


@pytest.mark.parametrize("again", [True, False])
def test_what_the_dead_one_had_to_clean_up_is_cleaned_up(run, tmp_path, again):
    """Whether another host was asked for meanwhile or not."""
    sleeping(host(run))
    run.clean_up_by(["touch", str(tmp_path / "cleaned")], {})
    kill_supervisor(run)
    if again:
        host(run, "node2")
    run.close()

    assert (tmp_path / "cleaned").exists()
    assert not run.directory.exists()


def test_a_run_that_was_left_stays_when_its_supervisor_dies(data):
    """Its programs do without it."""
    run = LocalRun(keep=True)
    process = sleeping(host(run))
    run.leave()
    kill_supervisor_of_left(run)
    run.close()

    assert ended(process.pid) != []
    assert run.directory.exists()


def kill_supervisor_of_left(run):
    """As ``kill_supervisor``, without asking the run for its supervisor."""
    run._client._process.kill()
    run._client._process.wait(20)


def test_a_command_that_ends_while_the_run_is_ended_hides_nothing(run):
    """What ends the run is raised, not that the command's process group is gone: the run would go on."""

    class Ended(KeyboardInterrupt):
        pass

    def end(number, frame):
        raise Ended

    before = signal.signal(signal.SIGUSR1, end)
    try:
        with pytest.raises(Ended):
            host(run).run(["sh", "-c", f"sleep 0.5; kill -USR1 {os.getpid()}"])
    finally:
        signal.signal(signal.SIGUSR1, before)
