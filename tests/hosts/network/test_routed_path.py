"""Namespaces around a router: packets of peers wait, ours do not, and nothing is left of it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.cli import clusters, main
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.guests import user_namespace
from pytest_dbcluster.hosts.network import kernel_settings, local_paths
from pytest_dbcluster.hosts.network.kernel_router import KernelRouter
from pytest_dbcluster.hosts.provisioners.container import engine
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.network import NetworkNeeds
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system.ports import PortLocks
from tests.support import guests, paths

FAR = NetworkNeeds(rtt=0.02, links=((("client", "node1"), 0.05),))
LOSSY = NetworkNeeds(rtt=0.04, loss=0.05, jitter=0.02, rate=2e7)
HELD = """
import sys, time
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system.ports import PortLocks

provisioner = LocalProvisioner()
provisioner.acquire(ClusterSpec("galera", nodes=2).with_needs(rtt=0))
print(provisioner.run_id, flush=True)
time.sleep(600)
"""


def interfaces(run_id):
    """The interfaces of this machine that have the name of a run."""
    return [name for _, name in socket.if_nameindex() if name.startswith(f"d{run_id}")]


def test_packets_of_peers_wait_and_ours_do_not(path):
    """Each link as long as it was asked for, measured back; a change takes no restart."""
    links = {link.pair: link for link in path.measure(FAR)}
    _, node2 = path.hosts

    assert {pair: link.asked for pair, link in links.items()} == {
        ("node1", "node2"): 0.02, ("client", "node1"): 0.05, ("client", "node2"): 0.0,
    }  # fmt: skip
    held = PortLocks()  # nobody listens on this port of this machine
    listener = path.namespace("node2").make_socket(socket.AF_INET, socket.SOCK_STREAM)
    with contextlib.closing(held), listener:
        listener.bind((node2.address, port := held.take()))
        listener.listen()
        times = []
        for _ in range(5):
            began = time.perf_counter()
            guests.connection(node2, port, 5).close()
            times.append(time.perf_counter() - began)
        assert min(times) < 0.01
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port))
    path.measure(NetworkNeeds())


def test_the_links_of_a_host_run_when_it_is_connected_again(path):
    """A server that starts now finds its address; the kernel alone notes it up to a second later."""
    node = path.hosts[1]
    for _ in range(3):
        node.partition()
        node.heal()
        links = json.loads(path.namespace("node2").output("ip", ["-j", "link", "show"]))
        states = {link["ifname"]: link["operstate"] for link in links if link["ifname"] != "lo"}
        assert set(states.values()) <= {"UP", "UNKNOWN"}, states
        assert len(states) == 2


def test_a_link_that_does_not_run_yet_is_waited_for(path, monkeypatch):
    """The host is connected when the kernel says that its links run."""
    node, namespace, real = path.hosts[1], path.namespace("node2"), path.namespace("node2").output
    seen = []

    def late(name, arguments):
        seen.append(real(name, arguments))
        return seen[-1].replace('"UP"', '"DOWN"').replace('"UNKNOWN"', '"DOWN"') if len(seen) < 3 else seen[-1]

    node.partition()
    monkeypatch.setattr(namespace, "output", late)
    node.heal()

    assert len(seen) == 3


def test_loss_jitter_and_rate_are_read_from_the_kernel(path, monkeypatch):
    """Between nodes, which alone have them; a router that does something else is an error."""
    links = {link.pair: link.kernel_settings for link in path.measure(LOSSY)}
    found, shape = links["node1", "node2"], path.shape

    assert links["client", "node1"] is links["client", "node2"] is None
    assert (found.loss, found.jitter, found.rate) == (pytest.approx(0.05), pytest.approx(0.02), 2e7)
    monkeypatch.setattr(path, "shape", lambda needs: shape(dataclasses.replace(needs, rate=5e6)))
    with pytest.raises(ProvisionError, match=r"rate 20 Mbit/s was asked, and the kernel has 5 Mbit/s set$"):
        path.measure(LOSSY)


def test_this_machine_prints_queues_in_the_same_form(path):
    """The namespace of the ports has queues of the kernel, but none that delays where a guest is the router."""
    path.measure(FAR)
    found = kernel_settings.read(KernelRouter(path.hub).show_queues())

    assert bool(found) is local_paths.kernel_delays()


def test_a_namespace_that_nobody_holds_is_said(path):
    """Its server may go on, but nothing can be measured in it. After this test the path can only lose its router."""
    assert path.why_lost() == ""
    held = path.namespace("node2")
    os.kill(held.pid, signal.SIGKILL)
    wait.until(lambda: [] if path.why_lost() else ["the namespace is not missed"], "the loss", seconds=20)

    said = f"process {held.pid}, which held the network namespace of node2, has ended"
    assert path.why_lost() == path.hosts[0].why_lost() == said
    with pytest.raises(ProvisionError, match=rf"^{said}; so we cannot measure a round trip$"):
        path.round_trips(("node1", "node2"), 1)


def test_a_router_that_ends_is_said(path):
    """Wherever the path is used from then on; a host on it cannot be used any more."""
    if (pid := paths.router_pid(path)) is None:
        pytest.skip("the router is the kernel of this machine, which does not end")
    os.kill(pid, signal.SIGKILL)
    said = "the router between the nodes is gone (a guest; the last line of its console: "
    wait.until(lambda: [] if path.why_lost().startswith(said) else [path.why_lost()], "the loss", seconds=20)

    assert path.hosts[1].why_lost() == path.why_lost()
    with pytest.raises(ProvisionError, match=r"^the router .* is gone .*; so we cannot change its delays$"):
        path.shape(FAR)
    with pytest.raises(ProvisionError, match=r"^the router .* is gone .*; so we cannot read its queues$"):
        path.settings()
    with pytest.raises(ProvisionError, match=r"^the router .* is gone .*; so we cannot measure a round trip$"):
        path.round_trips(("node1", "node2"), 1)


@pytest.fixture
def owner(tmp_path, monkeypatch):
    """A process that has a path, and the id of its run."""
    if reason := paths.missing():
        pytest.skip(reason)
    monkeypatch.setenv("DBCLUSTER_DATA_DIR", str(tmp_path / "runs"))
    process = subprocess.Popen([sys.executable, "-c", HELD], stdout=subprocess.PIPE, text=True)
    yield process, process.stdout.readline().strip()
    process.kill()
    process.wait()
    process.stdout.close()


def processes_of(run_id):
    """The processes of a run, and the interfaces of this machine that it made."""
    marked = [str(running.pid) for running, mark, _ in runs._marked_processes() if mark == run_id]
    return [*marked, *interfaces(run_id)]


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
def test_nothing_is_left_of_a_run_that_was_killed(number, owner):
    """Its namespaces, interfaces and router end with the process that made them."""
    process, run_id = owner
    assert len(interfaces(run_id)) == (2 if user_namespace.root() else 0)
    process.send_signal(number)

    wait.until(lambda: processes_of(run_id), f"the end of run {run_id}", seconds=60)
    wait.until(lambda: [str(run.directory) for run in runs.list_runs()], "the end of its directory", seconds=60)


def test_a_run_that_was_killed_with_its_supervisor_is_reaped(owner, monkeypatch, capsys):
    """Its processes and interfaces end then too; ps shows what is left of it, and reap removes that."""
    monkeypatch.setattr(engine, "has_socket", lambda: False)
    process, run_id = owner
    (supervisor,) = [child for child in psutil.Process(process.pid).children() if run_id in child.cmdline()]
    supervisor.kill()
    process.kill()

    wait.until(lambda: processes_of(run_id), f"the end of run {run_id}", seconds=60)
    process.wait()
    assert [(row.run_id, row.state) for row in clusters.rows()] == [(run_id, "dead: dbcluster reap")]
    assert main.main(["reap"]) == 0
    assert f"ended dead run {run_id} of process {process.pid} (0 processes)" in capsys.readouterr().out
    assert runs.list_runs() == []


def test_no_kernel_for_the_router_and_no_network_is_said(tmp_path, monkeypatch):
    """The message names the command that fetches it elsewhere; nothing is left of the path."""
    if local_paths.kernel_delays() or local_paths.why_not():
        pytest.skip("no guest is needed here, or no network namespace can be made")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DBCLUSTER_MIRROR", f"file:{tmp_path}/none")
    provisioner = LocalProvisioner()

    with pytest.raises(ProvisionError, match=r"(?s)^vm cannot be fetched: .*`dbcluster fetch vm` on a machine"):
        provisioner.acquire(ClusterSpec("galera", nodes=2).with_needs(rtt=0.01))
    wait.until(lambda: interfaces(provisioner.run_id), "the end of the interfaces", seconds=60)
    provisioner.close()
