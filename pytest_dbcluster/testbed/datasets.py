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
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import psutil

from pytest_dbcluster import formatting, redaction
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.servers.data_template import OWN_FILES, Template
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.startup import bring_up, ready_template
from pytest_dbcluster.errors import ConfigError, DBClusterError, ProvisionError, Unsupported, WorkloadError
from pytest_dbcluster.hosts.host import Host, Trees
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import cache
from pytest_dbcluster.workloads.workload import Setting, Stored, Verifies

FILE = "store.json"  # written last, so an entry that has one is whole
FORMAT = 1  # raised when what an entry holds changes
DISK = 4  # what is stored may take this part of what the disk has for it, used and free
RECENT_SECONDS = 3600.0  # somebody may be copying what was used since

TELL_SECONDS = 10.0
STOP_SECONDS = 1800.0  # a large buffer pool is written back at the end
MEMORY = 4  # the filling server's buffer pool is this part of the memory that is free, within these bounds
LEAST_POOL, MOST_POOL = 128 * 2**20, 16 * 2**30
ROOMY = 8 * 2**30  # free bytes from which on a filling server may have a large log
FULL = 64 * 2**20  # free bytes below which a disk counts as full: servers and file systems keep some back
MOST_LOGGED = 5
TABLES = """\
SELECT CONCAT('`', table_schema, '`.`', table_name, '`') FROM information_schema.tables WHERE table_type = 'BASE TABLE'
AND table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')"""
WAYS_OUT = "free some (dbcluster cache lists what can be made again), or take another disk with DBCLUSTER_DATA_DIR"
Progress = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class DataSet:
    """One stored database: what it holds, of which release, its bytes, and when a cluster last started from it."""

    place: Path
    holds: str
    release: str
    size: int
    used: float
    password: str = dataclasses.field(repr=False)


def datasets_directory() -> Path:
    """Where stored databases are."""
    return cache.root() / "stored"


def lock_name(place: Path) -> str:
    """The lock of an entry, which is another than that of the release or image with the same name."""
    return f"stored-{place.name}"


def datasets() -> list[DataSet]:
    """Every whole one, by name."""
    found = [read_dataset(place) for place in sorted(datasets_directory().glob("[!.]*"))]
    return [entry for entry in found if entry]


def read_dataset(place: Path) -> DataSet | None:
    """One of them; None where there is none, or what an older program made."""
    file = place / FILE

    def parse(fields: Mapping[str, Any]) -> DataSet:
        password = redaction.remember(fields["password"])
        return DataSet(place, fields["holds"], fields["release"], fields["size"], file.stat().st_mtime, password)

    return cache.read_manifest(file, parse)


def dataset_template(
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
    place = directory_of(load, release, made, options)
    with cache.lock(lock_name(place), progress=progress, does=f"fills {load.store} into"):
        if not read_dataset(place):
            fixed = {**made.initial, **_shape_of(release, options)}
            where = PopulateOn(provisioner, client, progress, keep=lambda node: _keep(load, node, place))
            populate(load, release, made, fixed, where)
            _make_room(place, progress)
        os.utime(place / FILE)
    found = read_dataset(place)
    if found is None:
        raise ProvisionError(f"{load.store} was filled and is gone again from {place}")
    return dataclasses.replace(made, data=place / "data", password=found.password)


def directory_of(load: Stored, release: Release, made: Template, options: Mapping[str, str]) -> Path:
    """Where the tables of a load are kept; another release, template, scale or shape is another place."""
    shape = sorted(_shape_of(release, options).items())
    key = json.dumps([FORMAT, made.data.parent.name, load.store, shape])
    return datasets_directory() / f"{release.product}-{release.version}-{hashlib.sha256(key.encode()).hexdigest()[:10]}"


def _shape_of(release: Release, options: Mapping[str, str]) -> dict[str, str]:
    """Those of the options that decide how a table lies on disk."""
    shaping = dialect(release.product, release.version).shaping
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
        release = f"{node.release.name} {node.release.version}"
        fields = {"holds": load.store, "release": release, "size": size, "password": node.password}
        cache.write_manifest(staging / FILE, fields, mode=0o600)
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
        for left in cache.sweep(datasets_directory()).values():
            progress(left)
        for entry in surplus(datasets(), newest, shutil.disk_usage(datasets_directory()).free, time.time()):
            with _told(progress):
                _remove(entry, progress)


@contextlib.contextmanager
def _told(progress: Callable[[str], None]) -> Iterator[None]:
    """An error in making room is a line: what was filled for an hour is whole, and not thrown away for it."""
    try:
        yield
    except (OSError, ProvisionError) as error:
        progress(f"could not make room for other loaded databases in {datasets_directory()}: {error}")


def _remove(entry: DataSet, progress: Callable[[str], None]) -> None:
    with cache.if_free(lock_name(entry.place)) as free:
        if not free or read_dataset(entry.place) != entry:
            return
        cache.discard(entry.place)
    progress(
        f"removed {entry.holds} of {entry.release} ({formatting.size(entry.size)}), used "
        f"{formatting.duration(time.time() - entry.used)} ago: loaded databases that are kept "
        f"may take a {DISK}th of the disk, and go by when they were used last"
    )


def surplus(known: Sequence[DataSet], newest: Path, free: int, now: float) -> list[DataSet]:
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


class Estimates(Protocol):
    """An extra power of a load that is stored: it says beforehand how large its tables will be."""

    @property
    def stored_bytes(self) -> int:
        """The bytes that a server's data grows by while it is filled, about."""


@dataclasses.dataclass(frozen=True)
class PopulateOn:
    """What filling needs besides the load: hosts, who is told, and who takes the server's data and says its bytes."""

    provisioner: Provisioner
    client: Host
    progress: Progress
    keep: Callable[[Node], int]


def populate(load: Stored, release: Release, made: Template, options: Mapping[str, str], where: PopulateOn) -> None:
    """Make the tables of a load on a copy of a template, with these options fixed, and have its data kept.

    Raises what the load or the server said, and whether the disk is full; nothing stays behind then.
    """
    words, began = dialect(release.product, release.version), time.monotonic()
    where.progress(f"filling {load.store} into a lone {release.name} {release.version}, once: it is kept")
    roomy = words.roomy if _free_bytes(load, made, where) > ROOMY else {}
    fast = {**words.alone, **words.filling, **roomy, "innodb_buffer_pool_size": str(_pool_bytes()), **options}
    spec = ClusterSpec("standalone", release=release.asked, name="filling")
    cluster = bring_up(spec, release, where.provisioner, options=fast, start=made, progress=where.progress)
    node = cluster.nodes[0]
    try:
        with _explained(load, release, node):
            with _followed(load, node, where.progress) as tell:
                load.fill(Setting(cluster, where.client, release, "quick", tell))
                check(load, cluster)
            _finish_populating(load, node, {**words.alone, **options})
            size = where.keep(node)
        where.progress(f"filled {load.store} in {time.monotonic() - began:.1f} s: {formatting.size(size)}")
    finally:
        cluster.close()
        where.provisioner.release(cluster.hosts)


def _free_bytes(load: Stored, made: Template, where: PopulateOn) -> int:
    """The bytes that the disk has for filling.

    Raises Unsupported when there, or in a cache on another disk, is less than the load says that it takes.
    """
    place = where.client.directory
    free = shutil.disk_usage(place).free
    wanted = cache.size(made.data) + (cast(Estimates, load).stored_bytes if hasattr(load, "stored_bytes") else 0)
    if free < wanted:
        raise Unsupported(
            f"no room on the disk of {place} to fill {load.store}: {formatting.size(free)} free, "
            f"{formatting.size(wanted)} needed; {WAYS_OUT}"
        )
    kept = cache.root()
    kept.mkdir(parents=True, exist_ok=True)
    if kept.stat().st_dev != Path(place).stat().st_dev and (left := shutil.disk_usage(kept).free) < wanted:
        raise Unsupported(
            f"no room in the cache {kept} to keep {load.store}: {formatting.size(left)} free, "
            f"{formatting.size(wanted)} needed; free some (dbcluster cache lists what can be made again), "
            "or take another disk with XDG_CACHE_HOME"
        )
    return free


def check(load: Stored, cluster: Cluster) -> None:
    """Nobody is to start from half of it: tools end well whose threads did not. Raises WorkloadError."""
    if logged := cluster.logged():
        raise WorkloadError(f"errors while it was filled: {'; '.join(logged[:MOST_LOGGED])}")
    if hasattr(load, "violations") and (found := cast(Verifies, load).violations(cluster)):
        raise WorkloadError(f"what was filled fails its own check: {'; '.join(found)}")


def _pool_bytes() -> int:
    return min(max(psutil.virtual_memory().available // MEMORY, LEAST_POOL), MOST_POOL) // 2**27 * 2**27


@contextlib.contextmanager
def _followed(load: Stored, node: Node, progress: Progress) -> Iterator[Progress]:
    """What a load tells while it fills, and how far it is when it has told nothing for long."""
    data, began, ended, one_at_a_time = Path(node.data), time.monotonic(), threading.Event(), threading.Lock()
    empty = cache.size(data)

    def tell(line: str) -> None:
        with one_at_a_time:
            progress(line)

    def follow() -> None:
        while not ended.wait(TELL_SECONDS):
            grown = formatting.size(max(cache.size(data) - empty, 0))
            tell(f"filling {load.store}: {grown} after {time.monotonic() - began:.0f} s")

    following = threading.Thread(target=follow, daemon=True)
    following.start()
    try:
        yield tell
    finally:
        ended.set()
        following.join()


@contextlib.contextmanager
def _explained(load: Stored, release: Release, node: Node) -> Iterator[None]:
    """An error says what could not be filled, and whether its disk is full."""
    try:
        yield
    except (ConfigError, Unsupported):
        raise
    except (DBClusterError, OSError) as error:
        text = f"could not fill {load.store} into {release.name}: {error}"
        if (free := shutil.disk_usage(node.host.directory).free) < FULL:
            grown = formatting.size(cache.size(Path(node.data)))
            text += (
                f"\nthe disk of {node.host.directory} is full: {formatting.size(free)} are left, and the "
                f"server's data had grown to {grown}; {WAYS_OUT}"
            )
        kind = ProvisionError if isinstance(error, ProvisionError) else WorkloadError
        raise kind(text) from error


def _finish_populating(load: Stored, node: Node, options: Mapping[str, str]) -> None:
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
