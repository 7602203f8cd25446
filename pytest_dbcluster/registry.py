"""Find an implementation by its name: a module in a folder of the package, or an entry point of another package."""

from __future__ import annotations

import difflib
import importlib.metadata
import importlib.util
import pkgutil
from collections.abc import Sequence

from pytest_dbcluster.errors import ConfigError, Unsupported

# Kind -> the entry-point group for other packages, and the folder of this package.
KINDS = {
    "topology": ("pytest_dbcluster.topologies", "pytest_dbcluster.clusters.topologies"),
    "proxy": ("pytest_dbcluster.proxies", "pytest_dbcluster.clusters.proxies"),
    "provisioner": ("pytest_dbcluster.provisioners", "pytest_dbcluster.hosts.provisioners"),
}


def names(kind: str) -> dict[str, str]:
    """Name -> module of every implementation of a kind, such as ``topology``, with those of other packages.

    A module of this package wins over an entry point of the same name. Raises KeyError for an unknown kind.
    """
    group, folder = KINDS[kind]
    spec = importlib.util.find_spec(folder)
    paths = list(spec.submodule_search_locations or []) if spec else []
    modules = {entry.name: f"{folder}.{entry.name}" for entry in pkgutil.iter_modules(paths)}
    for entry in importlib.metadata.entry_points(group=group):
        modules.setdefault(entry.name, entry.value)
    return dict(sorted(modules.items()))


def unknown(kind: str, name: object, known: Sequence[str]) -> ConfigError:
    """Return a ConfigError for an unknown name, which lists the known names and suggests the closest.

    ``name`` is what the user gave, of any type.
    """
    close = difflib.get_close_matches(str(name), known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return ConfigError(f"unknown {kind} {name!r}; known: {', '.join(known)}{hint}")


def find(kind: str, name: str, *, planned: Sequence[str] = ()) -> str:
    """The module of an implementation.

    Raises Unsupported for a name in ``planned`` that does not exist yet, and ConfigError for any other unknown name.
    """
    known = names(kind)
    if name in known:
        return known[name]
    if name in planned:
        raise Unsupported(f"{kind} {name!r} is planned but does not exist yet; available: {', '.join(known)}")
    raise unknown(kind, name, sorted({*known, *planned}))
