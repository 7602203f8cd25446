"""Names of implementations are the files of a folder, and what an outside package adds."""

from __future__ import annotations

import importlib.metadata

import pytest

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError, Unsupported
from tests.support.facts import missing

GROUP = "pytest_dbcluster.topologies"


def test_a_file_is_a_name():
    """Sorted, with the module that it is."""
    found = registry.names("topology")

    assert found["galera"] == "pytest_dbcluster.clusters.topologies.galera"
    assert list(found) == sorted(found)


def test_no_list_has_what_only_tests_use():
    """A test finds the fake provisioner by its name, and a user is never offered it."""
    assert registry.find("provisioner", "fake") == "pytest_dbcluster.hosts.provisioners.fake"
    assert "fake" not in registry.names("provisioner")
    with pytest.raises(ConfigError, match=r"^unknown provisioner 'fak'; known: container, ec2, local, ssh, vm$"):
        registry.find("provisioner", "fak")


def test_an_outside_package_adds_names_but_takes_none(monkeypatch):
    """Its entry points are found under the kind's group; ours cannot be replaced."""
    points = [
        importlib.metadata.EntryPoint("ring", "elsewhere.ring", GROUP),
        importlib.metadata.EntryPoint("galera", "elsewhere.galera", GROUP),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [p for p in points if p.group == group])
    monkeypatch.setattr(registry, "_all", registry._all.__wrapped__)

    assert registry.find("topology", "ring") == "elsewhere.ring"
    assert registry.find("topology", "galera") == "pytest_dbcluster.clusters.topologies.galera"


def test_an_unknown_name_lists_the_known_ones():
    """With the nearest one, when there is one."""
    known = ", ".join(sorted([*registry.names("topology"), "hoop"]))
    with pytest.raises(ConfigError) as caught:
        registry.find("topology", "standalon", planned=["hoop"])

    assert missing(caught.value, "unknown topology 'standalon'", f"known: {known};", "did you mean standalone?") == []
    far = str(registry.unknown("mode", "xyz", ["read", "write"]))
    assert missing(far, "unknown mode 'xyz'", "known: read, write") == []
    assert "did you mean" not in far


def test_a_planned_name_is_not_unknown():
    """It is said to be planned, until its file exists."""
    with pytest.raises(Unsupported, match=r"^topology 'ring' is planned but does not exist yet; available: "):
        registry.find("topology", "ring", planned=["ring", "galera"])

    assert registry.find("topology", "galera", planned=["galera"])


@pytest.mark.parametrize(
    ("kind", "name", "meant"),
    [
        ("provisioner", "docker", "container"),
        ("provisioner", "Podman", "container"),
        ("provisioner", "qemu", "vm"),
        ("provisioner", "kvm", "vm"),
        ("provisioner", "aws", "ec2"),
        ("topology", "replication", "async_replication"),
    ],
)
def test_the_name_of_another_program_leads_to_ours(kind, name, meant):
    """The message names our implementation, although its letters are not similar."""
    with pytest.raises(ConfigError) as caught:
        registry.find(kind, name)

    assert str(caught.value).endswith(f"; did you mean {meant}?")


def test_another_name_leads_only_to_what_is_known():
    """A list without the implementation gets no suggestion of it."""
    assert registry.suggestion("provisioner", "docker", ["local", "ssh"]) == ""


@pytest.mark.parametrize("kind", registry.ALIASES)
def test_every_other_name_leads_to_an_implementation(kind):
    """No alias hides an implementation, and each one leads to one that exists."""
    known = set(registry.names(kind))

    assert set(registry.ALIASES[kind].values()) <= known
    assert not set(registry.ALIASES[kind]) & known


@pytest.mark.parametrize("kind", registry.KINDS)
def test_a_kind_has_a_folder_of_ours(kind):
    """Each of them holds implementations alone, so none is without a name."""
    assert registry.names(kind)


@pytest.mark.parametrize("name", [None, 5, ["galera"]])
def test_a_name_of_another_type_is_unknown(name):
    """It is shown as it was given."""
    assert str(registry.unknown("topology", name, ["galera"])).startswith(f"unknown topology {name!r}; known: galera")
