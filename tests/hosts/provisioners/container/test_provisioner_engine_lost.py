"""An engine that goes away in mid-run, and comes back: a daemon of the test's own, in a network of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.errors import CommandFailed, ProvisionError
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.container import engine
from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec, ReleaseName
from tests.support import engines
from tests.support.command import dbcluster, left

RELEASE = ReleaseName("mariadb", "10.11")
SPEC = ClusterSpec("galera", nodes=2, release=RELEASE)
NEEDED = [program for program in ("dockerd", "unshare", "setpriv") if not shutil.which(program)]

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="a daemon of one's own takes root"),
    pytest.mark.skipif(bool(NEEDED), reason=f"no {', '.join(NEEDED)} here"),
]


class Daemon:
    """A dockerd that shares nothing with the machine's own one.

    It has namespaces of its own: with ``--bridge=none`` a daemon removes docker0, whosever that is, and what it has
    mounted goes with its mount namespace when it is killed.
    """

    def __init__(self, place):
        self.place, self.url = place, f"unix://{place}/socket"
        self.process = None

    def start(self):
        """Start it, again if need be, and wait until it answers."""
        place = self.place
        (place / "pid").unlink(missing_ok=True)
        words = ["--data-root", f"{place}/data", "--exec-root", f"{place}/exec", "--pidfile", f"{place}/pid"]
        words += ["--host", self.url, "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-masq=false"]
        with (place / "log").open("ab") as log:
            # setpriv: the kernel kills the daemon when this process is killed.
            command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "dockerd", *words]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait.until(self.problems, "the daemon", seconds=30)

    def problems(self):
        """Why it does not answer."""
        assert self.process.poll() is None, (self.place / "log").read_text()
        try:
            engine.connect().close()
        except ProvisionError as error:
            return [str(error)]
        return []

    def end(self, number):
        """End it with a signal, and wait for its containerd, which the next one would take for its own."""
        containerd = int((self.place / "exec" / "containerd" / "containerd.pid").read_text())
        self.process.send_signal(number)
        self.process.wait(30)
        wait.until(lambda: ["it runs"] if psutil.pid_exists(containerd) else [], "the end of containerd", seconds=60)

    def unmount(self):
        """Undo the mounts that a killed daemon has left, which the next one takes for somebody else's."""
        points = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        for point in sorted((point for point in points if Path(point).is_relative_to(self.place)), reverse=True):
            subprocess.run(["umount", point], check=True)


@pytest.fixture(scope="module")
def daemon():
    """A daemon that has the tiny image and is the engine of these tests, which leave it running.

    Its path leaves room for the path of a socket, of at most 107 bytes (unix(7)).
    """
    short = tempfile.TemporaryDirectory(prefix="dbcluster-test-", ignore_cleanup_errors=True)
    with short as place, pytest.MonkeyPatch.context() as patch:
        made = Daemon(Path(place))
        patch.setenv("DOCKER_HOST", made.url)
        made.start()
        with contextlib.closing(engine.connect()) as answering:
            engines.tiny(answering)
        yield made
        if made.process.poll() is not None:
            made.start()  # it ends what the killed one has left: a shim for each container
        made.end(signal.SIGTERM)
        made.unmount()


@pytest.fixture
def provisioner(daemon, data):
    """Containers of the tiny image."""
    made = ContainerProvisioner(chosen={str(RELEASE): engines.TINY})
    yield made
    made.close()


def test_the_next_run_removes_what_a_lost_engine_has_kept_and_nothing_else(daemon, provisioner):
    """Not what belongs to a run that has its directory."""
    provisioner.acquire(SPEC)
    lost = runs.directory() / "1057aaaa"
    with contextlib.closing(engine.connect()) as answering:
        engine.network(answering, lost, "10.127.0.0/24")
        other = ContainerProvisioner(chosen={str(RELEASE): engines.TINY})
        other.acquire(SPEC)
        other.close()

        assert engines.ours(answering, lost.name) == []
        assert len(engines.ours(answering, provisioner.run_id)) == 3


def test_a_daemon_that_hangs_is_waited_for_so_long(daemon, provisioner):
    """A stopped daemon answers nobody: commands and requests end at their limits, and go on when it does."""
    (host, _) = provisioner.acquire(SPEC)
    host._engine.client.api.timeout = 0.5
    daemon.process.send_signal(signal.SIGSTOP)
    time.sleep(0.1)
    try:
        with pytest.raises(ProvisionError, match=r"has not answered in 0\.5 s \(request to docker: pause container"):
            host.pause()
        with pytest.raises(CommandFailed, match=r"did not end within 0\.2 s"):
            host.run(["ls"], seconds=0.2)
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def test_a_daemon_that_dies_is_named_and_leaves_nothing_when_it_is_back(daemon, provisioner):
    """Every call says that it is gone, giving back and closing end all the same, and reap removes the network later."""
    hosts = provisioner.acquire(SPEC)
    first, second = hosts
    sleep = {"log": f"{first.directory}/log", "directory": first.directory}
    first.spawn(["sleep", "500"], **sleep)
    node = Node("node1", first, Release("mariadb:10.11", "mariadb", "10.11.19", daemon.place), 3306, "")
    node.process = first.spawn(["sleep", "501"], **sleep)

    daemon.end(signal.SIGKILL)
    wait.until(lambda: [] if first.agent.gone and second.agent.gone else ["they live"], "the end", seconds=60)

    gone = rf"the container engine on {daemon.place}/socket is gone"
    calls = [
        lambda: first.run(["ls"]), lambda: first.spawn(["sleep", "5"], **sleep), first.pause, first.resume, first.kill,
        first.partition, first.heal, lambda: provisioner.acquire(SPEC), node.alive,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ProvisionError, match=gone):
            call()
    provisioner.give_back([first])
    provisioner.close()
    assert left(provisioner.run_id) == []
    assert not provisioner.directory.exists()

    daemon.start()
    with contextlib.closing(engine.connect()) as answering:
        assert engines.ours(answering, provisioner.run_id) == [f"dbcluster-{provisioner.run_id}"]
        reap = dbcluster("reap")
        assert engines.ours(answering, provisioner.run_id) == []
    said = f"removed containers and networks of dead run {provisioner.run_id}\n"
    assert reap.returncode == 0
    assert said in reap.stdout  # with what else is dead on this machine
