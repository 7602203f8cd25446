"""What this machine holds of ours: runs, the clusters that were kept, and the cache."""

from __future__ import annotations

import dataclasses
import pwd
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from pytest_dbcluster import cache, kept, runs
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.runs import Run


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


def free_name(name: str) -> None:
    """Raise ConfigError when a kept cluster has this name already."""
    for run in runs.known():
        if any(one.name == name for one in kept.read(run.directory)):
            raise ConfigError(f"a kept cluster is named {name!r} already (run {run.run_id}); choose another --name")


def cached() -> list[tuple[Path, int]]:
    """Everything in the cache that can be made again, with its bytes: releases, templates, reference readings."""
    entries = [place for folder in ("releases", "templates") for place in sorted((cache.root() / folder).glob("[!.]*"))]
    found = [(place, cache.size(place)) for place in entries if place.is_dir()]
    references = cache.root() / "references"
    return [*found, (references, cache.size(references))] if any(references.glob("*.json")) else found


def clean(progress: Callable[[str], None] = lambda _: None) -> list[tuple[Path, int]]:
    """Remove everything that can be made again; what was removed, with its bytes.

    Raises ConfigError while a run uses it. Lock files stay: a process may be waiting for one.
    """
    using = [run.run_id for run in runs.known() if run.kept or run.alive]
    if using:
        raise ConfigError(f"the cache is in use by run {', '.join(using)}; end it first: dbcluster ps, dbcluster down")
    removed = cached()
    for place, _ in removed:
        if place.parent == cache.releases():
            with cache.lock(place.name, progress=progress):
                shutil.rmtree(place, ignore_errors=True)
        elif place.parent == cache.root():
            for file in place.glob("*.json"):
                file.unlink(missing_ok=True)
        else:
            shutil.rmtree(place, ignore_errors=True)
    return removed
