"""What a provisioner is without any power of its own."""

from __future__ import annotations

import psutil
import pytest

from pytest_dbcluster.hosts.provisioner import Keeps, Provisioner, name_of
from pytest_dbcluster.hosts.provisioners.container.provisioner import ContainerProvisioner
from pytest_dbcluster.hosts.provisioners.fake import FakeHost, FakeProvisioner
from pytest_dbcluster.hosts.provisioners.local import LocalProvisioner
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import ClusterSpec, ReleaseName


class Plain(Provisioner):
    """A provisioner that only does what every one has to do."""

    offers = frozenset()

    def acquire(self, spec):
        """None."""
        return []

    def give_back(self, hosts):
        """Nothing."""


def test_a_plain_provisioner_has_the_defaults_of_all_optional_methods():
    """No run, no reasons, no programs of its own; what is ours runs on the host itself, and nothing is to be closed."""
    plain, host = Plain(), FakeHost()

    assert (plain.run_id, plain.missing, plain.brings_programs) == ("-", {}, False)
    assert plain.beside(host) is host
    assert plain.close() is None
    assert (plain.remarks, plain.notice()) == ((), "")


def test_the_memory_of_hosts_is_that_of_this_machine_unless_they_are_elsewhere():
    """Whether a cluster fits is asked of the provisioner."""
    memory = Plain().memory()

    assert 0 < memory.available < memory.total == psutil.virtual_memory().total


def test_the_load_generator_has_a_host_as_nodes_have():
    """Unless a provisioner has other hosts for it."""
    provisioner = FakeProvisioner()
    client = provisioner.client(ClusterSpec("standalone", name="client"))

    assert provisioner.hosts == [client]


def test_the_load_generator_has_one_host_unless_a_provisioner_has_more():
    """That of ``client``."""
    provisioner = FakeProvisioner()
    clients = provisioner.clients(ClusterSpec("standalone", name="client"))

    assert len(clients) == 1
    assert provisioner.hosts == [*clients]


def test_programs_are_those_of_this_machine_unless_the_hosts_bring_them(monkeypatch):
    """The release is looked up here, with the same progress."""
    asked = []
    monkeypatch.setattr(find, "find", lambda name, **how: asked.append((name, how)) or "found")
    name = ReleaseName("mariadb", "10.11")

    assert Plain().supply(name, print) == "found"
    assert asked == [(name, {"progress": print, "portable": False})]


def test_what_every_provisioner_has_to_do_is_abstract():
    """One that forgets a method cannot be made."""
    with pytest.raises(TypeError, match="abstract"):
        type("Half", (Provisioner,), {})()


def test_only_provisioners_with_a_run_can_leave_it_running():
    """A run has an id and a directory by which it is ended later."""
    assert isinstance(LocalProvisioner(), Keeps)
    assert isinstance(ContainerProvisioner(), Keeps)
    assert not isinstance(FakeProvisioner(), Keeps)
    assert not isinstance(Plain(), Keeps)


def test_provisioners_have_the_names_of_their_option():
    """The folder or file of a provisioner is its name."""
    assert name_of(LocalProvisioner()) == "local"
    assert name_of(FakeProvisioner()) == "fake"
    assert name_of(object.__new__(ContainerProvisioner)) == "container"
