"""Names of implementations are the files of a folder, and what an outside package adds."""

from __future__ import annotations

import importlib.metadata

import pytest

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError, Unsupported

PACKAGE = "pytest_dbcluster.topologies"


def test_a_file_is_a_name():
    """Sorted, with the module that it is."""
    found = registry.names(PACKAGE)

    assert found["galera"] == "pytest_dbcluster.topologies.galera"
    assert list(found) == sorted(found)


def test_an_outside_package_adds_names_but_takes_none(monkeypatch):
    """Its entry points are found under the folder's name; ours cannot be replaced."""
    points = [
        importlib.metadata.EntryPoint("ring", "elsewhere.ring", PACKAGE),
        importlib.metadata.EntryPoint("galera", "elsewhere.galera", PACKAGE),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [p for p in points if p.group == group])

    assert registry.find("topology", PACKAGE, "ring") == "elsewhere.ring"
    assert registry.find("topology", PACKAGE, "galera") == "pytest_dbcluster.topologies.galera"


def test_an_unknown_name_lists_the_known_ones():
    """With the nearest one, when there is one."""
    with pytest.raises(ConfigError) as caught:
        registry.find("topology", PACKAGE, "standalon", planned=["drbd"])

    assert str(caught.value) == (
        f"unknown topology 'standalon'; known: {', '.join(sorted([*registry.names(PACKAGE), 'drbd']))}; "
        "did you mean standalone?"
    )
    assert str(registry.unknown("mode", "xyz", ["read", "write"])) == "unknown mode 'xyz'; known: read, write"


def test_a_planned_name_is_not_unknown():
    """It is said to be planned, until its file exists."""
    with pytest.raises(Unsupported, match=r"^topology 'ring' is planned and not built yet; built: "):
        registry.find("topology", PACKAGE, "ring", planned=["ring", "galera"])

    assert registry.find("topology", PACKAGE, "galera", planned=["galera"])


def test_a_folder_that_does_not_exist_has_no_names():
    """Not even an error."""
    assert registry.names("pytest_dbcluster.nothing") == {}
