"""``dbcluster cache``: list the entries of the cache, or remove them."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster import formatting, registry
from pytest_dbcluster.cli.text import add_wait, size_text, tell
from pytest_dbcluster.clusters.servers import data_template
from pytest_dbcluster.errors import ConfigError, ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.container import images
from pytest_dbcluster.reporting.resume import earlier_tries
from pytest_dbcluster.reporting.tables import layout
from pytest_dbcluster.system import cache, processes
from pytest_dbcluster.testbed import calibrations, datasets

FOLDERS = ("releases", "images", "templates", "stored", "tools")  # folders of the cache; stored/ has the data sets


@dataclasses.dataclass(frozen=True)
class CacheEntry:
    """An entry of the cache."""

    path: Path
    """Its directory."""

    size: int
    """Size in bytes."""

    holds: str = ""
    """A description of a data set or image, or the problem of an entry; empty for other entries."""

    used: float | None = None
    """Last use of a data set, in seconds since 1970 (UTC); None for other entries."""

    @property
    def name(self) -> str:
        """The name that ``dbcluster cache`` lists: the path in the cache, such as ``releases/sysbench-amd64``."""
        return str(self.path.relative_to(cache.root()))


def list_entries() -> list[CacheEntry]:
    """All entries of the cache: releases, images, templates, data sets, and others, also damaged and unfinished ones.

    Later runs can make all of them again.
    """
    paths = [path for folder in FOLDERS for path in sorted((cache.root() / folder).glob("[!.]*")) if path.is_dir()]
    entries = [_read_entry(path) for path in paths]
    for folder in FOLDERS:
        left = cache.leftovers(cache.root() / folder)
        entries += [CacheEntry(path, cache.size(path), holds) for path, holds in left.items() if _is_left(path)]
    for name, holds in (
        ("references", ""),
        (calibrations.FOLDER, "how far equal clusters differ here"),
        (earlier_tries.FOLDER, "earlier tries of undecided claims"),
    ):
        directory = cache.root() / name
        if any(directory.glob("*.json")):
            entries.append(CacheEntry(directory, cache.size(directory), holds))
    return entries


def _is_left(path: Path) -> bool:
    """Whether no process works on a damaged or unfinished entry."""
    return not path.name.startswith(cache.STAGING) or cache.is_free(_lock_file(cache.entry_of(path)))


def _read_entry(path: Path) -> CacheEntry:
    image = images.read(path) if path.parent == images.directory() else None
    if image:
        return CacheEntry(path, cache.size(path), f"container image of {image.release} {image.exact}")
    data_set = datasets.read_dataset(path) if path.parent == datasets.datasets_directory() else None
    if data_set is None:
        return CacheEntry(path, cache.size(path))
    return CacheEntry(path, data_set.size, f"data set {data_set.name}, {data_set.release}", data_set.used)


def clean(names: Sequence[str] = (), progress: Report = lambda _: None) -> list[CacheEntry]:
    """Remove the named entries of the cache, or all without a name; return the removed entries.

    Raises ConfigError for an unknown name, and as soon as a run uses the cache. If some entries cannot be removed, this
    removes the others and raises ProvisionError. Lock files stay, because a process may wait for one.
    """
    _refuse_in_use()
    known = {entry.name: entry for entry in list_entries()}
    for name in names:
        if name not in known:
            raise registry.unknown("cache entry", name, list(known))
    wanted = [known[name] for name in names or known]
    removed: list[CacheEntry] = []
    problems: list[str] = []
    for number, entry in enumerate(wanted):
        try:
            _remove(entry.path, progress)
            removed.append(entry)
        except ProvisionError as error:
            problems.append(str(error))
        except ConfigError as error:
            stays = f"it began meanwhile, so these entries remain: {_names(wanted[number:])}"
            raise ConfigError("\n".join([str(error), stays, *problems, *_removed_line(removed)])) from error
    for folder in FOLDERS:
        for left in cache.sweep(cache.root() / folder).values():
            if left not in problems:
                progress(left)
    if problems:
        raise ProvisionError("\n".join([*problems, *_removed_line(removed)]))
    return removed


def _removed_line(removed: Sequence[CacheEntry]) -> list[str]:
    return [f"removed: {_names(removed)}"] if removed else []


def _names(entries: Sequence[CacheEntry]) -> str:
    return ", ".join(entry.name for entry in entries)


def _refuse_in_use() -> None:
    """Raise ConfigError if a run or a kept cluster uses the cache, or any program of it runs.

    A run with another DBCLUSTER_DATA_DIR is not listed.
    """
    using = [run.run_id for run in runs.list_runs() if run.kept or run.alive]
    if using:
        raise ConfigError(f"the cache is in use by run {', '.join(using)}; end it first: dbcluster ps, dbcluster down")
    if running := processes.running_below(cache.root()):
        raise ConfigError(
            f"programs of the cache run: {', '.join(running)}; end them first, such as the run with another "
            "DBCLUSTER_DATA_DIR that started them"
        )


def _remove(path: Path, progress: Report) -> None:
    """Remove an entry. Raises ProvisionError if that fails, and ConfigError if a run has begun meanwhile."""
    if path.parent == cache.root():
        _refuse_in_use()
        try:
            for file in path.glob("*.json"):
                file.unlink(missing_ok=True)
        except OSError as error:
            raise ProvisionError(
                f"cannot empty {path} in the cache: {error.strerror}; run the command as the owner of the directory"
            ) from error
        return
    with _lock(path, progress):
        _refuse_in_use()  # again: waiting for the lock may take minutes, and a run may have begun
        cache.discard(path)


def _lock(path: Path, progress: Report) -> contextlib.AbstractContextManager[object]:
    """Hold the lock of an entry; a process that makes the entry also holds it."""
    entry = cache.entry_of(path)
    if entry.parent == cache.root() / "templates":
        return data_template.lock(entry, progress)
    return cache.lock(_lock_file(entry).stem, progress=progress, does="makes")


def _lock_file(entry: Path) -> Path:
    """The lock of an entry."""
    if entry.parent == cache.root() / "templates":
        return data_template.lock_file(entry)
    name = entry.name
    if entry.parent == images.directory():
        name = images.lock_name(name)
    elif entry.parent == datasets.datasets_directory():
        name = datasets.lock_name(entry)
    return cache.lock_file(name)


def add_cache(command: argparse.ArgumentParser) -> None:
    """Add the options of ``dbcluster cache`` to its parser."""
    command.set_defaults(run=run_cache)
    command.add_argument(
        "action", nargs="?", choices=("list", "clean"), default="list", help="list (default), or clean to remove"
    )
    add_wait(command)
    command.add_argument("names", nargs="*", metavar="ENTRY", help="an entry of the list to remove (default all)")


def run_cache(arguments: argparse.Namespace) -> int:
    """``dbcluster cache [list|clean] [ENTRY ...]``: list the entries of the cache, or remove them."""
    if arguments.names and arguments.action == "list":
        raise ConfigError("dbcluster cache list accepts no names: it lists everything")
    entries = clean(arguments.names, tell) if arguments.action == "clean" else list_entries()
    now = time.time()
    shown = [
        (
            entry.name,
            size_text(entry.size),
            entry.holds,
            f"{formatting.duration(now - entry.used)} ago" if entry.used else "",
        )
        for entry in entries
    ]
    total = formatting.size(sum(entry.size for entry in entries))
    print(layout.plain(("removed" if arguments.action == "clean" else "entry", "size", "holds", "used"), shown))
    print(f"{total} in {cache.root()}")
    return 0
