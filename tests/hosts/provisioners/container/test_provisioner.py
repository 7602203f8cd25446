"""Hosts that are containers, on a real engine; most of them of an image that has little more than a shell."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import CommandFailed, ConfigError, ProvisionError
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.container import engine
from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner
from pytest_dbcluster.network import NetworkNeeds
from pytest_dbcluster.spec import ClusterSpec, HostNeeds, ReleaseName
from tests.support import engines, paths
from tests.support.engines import ours

RELEASE = ReleaseName("mariadb", "10.11")
SPEC = ClusterSpec("standalone", release=RELEASE)

pytestmark = pytest.mark.skipif(bool(engines.missing()), reason=engines.missing() or "an engine answers")


@pytest.fixture(scope="module")
def answering():
    """The engine."""
    with contextlib.closing(engine.connect()) as made:
        yield made


@pytest.fixture(scope="module")
def provisioner(answering):
    """Containers of the tiny image."""
    made = ContainerProvisioner(chosen={str(RELEASE): engines.tiny(answering)})
    yield made
    made.close()


@pytest.fixture(scope="module")
def host(provisioner):
    """One container, which tests leave as usable as they found it."""
    (made,) = provisioner.acquire(SPEC)
    yield made
    provisioner.give_back([made])


def test_a_command_runs_in_the_container(host):
    """It sees the container's own programs and the shared directory, and runs as who we are."""
    host.push(b"some words", f"{host.directory}/words")

    assert host.run(["cat", "words"]).stdout == "some words"
    assert "bin" in host.run(["ls", "/"]).stdout.split()
    assert host.run(["cat"], text="an input").stdout == "an input"
    assert host.run(["sh", "-c", "echo $WORD"], environment={"WORD": "x y"}).stdout == "x y\n"
    host.run(["sh", "-c", "echo > made"])
    assert Path(host.directory, "made").stat().st_uid == os.getuid()


def test_a_failing_command_says_what_it_said(host):
    """Status and words are those of the command, and it is named."""
    with pytest.raises(CommandFailed, match=r"^sh -c echo why >&2; exit 3 on node1 ended with 3: why"):
        host.run(["sh", "-c", "echo why >&2; exit 3"])


def test_a_command_that_takes_too_long_is_ended(host):
    """Nothing of it runs on, and the container stays."""
    with pytest.raises(CommandFailed, match=r"did not end within 0\.2 s"):
        host.run(["sleep", "55"], seconds=0.2)

    assert host.run(["sh", "-c", "for one in /proc/[0-9]*; do cat $one/cmdline; done"]).stdout.count("sleep") == 0


def test_a_program_is_seen_from_here(host):
    """Its process number is this machine's, so that its CPU time can be read."""
    process = host.spawn(["sleep", "66"], log=f"{host.directory}/log", directory=host.directory)

    assert process.status() is None
    words = psutil.Process(process.pid).cmdline  # it becomes the program a moment after it has begun
    wait.until(lambda: [] if words() == ["sleep", "66"] else words(), "the program", seconds=60)
    process.signal(signal.SIGTERM)
    wait.until(lambda: [] if process.status() is not None else ["it runs"], "its end", seconds=60)
    assert process.status() == -signal.SIGTERM


def test_a_paused_host_goes_on_later(host):
    """Nothing in it moves while it is paused, and nothing is lost."""
    host.pause()
    with pytest.raises(CommandFailed, match="did not end within"):
        host.run(["sh", "-c", "echo > paused"], seconds=0.3)
    assert not Path(host.directory, "paused").exists()

    host.resume()

    assert host.run(["sh", "-c", "echo again"]).stdout == "again\n"


def runs_on(pid):
    """Whether a process has not ended; one that nobody has asked about yet keeps its number."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_killed_host_has_no_program_left_and_can_be_used_again(host):
    """All of its programs have ended by SIGKILL; its files are there."""
    programs = [host.spawn(["sleep", "88"], log=f"{host.directory}/log", directory=host.directory) for _ in range(3)]
    pids = [program.pid for program in programs]

    host.kill()

    assert [program.status() for program in programs] == [-signal.SIGKILL] * 3
    wait.until(lambda: [f"{pid}" for pid in pids if runs_on(pid)], "their end", seconds=60)
    assert "log" in host.run(["ls"]).stdout.split()


def test_a_partitioned_host_is_out_of_reach_until_it_heals(host):
    """It has no network, but still runs commands. Afterwards it has its former address.

    The kernel may still look for the address when the network is back: it then refuses connections for a second.
    """
    assert engines.reachable(host.address) is not None

    host.partition()
    assert engines.reachable(host.address) is None
    assert host.run(["sh", "-c", "echo here"]).stdout == "here\n"

    host.heal()
    wait.until(lambda: [host.address] if engines.reachable(host.address) is None else [], "the host", seconds=30)


def test_hosts_of_one_run_have_addresses_of_one_network(provisioner):
    """Each has its own, with its node's name as that of its host, and gives it back."""
    hosts = provisioner.acquire(ClusterSpec("galera", nodes=3, release=RELEASE))

    assert len({host.address for host in hosts}) == 3
    names = [host.run(["sh", "-c", "read name </proc/sys/kernel/hostname; echo $name"]).stdout for host in hosts]
    assert names == ["node1\n", "node2\n", "node3\n"]
    provisioner.give_back(hosts)


def test_a_released_host_leaves_nothing(provisioner, answering):
    """Its container and its directory are gone; the network is the run's."""
    (host,) = provisioner.acquire(SPEC)
    name, directory = host.container.name, Path(host.directory)
    assert name in ours(answering, provisioner.run_id)

    provisioner.give_back([host])

    assert name not in ours(answering, provisioner.run_id)
    assert not directory.exists()


def test_the_end_of_a_run_leaves_nothing(answering):
    """No container, no network, no directory."""
    made = ContainerProvisioner(chosen={str(RELEASE): engines.tiny(answering)})
    made.acquire(SPEC)
    assert len(ours(answering, made.run_id)) == 2

    made.close()

    assert ours(answering, made.run_id) == []
    assert not made.directory.exists()


OWNER = """
import sys, time
from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
made = ContainerProvisioner(chosen={{"mariadb:10.11": "{tiny}"}})
made.acquire(ClusterSpec("galera", nodes=2, release=ReleaseName("mariadb", "10.11")))
print(made.run_id, flush=True)
time.sleep(600)
"""


def test_a_killed_owner_leaves_nothing(answering):
    """After SIGKILL of the process that made them, containers and network are gone within seconds."""
    text = OWNER.format(tiny=engines.tiny(answering))
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as owner:
        run = owner.stdout.readline().strip()
        assert len(ours(answering, run)) == 3
        owner.kill()

    wait.until(lambda: ours(answering, run), "the end of what it made", seconds=30)
    wait.until(lambda: [run] if (runs.directory() / run).exists() else [], "the end of its directory", seconds=10)


def test_reap_removes_what_a_killed_supervisor_left(answering, data):
    """Owner and supervisor killed at once leave a network, which the next run or reap removes."""
    text = OWNER.format(tiny=engines.tiny(answering))
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as owner:
        run = owner.stdout.readline().strip()
        children = psutil.Process(owner.pid).children()
        for process in [*children, owner]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
    assert psutil.wait_procs(children, timeout=60)[1] == []
    assert f"dbcluster-{run}" in ours(answering, run)

    runs.reap()

    assert ours(answering, run) == []
    assert not (runs.directory() / run).exists()


def test_a_missing_image_says_how_to_make_it(answering):
    """The command that makes it, and the option that takes another one."""
    made = ContainerProvisioner()
    with pytest.raises(ProvisionError) as caught:
        made.acquire(ClusterSpec("standalone", release=ReleaseName("mariadb", "9.99")))
    made.close()

    assert "has no image pytest-dbcluster/mariadb:9.99: `dbcluster image build mariadb:9.99`" in str(caught.value)
    assert ours(answering, made.run_id) == []


def test_a_misspelt_image_names_itself():
    """What was asked for, and what the engine says about it."""
    made = ContainerProvisioner(chosen={"mariadb:10.11": "localhost:1/no-such-image:1"})
    with pytest.raises(ProvisionError, match=r"could not find image localhost:1/no-such-image:1 here, or pull it"):
        made.acquire(SPEC)
    made.close()


def test_a_container_that_dies_at_start_says_why(answering):
    """An image without a shell is no host; nothing of the attempt stays."""
    answering.client.api.import_image_from_data(engines.empty(), repository="pytest-dbcluster-tests/empty:1")
    made = ContainerProvisioner(chosen={"mariadb:10.11": "pytest-dbcluster-tests/empty:1"})
    with pytest.raises(ProvisionError, match=r"/bin/sh"):
        made.acquire(SPEC)

    assert ours(answering, made.run_id) == [f"dbcluster-{made.run_id}"]
    made.close()
    assert ours(answering, made.run_id) == []


def test_the_installed_server_is_refused():
    """Containers do not see it; the error names the option that helps."""
    with pytest.raises(ConfigError, match=r"^mariadb:path: .* use an image: --db-image NAME:VERSION=IMAGE$"):
        ContainerProvisioner().supply(ReleaseName("mariadb", "path"), print)


def test_an_image_and_a_directory_of_one_release_contradict(tmp_path):
    """Nobody could tell which one was measured."""
    made = ContainerProvisioner(chosen={"mariadb:11.4": "some/image:1"})

    with pytest.raises(ConfigError, match=rf"^mariadb:11\.4 has both the image some/image:1 and {tmp_path}; give one$"):
        made.supply(ReleaseName("mariadb", "11.4", str(tmp_path)), print)


def test_limits_are_the_containers(provisioner, answering):
    """Cores, memory and write operations of a spec are what the engine enforces."""
    needs = HostNeeds(cores=0.5, memory=64 * 2**20, iops=100)
    (host,) = provisioner.acquire(ClusterSpec("standalone", release=RELEASE, needs=needs))
    limits = answering.client.api.inspect_container(host.container.id)["HostConfig"]
    provisioner.give_back([host])

    assert limits["NanoCpus"] == 5 * 10**8
    assert limits["Memory"] == limits["MemorySwap"] == 64 * 2**20
    assert [each["Rate"] for each in limits["BlkioDeviceWriteIOps"]] == [100]


def test_round_trips_between_containers_are_delayed(provisioner):
    """They go through a router; our own connections do not, and a container that was cut off is on the path again."""
    if reason := paths.missing():
        pytest.skip(reason)
    hosts = provisioner.acquire(ClusterSpec("galera", nodes=2, release=RELEASE, needs=HostNeeds(rtt=0.05)))
    path = hosts[0].path
    first = path.measure(NetworkNeeds(rtt=0.05))
    ours = min(engines.reachable(hosts[0].address) for _ in range(5))
    hosts[0].partition()
    hosts[0].heal()
    again = path.measure(NetworkNeeds(rtt=0.02))
    provisioner.give_back(hosts)

    assert [(link.pair, link.asked) for link in (*first, *again)] == [
        (("node1", "node2"), 0.05), (("node1", "node2"), 0.02),
    ]  # fmt: skip
    assert ours < 0.04


def test_distance_between_containers_takes_root(provisioner, monkeypatch):
    """Without root the message says what needs none."""
    monkeypatch.setattr(provisioner, "offers", provisioner.offers - {"netem"})

    for fact in ("needs rtt=0.005", "only root", "--db-provisioner local and vm"):
        assert fact in provisioner.unmet(SPEC.with_needs(rtt=0.005))
