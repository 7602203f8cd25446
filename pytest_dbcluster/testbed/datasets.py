"""Store: loaded databases, each kept as a data directory from which clusters start as from a template.

Keyed by the template, by what the load says that its tables hold, and by the options that shape a table on disk.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from pytest_dbcluster import redaction
from pytest_dbcluster.clusters.cluster import ready_template
from pytest_dbcluster.clusters.dialects.lookup import flavour
from pytest_dbcluster.clusters.servers.data_template import OWN_FILES, Template
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.hosts.host import Host, Trees
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.rounds.round import Stored
from pytest_dbcluster.system import cache
from pytest_dbcluster.testbed.filling import Place, fill, shown

FILE = "store.json"  # written last, so an entry that has one is whole
FORMAT = 1  # raised when what an entry holds changes
DISK = 4  # what is stored may take this part of what the disk has for it, used and free
RECENT_SECONDS = 3600.0  # somebody may be copying what was used since


@dataclasses.dataclass(frozen=True)
class Entry:
    """One stored database: what it holds, of which release, its bytes, and when a cluster last started from it."""

    place: Path
    holds: str
    release: str
    size: int
    used: float
    password: str = dataclasses.field(repr=False)


def directory() -> Path:
    """Where stored databases are."""
    return cache.root() / "stored"


def lock_name(place: Path) -> str:
    """The lock of an entry, which is another than that of the release or image with the same name."""
    return f"stored-{place.name}"


def entries() -> list[Entry]:
    """Every whole one, by name."""
    found = [read(place) for place in sorted(directory().glob("[!.]*"))]
    return [entry for entry in found if entry]


def read(place: Path) -> Entry | None:
    """One of them; None where there is none, or what an older program made."""
    try:
        said = json.loads((place / FILE).read_text())
        used = (place / FILE).stat().st_mtime
        return Entry(place, said["holds"], said["release"], said["size"], used, redaction.remember(said["password"]))
    except (OSError, ValueError, KeyError):
        return None


def stored(
    load: Stored,
    release: Release,
    provisioner: Provisioner,
    client: Host,
    options: Mapping[str, str],
    progress: Callable[[str], None] = lambda _: None,
) -> Template:
    """The template of a release with the tables of a load in it, filled now when the cache has none.

    ``options`` are those that a cluster is started with: of them those count that decide how a table lies on disk.
    Two processes at once are safe: one fills, the other waits. Raises what the load or the server said when it
    cannot be filled; nothing stays behind then.
    """
    made = ready_template(release, provisioner, options, progress)
    place = place_of(load, release, made, options)
    with cache.lock(lock_name(place), progress=progress, does=f"fills {load.store} into"):
        if not read(place):
            fixed = {**made.initial, **_shape_of(release, options)}
            where = Place(provisioner, client, progress, keep=lambda node: _keep(load, node, place))
            fill(load, release, made, fixed, where)
            _make_room(place, progress)
        os.utime(place / FILE)
    found = read(place)
    if found is None:
        raise ProvisionError(f"{load.store} was filled and is gone again from {place}")
    return dataclasses.replace(made, data=place / "data", password=found.password)


def place_of(load: Stored, release: Release, made: Template, options: Mapping[str, str]) -> Path:
    """Where the tables of a load are kept; another release, template, scale or shape is another place."""
    shape = sorted(_shape_of(release, options).items())
    key = json.dumps([FORMAT, made.data.parent.name, load.store, shape])
    return directory() / f"{release.product}-{release.version}-{hashlib.sha256(key.encode()).hexdigest()[:10]}"


def _shape_of(release: Release, options: Mapping[str, str]) -> dict[str, str]:
    """Those of the options that decide how a table lies on disk."""
    shaping = flavour(release.product, release.version).shaping
    return {name: value for name, value in options.items() if name in shaping}


def _keep(load: Stored, node: Node, place: Path) -> int:
    """Move the data of a server that has ended beside its description, whole or not at all; its bytes.

    The caller holds the lock of the place.
    """
    data = Path(node.data)
    for leftover in OWN_FILES:
        (data / leftover).unlink(missing_ok=True)
    size = cache.size(data)
    with cache.staged(place.name, among=place.parent, mode=0o700) as staging:
        try:
            data.rename(staging / "data")
        except OSError:  # another file system
            cast(Trees, node.host).copy_tree(str(data), str(staging / "data"), durable=True)
        _make_durable(staging / "data")
        said = {"holds": load.store, "release": f"{node.release.name} {node.release.version}", "size": size}
        description = staging / FILE
        description.touch(mode=0o600)
        description.write_text(json.dumps({**said, "password": node.password}))
    return size


def _make_durable(tree: Path) -> None:
    """Force every file to disk: an entry that a power failure left half written could not be told from a whole one."""
    for path in tree.rglob("*"):
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _make_room(newest: Path, progress: Callable[[str], None]) -> None:
    """Remove what was used longest ago while all that is stored takes more than its part of the disk; it is told.

    What another process has just taken stays: waiting for it here might be mutual. What cannot be removed is told.
    """
    with _told(progress):
        for left in cache.sweep(directory()).values():
            progress(left)
        for entry in surplus(entries(), newest, shutil.disk_usage(directory()).free, time.time()):
            with _told(progress):
                _remove(entry, progress)


@contextlib.contextmanager
def _told(progress: Callable[[str], None]) -> Iterator[None]:
    """An error in making room is a line: what was filled for an hour is whole, and not thrown away for it."""
    try:
        yield
    except (OSError, ProvisionError) as error:
        progress(f"could not make room for other loaded databases in {directory()}: {error}")


def _remove(entry: Entry, progress: Callable[[str], None]) -> None:
    with cache.if_free(lock_name(entry.place)) as free:
        if not free or read(entry.place) != entry:
            return
        cache.discard(entry.place)
    progress(
        f"removed {entry.holds} of {entry.release} ({shown(entry.size)}), used {_age(entry)} ago: loaded "
        f"databases that are kept may take a {DISK}th of the disk, and go by when they were used last"
    )


def surplus(known: Sequence[Entry], newest: Path, free: int, now: float) -> list[Entry]:
    """Those to be removed, the one used longest ago first, until the rest takes its part of the disk at most.

    ``free`` is what the disk has besides them, in bytes. Neither the newest goes nor one that somebody may be copying.
    """
    total = sum(entry.size for entry in known)
    limit = (free + total) // DISK
    found = []
    for entry in sorted(known, key=lambda one: one.used):
        if total > limit and entry.place != newest and now - entry.used > RECENT_SECONDS:
            found.append(entry)
            total -= entry.size
    return found


def _age(entry: Entry) -> str:
    days = (time.time() - entry.used) / 86400
    return f"{days:.0f} days" if days >= 1 else f"{days * 24:.0f} h"
