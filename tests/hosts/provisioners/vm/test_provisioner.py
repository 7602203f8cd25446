"""Hosts that are guests, on a network of their own; without servers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import CommandFailed, ProvisionError, Unsupported
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.vm import provisioner as module
from pytest_dbcluster.hosts.provisioners.vm.provisioner import GuestProvisioner
from pytest_dbcluster.spec import ClusterSpec
from tests.support import guests
from tests.support.guests import Listener, reachable

SPEC = ClusterSpec("standalone").with_needs(memory="64M")
PAIR = ClusterSpec("galera", nodes=2).with_needs(memory="64M")

pytestmark = pytest.mark.skipif(bool(guests.missing()), reason=guests.missing() or "there can be guests")


@pytest.fixture(scope="module")
def provisioner():
    """Guests of this module."""
    made = GuestProvisioner()
    yield made
    made.close()


@pytest.fixture(scope="module")
def pair(provisioner):
    """Two guests that tests leave as they found them."""
    return provisioner.acquire(PAIR)


def test_a_command_runs_in_the_guest(pair):
    """It sees the guest's own programs and the shared directory; input, environment and status are its own."""
    host = pair[0]
    host.push(b"some words", f"{host.directory}/words")

    assert host.run(["cat", "words"]).stdout == "some words"
    assert host.run(["uname", "-n"]).stdout == "node1\n"
    assert host.run(["cat"], text="an input").stdout == "an input"
    assert host.run(["sh", "-c", "echo $WORD"], environment={"WORD": "x y"}).stdout == "x y\n"
    with pytest.raises(CommandFailed, match=r"^sh -c echo why >&2; exit 3 on node1 ended with 3: why"):
        host.run(["sh", "-c", "echo why >&2; exit 3"])


def test_what_a_program_has_written_is_read_at_once(pair):
    """A log is complete on this machine while its program runs."""
    host = pair[0]
    host.run(["sh", "-c", "exec 3>late; echo words >&3; sleep 60 >/dev/null 2>&1 & echo $! >pid"])

    assert host.pull(f"{host.directory}/late") == b"words\n"
    host.run(["sh", "-c", "kill $(cat pid)"])


def test_a_long_program_text_is_no_slower(pair):
    """It goes over by a file, because a serial line takes its time for each character."""
    words = "x" * 100_000

    assert pair[0].run(["echo", words], seconds=30).stdout == f"{words}\n"


def test_guests_and_this_machine_reach_each_other(pair):
    """Each has an address of its own in one network."""
    first, second = pair

    assert first.address != second.address
    assert first.port(3306) == 3306
    assert reachable(first)
    assert "1 received" in first.run(["/bin/ping", "-c", "1", "-W", "5", second.address]).stdout


def test_a_guest_reaches_a_program_of_this_machine(provisioner, pair):
    """Helpers in Python run here: a guest has none."""
    beside = provisioner.beside(pair[0])
    server = Listener(beside)

    pair[0].run(["sh", "-c", f"nc -w 5 {beside.address} {server.port} </dev/null >/dev/null & echo asked"])

    assert server.callers(1) == [pair[0].address]
    server.process.signal(signal.SIGKILL)


def test_a_request_beside_traffic_is_not_overlooked(provisioner, pair):
    """The kernel of a guest keeps what came over its line together with a packet; about 1 request in 40 was lost."""
    beside = provisioner.beside(pair[0])
    server = Listener(beside)
    began = time.monotonic()
    for number in range(1, 61):
        pair[0].run(["sh", "-c", f"nc -w 5 {beside.address} {server.port} </dev/null >/dev/null & echo asked"])
        server.callers(number)
        pair[0].spawn(["true"], log=f"{pair[0].directory}/log", directory=pair[0].directory)

    assert time.monotonic() - began < 60
    server.process.signal(signal.SIGKILL)


def test_a_large_message_reaches_a_guest(pair):
    """The kernel of this machine leaves large packets whole; a statement may have many megabytes."""
    pair[0].spawn(["sh", "-c", "nc -l -p 5000 >got"], log=f"{pair[0].directory}/log", directory=pair[0].directory)
    wait.until(
        lambda: [] if "1388 " in pair[0].run(["cat", "/proc/net/tcp6", "/proc/net/tcp"]).stdout else ["no"],
        "nc",
        seconds=60,
    )
    with guests.connection(pair[0], 5000) as sending:
        sending.sendall(b"x" * 2_000_000)
        sending.shutdown(socket.SHUT_WR)
        # nc has no input, so it may close its side before it has read all of ours.
        got = lambda: pair[0].run(["wc", "-c", "got"]).stdout.split()[0]  # noqa: E731
        wait.until(lambda: [] if (size := got()) == "2000000" else [f"{size} bytes"], "the whole message", seconds=60)


def test_a_partitioned_guest_is_out_of_reach_until_it_heals(pair):
    """Our line to it stays; it comes back with its address."""
    host = pair[1]
    host.partition()
    assert not reachable(host, 1)
    assert host.run(["echo", "here"]).stdout == "here\n"

    host.heal()

    assert reachable(host)


def test_a_guest_without_power_starts_again(provisioner):
    """No program of it is left; its files are, and its addresses, so others reach it; its old programs have ended."""
    (host,) = provisioner.acquire(SPEC)
    assert reachable(host)
    known = host.run(["cat", "/sys/class/net/vec0/address"]).stdout
    program = host.spawn(["sleep", "88"], log=f"{host.directory}/log", directory=host.directory)
    wait.until(lambda: [] if Path(host.directory, "log").exists() else ["none"], "the program's log", seconds=60)

    host.kill()

    assert program.status() == -signal.SIGKILL
    assert "log" in host.run(["ls"]).stdout.split()
    assert host.run(["cat", "/sys/class/net/vec0/address"]).stdout == known
    assert reachable(host)
    provisioner.give_back([host])


def test_memory_that_is_used_up_is_said(provisioner):
    """A program that the guest's kernel has ended is not one that crashed."""
    (host,) = provisioner.acquire(SPEC)
    with pytest.raises(CommandFailed):
        host.run(["sh", "-c", "x=0123456789abcdef; while :; do x=$x$x; done"])

    assert host.limit_reached() == "the guest's memory of 64 MiB was used up"
    assert host.lost() == ""
    provisioner.give_back([host])


def test_a_guest_that_panics_is_lost_by_name(provisioner):
    """What ran on it cannot be trusted; the console's last words are in the message."""
    (host,) = provisioner.acquire(SPEC)
    program = host.spawn(["sleep", "88"], log=f"{host.directory}/log", directory=host.directory)
    with pytest.raises(ProvisionError, match="guest node1 has ended; it said"):
        host.run(["sh", "-c", "echo c >/proc/sysrq-trigger; sleep 60"])

    assert program.status() == -signal.SIGKILL
    assert "Kernel panic" in host.lost()
    provisioner.give_back([host])


def test_a_guest_has_one_cpu(provisioner):
    """A spec that needs more is refused with the reason."""
    with pytest.raises(Unsupported, match=r"needs cores=2 of its hosts: a guest has one CPU, so cores= is at most 1"):
        provisioner.acquire(SPEC.with_needs(cores=2))


def test_memory_of_a_node_is_that_of_its_guest(provisioner):
    """``80 %`` of it is meant, whatever the machine has."""
    assert provisioner.node_memory(SPEC, 2**40) == 64 * 2**20
    assert provisioner.node_memory(ClusterSpec("standalone"), 2**40) == module.MEMORY


def test_the_exact_kernel_is_in_the_fingerprint(provisioner):
    """Figures of different kernels are different figures."""
    assert provisioner.environment["guests"].startswith("user-mode Linux ")


def test_no_kernel_and_no_network_is_said(tmp_path, monkeypatch):
    """The message names the command that fetches it elsewhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DBCLUSTER_MIRROR", f"file:{tmp_path}/none")
    made = GuestProvisioner()

    with pytest.raises(ProvisionError, match=r"(?s)^vm cannot be fetched: .*`dbcluster fetch vm` on a machine"):
        made.acquire(SPEC)
    made.close()


OWNER = """\
import json, sys, time
from pytest_dbcluster.hosts.provisioners.vm.provisioner import GuestProvisioner
from pytest_dbcluster.spec import ClusterSpec

made = GuestProvisioner(keep={keep})
hosts = made.acquire(ClusterSpec("galera", nodes=2).with_needs(memory="64M"))
{then}
enter = hosts[0].typed(["nc"])[:-1]
pids, addresses = [host._guest.pid for host in hosts], [host.address for host in hosts]
print(json.dumps([made.run_id, pids, addresses, enter]), flush=True)
time.sleep(600 if not {keep} else 0)
"""


CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 1), 5)"


@pytest.fixture
def owner(data, tmp_path):
    """A process that has two guests, and what it said about them."""
    begun = []

    def begin(keep=False, then=""):
        script = tmp_path / "owner.py"
        script.write_text(OWNER.format(keep=keep, then=then))
        begun.append(
            subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": "."})
        )
        return begun[-1], json.loads(begun[-1].stdout.readline())

    yield begin
    for process in begun:
        process.kill()
        process.wait()
        process.stdout.close()


def of_run(run_id):
    """What is left of a run: its processes, its interface and its directory."""
    left = [str(process) for run in runs.known() if run.run_id == run_id for process in run.processes()]
    left += [f"dbc{run_id}"] if Path(f"/sys/class/net/dbc{run_id}").exists() else []
    return left + [str(run.directory) for run in runs.known() if run.run_id == run_id]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_guests_end_with_the_process_that_made_them(owner, number):
    """However it ends: no guest, no network and no file stays."""
    process, (run_id, pids, *_) = owner()
    assert of_run(run_id)

    process.send_signal(number)
    ended = time.monotonic()

    wait.until(lambda: [str(pid) for pid in pids if running(pid)], "the end of the guests", seconds=30, poll=0.005)
    print(f"guests ended {time.monotonic() - ended:.3f} s after their owner")
    wait.until(lambda: of_run(run_id), "nothing of the run", seconds=30)


def test_a_paused_guest_ends_too(owner):
    """It cannot see that its line was closed; the supervisor kills it."""
    process, (run_id, pids, *_) = owner(then="hosts[0].pause()")
    process.kill()

    wait.until(lambda: [str(pid) for pid in pids if running(pid)], "the end of the guests", seconds=30, poll=0.005)
    wait.until(lambda: of_run(run_id), "nothing of the run", seconds=30)


def test_kept_guests_stay_until_somebody_ends_them(owner):
    """``dbcluster up`` leaves them, and ``dbcluster down`` ends them with their network."""
    process, (run_id, pids, addresses, enter) = owner(keep=True, then="made.leave()")
    process.wait(60)

    for address in addresses:  # as a user at a shell connects
        command = [*enter, sys.executable, "-c", CONNECT, address]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        assert "ConnectionRefusedError" in done.stderr
    (run,) = [run for run in runs.known() if run.run_id == run_id]
    assert runs.end(run) >= len(pids)
    wait.until(lambda: of_run(run_id), "nothing of the run", seconds=30)


def running(pid):
    """Whether a process runs; its supervisor asks for its status later."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
