"""What a host is without any power of its own, and how a power without a default is asked for."""

from __future__ import annotations

import pytest

from pytest_dbcluster.hosts.host import Completed, Falls, Host, Partitions, Pauses, Process
from pytest_dbcluster.hosts.local_host import LocalHost
from pytest_dbcluster.hosts.provisioners.container.host import ContainerHost
from pytest_dbcluster.hosts.provisioners.fake import FakeHost


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
    assert plain.typed(["mysql"]) == []


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
