"""Find an implementation by its name: a module in a folder of the package, or an entry point of another package.

Every run of pytest loads this module, so functions import what only they need.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from pytest_dbcluster.errors import ConfigError, Unsupported

# Kind -> the entry-point group for other packages, and the folder of this package.
KINDS = {
    "topology": ("pytest_dbcluster.topologies", "pytest_dbcluster.clusters.topologies"),
    "proxy": ("pytest_dbcluster.proxies", "pytest_dbcluster.clusters.proxies"),
    "provisioner": ("pytest_dbcluster.provisioners", "pytest_dbcluster.hosts.provisioners"),
}

# Kind -> another name for an implementation, and the name here.
ALIASES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "provisioner": {
            "aws": "ec2",
            "docker": "container",
            "kvm": "vm",
            "podman": "container",
            "qemu": "vm",
        },
        "topology": {
            "async": "async_replication",
            "innodb_cluster": "group_replication",
            "replication": "async_replication",
            "single": "standalone",
        },
    }
)
# Kind -> implementations that only tests use: they can be found, but no list has them.
FOR_TESTS: Mapping[str, frozenset[str]] = MappingProxyType({"provisioner": frozenset({"fake"})})
CLOSE = 0.6  # the least likeness of two names, from 0 to 1, for a suggestion


def names(kind: str) -> dict[str, str]:
    """Name -> module of every implementation of a kind, such as ``topology``, with those of other packages.

    A module of this package wins over an entry point of the same name. ``FOR_TESTS`` are left out. Raises KeyError for
    an unknown kind.
    """
    return {name: module for name, module in _all(kind).items() if name not in FOR_TESTS.get(kind, ())}


@functools.cache
def _all(kind: str) -> Mapping[str, str]:
    """Kept, because a look for entry points reads the metadata of every installed package."""
    import importlib.metadata
    import importlib.util
    import pkgutil

    group, folder = KINDS[kind]
    spec = importlib.util.find_spec(folder)
    paths = list(spec.submodule_search_locations or []) if spec else []
    modules = {entry.name: f"{folder}.{entry.name}" for entry in pkgutil.iter_modules(paths)}
    for entry in importlib.metadata.entry_points(group=group):
        modules.setdefault(entry.name, entry.value)
    return MappingProxyType(dict(sorted(modules.items())))


def unknown(kind: str, name: object, known: Iterable[str]) -> ConfigError:
    """Return a ConfigError for an unknown name, which lists the known names and suggests the closest.

    ``name`` is what the user gave, of any type.
    """
    listed = list(known)
    return ConfigError(f"unknown {kind} {name!r}; known: {', '.join(listed)}{suggestion(kind, name, listed)}")


def suggestion(kind: str, name: object, known: Iterable[str], *, close: float = CLOSE) -> str:
    """The end of a message about an unknown name: ``; did you mean container?``; empty if no known name is close.

    The name in ``ALIASES`` wins over names with similar letters. close: the least likeness, from 0 to 1.
    """
    import difflib

    listed = list(known)
    meant = ALIASES.get(kind, {}).get(str(name).lower())
    found = [meant] if meant in listed else difflib.get_close_matches(str(name), listed, n=1, cutoff=close)
    return f"; did you mean {found[0]}?" if found else ""


def find(kind: str, name: str, *, planned: Iterable[str] = ()) -> str:
    """The module of an implementation.

    Raises Unsupported for a name in ``planned`` that does not exist yet, and ConfigError for any other unknown name.
    """
    every, known = _all(kind), names(kind)
    if name in every:
        return every[name]
    if name in planned:
        raise Unsupported(f"{kind} {name!r} is planned but does not exist yet; available: {', '.join(known)}")
    raise unknown(kind, name, sorted({*known, *planned}))
