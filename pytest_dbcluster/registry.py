"""Names of implementations: a file in a folder is a name, and an outside package may add its own."""

from __future__ import annotations

import difflib
import importlib.metadata
import importlib.util
import pkgutil
from collections.abc import Sequence

from pytest_dbcluster.errors import ConfigError, Unsupported


def names(package: str) -> dict[str, str]:
    """Every implementation of a folder as name -> module, with those of outside entry points.

    The entry-point group is the package's name, such as ``pytest_dbcluster.topologies``.
    """
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or []) if spec else []
    found = {entry.name: f"{package}.{entry.name}" for entry in pkgutil.iter_modules(places)}
    for entry in importlib.metadata.entry_points(group=package):
        found.setdefault(entry.name, entry.value)
    return dict(sorted(found.items()))


def unknown(kind: str, name: str, known: Sequence[str]) -> ConfigError:
    """The error for a name outside a closed vocabulary, which lists the vocabulary."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return ConfigError(f"unknown {kind} {name!r}; known: {', '.join(known)}{hint}")


def find(kind: str, package: str, name: str, *, planned: Sequence[str] = ()) -> str:
    """The module of an implementation. Raises ConfigError (unknown) or Unsupported (planned, not built yet)."""
    known = names(package)
    if name in known:
        return known[name]
    if name in planned:
        raise Unsupported(f"{kind} {name!r} is planned and not built yet; built: {', '.join(known)}")
    raise unknown(kind, name, sorted({*known, *planned}))
