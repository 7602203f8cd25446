"""``Pool``: the running clusters of a run. Tests with equal specs share a cluster; the pool ends unused ones."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import queue
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_dbcluster import wait
from pytest_dbcluster.clusters import bringing
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.servers import connection
from pytest_dbcluster.clusters.servers.cnf_file import CnfFile
from pytest_dbcluster.clusters.servers.data_template import Template
from pytest_dbcluster.clusters.startup import bring_up
from pytest_dbcluster.clusters.switch import Switch
from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.formatting import Report, quantity, some
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioner import provisioner_class
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.rounds.busy_machine import OthersLoad
from pytest_dbcluster.spec import PARITIES, TOOLS, ClusterSpec, ReleaseName
from pytest_dbcluster.system import cache
from pytest_dbcluster.system.machine_lock import Turns
from pytest_dbcluster.system.tracing.recorder import span
from pytest_dbcluster.testbed.datasets import dataset_template, disks
from pytest_dbcluster.testbed.resolution import Resolution
from pytest_dbcluster.testbed.sampler import BusyWatch
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import HasDataSet

LEAVE_SECONDS = 20.0  # maximum wait for the machine's lock before the pool stops the servers without it
SIDE_BY_SIDE = 2  # clusters that start at once, and that may run at once even if one of them is unused
GROWTH = 128 * 2**20  # growth of a copy of a data set in bytes: temporary tables, binlogs, rows of a few rounds


@dataclasses.dataclass
class Running:
    """One running cluster, and the switch that turns it from variant to variant."""

    cluster: Cluster
    """The cluster."""

    switch: Switch
    """Its switch."""

    data: object = None
    """What its tables are (``comparability.data``); None before the first."""

    prepared: set[object] = dataclasses.field(default_factory=set)
    """The workloads, without their rates and lengths, that were prepared with these tables."""

    warm: bool = False
    """Whether it has had rounds that count. All its measurements have one data set, which is in memory then."""

    users: weakref.WeakSet[object] = dataclasses.field(default_factory=weakref.WeakSet)
    """The measurements that have used it."""

    def lacks(self, data: object, workload: object) -> bool:
        """Whether a workload was not prepared yet with these tables. Other tables forget all workloads."""
        if self.data != data:
            self.data, self.prepared = data, set()
        return workload not in self.prepared

    def is_warm(self, block: int) -> bool:
        """Whether it has had rounds that count, before a round of this block; those of a warm-up are negative."""
        self.warm = self.warm or block >= 0
        return self.warm


class Pool:
    """All clusters of a run. resolution: turns the specs of the run into variants.

    over: returns why the run must not start or wait for anything, such as a spent budget; empty while it may.
    """

    def __init__(self, resolution: Resolution, over: Callable[[], str] = lambda: "") -> None:
        self.resolution = resolution
        self.provisioner = resolution.provisioner
        self._progress = progress = resolution.progress
        self._running: dict[tuple[object, ...], Running] = {}
        self.calibrated: set[tuple[object, ...]] = set()  # clusters, each with the key of its calibration
        self._clients: dict[ReleaseName | None, Sequence[Host]] = {}
        self._brought: set[tuple[Host, str]] = set()  # hosts, and the keys of the releases that they have
        self.turns = Turns.on(self.provisioner.offers, self.provisioner.run_id, progress, over)
        resolution.building = self._building
        self._watch = BusyWatch(progress)

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """A turn to measure; it reports if other programs keep the machine busy."""
        with self.turns.measuring(), self._watch.measuring() if self.turns.machine else contextlib.nullcontext():
            yield

    @property
    def others_before(self) -> OthersLoad | None:
        """The cores that other programs took before the first round; None before it, and for hosts elsewhere."""
        return self._watch.before

    @property
    def environment(self) -> Mapping[str, str]:
        """The conditions of the figures besides this machine, from the hosts and our connections: name -> text."""
        return {"control driver": connection.driver(), **self.provisioner.environment}

    def _building(self) -> AbstractContextManager[None]:
        return self.turns.building()  # tests give a pool other turns

    def running(self, variants: Sequence[Variant], user: object = None) -> list[Running]:
        """The running cluster of each variant, in order. Starts missing clusters, and may end others.

        user: the measurement that calls. Raises ProvisionError if it has used a cluster that lost its hosts, since it
        would continue with another cluster. Raises Unsupported if memory or disk do not suffice.
        """
        keys = [variant.cluster_key for variant in variants]
        for used in (running.cluster for running in self._running.values() if user in running.users):
            if used.unusable and not used.dirty:
                raise ProvisionError(f"cluster {used.spec}: {used.unusable}")
        usable = [key for key, running in self._running.items() if not running.cluster.unusable]
        if len(usable) < len(self._running) or not set(keys) <= set(usable) or len(usable) > _maximum_clusters(keys):
            with self.turns.building(), span("start"):
                self._change(variants, keys)
        for key in keys:
            self._running[key] = self._running.pop(key)  # so that the most recently used cluster ends last
            if user is not None:
                self._running[key].users.add(user)
        return [self._running[key] for key in keys]

    def _change(self, variants: Sequence[Variant], keys: Sequence[tuple[object, ...]]) -> None:
        """End dirty, lost and unused clusters, and start missing ones."""
        for key in [key for key, old in self._running.items() if old.cluster.unusable]:
            self._end(key)
        unused = [key for key in self._running if key not in keys]
        while unused and len({*self._running, *keys}) > _maximum_clusters(keys):
            self._end(unused.pop(0))
        missing: dict[tuple[object, ...], Variant] = {}
        for variant, key in zip(variants, keys, strict=True):
            if key not in self._running:
                missing.setdefault(key, variant)  # a shared cluster has the name of its first variant
        if missing:
            self._admit(list(missing.values()), keys)
            templates = {
                key: self._data_set(variant, variant.data_set_of)
                for key, variant in missing.items()
                if variant.data_set_of
            }
            with self.turns.admitting():  # another run may have taken the memory while this one populated
                self._admit(list(missing.values()), keys)
                if templates:
                    copies = [(missing[key], template) for key, template in templates.items()]
                    self._admit_copies(copies, keys)
                self._start(missing, templates)

    def _data_set(self, variant: Variant, workload: HasDataSet) -> Template:
        """The template with the data set of a workload. Populates it if the cache has none."""
        client, options = self.client(variant.release), dict(variant.static)
        return dataset_template(workload, variant.release, self.provisioner, client, options, self._progress)

    def _start(
        self, missing: Mapping[tuple[object, ...], Variant], templates: Mapping[tuple[object, ...], Template]
    ) -> None:
        """Start these clusters side by side, since a start mostly waits. If one fails, the others stop too.

        templates: for the clusters that start from a data set. Progress is reported in this thread.
        """
        for variant in missing.values():
            if variant.spec.proxy in TOOLS:
                find.find(variant.spec.proxy, progress=self._progress)  # here, so that progress is shown
        # Lines of progress from the threads, and each future that is done.
        events: queue.SimpleQueue[str | concurrent.futures.Future[Running]] = queue.SimpleQueue()
        stop = threading.Event()

        def start(key: tuple[object, ...], variant: Variant) -> Running:
            with wait.interruptible_by(stop):
                return self._start_cluster(variant, templates.get(key), events.put)

        futures: dict[tuple[object, ...], concurrent.futures.Future[Running]] = {}
        threads = concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE)
        try:
            for key, variant in missing.items():
                futures[key] = threads.submit(start, key, variant)
                futures[key].add_done_callback(events.put)
            for _ in missing:
                while isinstance(event := events.get(), str):
                    self._progress(event)
                event.result()
        except BaseException:
            stop.set()
            raise
        finally:
            threads.shutdown(cancel_futures=True)
            ready = {key: future for key, future in futures.items() if not (future.cancelled() or future.exception())}
            self._running |= {key: future.result() for key, future in ready.items()}

    def _start_cluster(self, variant: Variant, template: Template | None, progress: Report) -> Running:
        spec = variant.spec
        shown = some([f"{name}={value}" for name, value in variant.static]) or "default options"
        shown += f", with data set {variant.data_set_of.data_set}" if variant.data_set_of else ""
        progress(
            f"starting {variant.topology.servers(spec.nodes)} x {variant.release_name} as {spec.topology} with {shown}"
        )
        cluster = bring_up(variant.to_start(), self.provisioner, start=template, progress=progress)
        progress(f"{spec.topology} of {spec.nodes} with {shown} ready in {cluster.ready_seconds:.1f} s")
        return Running(cluster, Switch(cluster))

    def _admit(self, missing: Sequence[Variant], needed: Sequence[tuple[object, ...]]) -> None:
        """End unused clusters until memory suffices. Raises Unsupported if that is not enough."""
        wanted, nodes = sum(map(_memory, missing)), sum(variant.spec.nodes for variant in missing)
        if (free := self._make_free(lambda: self.provisioner.memory().available, wanted, needed)) < wanted:
            raise Unsupported(
                f"not enough memory for {quantity(nodes, 'more server')}: {free / 2**20:.0f} MiB available, "
                f"{wanted / 2**20:.0f} MiB needed; free some, or compare fewer variants with separate servers"
            )

    def _admit_copies(self, copies: Sequence[tuple[Variant, Template]], needed: Sequence[tuple[object, ...]]) -> None:
        """End unused clusters until all disks have room for the copies. Raises Unsupported if that is not enough.

        copies: the variant of each cluster, and the template that its nodes start from.
        """
        client = next(iter(self._clients.values()))[0]
        sizes = [
            (variant.spec.on_release(variant.release.release_name), cache.size(template.data) + GROWTH)
            for variant, template in copies
        ]
        with disks(self.provisioner, client, sizes) as found:
            for disk in found:
                disk.host.make_room(disk.needed)
            self._make_free(lambda: min(disk.host.free_bytes() - disk.needed for disk in found), 0, needed)
            for disk in found:
                if (free := disk.host.free_bytes()) < disk.needed:
                    other = "set DBCLUSTER_DATA_DIR to a directory on another disk"
                    raise Unsupported(
                        f"no room on {disk} for {quantity(disk.copies, 'temporary copy')} of data sets: "
                        f"{free / 2**20:.0f} MiB free, {disk.needed / 2**20:.0f} MiB needed; free some, or "
                        f"{'use a host with more room' if disk.host.machine else other}"
                    )

    def _make_free(self, free: Callable[[], int], wanted: int, needed: Sequence[tuple[object, ...]]) -> int:
        """End unused clusters until ``wanted`` bytes are free or no unused one is left; return the free bytes."""
        for key in [key for key in self._running if key not in needed]:
            if free() >= wanted:
                break
            self._end(key)
        return free()

    def room_for_all(self, variants: Sequence[Variant]) -> bool:
        """Whether the machine's memory suffices to run the clusters of these variants side by side."""
        sizes = {variant.cluster_key: _memory(variant) for variant in variants}
        missing = sum(size for key, size in sizes.items() if key not in self._running)
        unused = [node for key, old in self._running.items() if key not in sizes for node in old.cluster.nodes]
        return self.provisioner.memory().available + sum(node.dialect.memory for node in unused) >= missing

    @property
    def clusters(self) -> list[Cluster]:
        """The clusters that run now."""
        return [running.cluster for running in self._running.values()]

    def client(self, release: Release) -> Host:
        """The first host of the load generator; see ``clients``."""
        return self.clients(release)[0]

    def clients(self, release: Release) -> Sequence[Host]:
        """The hosts of the load generator, for workloads that use programs of this release.

        They serve the whole run, unless the provisioner brings the programs of each release. If one of them is lost,
        the pool replaces all.
        """
        asked = release.release_name if self.provisioner.brings_programs else None
        hosts = self._clients.get(asked, ())
        if not hosts or any(host.why_lost() for host in hosts):
            self.provisioner.give_back([host for host in hosts if not host.why_lost()])
            hosts = self.provisioner.clients(ClusterSpec("standalone", release=asked, name="client"))
            self._clients[asked] = hosts
        for host in hosts:
            self.bring(release, host)
        return hosts

    def bring(self, release: Release, host: Host) -> None:
        """Copy the programs of a release to a host that outlives the rounds, once. Raises ProvisionError."""
        if (host, release.key) not in self._brought:
            bringing.bring(release, [host])
            self._brought.add((host, release.key))

    def data_host(self, variant: Variant, client: Release) -> Host:
        """A host with the disk of a variant's data; the host of the load generator if no cluster runs."""
        running = self._running.get(variant.cluster_key)
        return running.cluster.hosts[0] if running and not running.cluster.unusable else self.client(client)

    def end(self, variants: Sequence[Variant]) -> None:
        """End the clusters of these variants, if they run."""
        for key in {variant.cluster_key for variant in variants} & self._running.keys():
            with self.turns.building():
                self._end(key)

    def end_keys(self, keys: Sequence[tuple[object, ...]]) -> None:
        """End the clusters with these keys, in the caller's turn; their memory is free then."""
        for key in keys:
            self._end(key)

    def _end(self, key: tuple[object, ...]) -> None:
        old = self._running.pop(key)
        old.cluster.close()
        self.provisioner.give_back(old.cluster.hosts)

    def close(self) -> None:
        """End every cluster. If Ctrl-C or a signal interrupts this, it still closes all control connections."""
        clusters = self.clusters
        try:
            for key in list(self._running):
                self._end(key)
        finally:
            for cluster in clusters:
                cluster.disconnect()

    def leave(self, most: float = LEAVE_SECONDS) -> None:
        """End every cluster and close the provisioner, under the machine's lock, because stopping writes to the disk.

        most: seconds to wait for the lock; then they end without it. A pool that started nothing does not wait.
        """
        with contextlib.ExitStack() as stack:
            if self.turns.had_turn:
                stack.enter_context(self.turns.building(most=most))
            stack.enter_context(span("close"))
            stack.callback(self.provisioner.close)
            stack.callback(self.close)


def open_pool(
    provisioner: str,
    *,
    progress: Report,
    images: Mapping[str, str] = MappingProxyType({}),
    machines: Mapping[str, Any] = MappingProxyType({}),
    keep: bool = False,
    over: Callable[[], str] = lambda: "",
    fragments: Path = Path(),
    below: CnfFile | None = None,
    root: Path | None = None,
    parity_profile: str = PARITIES[0],
) -> Pool:
    """Open the provisioner of this name, and a pool on it; ``Pool.leave`` closes both. Starts no server.

    images, machines: the results of ``parse_images`` and ``remote_arguments``. keep: whether servers may stay running.
    The rest is as in ``Resolution`` and ``Pool``. Raises ConfigError for unknown names and wrong options, and
    Unsupported if this machine lacks something.
    """
    chosen: dict[str, Any] = {"chosen": dict(images)} if images else dict(machines)
    made = provisioner_class(provisioner)(**({"keep": True} if keep else {}), **chosen)
    resolution = Resolution(
        made, fragments=fragments, below=below, progress=progress, root=root, parity_profile=parity_profile
    )
    return Pool(resolution, over)


def _maximum_clusters(keys: Sequence[tuple[object, ...]]) -> int:
    """The maximum number of clusters that run at once, if the clusters of these keys are needed."""
    return max(SIDE_BY_SIDE, len(set(keys)))


def _memory(variant: Variant) -> int:
    """Bytes of memory that the servers of a cluster need, without a large buffer pool."""
    return variant.spec.nodes * variant.dialect.memory
