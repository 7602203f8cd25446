"""Filling: the tables of a load are made once on a lone server, for every cluster that starts with them.

The server starts from the release's template, is filled with no thought of a crash, and is shut down in good order.
What replication knows of its own history (GTIDs, Galera's position) stays as the template has it, because nothing is
logged for anybody: copies are equal, and form every topology without a transfer of data.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, cast

import psutil

from pytest_dbcluster.clusters.cluster import Cluster, bring_up
from pytest_dbcluster.clusters.dialects.lookup import flavour
from pytest_dbcluster.clusters.servers.data_template import Template
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.errors import ConfigError, DBClusterError, ProvisionError, Unsupported, WorkloadError
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.rounds.round import Setting, Stored, Verifies
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import cache

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


class Estimates(Protocol):
    """An extra power of a load that is stored: it says beforehand how large its tables will be."""

    @property
    def stored_bytes(self) -> int:
        """The bytes that a server's data grows by while it is filled, about."""


@dataclasses.dataclass(frozen=True)
class Place:
    """What filling needs besides the load: hosts, who is told, and who takes the server's data and says its bytes."""

    provisioner: Provisioner
    client: Host
    progress: Progress
    keep: Callable[[Node], int]


def fill(load: Stored, release: Release, made: Template, options: Mapping[str, str], where: Place) -> None:
    """Make the tables of a load on a copy of a template, with these options fixed, and have its data kept.

    Raises what the load or the server said, and whether the disk is full; nothing stays behind then.
    """
    words, began = flavour(release.product, release.version), time.monotonic()
    where.progress(f"filling {load.store} into a lone {release.name} {release.version}, once: it is kept")
    roomy = words.roomy if _free(load, made, where) > ROOMY else {}
    fast = {**words.alone, **words.filling, **roomy, "innodb_buffer_pool_size": str(_pool_bytes()), **options}
    spec = ClusterSpec("standalone", release=release.asked, name="filling")
    cluster = bring_up(spec, release, where.provisioner, options=fast, start=made, progress=where.progress)
    node = cluster.nodes[0]
    try:
        with _blamed(load, release, node):
            with _followed(load, node, where.progress) as tell:
                load.fill(Setting(cluster, where.client, release, "quick", tell))
                check(load, cluster)
            _finish(load, node, {**words.alone, **options})
            size = where.keep(node)
        where.progress(f"filled {load.store} in {time.monotonic() - began:.1f} s: {shown(size)}")
    finally:
        cluster.close()
        where.provisioner.release(cluster.hosts)


def _free(load: Stored, made: Template, where: Place) -> int:
    """The bytes that the disk has for filling.

    Raises Unsupported when there, or in a cache on another disk, is less than the load says that it takes.
    """
    place = where.client.directory
    free = shutil.disk_usage(place).free
    wanted = cache.size(made.data) + (cast(Estimates, load).stored_bytes if hasattr(load, "stored_bytes") else 0)
    if free < wanted:
        raise Unsupported(
            f"no room on the disk of {place} to fill {load.store}: {shown(free)} free, {shown(wanted)} needed; "
            f"{WAYS_OUT}"
        )
    kept = cache.root()
    kept.mkdir(parents=True, exist_ok=True)
    if kept.stat().st_dev != Path(place).stat().st_dev and (left := shutil.disk_usage(kept).free) < wanted:
        raise Unsupported(
            f"no room in the cache {kept} to keep {load.store}: {shown(left)} free, {shown(wanted)} needed; free some "
            "(dbcluster cache lists what can be made again), or take another disk with XDG_CACHE_HOME"
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
            grown = shown(max(cache.size(data) - empty, 0))
            tell(f"filling {load.store}: {grown} after {time.monotonic() - began:.0f} s")

    following = threading.Thread(target=follow, daemon=True)
    following.start()
    try:
        yield tell
    finally:
        ended.set()
        following.join()


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
            grown = shown(cache.size(Path(node.data)))
            text += (
                f"\nthe disk of {node.host.directory} is full: {shown(free)} are left, and the server's data had "
                f"grown to {grown}; {WAYS_OUT}"
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


def shown(size: int) -> str:
    """Bytes as people read them."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
