"""Running clusters, reused between tests while their specs are equal: built once, ended when they are not needed."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import queue
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.proxy import proxy_class
from pytest_dbcluster.clusters.servers import options as opts
from pytest_dbcluster.clusters.servers import parity
from pytest_dbcluster.clusters.servers.data_template import Template
from pytest_dbcluster.clusters.startup import bring_up, ready_template
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ConfigError, Unsupported
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioner import Provisioner, memory_share, programs, unmet
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import PARITIES, TOOLS, ClusterSpec, ReleaseName
from pytest_dbcluster.system import cache
from pytest_dbcluster.system.machine_lock import Turns
from pytest_dbcluster.testbed.datasets import dataset_template
from pytest_dbcluster.testbed.variants import References, Switch, Variant, split
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
    """Every cluster of a run.

    ``below`` are the options of ``--db-cnf`` by their sections, ``fragments`` the place of my.cnf pieces,
    ``parity_profile`` is that of specs that name none.
    """

    def __init__(
        self,
        provisioner: Provisioner,
        *,
        fragments: Path,
        below: opts.Sections,
        progress: Callable[[str], None],
        parity_profile: str = PARITIES[0],
    ) -> None:
        self.provisioner = provisioner
        self._fragments = fragments
        self._below = dict(below)
        self._parity = parity_profile
        self._progress = progress
        self._running: dict[tuple[object, ...], Running] = {}
        self._releases: dict[ReleaseName, Release] = {}
        self._clients: dict[ReleaseName | None, Host] = {}
        self._references = References(provisioner, progress)
        self.overridden: list[str] = []
        self.turns = Turns.on(provisioner.offers, getattr(provisioner, "run_id", "-"), progress)

    def release(self, name: ReleaseName) -> Release:
        """The programs of a release, found or fetched once a run."""
        if name not in self._releases:
            self._releases[name] = programs(self.provisioner, name, self._progress)
        return self._releases[name]

    def variant(self, spec: ClusterSpec) -> Variant:
        """The spec with its options resolved and checked against the server's own list. Starts no cluster."""
        if spec.release is None:
            raise ConfigError(f"cluster {spec} names no release, and the run gave it none")
        topology(spec.topology)  # unknown names are refused before anything is fetched or started
        if spec.proxy:
            proxy_class(spec.proxy)
        if missing := unmet(self.provisioner, spec):
            raise Unsupported(missing)
        release = self.release(spec.release)
        form = topology(spec.topology)
        if lacking := form.lacks(release) or (spec.proxy and proxy_class(spec.proxy).lacks(release)):
            raise Unsupported(lacking)
        share = memory_share(spec, psutil.virtual_memory().total)
        same = parity.options(spec.parity or self._parity, release, spec.topology)
        own, lines = opts.resolve(spec, release.product, fragments=self._fragments, below=self._below, memory=share)
        options = {**same, **own}
        made = self._template(release, options)
        options, absent = opts.fit(options, made, release)
        way = [line] if spec.proxy and (line := proxy_class(spec.proxy).remark(form, release)) else []
        self.overridden += [line for line in (*lines, *absent, *way) if line not in self.overridden]
        below, _ = opts.of_server(release.product, self._below, "--db-cnf")
        common = {**same, **{name: opts.share(value, share) for name, value in below.items()}}
        common = {name: value for name, value in common.items() if name in options}
        variant = split(spec, release, options, made.variables, common)
        if self._references.changes(variant, made.variables) is None:
            return Variant(spec, release, tuple(sorted(options.items())), ())
        return variant

    def changes(self, variant: Variant) -> dict[str, str]:
        """What a switch to this variant sets on the cluster that was started with its static options."""
        made = self._template(variant.release, variant.options)
        return self._references.changes(variant, made.variables) or {}

    def defaults(self, variant: Variant) -> dict[str, str]:
        """The variables that a variant's servers would start with if their topology set none. Starts no cluster."""
        known = self._template(variant.release, variant.options).variables
        return {name: variable.value for name, variable in known.items()} | variant.options

    def _template(self, release: Release, options: Mapping[str, str]) -> Template:
        return ready_template(release, self.provisioner, options, self._progress)

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

    def _start_one(self, variant: Variant, begin: Template | None, progress: Callable[[str], None]) -> Running:
        spec = variant.spec
        shown = ", ".join(f"{name}={value}" for name, value in variant.static) or "default options"
        shown += f", with data set {variant.data_set_of.data_set}" if variant.data_set_of else ""
        progress(f"starting {spec.nodes} x {variant.release.name} as {spec.topology} with {shown}")
        options = dict(variant.static)
        cluster = bring_up(spec, variant.release, self.provisioner, options=options, start=begin, progress=progress)
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
        place = next(iter(self._clients.values())).directory
        nodes = sum(many for many, _ in copies)
        wanted = sum(many * (cache.size(made.data) + GROWTH) for many, made in copies)
        if (free := self._made_free(lambda: shutil.disk_usage(place).free, wanted, needed)) < wanted:
            raise Unsupported(
                f"no room on the disk of {place} for {nodes} copies of data sets, which go with their servers: "
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
        asked = release.asked if hasattr(self.provisioner, "supply") else None
        if asked not in self._clients:
            spec = ClusterSpec("standalone", release=asked, name="client")
            self._clients[asked] = self.provisioner.acquire(spec)[0]
        return self._clients[asked]

    def _end(self, key: tuple[object, ...]) -> None:
        old = self._running.pop(key)
        old.cluster.close()
        self.provisioner.release(old.cluster.hosts)

    def close(self) -> None:
        """End every cluster."""
        for key in list(self._running):
            self._end(key)


def _most(keys: Sequence[tuple[object, ...]]) -> int:
    """How many clusters may run when these are needed."""
    return max(SIDE_BY_SIDE, len(set(keys)))


def _memory(variant: Variant) -> int:
    """What the servers of a cluster take, in bytes, beyond a large buffer pool."""
    return variant.spec.nodes * dialect(variant.release.product, variant.release.version).memory
