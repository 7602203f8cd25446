"""What this machine holds of ours: runs, the clusters that were kept, and the cache."""

from __future__ import annotations

import contextlib
import dataclasses
import pwd
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_dbcluster import registry
from pytest_dbcluster.clusters import kept
from pytest_dbcluster.clusters.servers import data_template
from pytest_dbcluster.errors import ConfigError, ProvisionError, Unsupported
from pytest_dbcluster.hosts import runs
from pytest_dbcluster.hosts.provisioners.container import engine, engine_socket, images
from pytest_dbcluster.hosts.runs import Run
from pytest_dbcluster.system import cache
from pytest_dbcluster.testbed import datasets

FOLDERS = ("releases", "images", "templates", "stored")  # of the cache


@dataclasses.dataclass(frozen=True)
class Row:
    """One cluster of one run, as ``dbcluster ps`` lists it."""

    run_id: str
    name: str
    topology: str
    nodes: str
    release: str
    age: str
    owner: str
    state: str


def rows(now: float | None = None) -> list[Row]:
    """Every cluster of every run of this machine's data directory, the oldest run first."""
    return [row for run in runs.known() for row in _rows(run, now or time.time())]


def _rows(run: Run, now: float) -> list[Row]:
    age, owner, state = duration(now - run.began), _owner(run), _state(run)
    clusters = kept.read(run.directory)
    if clusters:
        return [
            Row(run.run_id, one.name, one.topology, str(len(one.nodes)), one.release, age, owner, state)
            for one in clusters
        ]
    places = [place for place in sorted(run.directory.glob("*-*")) if place.is_dir()]
    names = [re.sub(r"^\d+-", "", place.name) for place in places]
    return [Row(run.run_id, ", ".join(names) or "-", "-", "-", "-", age, owner, state)]


def _owner(run: Run) -> str:
    uid = run.directory.stat().st_uid
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    return user if run.kept else f"{user} (pid {run.owner})"


def _state(run: Run) -> str:
    if not run.kept:
        return "running" if run.alive else "dead: dbcluster reap"
    return "kept" if run.processes() else "kept, its servers have ended"


def duration(seconds: float) -> str:
    """Seconds in the one unit that fits: ``42 s``, ``7 min``, ``5 h``, ``3 d``."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def down(wanted: str) -> tuple[Run, int]:
    """End one kept run by its id or name; the number of processes that were ended.

    Raises ConfigError for one that nobody knows, and for one whose owner still works with it.
    """
    run = kept.chosen(wanted, runs.known())
    if not run.kept and run.alive:
        raise ConfigError(f"run {run.run_id} belongs to process {run.owner}, which still runs: end that process")
    return run, runs.end(run)


def down_all() -> list[tuple[Run, int]]:
    """End every kept run; each with the number of processes that were ended."""
    return [(run, runs.end(run)) for run in runs.known() if run.kept]


def reap_engine(progress: Callable[[str], None]) -> list[str]:
    """Remove what runs without a directory have left in a container engine that was gone at their end; their ids.

    Nothing is done, and nothing is said, where there is no engine; ``progress`` hears of one that could not be asked.
    """
    if not engine_socket.present():
        return []
    try:
        with contextlib.closing(engine.connect()) as reached:
            return engine.reap(reached)
    except (ProvisionError, Unsupported) as error:
        progress(f"containers were not looked for: {error}")
        return []


def free_name(name: str) -> None:
    """Raise ConfigError when a kept cluster has this name already."""
    for run in runs.known():
        if any(one.name == name for one in kept.read(run.directory)):
            raise ConfigError(f"a kept cluster is named {name!r} already (run {run.run_id}); choose another --name")


@dataclasses.dataclass(frozen=True)
class Cached:
    """An entry of the cache; ``holds`` is said of stored databases and images, ``used``, a time, of the former."""

    place: Path
    size: int
    holds: str = ""
    used: float | None = None

    @property
    def name(self) -> str:
        """Its name, as ``dbcluster cache`` lists it."""
        return str(self.place.relative_to(cache.root()))


def cached() -> list[Cached]:
    """Everything in the cache that can be made again: releases, images, templates, stored databases, readings."""
    places = [place for folder in FOLDERS for place in sorted((cache.root() / folder).glob("[!.]*")) if place.is_dir()]
    found = [_cached(place) for place in places]
    references = cache.root() / "references"
    return [*found, Cached(references, cache.size(references))] if any(references.glob("*.json")) else found


def _cached(place: Path) -> Cached:
    image = images.read(place) if place.parent == images.directory() else None
    if image:
        return Cached(place, cache.size(place), f"container image of {image.release} {image.exact}")
    entry = datasets.read(place) if place.parent == datasets.directory() else None
    if entry is None:
        return Cached(place, cache.size(place))
    return Cached(place, entry.size, f"{entry.holds}, {entry.release}", entry.used)


def clean(names: Sequence[str] = (), progress: Callable[[str], None] = lambda _: None) -> list[Cached]:
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
            _remove(one.place, progress)
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


def _remove(place: Path, progress: Callable[[str], None]) -> None:
    """Remove an entry. Raises ProvisionError where it cannot be, ConfigError when a run has begun by then."""
    if place.parent == cache.root():
        _refuse_in_use()
        try:
            for file in place.glob("*.json"):
                file.unlink(missing_ok=True)
        except OSError as error:
            raise ProvisionError(
                f"{place} in the cache cannot be emptied: {error.strerror}; only who may write it can do that"
            ) from error
        return
    with _held(place, progress):
        _refuse_in_use()  # again: the lock may have been waited for, for minutes
        cache.discard(place)


def _held(place: Path, progress: Callable[[str], None]) -> contextlib.AbstractContextManager[object]:
    """The lock of an entry, which its maker holds too."""
    if place.parent == cache.root() / "templates":
        return data_template.lock(place, progress)
    name = place.name
    if place.parent == images.directory():
        name = images.lock_name(name)
    elif place.parent == datasets.directory():
        name = datasets.lock_name(place)
    return cache.lock(name, progress=progress, does="makes")
