"""``dbcluster cache``: what the cache holds, and its removal."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster import formatting, registry
from pytest_dbcluster.cli.text import known_size, tell
from pytest_dbcluster.clusters.servers import data_template
from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.container import images
from pytest_dbcluster.reporting.tables import layout
from pytest_dbcluster.system import cache
from pytest_dbcluster.testbed import datasets

FOLDERS = ("releases", "images", "templates", "stored")  # of the cache; data sets are in stored/


@dataclasses.dataclass(frozen=True)
class Cached:
    """An entry of the cache; ``holds`` is said of data sets and images, ``used``, a time, of the former."""

    path: Path
    size: int
    holds: str = ""
    used: float | None = None

    @property
    def name(self) -> str:
        """Its name, as ``dbcluster cache`` lists it."""
        return str(self.path.relative_to(cache.root()))


def cached() -> list[Cached]:
    """Everything in the cache that can be made again: releases, images, templates, data sets, readings."""
    paths = [path for folder in FOLDERS for path in sorted((cache.root() / folder).glob("[!.]*")) if path.is_dir()]
    found = [_cached(path) for path in paths]
    references = cache.root() / "references"
    return [*found, Cached(references, cache.size(references))] if any(references.glob("*.json")) else found


def _cached(path: Path) -> Cached:
    image = images.read(path) if path.parent == images.directory() else None
    if image:
        return Cached(path, cache.size(path), f"container image of {image.release} {image.exact}")
    data_set = datasets.read_dataset(path) if path.parent == datasets.datasets_directory() else None
    if data_set is None:
        return Cached(path, cache.size(path))
    return Cached(path, data_set.size, f"data set {data_set.name}, {data_set.release}", data_set.used)


def clean(names: Sequence[str] = (), progress: Report = lambda _: None) -> list[Cached]:
    """Remove the named entries of the cache, all without a name; what was removed.

    Raises ConfigError for a name that is not listed, and as soon as a run uses the cache; ProvisionError with every
    entry that could not be removed, or not wholly, after the others. Lock files stay: a process may be waiting for one.
    """
    _refuse_in_use()
    known = {one.name: one for one in cached()}
    for name in names:
        if name not in known:
            raise registry.unknown("cache entry", name, list(known))
    wanted = [known[name] for name in names or known]
    removed: list[Cached] = []
    problems: list[str] = []
    for number, one in enumerate(wanted):
        try:
            _remove(one.path, progress)
            removed.append(one)
        except ProvisionError as error:
            problems.append(str(error))
        except ConfigError as error:
            stays = f"it began meanwhile, so what is left stays: {_names(wanted[number:])}"
            raise ConfigError("\n".join([str(error), stays, *problems, *_said(removed)])) from error
    for folder in FOLDERS:
        for left in cache.sweep(cache.root() / folder).values():
            if left not in problems:
                progress(left)
    if problems:
        raise ProvisionError("\n".join([*problems, *_said(removed)]))
    return removed


def _said(removed: Sequence[Cached]) -> list[str]:
    return [f"removed: {_names(removed)}"] if removed else []


def _names(entries: Sequence[Cached]) -> str:
    return ", ".join(one.name for one in entries)


def _refuse_in_use() -> None:
    using = [run.run_id for run in runs.known() if run.kept or run.alive]
    if using:
        raise ConfigError(f"the cache is in use by run {', '.join(using)}; end it first: dbcluster ps, dbcluster down")


def _remove(path: Path, progress: Report) -> None:
    """Remove an entry. Raises ProvisionError where it cannot be, ConfigError when a run has begun by then."""
    if path.parent == cache.root():
        _refuse_in_use()
        try:
            for file in path.glob("*.json"):
                file.unlink(missing_ok=True)
        except OSError as error:
            raise ProvisionError(
                f"{path} in the cache cannot be emptied: {error.strerror}; only who may write it can do that"
            ) from error
        return
    with _held(path, progress):
        _refuse_in_use()  # again: the lock may have been waited for, for minutes
        cache.discard(path)


def _held(path: Path, progress: Report) -> contextlib.AbstractContextManager[object]:
    """The lock of an entry, which its maker holds too."""
    if path.parent == cache.root() / "templates":
        return data_template.lock(path, progress)
    name = path.name
    if path.parent == images.directory():
        name = images.lock_name(name)
    elif path.parent == datasets.datasets_directory():
        name = datasets.lock_name(path)
    return cache.lock(name, progress=progress, does="makes")


def run_cache(arguments: argparse.Namespace) -> int:
    """``dbcluster cache [list|clean] [ENTRY ...]``: what the cache holds, or its removal."""
    if arguments.names and arguments.what == "list":
        raise ConfigError("dbcluster cache list takes no names: it lists everything")
    rows = clean(arguments.names, tell) if arguments.what == "clean" else cached()
    now = time.time()
    shown = [
        (one.name, known_size(one.size), one.holds, f"{formatting.duration(now - one.used)} ago" if one.used else "")
        for one in rows
    ]
    total = formatting.size(sum(one.size for one in rows))
    print(layout.plain(("removed" if arguments.what == "clean" else "entry", "size", "holds", "used"), shown))
    print(f"{total} in {cache.root()}")
    return 0
