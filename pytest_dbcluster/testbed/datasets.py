"""Data sets: populated data directories in the cache. Clusters start from copies of them, as from a template.

- ``dataset_template``: the pool calls it. Returns the template with the data set; populates a missing one.
- ``populate``: starts one server, runs the workload's ``populate`` on it, and keeps the data directory.
- ``datasets``, ``read_dataset``, ``surplus``: the data sets in the cache, and which of them to remove.

The key of a data set has three parts: the template, the workload's name for it, and some options. These options decide
the layout of a table on disk.
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

from pytest_dbcluster import formatting, redaction, wait
from pytest_dbcluster.clusters import table_rows
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
from pytest_dbcluster.system.tracing.recorder import span
from pytest_dbcluster.workloads.workload import HasDataSet, Setting

FILE = "store.json"  # written last, so a directory with this file is a whole data set
FORMAT = 1  # of a data set in the cache; increase it if the layout changes
DISK = 4  # data sets may use one part in this many of their size and the free space together
RECENT_SECONDS = 3600.0  # another process may still copy a data set that was used within this time

PROGRESS_SECONDS = 10.0  # between two lines of progress while populating
STOP_SECONDS = 1800.0  # limit of a shutdown, which writes back a large buffer pool
# The populating server's buffer pool is one part in MEMORY of the free memory, within these bounds in bytes.
MEMORY = 4
MINIMUM_POOL, MAXIMUM_POOL = 128 * 2**20, 16 * 2**30
ROOMY = 8 * 2**30  # bytes: with more free disk, the populating server gets a large redo log
FULL = 64 * 2**20  # bytes: a disk with less is full, since servers and file systems keep a reserve
MOST_LOGGED = 5  # [ERROR] lines shown in a message
TABLES = """\
SELECT CONCAT('`', table_schema, '`.`', table_name, '`') FROM information_schema.tables WHERE table_type = 'BASE TABLE'
AND table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')"""
FREE_SOME = "free some space (dbcluster cache lists what you can remove)"
WAYS_OUT = f"{FREE_SOME}, or set DBCLUSTER_DATA_DIR to a directory on another disk"


@dataclasses.dataclass(frozen=True)
class DataSet:
    """One data set in the cache."""

    path: Path
    """Its directory."""

    name: str
    """The workload's name for it."""

    release: str
    """Name and version of the release that made it."""

    size: int
    """Size in bytes."""

    used: float
    """The last start of a cluster from it, in seconds since 1970."""

    password: str = dataclasses.field(repr=False)
    """Password of the servers' control account."""


def datasets_directory() -> Path:
    """The directory of all data sets in the cache."""
    return cache.root() / "stored"


def lock_name(path: Path) -> str:
    """The name of a data set's lock. The prefix keeps it apart from the lock of a release or image."""
    return f"stored-{path.name}"


def datasets() -> list[DataSet]:
    """All whole data sets in the cache, sorted by path."""
    candidates = [read_dataset(path) for path in sorted(datasets_directory().glob("[!.]*"))]
    return [data_set for data_set in candidates if data_set]


def read_dataset(path: Path) -> DataSet | None:
    """The data set in this directory; None if there is none, or if its description has another format."""
    file = path / FILE

    def parse(fields: Mapping[str, Any]) -> DataSet:
        password = redaction.remember(fields["password"])
        return DataSet(path, fields["holds"], fields["release"], fields["size"], file.stat().st_mtime, password)

    return cache.read_manifest(file, parse)


def dataset_template(
    workload: HasDataSet,
    release: Release,
    provisioner: Provisioner,
    client: Host,
    options: Mapping[str, str],
    progress: Report = lambda _: None,
) -> Template:
    """The template of a release with the data set of a workload. Populates it if the cache has none.

    client: the host of the load generator. options: the options of the cluster at its start. Only those that decide the
    layout of a table on disk are part of the data set. Several processes may call this at once: one populates, the
    others wait. Raises what ``populate`` raises, and leaves nothing behind then.
    """
    template = ready_template(release, provisioner, options, progress)
    path = directory_of(workload, release, template, options)
    with cache.lock(lock_name(path), progress=progress, does=f"populates {workload.data_set} in"):
        cache.set_aside_if_damaged(path, FILE, progress)
        if not read_dataset(path):
            fixed = {**template.initial, **_shaping_options(release, options)}
            settings = PopulateSettings(provisioner, client, progress, keep=lambda node: _keep(workload, node, path))
            with span("load", data=workload.data_set):
                populate(workload, release, template, fixed, settings)
            _make_room(path, progress)
        os.utime(path / FILE)
    data_set = read_dataset(path)
    if data_set is None:
        raise ProvisionError(
            f"another process removed data set {workload.data_set} from {path} after we had populated it; run again "
            "to populate it"
        )
    return dataclasses.replace(template, data=path / "data", password=data_set.password)


def directory_of(workload: HasDataSet, release: Release, template: Template, options: Mapping[str, str]) -> Path:
    """The directory of a workload's data set. It depends on release, template, scale and shaping options."""
    shape = sorted(_shaping_options(release, options).items())
    key = json.dumps([FORMAT, template.data.parent.name, workload.data_set, shape])
    return datasets_directory() / f"{release.product}-{release.version}-{hashlib.sha256(key.encode()).hexdigest()[:10]}"


def _shaping_options(release: Release, options: Mapping[str, str]) -> dict[str, str]:
    """The options that decide the layout of a table on disk."""
    shaping = dialect(release.product, release.version).shaping
    return {name: value for name, value in options.items() if name in shaping}


def _keep(workload: HasDataSet, node: Node, path: Path) -> int:
    """Move the data directory of a stopped server into the cache, and return its size in bytes.

    The data set appears at ``path`` whole or not at all. The caller holds the lock of the data set.
    """
    with cache.stage(path.name, among=path.parent, mode=0o700) as staging:
        node.host.take_tree(node.data, data := staging / "data")
        for leftover in OWN_FILES:
            (data / leftover).unlink(missing_ok=True)
        size = cache.size(data)
        release = f"{node.release.name} {node.release.version}"
        fields = {"holds": workload.data_set, "release": release, "size": size, "password": node.password}
        cache.write_manifest(staging / FILE, fields, mode=0o600)
    return size


def _make_room(newest: Path, progress: Report) -> None:
    """Remove the least recently used data sets until the rest fits its part of the disk. Reports each removal.

    It skips data sets that another process has locked, because waiting could deadlock. It reports errors and raises
    none.
    """
    with _report_errors(progress):
        for problem in cache.sweep(datasets_directory()).values():
            progress(problem)
        for data_set in surplus(datasets(), newest, shutil.disk_usage(datasets_directory()).free, time.time()):
            with _report_errors(progress):
                _remove(data_set, progress)


@contextlib.contextmanager
def _report_errors(progress: Report) -> Iterator[None]:
    """Report an error instead of raising it: the new data set is whole and must not be lost."""
    try:
        yield
    except (OSError, ProvisionError) as error:
        progress(f"could not remove old data sets in {datasets_directory()}: {error}")


def _remove(data_set: DataSet, progress: Report) -> None:
    with cache.if_free(lock_name(data_set.path)) as free:
        if not free or read_dataset(data_set.path) != data_set:
            return
        cache.discard(data_set.path)
    progress(
        f"removed {data_set.name} of {data_set.release} ({formatting.size(data_set.size)}), used "
        f"{formatting.duration(time.time() - data_set.used)} ago: data sets "
        f"may use a {DISK}th of the disk, so the least recently used ones are removed"
    )


def surplus(known: Sequence[DataSet], newest: Path, free: int, now: float) -> list[DataSet]:
    """The data sets to remove, least recently used first, so that the rest fits 1 / DISK of the disk.

    newest: the path of the new data set, which stays. free: free bytes of the disk. now: seconds since 1970. A data set
    that was used in the last RECENT_SECONDS stays too, since a process may be copying it.
    """
    total = sum(data_set.size for data_set in known)
    limit = (free + total) // DISK
    removed = []
    for data_set in sorted(known, key=lambda data_set: data_set.used):
        if total > limit and data_set.path != newest and now - data_set.used > RECENT_SECONDS:
            removed.append(data_set)
            total -= data_set.size
    return removed


@dataclasses.dataclass(frozen=True)
class PopulateSettings:
    """The inputs of ``populate`` besides the workload and the template."""

    provisioner: Provisioner
    """The provisioner of the server's host."""

    client: Host
    """The host of the load generator."""

    progress: Report
    """Receives each line of progress."""

    keep: Callable[[Node], int]
    """Moves the data directory of the stopped server away, and returns its size in bytes."""


def populate(
    workload: HasDataSet, release: Release, template: Template, options: Mapping[str, str], settings: PopulateSettings
) -> None:
    """Populate the data set of a workload on one server that starts from the template, and keep its data directory.

    options: server options that must not change while populating. Raises WorkloadError or ProvisionError with the
    error of the workload or the server, and says if the disk is full. Raises Unsupported if there is too little room
    to begin. After an error, nothing remains.
    """
    vendor, began = dialect(release.product, release.version), time.monotonic()
    settings.progress(
        f"populating {workload.data_set} on one {release.name} {release.version}; later runs find it in the cache"
    )
    spec = ClusterSpec("standalone", release=release.release_name, name="populating")
    roomy = vendor.roomy if _free_bytes(workload, template, spec, settings) > ROOMY else {}
    pool = str(_pool_bytes(settings.provisioner.node_memory(spec, settings.provisioner.memory().available)))
    fast = {**vendor.single_server_options, **vendor.populating, **roomy, "innodb_buffer_pool_size": pool, **options}
    resolved = ResolvedCluster(spec, release, topology(spec.topology), None, fast)
    cluster = bring_up(resolved, settings.provisioner, start=template, progress=settings.progress)
    node = cluster.nodes[0]
    try:
        with _populate_errors(workload, release, node):
            lines, ending = _progress_lines(workload, node, settings.progress), cluster.ending_loads([settings.client])
            with lines as progress, ending:
                workload.populate(Setting(cluster, settings.client, release, "quick", progress))
                check(workload, cluster)
            _finish_populating(workload, node, vendor.single_server_options, options)
            size = settings.keep(node)
        files = f"{formatting.whole_mebibytes(size)} on disk, with logs and tables of the server"
        settings.progress(f"populated {workload.data_set} in {time.monotonic() - began:.1f} s: {files}")
    except DBClusterError as error:
        cluster.keep_logs(settings.provisioner.logs, error)
        raise
    finally:
        cluster.close()
        settings.provisioner.give_back(cluster.hosts)


@dataclasses.dataclass(frozen=True)
class CopyDisk:
    """A disk that receives copies of data."""

    host: Host
    """A host with its data on this disk."""

    copies: int
    """Number of copies."""

    needed: int
    """Bytes of all copies."""

    def __str__(self) -> str:
        return f"the disk of {self.host.directory}" + (f" on {self.host.machine}" if self.host.machine else "")


@contextlib.contextmanager
def disks(
    provisioner: Provisioner, client: Host, copies: Sequence[tuple[ClusterSpec, int]]
) -> Iterator[list[CopyDisk]]:
    """The disks for the data of new clusters, one for each machine.

    client: the host of the load generator; on this machine it has the same disk as the nodes. On other machines, the
    block has hosts for the nodes. copies: each cluster, and the bytes for each of its nodes.
    """
    if not client.machine:
        total = sum(spec.nodes * size for spec, size in copies)
        yield [CopyDisk(client, sum(spec.nodes for spec, _ in copies), total)]
        return
    found: dict[str, CopyDisk] = {}
    lent: list[Host] = []
    try:
        for spec, size in copies:
            hosts = provisioner.acquire(spec)
            lent += hosts
            for host in hosts:
                known = found.get(host.machine, CopyDisk(host, 0, 0))
                found[host.machine] = CopyDisk(known.host, known.copies + 1, known.needed + size)
        yield list(found.values())
    finally:
        provisioner.give_back(lent)


def _free_bytes(workload: HasDataSet, template: Template, spec: ClusterSpec, settings: PopulateSettings) -> int:
    """The free bytes of the disk on which the server populates.

    Raises Unsupported if this disk, or the cache on another disk, has less room than the data set needs.
    """
    needed = cache.size(template.data) + workload.data_set_bytes
    with disks(settings.provisioner, settings.client, [(spec, needed)]) as (disk,):
        disk.host.make_room(needed)
        free = disk.host.free_bytes()
        other_disk = bool(disk.host.machine) or not _on_one_disk(cache.root(), Path(disk.host.directory))
    if free < needed:
        raise Unsupported(
            f"no room on {disk} to populate {workload.data_set}: {formatting.size(free)} free, "
            f"{formatting.size(needed)} needed; {WAYS_OUT}"
        )
    root = cache.root()
    if other_disk and (cache_free := shutil.disk_usage(root).free) < needed:
        raise Unsupported(
            f"no room in the cache {root} to keep {workload.data_set}: {formatting.size(cache_free)} free, "
            f"{formatting.size(needed)} needed; {FREE_SOME}, or set XDG_CACHE_HOME to a directory on another disk"
        )
    return free


def _on_one_disk(root: Path, directory: Path) -> bool:
    root.mkdir(parents=True, exist_ok=True)
    return root.stat().st_dev == directory.stat().st_dev


def check(workload: HasDataSet, cluster: Cluster) -> None:
    """Raise WorkloadError for an incomplete data set: a tool may report success although threads failed."""
    if logged := cluster.new_errors():
        raise WorkloadError(f"the server logged errors while populating: {'; '.join(logged[:MOST_LOGGED])}")
    if violations := workload.violations(cluster):
        raise WorkloadError(f"the data set fails its own check: {'; '.join(violations)}")


def read_whole(clusters: Sequence[Cluster], tables: Sequence[str], progress: Report) -> None:
    """Read every index of these tables once on each server, so that the caches have them.

    tables: as SQL needs them, with their schema.

    All servers read at once: a server in a guest reads with one CPU and would leave the other CPUs idle.
    """
    nodes = [node for cluster in clusters for node in cluster.nodes]
    progress(f"reading all data of {' and '.join(str(cluster.spec) for cluster in clusters)} into their caches")

    def read(node: Node) -> None:
        for table in tables:
            for index in table_rows.indexes(node, table):
                node.query(f"SELECT COUNT(*) FROM {table} FORCE INDEX ({index})", wait.SLOW_SECONDS)

    with wait.threads(len(nodes)) as reading:
        list(reading.map(read, nodes))


def _pool_bytes(memory: int) -> int:
    """The populating server's innodb_buffer_pool_size, in whole units of 128 MiB. memory: free bytes of its host."""
    return min(max(memory // MEMORY, MINIMUM_POOL), MAXIMUM_POOL) // 2**27 * 2**27


@contextlib.contextmanager
def _progress_lines(workload: HasDataSet, node: Node, progress: Report) -> Iterator[Report]:
    """Report the size of the data every PROGRESS_SECONDS. Yields the function for the workload's own lines."""
    began, ended, lock = time.monotonic(), threading.Event(), threading.Lock()
    empty = node.host.tree_size(node.data)

    def report(line: str) -> None:
        with lock:
            progress(line)

    def follow() -> None:
        while not ended.wait(PROGRESS_SECONDS):
            grown = formatting.whole_mebibytes(max(node.host.tree_size(node.data) - empty, 0))
            report(f"populating {workload.data_set}: {grown} on disk after {time.monotonic() - began:.0f} s")

    following = threading.Thread(target=follow, daemon=True)
    following.start()
    try:
        yield report
    finally:
        ended.set()
        following.join()


@contextlib.contextmanager
def _populate_errors(workload: HasDataSet, release: Release, node: Node) -> Iterator[None]:
    """Add to an error which data set could not be populated, and whether the disk is full."""
    try:
        yield
    except (ConfigError, Unsupported):
        raise
    except (DBClusterError, OSError) as error:
        text = f"could not populate {workload.data_set} on {release.name}: {error}"
        if (free := node.host.free_bytes()) < FULL:
            grown = formatting.size(node.host.tree_size(node.data))
            text += (
                f"\nthe disk of {node.host.directory} is full: {formatting.size(free)} free, and the server's data "
                f"has {grown}; {WAYS_OUT}"
            )
        kind = ProvisionError if isinstance(error, ProvisionError) else WorkloadError
        raise kind(text) from error


def _finish_populating(workload: HasDataSet, node: Node, needed: Mapping[str, str], options: Mapping[str, str]) -> None:
    """Analyze every table, purge everything, and shut down; then start once with the small redo log of copies."""
    tables = [table for (table,) in node.query(TABLES)]
    if not tables:
        raise WorkloadError(f"the workload made no table for the data set {workload.data_set}")
    for table in tables:  # otherwise each copy would sample its own statistics, at different times
        node.query(f"ANALYZE LOCAL TABLE {table}", wait.SLOW_SECONDS)
    node.query("SET GLOBAL innodb_fast_shutdown = 0")
    _shut_down(node)
    node.configure(needed, options)
    node.start()
    node.wait_answering(STOP_SECONDS)
    _shut_down(node)


def _shut_down(node: Node) -> None:
    node.stop(STOP_SECONDS)
    if status := node.process.status() if node.process else None:
        log = "\n    ".join(node.last_lines())
        raise ProvisionError(f"the populated server did not shut down cleanly ({status}):\n    {log}")
