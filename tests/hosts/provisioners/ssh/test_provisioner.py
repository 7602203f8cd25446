"""The provisioner ssh: which machines a run takes, on real ssh servers."""

from __future__ import annotations

import threading
import time

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ConfigError, Inconclusive, LockHeld, ProvisionError, Unsupported
from pytest_dbcluster.hosts.provisioners.ssh import provisioner as ssh
from pytest_dbcluster.hosts.provisioners.ssh.machine import Machine
from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from pytest_dbcluster.system.machine_lock import Turns
from tests.support import stand_ins
from tests.support.stand_ins import StandIns

RELEASE = ReleaseName("mariadb", "10.11")
ONE = ClusterSpec("standalone", release=RELEASE)
TWO = ClusterSpec("galera", nodes=2, release=RELEASE)
THREE = ClusterSpec("galera", nodes=3, release=RELEASE)


@pytest.fixture(scope="module")
def stand_in_hosts(tmp_path_factory):
    """Three machines and one for the load, which reach each other on a network of their own."""
    if reason := stand_ins.missing():
        pytest.skip(reason)
    with StandIns(tmp_path_factory.mktemp("client"), 3, load=1, private=True) as made:
        yield made


@pytest.fixture
def on(stand_in_hosts):
    """``on("host1", load="load")``: a run on these machines, closed afterwards."""
    made = []

    def on(*names, load=()):
        def at(name):
            return f"{name}={stand_in_hosts[name].private_address}"

        run = SshProvisioner(
            machines=[at(name) for name in names],
            load_machines=[at(name) for name in load],
            config=stand_in_hosts.config,
        )
        made.append(run)
        return run

    yield on
    for run in made:
        run.close()


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({}, "--db-provisioner ssh needs machines: --db-host USER@ADDRESS, once for each"),
        ({"machines": ["-oProxyCommand=x"]}, "--db-host '-oProxyCommand=x': it accepts USER@ADDRESS"),
        ({"machines": ["a", "a"]}, "--db-host a: it is named twice"),
        ({"machines": ["a="]}, "--db-host 'a=': it accepts USER@ADDRESS"),
        ({"machines": ["a=b"]}, "--db-host 'a=b': 'b' is not an IPv4 address of the machine"),
        ({"machines": ["a"], "load_machines": ["a"]}, "--db-load-host a is also a --db-host"),
        ({"machines": ["a"], "base": "tmp"}, "--db-host-directory 'tmp': it accepts an absolute path"),
        ({"machines": ["a"], "keep": True}, "--db-keep: servers on machines of --db-host end with the run"),
    ],
)
def test_machines_that_cannot_be_meant_are_refused(told, message):
    """Before anything is connected to."""
    with pytest.raises(ConfigError) as caught:
        SshProvisioner(**told)

    assert str(caught.value).startswith(message)


def test_nodes_lie_on_machines_of_their_own_at_private_addresses(on, stand_in_hosts):
    """In the order of the options, and the load generator on its own machine; a second cluster lies beside them."""
    run = on("host1", "host2", "host3", load=["load"])
    hosts, others = run.acquire(THREE), run.acquire(TWO)
    client = run.client(ONE)

    assert [host.machine for host in (*hosts, *others)] == ["host1", "host2", "host3", "host1", "host2"]
    assert [host.address for host in hosts] == [stand_in_hosts[host.machine].private_address for host in hosts]
    assert client.machine == "load"
    assert len({host.directory for host in (*hosts, *others)}) == 5
    assert run.environment["load"] == "load"


def test_more_nodes_than_machines_are_refused(on):
    """The message has both numbers."""
    with pytest.raises(Unsupported) as caught:
        on("host1", "host2").acquire(THREE)

    assert str(caught.value).endswith("has 3 nodes, each on a separate machine, but --db-host names 2")


def test_a_machine_is_used_by_one_run_at_a_time(on, monkeypatch):
    """Another one waits, says for what, and takes it when it is free."""
    monkeypatch.setattr(ssh, "WAIT_SECONDS", 0.05)
    first, second, lines, got = on("host1"), on("host1"), [], []
    first.acquire(ONE)
    second.progress = lines.append
    waiting = threading.Thread(target=lambda: got.extend(second.acquire(ONE)))
    waiting.start()
    while not lines:
        waiting.join(0.01)
        assert waiting.is_alive()
    assert got == []
    first.close()
    waiting.join(60)

    assert lines[0].startswith("waiting for machines: another run uses host1")
    assert [host.machine for host in got] == ["host1"]


def test_waiting_for_machines_takes_no_time_of_a_run(on, monkeypatch):
    """The clock of its turns stands still, as it does where a run waits for this machine."""
    monkeypatch.setattr(ssh, "WAIT_SECONDS", 0.01)
    first, second, read = on("host1"), on("host1"), []
    first.acquire(ONE)
    clock = Turns.on(second.offers, "-", str).clock

    def over():
        read.append((clock(), time.monotonic()))
        return "used" if len(read) == 5 else ""

    second.over = over
    with pytest.raises(Inconclusive, match="host1"):
        second.acquire(ONE)
    (clock_before, before), *_, (clock_after, after) = read

    assert clock_after - clock_before < 1e-3 < after - before


def test_machines_that_stay_in_use_end_the_waiting(on):
    """After the time of ``--db-wait`` the error names them."""
    first, second = on("host1"), on("host1")
    first.acquire(ONE)

    with wait.lock_limit(0.0, "--db-wait"), pytest.raises(LockHeld, match=r"--db-wait.*machines.*host1"):
        second.acquire(ONE)


def test_hosts_of_a_cluster_have_the_same_ports_and_other_clusters_others(on):
    """Sysbench reaches several hosts at one port only; servers side by side on a machine have ports of their own."""
    run = on("host1", "host2")
    (one, other), (beside, _) = run.acquire(TWO), run.acquire(TWO)

    first, second = [[host.port(3306), host.port(4567), host.port(3306)] for host in (one, other)]
    assert first == second
    assert len({*first, beside.port(3306), beside.port(4567)}) == 5


def test_a_run_whose_time_is_used_waits_no_longer(on):
    """The claim is inconclusive then."""
    first, second = on("host1"), on("host1")
    first.acquire(ONE)
    second.over = lambda: "the run's budget of 5 s is spent (--db-run-budget)"

    with pytest.raises(Inconclusive, match=r"while it waited for machines: others use host1"):
        second.acquire(ONE)


def test_workers_take_different_machines(on, monkeypatch):
    """Each takes as many as its cluster has nodes, from the free ones, and more when a later cluster needs them."""
    first, second = on("host1", "host2", "host3"), on("host1", "host2", "host3")
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw1")
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    assert [host.machine for host in second.acquire(ONE)] == ["host2"]
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    assert [host.machine for host in first.acquire(ONE)] == ["host1"]
    assert [host.machine for host in first.acquire(TWO)] == ["host1", "host3"]

    with pytest.raises(Unsupported, match="needs 1 more machine than this process has, and others use host2"):
        first.acquire(THREE)


def test_over_a_slow_line_programs_go_from_machine_to_machine(on, tmp_path, monkeypatch):
    """The first one gets them from us, and the others from it, unless they have them already."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "program").write_text("#!/bin/sh\necho it runs\n")
    (tmp_path / "bin" / "program").chmod(0o755)
    run = on("host1", "host2", "host3")
    run._programs._slow = 0.0  # every line is slow
    hosts, sent, send = run.acquire(THREE), [], Machine.send
    monkeypatch.setattr(Machine, "send", lambda machine, tree: [sent.append(machine.target), send(machine, tree)])
    hosts[1].bring(tmp_path)

    assert [host.run([f"{tmp_path}/bin/program"]).stdout for host in hosts] == ["it runs\n"] * 3
    assert sent == ["host2"]
    run.close()
    again = on("host1", "host2", "host3").acquire(THREE)
    again[0].bring(tmp_path)
    assert [host.run([f"{tmp_path}/bin/program"]).stdout for host in again] == ["it runs\n"] * 3
    assert sent == ["host2"]


def test_a_machine_that_is_gone_is_said_by_name(on, stand_in_hosts):
    """Its next host cannot be made, and the others can."""
    run = on("host3", "host1")
    hosts = run.acquire(TWO)
    stand_in_hosts["host1"].ssh("pkill -KILL -f dbcluster-agent")
    while not (hosts[1].why_lost() and run._machines["host1"].session.agent.gone):
        threading.Event().wait(0.01)

    assert hosts[1].why_lost().startswith("machine host1 cannot be reached any more")
    with pytest.raises(ProvisionError, match="machine host1 cannot be reached any more"):
        run.acquire(TWO)
    assert [host.machine for host in run.acquire(ONE)] == ["host3"]
