"""Store: loaded databases, each made once for a release and a scale, from which clusters start as from a template.

A lone server that starts from the release's template is filled by the load, with no thought of a crash, and is shut
down in good order. What replication knows of its own history (GTIDs, Galera's position) stays as the template has
it, because nothing is logged for anybody: copies are equal, and form every topology without a transfer of data.
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

import psutil

from pytest_dbcluster import cache, secrets
from pytest_dbcluster.cluster import bring_up, ready_template
from pytest_dbcluster.errors import ConfigError, DBClusterError, ProvisionError, Unsupported, WorkloadError
from pytest_dbcluster.flavour import flavour
from pytest_dbcluster.host import Host, Trees
from pytest_dbcluster.node import Node
from pytest_dbcluster.provisioner import Provisioner
from pytest_dbcluster.release import Release
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.template import OWN_FILES, Template
from pytest_dbcluster.workload import Setting, Stored

FILE = "store.json"  # written last, so an entry that has one is whole
FORMAT = 1  # raised when what an entry holds changes
STOP_SECONDS = 1800.0  # a large buffer pool is written back at the end
MEMORY = 4  # the filling server's buffer pool is this part of the memory that is free, within these bounds
LEAST_POOL, MOST_POOL = 128 * 2**20, 16 * 2**30
DISK = 4  # what is stored may take this part of what the disk has for it, used and free
RECENT_SECONDS = 3600.0  # somebody may be copying what was used since
FULL = 64 * 2**20  # free bytes below which a disk counts as full: servers and file systems keep some back
TABLES = """\
SELECT CONCAT('`', table_schema, '`.`', table_name, '`') FROM information_schema.tables WHERE table_type = 'BASE TABLE'
AND table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')"""
Progress = Callable[[str], None]


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


def entries() -> list[Entry]:
    """Every whole one, by name."""
    found = [read(place) for place in sorted(directory().glob("[!.]*"))]
    return [entry for entry in found if entry]


def read(place: Path) -> Entry | None:
    """One of them; None where there is none, or what an older program made."""
    try:
        said = json.loads((place / FILE).read_text())
        used = (place / FILE).stat().st_mtime
        return Entry(place, said["holds"], said["release"], said["size"], used, secrets.remember(said["password"]))
    except (OSError, ValueError, KeyError):
        return None


def stored(
    load: Stored,
    release: Release,
    provisioner: Provisioner,
    client: Host,
    options: Mapping[str, str],
    progress: Progress = lambda _: None,
) -> Template:
    """The template of a release with the tables of a load in it, filled now when the cache has none.

    ``options`` are those that a cluster is started with: of them those count that decide how a table lies on disk.
    Two processes at once are safe: one fills, the other waits. Raises what the load or the server said when it
    cannot be filled; nothing stays behind then.
    """
    made = ready_template(release, provisioner, options, progress)
    place = place_of(load, release, made, options)
    with cache.lock(f"stored-{place.name}", progress=progress, does=f"fills {load.store} into"):
        if not read(place):
            fixed = {**made.initial, **_shape(release, options)}
            _fill(load, release, made, fixed, _Where(provisioner, client, place, progress))
        os.utime(place / FILE)
    found = read(place)
    if found is None:
        raise ProvisionError(f"{load.store} was filled and is gone again from {place}")
    return dataclasses.replace(made, data=place / "data", password=found.password)


def place_of(load: Stored, release: Release, made: Template, options: Mapping[str, str]) -> Path:
    """Where the tables of a load are kept; another release, template, scale or shape is another place."""
    shape = sorted(_shape(release, options).items())
    key = json.dumps([FORMAT, made.data.parent.name, load.store, shape])
    return directory() / f"{release.product}-{release.version}-{hashlib.sha256(key.encode()).hexdigest()[:10]}"


def _shape(release: Release, options: Mapping[str, str]) -> dict[str, str]:
    shaping = flavour(release.product, release.version).shaping
    return {name: value for name, value in options.items() if name in shaping}


@dataclasses.dataclass(frozen=True)
class _Where:
    """What filling needs besides the load: hosts, where the result goes, and who is told."""

    provisioner: Provisioner
    client: Host
    place: Path
    progress: Progress


def _fill(load: Stored, release: Release, made: Template, options: Mapping[str, str], where: _Where) -> None:
    words, began = flavour(release.product, release.version), time.monotonic()
    where.progress(f"filling {load.store} into a lone {release.name} {release.version}, once: it is kept")
    fast = {**words.alone, **words.filling, "innodb_buffer_pool_size": str(_pool_bytes()), **options}
    spec = ClusterSpec("standalone", name="filling")
    cluster = bring_up(spec, release, where.provisioner, options=fast, start=made, progress=where.progress)
    node = cluster.nodes[0]
    empty = cache.size(Path(node.data))

    def told(line: str) -> None:
        where.progress(f"{line} ({_shown(max(cache.size(Path(node.data)) - empty, 0))} so far)")

    try:
        with _blamed(load, release, node):
            load.fill(Setting(cluster, where.client, release, "quick", told))
            _finish(load, node, {**words.alone, **options})
            size = _keep(load, node, where.place)
        where.progress(f"filled {load.store} in {time.monotonic() - began:.1f} s: {_shown(size)} in {where.place}")
    finally:
        cluster.close()
        where.provisioner.release(cluster.hosts)
    _make_room(where)


def _make_room(where: _Where) -> None:
    for entry in surplus(entries(), where.place, shutil.disk_usage(directory()).free, time.time()):
        shutil.rmtree(entry.place, ignore_errors=True)
        where.progress(
            f"removed {entry.holds} of {entry.release} ({_shown(entry.size)}), used {_age(entry)} ago: loaded "
            f"databases that are kept may take a {DISK}th of the disk, and go by when they were used last"
        )


def _pool_bytes() -> int:
    return min(max(psutil.virtual_memory().available // MEMORY, LEAST_POOL), MOST_POOL) // 2**27 * 2**27


@contextlib.contextmanager
def _blamed(load: Stored, release: Release, node: Node) -> Iterator[None]:
    """An error says what could not be filled, and whether its disk is full."""
    try:
        yield
    except (ConfigError, Unsupported):
        raise
    except (DBClusterError, OSError) as error:
        text = f"could not fill {load.store} into {release.name}: {error}"
        if (free := shutil.disk_usage(node.host.directory).free) < FULL:
            text += (
                f"\nthe disk of {node.host.directory} is full: {_shown(free)} are left, and the server's data had grown to "
                f"{_shown(cache.size(Path(node.data)))}; free some (dbcluster cache lists what can be made again), or "
                "take another disk with DBCLUSTER_DATA_DIR"
            )
        kind = ProvisionError if isinstance(error, ProvisionError) else WorkloadError
        raise kind(text) from error


def _finish(load: Stored, node: Node, options: Mapping[str, str]) -> None:
    """Statistics of every table, nothing left to purge; then the log as small as copies have it."""
    tables = [table for (table,) in node.query(TABLES)]
    if not tables:
        raise WorkloadError(f"{load.store} is to be kept, and its fill made no table")
    for table in tables:  # else each copy would sample its own, at a time of its own
        node.query(f"ANALYZE LOCAL TABLE {table}")
    node.query("SET GLOBAL innodb_fast_shutdown = 0")
    _shut_down(node)
    node.configure(options)
    node.start()
    node.wait_answering(STOP_SECONDS)
    _shut_down(node)


def _shut_down(node: Node) -> None:
    node.stop(STOP_SECONDS)
    if status := node.process.status() if node.process else None:
        log = "\n    ".join(node.last_lines())
        raise ProvisionError(f"the server that was filled did not shut down in good order ({status}):\n    {log}")


def _keep(load: Stored, node: Node, place: Path) -> int:
    """Move the data beside its description, whole or not at all; its bytes."""
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


def _shown(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
