"""What a host is without any power of its own, and how a power without a default is asked for."""

from __future__ import annotations

import os
import shutil
import socket
import threading

import pytest

from pytest_dbcluster import wait
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.host import Completed, Falls, Host, Partitions, Pauses, Process, at_once
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.provisioners.container.host import ContainerHost
from pytest_dbcluster.hosts.provisioners.fake import FakeHost, FakeProcess
from pytest_dbcluster.system import probes

NOBODY = 2**22 + 1  # more than any kernel gives (proc(5), pid_max)


class Plain(Host):
    """A host that only does what every host has to do."""

    def run(self, command, *, seconds=60.0, environment=None, text=""):
        """Nothing."""
        return Completed("", "", 0.0)

    def spawn(self, command, *, log, directory, environment=None):
        """Nothing."""

    def push(self, content, path, *, mode=0o600):
        """Nothing."""

    def pull(self, path, *, offset=0):
        """Nothing."""

    def copy_tree(self, source, target, *, durable=False):
        """Nothing."""

    def remove_tree(self, path):
        """Nothing."""


class Stalling(Plain):
    """A host that can also be frozen."""

    def pause(self):
        """Nothing."""

    def resume(self):
        """Nothing."""


def test_a_plain_host_has_the_defaults_of_all_optional_methods():
    """The usual ports, no limit, a CPU time that nobody knows, and no programs of its own."""
    plain = Plain()

    assert plain.port(3306) == 3306
    assert plain.limit_reached() == ""
    assert plain.cpu_seconds() is None
    assert plain.command_line(["mysql"]) == []
    assert plain.machine == ""


def test_a_host_of_this_machine_sees_its_files_and_has_its_disk_and_cpus(tmp_path):
    """It needs nothing brought, has the free space of the disk of its directory, and the CPUs that we may use."""
    plain = Plain()
    plain.directory = str(tmp_path)

    plain.bring(tmp_path / "never-made")

    assert 0 < plain.free_bytes() <= shutil.disk_usage(tmp_path).total
    assert plain.cores() == probes.usable_cores()
    assert list(tmp_path.iterdir()) == []


def test_the_cpu_time_of_a_program_is_that_of_its_process_here():
    """It grows while the program works; a program that this machine cannot see has none that we know."""

    class Seen(FakeProcess):
        cpu_seconds = Process.cpu_seconds

    before = Seen(os.getpid()).cpu_seconds()
    wait.until(lambda: [] if Seen(os.getpid()).cpu_seconds() > before else ["no CPU time"], "this process", seconds=30)

    assert Seen(0).cpu_seconds() is None
    assert Seen(NOBODY).cpu_seconds() is None


@pytest.mark.parametrize("away", [{"machine": "10.0.0.7"}, {"connects": socket.create_connection}])
def test_hosts_that_are_reached_over_a_network_are_asked_at_once(away):
    """Each answers when all have been asked; the answers are in the order of the hosts."""
    hosts = [FakeHost(name) for name in "abc"]
    vars(hosts[1]).update(away)
    together = threading.Barrier(3)

    assert at_once(hosts, lambda host: together.wait(60) < 3 and host.name, hosts) == ["a", "b", "c"]


def test_hosts_of_this_machine_are_asked_in_turn_without_threads():
    """A thread costs more than the answer waits."""
    hosts = [FakeHost("a"), FakeHost("b")]

    assert at_once(hosts, lambda host: threading.current_thread(), hosts) == [threading.current_thread()] * 2


def test_the_error_of_the_first_host_is_raised_when_all_have_answered():
    """Nobody is still asked afterwards."""
    hosts, ended = [FakeHost("a"), FakeHost("b")], []
    hosts[0].machine = "10.0.0.7"

    def ask(host):
        if host is hosts[0]:
            raise ProvisionError("gone")
        ended.append(host.name)

    with pytest.raises(ProvisionError, match="gone"):
        at_once(hosts, ask, hosts)
    assert ended == ["b"]


@pytest.mark.parametrize("base", [Host, Process])
def test_what_every_host_and_process_has_to_do_is_abstract(base):
    """One that forgets a method cannot be made."""
    with pytest.raises(TypeError, match="abstract"):
        type("Half", (base,), {})()


def test_a_power_without_a_default_is_asked_for_by_its_protocol():
    """Whoever has its methods has the power."""
    assert isinstance(Stalling(), Pauses)
    assert not isinstance(Stalling(), Partitions)
    assert not isinstance(Plain(), Pauses)
    assert not isinstance(FakeHost(), Falls)


def test_containers_stall_part_and_fall_and_directories_do_not():
    """Of these three hosts only a container is a machine of its own."""
    for power in (Pauses, Partitions, Falls):
        assert issubclass(ContainerHost, power)
        assert not issubclass(LocalHost, power)
        assert not issubclass(FakeHost, power)


def test_what_is_there_already_is_not_written_again():
    """A file that every round needs costs one exchange with a host elsewhere, not one a round."""
    host = FakeHost("node1")
    writes, push = [], host.push
    host.push = lambda content, path: [writes.append(content), push(content, path)]
    for content in (b"one", b"one", b"two", b"two", b"one"):
        host.push_once(content, f"{host.directory}/client.cnf")

    assert writes == [b"one", b"two", b"one"]
    assert host.pull(f"{host.directory}/client.cnf") == b"one"
