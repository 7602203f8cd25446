"""Data sets: the tables of loads, each kept as a data directory from which clusters start as from a template.

Keyed by the template, by the name that the load gives its data set, and by the options that shape a table on disk.
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
from typing import Any

import psutil

from pytest_dbcluster import formatting, redaction
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.servers.data_template import OWN_FILES, Template
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.startup import ResolvedCluster, bring_up, ready_template
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ConfigError, DBClusterError, ProvisionError, Unsupported, WorkloadError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import cache
from pytest_dbcluster.workloads.workload import HasDataSet, Setting

FILE = "store.json"  # written last, so an entry that has one is whole
FORMAT = 1  # raised when what an entry holds changes
DISK = 4  # data sets may take this part of what the disk has for it, used and free
RECENT_SECONDS = 3600.0  # somebody may be copying what was used since

TELL_SECONDS = 10.0
STOP_SECONDS = 1800.0  # a large buffer pool is written back at the end
MEMORY = 4  # the populating server's buffer pool is this part of the memory that is free, within these bounds
LEAST_POOL, MOST_POOL = 128 * 2**20, 16 * 2**30
ROOMY = 8 * 2**30  # free bytes from which on a populating server may have a large log
FULL = 64 * 2**20  # free bytes below which a disk counts as full: servers and file systems keep some back
MOST_LOGGED = 5
TABLES = """\
SELECT CONCAT('`', table_schema, '`.`', table_name, '`') FROM information_schema.tables WHERE table_type = 'BASE TABLE'
AND table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')"""
WAYS_OUT = "free some (dbcluster cache lists what can be made again), or take another disk with DBCLUSTER_DATA_DIR"


@dataclasses.dataclass(frozen=True)
class DataSet:
    """One data set in the cache.

    name: what the load calls it. release: of which it is. size: in bytes. used: when a cluster last started from it, in
    seconds since 1970. password: of the servers' control account.
    """

    path: Path
    name: str
    release: str
    size: int
    used: float
    password: str = dataclasses.field(repr=False)


def datasets_directory() -> Path:
    """Where data sets are in the cache. The folder has its name from older versions, whose data sets stay usable."""
    return cache.root() / "stored"


def lock_name(path: Path) -> str:
    """The lock of a data set, which is another than that of the release or image with the same name."""
    return f"stored-{path.name}"


def datasets() -> list[DataSet]:
    """Every whole data set, by directory."""
    known = [read_dataset(path) for path in sorted(datasets_directory().glob("[!.]*"))]
    return [data_set for data_set in known if data_set]


def read_dataset(path: Path) -> DataSet | None:
    """The data set in this directory; None where there is none, or what an older program made."""
    file = path / FILE

    def parse(fields: Mapping[str, Any]) -> DataSet:
        password = redaction.remember(fields["password"])
        return DataSet(path, fields["holds"], fields["release"], fields["size"], file.stat().st_mtime, password)

    return cache.read_manifest(file, parse)


def dataset_template(
    load: HasDataSet,
    release: Release,
    provisioner: Provisioner,
    client: Host,
    options: Mapping[str, str],
    progress: Report = lambda _: None,
) -> Template:
    """The template of a release with the data set of a load in it, populated now when the cache has none.

    ``options`` are those that a cluster is started with: of them those count that decide how a table lies on disk.
    Two processes at once are safe: one populates, the other waits. Raises what the load or the server said when
    it cannot be populated; nothing stays behind then.
    """
    made = ready_template(release, provisioner, options, progress)
    path = directory_of(load, release, made, options)
    with cache.lock(lock_name(path), progress=progress, does=f"populates {load.data_set} in"):
        if not read_dataset(path):
            fixed = {**made.initial, **_shape_of(release, options)}
            where = PopulateOn(provisioner, client, progress, keep=lambda node: _keep(load, node, path))
            populate(load, release, made, fixed, where)
            _make_room(path, progress)
        os.utime(path / FILE)
    data_set = read_dataset(path)
    if data_set is None:
        raise ProvisionError(f"data set {load.data_set} was populated and is gone again from {path}")
    return dataclasses.replace(made, data=path / "data", password=data_set.password)


def directory_of(load: HasDataSet, release: Release, made: Template, options: Mapping[str, str]) -> Path:
    """Where the data set of a load is kept; another release, template, scale or shape is another directory."""
    shape = sorted(_shape_of(release, options).items())
    key = json.dumps([FORMAT, made.data.parent.name, load.data_set, shape])
    return datasets_directory() / f"{release.product}-{release.version}-{hashlib.sha256(key.encode()).hexdigest()[:10]}"


def _shape_of(release: Release, options: Mapping[str, str]) -> dict[str, str]:
    """Those of the options that decide how a table lies on disk."""
    shaping = dialect(release.product, release.version).shaping
    return {name: value for name, value in options.items() if name in shaping}


def _keep(load: HasDataSet, node: Node, path: Path) -> int:
    """Move the data of a server that has ended beside its description, whole or not at all; its bytes.

    The caller holds the lock of the data set.
    """
    data = Path(node.data)
    for leftover in OWN_FILES:
        (data / leftover).unlink(missing_ok=True)
    size = cache.size(data)
    with cache.staged(path.name, among=path.parent, mode=0o700) as staging:
        try:
            data.rename(staging / "data")
        except OSError:  # another file system
            node.host.copy_tree(str(data), str(staging / "data"), durable=True)
        _make_durable(staging / "data")
        release = f"{node.release.name} {node.release.version}"
        fields = {"holds": load.data_set, "release": release, "size": size, "password": node.password}
        cache.write_manifest(staging / FILE, fields, mode=0o600)
    return size


def _make_durable(tree: Path) -> None:
    """Force every file to disk: half a data set, after a power failure, looks like a whole one."""
    for path in tree.rglob("*"):
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _make_room(newest: Path, progress: Report) -> None:
    """Remove what was used longest ago while all data sets take more than their part of the disk; it is told.

    What another process has just taken stays: waiting for it here might be mutual. What cannot be removed is told.
    """
    with _told(progress):
        for left in cache.sweep(datasets_directory()).values():
            progress(left)
        for data_set in surplus(datasets(), newest, shutil.disk_usage(datasets_directory()).free, time.time()):
            with _told(progress):
                _remove(data_set, progress)


@contextlib.contextmanager
def _told(progress: Report) -> Iterator[None]:
    """An error in making room is a line: what was populated for an hour is whole, and not thrown away for it."""
    try:
        yield
    except (OSError, ProvisionError) as error:
        progress(f"could not make room for other data sets in {datasets_directory()}: {error}")


def _remove(data_set: DataSet, progress: Report) -> None:
    with cache.if_free(lock_name(data_set.path)) as free:
        if not free or read_dataset(data_set.path) != data_set:
            return
        cache.discard(data_set.path)
    progress(
        f"removed {data_set.name} of {data_set.release} ({formatting.size(data_set.size)}), used "
        f"{formatting.duration(time.time() - data_set.used)} ago: data sets "
        f"that are kept may take a {DISK}th of the disk, and go by when they were used last"
    )


def surplus(known: Sequence[DataSet], newest: Path, free: int, now: float) -> list[DataSet]:
    """Those to be removed, the one used longest ago first, until the rest takes its part of the disk at most.

    ``free`` is what the disk has besides them, in bytes. Neither the newest goes nor one that somebody may be copying.
    """
    total = sum(data_set.size for data_set in known)
    limit = (free + total) // DISK
    removed = []
    for data_set in sorted(known, key=lambda each: each.used):
        if total > limit and data_set.path != newest and now - data_set.used > RECENT_SECONDS:
            removed.append(data_set)
            total -= data_set.size
    return removed


@dataclasses.dataclass(frozen=True)
class PopulateOn:
    """What populating needs besides the load: hosts, who is told, and who takes the data and says its bytes."""

    provisioner: Provisioner
    client: Host
    progress: Report
    keep: Callable[[Node], int]


def populate(load: HasDataSet, release: Release, made: Template, options: Mapping[str, str], where: PopulateOn) -> None:
    """Make the data set of a load on a copy of a template, with these options fixed, and have its data kept.

    Raises what the load or the server said, and whether the disk is full; nothing stays behind then.
    """
    words, began = dialect(release.product, release.version), time.monotonic()
    where.progress(f"populating {load.data_set} on a lone {release.name} {release.version}, once: it is kept")
    roomy = words.roomy if _free_bytes(load, made, where) > ROOMY else {}
    fast = {**words.alone, **words.populating, **roomy, "innodb_buffer_pool_size": str(_pool_bytes()), **options}
    spec = ClusterSpec("standalone", release=release.asked, name="populating")
    resolved = ResolvedCluster(spec, release, topology(spec.topology), None, fast)
    cluster = bring_up(resolved, where.provisioner, start=made, progress=where.progress)
    node = cluster.nodes[0]
    try:
        with _explained(load, release, node):
            with _followed(load, node, where.progress) as tell:
                load.populate(Setting(cluster, where.client, release, "quick", tell))
                check(load, cluster)
            _finish_populating(load, node, {**words.alone, **options})
            size = where.keep(node)
        where.progress(f"populated {load.data_set} in {time.monotonic() - began:.1f} s: {formatting.size(size)}")
    finally:
        cluster.close()
        where.provisioner.give_back(cluster.hosts)


def _free_bytes(load: HasDataSet, made: Template, where: PopulateOn) -> int:
    """The bytes that the disk has for populating.

    Raises Unsupported when there, or in a cache on another disk, is less than the load says that it takes.
    """
    directory = where.client.directory
    free = shutil.disk_usage(directory).free
    wanted = cache.size(made.data) + load.data_set_bytes
    if free < wanted:
        raise Unsupported(
            f"no room on the disk of {directory} to populate {load.data_set}: {formatting.size(free)} free, "
            f"{formatting.size(wanted)} needed; {WAYS_OUT}"
        )
    kept = cache.root()
    kept.mkdir(parents=True, exist_ok=True)
    if kept.stat().st_dev != Path(directory).stat().st_dev and (left := shutil.disk_usage(kept).free) < wanted:
        raise Unsupported(
            f"no room in the cache {kept} to keep {load.data_set}: {formatting.size(left)} free, "
            f"{formatting.size(wanted)} needed; free some (dbcluster cache lists what can be made again), or take "
            "another disk with XDG_CACHE_HOME"
        )
    return free


def check(load: HasDataSet, cluster: Cluster) -> None:
    """Nobody is to start from half of it: tools end well whose threads did not. Raises WorkloadError."""
    if logged := cluster.logged():
        raise WorkloadError(f"errors while it was populated: {'; '.join(logged[:MOST_LOGGED])}")
    if found := load.violations(cluster):
        raise WorkloadError(f"what was populated fails its own check: {'; '.join(found)}")


def _pool_bytes() -> int:
    return min(max(psutil.virtual_memory().available // MEMORY, LEAST_POOL), MOST_POOL) // 2**27 * 2**27


@contextlib.contextmanager
def _followed(load: HasDataSet, node: Node, progress: Report) -> Iterator[Report]:
    """What a load tells while it populates, and how far it is when it has told nothing for long."""
    data, began, ended, one_at_a_time = Path(node.data), time.monotonic(), threading.Event(), threading.Lock()
    empty = cache.size(data)

    def tell(line: str) -> None:
        with one_at_a_time:
            progress(line)

    def follow() -> None:
        while not ended.wait(TELL_SECONDS):
            grown = formatting.size(max(cache.size(data) - empty, 0))
            tell(f"populating {load.data_set}: {grown} after {time.monotonic() - began:.0f} s")

    following = threading.Thread(target=follow, daemon=True)
    following.start()
    try:
        yield tell
    finally:
        ended.set()
        following.join()


@contextlib.contextmanager
def _explained(load: HasDataSet, release: Release, node: Node) -> Iterator[None]:
    """An error says what could not be populated, and whether its disk is full."""
    try:
        yield
    except (ConfigError, Unsupported):
        raise
    except (DBClusterError, OSError) as error:
        text = f"could not populate {load.data_set} on {release.name}: {error}"
        if (free := shutil.disk_usage(node.host.directory).free) < FULL:
            grown = formatting.size(cache.size(Path(node.data)))
            text += (
                f"\nthe disk of {node.host.directory} is full: {formatting.size(free)} are left, and the "
                f"server's data had grown to {grown}; {WAYS_OUT}"
            )
        kind = ProvisionError if isinstance(error, ProvisionError) else WorkloadError
        raise kind(text) from error


def _finish_populating(load: HasDataSet, node: Node, options: Mapping[str, str]) -> None:
    """Statistics of every table, nothing left to purge; then the log as small as copies have it."""
    tables = [table for (table,) in node.query(TABLES)]
    if not tables:
        raise WorkloadError(f"{load.data_set} is a data set without a table: the load made none")
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
        raise ProvisionError(f"the server that was populated did not shut down in good order ({status}):\n    {log}")
