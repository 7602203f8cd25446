"""Hosts that are guests, on a network of their own; without servers."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters import startup
from pytest_dbcluster.clusters.servers import cnf_file
from pytest_dbcluster.clusters.servers.cnf_judge import judge_file
from pytest_dbcluster.errors import CommandFailed, ProvisionError, Unsupported
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.vm import host as vm_host
from pytest_dbcluster.hosts.provisioners.vm import provisioner as module
from pytest_dbcluster.hosts.provisioners.vm.provisioner import GuestProvisioner
from pytest_dbcluster.spec import ClusterSpec
from tests.support import guests
from tests.support.facts import missing
from tests.support.guests import Listener, reachable

SPEC = ClusterSpec("standalone").with_needs(memory="64M")
PAIR = ClusterSpec("galera", nodes=2).with_needs(memory="64M")

pytestmark = pytest.mark.skipif(bool(guests.missing()), reason=guests.missing() or "there can be guests")


@pytest.fixture(scope="module")
def pair(provisioner):
    """Two guests that tests leave as they found them."""
    return provisioner.acquire(PAIR)


@pytest.fixture(scope="module")
def lone(pair):
    """One of the two that tests end: without power, without memory, and by a panic, in this order, after all others."""
    return pair[0]


def cores_of(host):
    """The cores of this machine that may run the first process of a guest's kernel."""
    return os.sched_getaffinity(host._guest._process.pid)


def test_each_guest_has_one_core_of_this_machine(provisioner, pair):
    """Node n has the same one in each cluster; a load generator has the last one, which the fewest nodes have."""
    cores = sorted(os.sched_getaffinity(0))
    load = provisioner.client(SPEC.named("client"))
    found = cores_of(load)
    provisioner.give_back([load])

    assert [cores_of(host) for host in pair] == [{cores[0]}, {cores[1 % len(cores)]}]
    assert found == {cores[-1]}


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
    longest = 0.0
    for number in range(1, 61):
        began = time.monotonic()
        pair[0].run(["sh", "-c", f"nc -w 5 {beside.address} {server.port} </dev/null >/dev/null & echo asked"])
        server.callers(number)
        pair[0].spawn(["true"], log=f"{pair[0].directory}/log", directory=pair[0].directory)
        longest = max(longest, time.monotonic() - began)

    assert longest < 30  # seconds; what is overlooked stays so until more comes, at most until the request times out
    server.process.signal(signal.SIGKILL)


def test_a_file_is_judged_without_a_guest(provisioner, mariadb, tmp_path, monkeypatch):
    """The programs are the same on this machine, and answer at once."""
    path = tmp_path / "my.cnf"
    path.write_text("[mysqld]\nsync_binlog=76\n")
    monkeypatch.setattr(type(provisioner), "acquire", lambda *_: pytest.fail("a guest was started"))

    assert judge_file(cnf_file.read(path), mariadb, provisioner).options == {"sync_binlog": "76"}


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


def test_a_guest_counts_what_it_uses(pair, monkeypatch):
    """CPU, disk and network, as its own kernel does: what it sends to nobody, nobody receives."""
    monkeypatch.setattr(vm_host, "LOOK_SECONDS", 30.0)
    host, other = pair
    nobody = f"{host.address.rpartition('.')[0]}.250"
    before, there = host.usage(), other.usage()
    host.run(["sh", "-c", "n=0; while [ $n -lt 30000 ]; do n=$((n + 1)); done"])
    host.run(["/sbin/ip", "neigh", "replace", nobody, "lladdr", "02:00:00:00:00:fe", "dev", "vec0"])
    host.run(["sh", "-c", f"/bin/ping -q -c 20 -i 0.01 -s 1000 -W 1 {nobody}; echo sent"], seconds=60)
    used = {name: value - before[name] for name, value in host.usage().items()}

    assert used["cpu_user"] + used["cpu_system"] > 0
    assert used["cpu_idle"] >= 0
    assert used["disk_write_bytes"] >= 0
    assert used["network_sent_bytes"] > 20 * 1000
    assert 0 <= used["network_received_bytes"] < 10 * 1000
    assert other.usage()["network_sent_bytes"] - there["network_sent_bytes"] < 10 * 1000


def test_a_paused_guest_tells_nothing(pair, monkeypatch):
    """Its figures are unknown then."""
    pair[1].pause()
    assert pair[1].usage() == {}
    pair[1].resume()
    monkeypatch.setattr(vm_host, "LOOK_SECONDS", 30.0)

    assert pair[1].usage()["cpu_idle"] > 0


def test_a_partitioned_guest_is_out_of_reach_until_it_heals(pair):
    """Our line to it stays; it comes back with its address."""
    host = pair[1]
    host.partition()
    assert not reachable(host, 1)
    assert host.run(["echo", "here"]).stdout == "here\n"

    host.heal()

    assert reachable(host)


def test_a_guest_without_power_starts_again(lone):
    """No program of it is left; its files are, and its addresses, so others reach it; its old programs have ended."""
    host = lone
    assert reachable(host)
    known = host.run(["cat", "/sys/class/net/vec0/address"]).stdout
    program = host.spawn(["sleep", "88"], log=f"{host.directory}/log", directory=host.directory)
    wait.until(lambda: [] if Path(host.directory, "log").exists() else ["none"], "the program's log", seconds=60)

    host.push(b"2", f"{host.directory}/sql.sock.lock")

    host.kill()

    assert program.status() == -signal.SIGKILL
    left = host.run(["ls"]).stdout.split()
    assert ("log" in left, "sql.sock.lock" in left) == (True, False)  # a server would not start: process 2 runs
    assert host.run(["cat", "/sys/class/net/vec0/address"]).stdout == known
    assert reachable(host)


def test_memory_that_is_used_up_is_said(lone):
    """A program that the guest's kernel has ended is not one that crashed."""
    assert lone.limit_reached() == ""
    with pytest.raises(CommandFailed):
        lone.run(["sh", "-c", "x=0123456789abcdef; while :; do x=$x$x; done"])

    assert missing(lone.limit_reached(), "the guest's memory of 64 MiB", "used up") == []
    assert lone.why_lost() == ""


def test_a_guest_that_panics_is_lost_by_name(provisioner, lone):
    """What ran on it cannot be trusted; the console's last words are in the message. It is given back as any other."""
    program = lone.spawn(["sleep", "88"], log=f"{lone.directory}/log", directory=lone.directory)
    with pytest.raises(ProvisionError, match="guest node1 has ended; its last output"):
        lone.run(["sh", "-c", "echo c >/proc/sysrq-trigger; sleep 60"])

    assert program.status() == -signal.SIGKILL
    assert "Kernel panic" in lone.why_lost()
    provisioner.give_back([lone])


def test_data_of_servers_are_made_on_this_machine(provisioner, mariadb, empty_templates, monkeypatch):
    """Guests copy them. It takes three times as long in a guest, and the programs are the same."""
    monkeypatch.setattr(provisioner, "acquire", lambda spec: pytest.fail("a guest was started"))
    given = []
    monkeypatch.setattr(provisioner, "give_back", given.extend)

    made = startup.ready_template(mariadb, provisioner, {}, print)

    assert (made.data / "mysql").is_dir()
    assert made.data.is_relative_to(empty_templates)
    assert [Path(host.directory).is_relative_to(provisioner.directory) for host in given] == [True]
    assert "ready for connections" in Path(given[0].directory, "error.log").read_text()


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
    """The message names the command that fetches it elsewhere. A program on PATH of that name is none of ours."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DBCLUSTER_MIRROR", f"file:{tmp_path}/none")
    (tmp_path / "vm").write_text("#!/bin/sh\necho vm 1.0.0\n")
    (tmp_path / "vm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    made = GuestProvisioner()

    with pytest.raises(ProvisionError) as caught:
        made.acquire(SPEC)
    made.close()

    assert re.match(rf"(?s)vm cannot be fetched: .*{tmp_path}/none", str(caught.value))
    for fact in ("DBCLUSTER_MIRROR=URL", "`dbcluster fetch vm`", f"{tmp_path}/pytest-dbcluster"):
        assert fact in str(caught.value)


OWNER = """\
import json, sys, time
from pytest_dbcluster.hosts.provisioners.vm.provisioner import GuestProvisioner
from pytest_dbcluster.spec import ClusterSpec

made = GuestProvisioner(keep={keep})
hosts = made.acquire(ClusterSpec("standalone").with_needs(memory="64M"))
{then}
enter = hosts[0].command_line(["nc"])[:-1]
pids, addresses = [host._guest.pid for host in hosts], [host.address for host in hosts]
print(json.dumps([made.run_id, pids, addresses, enter]), flush=True)
time.sleep(600 if not {keep} else 0)
"""


CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 1), 5)"


@pytest.fixture
def owner(data, tmp_path):
    """A process that has a guest, and what it said about it."""
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
    left = [str(process) for run in runs.list_runs() if run.run_id == run_id for process in run.processes()]
    left += [f"dbc{run_id}"] if Path(f"/sys/class/net/dbc{run_id}").exists() else []
    return left + [str(run.directory) for run in runs.list_runs() if run.run_id == run_id]


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
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
    (run,) = [run for run in runs.list_runs() if run.run_id == run_id]
    assert runs.end(run) >= len(pids)
    wait.until(lambda: of_run(run_id), "nothing of the run", seconds=30)


def running(pid):
    """Whether a process runs; its supervisor asks for its status later."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
