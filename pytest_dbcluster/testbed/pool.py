"""Running clusters, reused between tests while their specs are equal: built once, ended when they are not needed."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import queue
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence

import psutil

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.servers.data_template import Template
from pytest_dbcluster.clusters.startup import bring_up
from pytest_dbcluster.errors import Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import TOOLS, ClusterSpec, ReleaseName
from pytest_dbcluster.system import cache
from pytest_dbcluster.system.machine_lock import Turns
from pytest_dbcluster.testbed.datasets import dataset_template
from pytest_dbcluster.testbed.resolution import Resolution
from pytest_dbcluster.testbed.variants import Switch, Variant
from pytest_dbcluster.workloads.workload import HasDataSet

SIDE_BY_SIDE = 2
GROWTH = 128 * 2**20  # of a copy of a data set, in bytes: temporary tables, binlogs, what a few rounds add


@dataclasses.dataclass
class Running:
    """One running cluster, the switch that turns it, and the load whose tables it holds now."""

    cluster: Cluster
    switch: Switch
    prepared: object = None


class Pool:
    """Every cluster of a run; ``resolution`` says what their specs mean."""

    def __init__(self, resolution: Resolution) -> None:
        self.resolution = resolution
        self.provisioner = resolution.provisioner
        self._progress = progress = resolution.progress
        self._running: dict[tuple[object, ...], Running] = {}
        self._clients: dict[ReleaseName | None, Host] = {}
        self.turns = Turns.on(self.provisioner.offers, self.provisioner.run_id, progress)

    def running(self, variants: Sequence[Variant]) -> list[Running]:
        """The running cluster of each variant, in order; those that no variant of these needs may be ended."""
        keys = [variant.cluster_key for variant in variants]
        usable = [key for key, running in self._running.items() if not running.cluster.dirty]
        if len(usable) < len(self._running) or not set(keys) <= set(usable) or len(usable) > _most(keys):
            with self.turns.building():
                self._change(variants, keys)
        for key in keys:
            self._running[key] = self._running.pop(key)  # the one used last is ended last
        return [self._running[key] for key in keys]

    def _change(self, variants: Sequence[Variant], keys: Sequence[tuple[object, ...]]) -> None:
        """End the clusters that are dirty or spare, and start those that are missing."""
        for key in [key for key, old in self._running.items() if old.cluster.dirty]:
            self._end(key)
        spare = [key for key in self._running if key not in keys]
        while spare and len({*self._running, *keys}) > _most(keys):
            self._end(spare.pop(0))
        missing: dict[tuple[object, ...], Variant] = {}
        for variant, key in zip(variants, keys, strict=True):
            if key not in self._running:
                missing.setdefault(key, variant)  # a cluster that serves several is named by the first
        if missing:
            self._admit(list(missing.values()), keys)
            begin = {
                key: self._data_set(variant, variant.data_set_of)
                for key, variant in missing.items()
                if variant.data_set_of
            }
            with self.turns.admitting():  # populating took its time, and another run may have the memory by now
                self._admit(list(missing.values()), keys)
                if begin:
                    self._admit_copies([(missing[key].spec.nodes, made) for key, made in begin.items()], keys)
                self._start(missing, begin)

    def _data_set(self, variant: Variant, load: HasDataSet) -> Template:
        """What servers of a variant start with that have a data set; populated here, where its progress is seen."""
        client, options = self.client(variant.release), dict(variant.static)
        return dataset_template(load, variant.release, self.provisioner, client, options, self._progress)

    def _start(
        self, missing: Mapping[tuple[object, ...], Variant], begin: Mapping[tuple[object, ...], Template]
    ) -> None:
        """Start these clusters side by side: most of the time goes into waiting. One that fails ends the others."""
        for variant in missing.values():
            if variant.spec.proxy in TOOLS:
                find.find(variant.spec.proxy, progress=self._progress)  # here, where its progress can be seen
        said: queue.SimpleQueue[str | concurrent.futures.Future[Running]] = queue.SimpleQueue()
        stop = threading.Event()

        def start(key: tuple[object, ...], variant: Variant) -> Running:
            with wait.ended_by(stop):
                return self._start_one(variant, begin.get(key), said.put)

        begun: dict[tuple[object, ...], concurrent.futures.Future[Running]] = {}
        threads = concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE)
        try:
            for key, variant in missing.items():
                begun[key] = threads.submit(start, key, variant)
                begun[key].add_done_callback(said.put)
            for _ in missing:
                while isinstance(one := said.get(), str):
                    self._progress(one)
                one.result()
        except BaseException:
            stop.set()
            raise
        finally:
            threads.shutdown(cancel_futures=True)
            ready = {key: one for key, one in begun.items() if not (one.cancelled() or one.exception())}
            self._running |= {key: one.result() for key, one in ready.items()}

    def _start_one(self, variant: Variant, begin: Template | None, progress: Report) -> Running:
        spec = variant.spec
        shown = ", ".join(f"{name}={value}" for name, value in variant.static) or "default options"
        shown += f", with data set {variant.data_set_of.data_set}" if variant.data_set_of else ""
        progress(f"starting {spec.nodes} x {variant.release.name} as {spec.topology} with {shown}")
        cluster = bring_up(variant.to_start(), self.provisioner, start=begin, progress=progress)
        progress(f"{spec.topology} of {spec.nodes} with {shown} ready in {cluster.ready_seconds:.1f} s")
        return Running(cluster, Switch(cluster))

    def _admit(self, missing: Sequence[Variant], needed: Sequence[tuple[object, ...]]) -> None:
        """End clusters that nobody needs now until memory suffices. Raises Unsupported when it never does."""
        wanted, nodes = sum(map(_memory, missing)), sum(variant.spec.nodes for variant in missing)
        if (free := self._made_free(lambda: psutil.virtual_memory().available, wanted, needed)) < wanted:
            raise Unsupported(
                f"no memory for {nodes} more servers beside those that run: {free / 2**20:.0f} MiB available, "
                f"{wanted / 2**20:.0f} MiB needed; free some, or compare fewer variants that need servers of their own"
            )

    def _admit_copies(self, copies: Sequence[tuple[int, Template]], needed: Sequence[tuple[object, ...]]) -> None:
        """The same for the disk that so many nodes of each need. Raises Unsupported."""
        directory = next(iter(self._clients.values())).directory
        nodes = sum(many for many, _ in copies)
        wanted = sum(many * (cache.size(made.data) + GROWTH) for many, made in copies)
        if (free := self._made_free(lambda: shutil.disk_usage(directory).free, wanted, needed)) < wanted:
            raise Unsupported(
                f"no room on the disk of {directory} for {nodes} copies of data sets, which go with their servers: "
                f"{free / 2**20:.0f} MiB free, {wanted / 2**20:.0f} MiB needed; free some, or take another disk with "
                "DBCLUSTER_DATA_DIR=DIRECTORY"
            )

    def _made_free(self, free: Callable[[], int], wanted: int, needed: Sequence[tuple[object, ...]]) -> int:
        """What is free, after clusters that nobody needs now were ended until it is enough."""
        for key in [key for key in self._running if key not in needed]:
            if free() >= wanted:
                break
            self._end(key)
        return free()

    def room_for_all(self, variants: Sequence[Variant]) -> bool:
        """Whether the clusters of these variants can run side by side in the memory there is."""
        sizes = {variant.cluster_key: _memory(variant) for variant in variants}
        missing = sum(size for key, size in sizes.items() if key not in self._running)
        spare = [node for key, old in self._running.items() if key not in sizes for node in old.cluster.nodes]
        return psutil.virtual_memory().available + sum(node.dialect.memory for node in spare) >= missing

    @property
    def clusters(self) -> list[Cluster]:
        """The clusters that run now."""
        return [running.cluster for running in self._running.values()]

    def client(self, release: Release) -> Host:
        """The host that every load starts from which takes its programs from this release; mostly one for the run."""
        asked = release.asked if self.provisioner.brings_programs else None
        if asked not in self._clients:
            spec = ClusterSpec("standalone", release=asked, name="client")
            self._clients[asked] = self.provisioner.acquire(spec)[0]
        return self._clients[asked]

    def _end(self, key: tuple[object, ...]) -> None:
        old = self._running.pop(key)
        old.cluster.close()
        self.provisioner.give_back(old.cluster.hosts)

    def close(self) -> None:
        """End every cluster."""
        for key in list(self._running):
            self._end(key)


def _most(keys: Sequence[tuple[object, ...]]) -> int:
    """How many clusters may run when these are needed."""
    return max(SIDE_BY_SIDE, len(set(keys)))


def _memory(variant: Variant) -> int:
    """What the servers of a cluster take, in bytes, beyond a large buffer pool."""
    return variant.spec.nodes * variant.dialect.memory
