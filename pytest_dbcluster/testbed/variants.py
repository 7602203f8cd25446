"""``Variant``: a resolved cluster spec. ``References``: what a server with its options has after a cold start.

A switch has to compare all global variables: setting one variable may change another, and setting the first back may
leave the other changed. So each variant has a cold-start reference: all global variables of a server that starts with
the variant's options. After a switch, all global variables of every node must equal the reference.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

from pytest_dbcluster import formatting, network
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.dialects.dialect import Dialect
from pytest_dbcluster.clusters.proxy import Proxy
from pytest_dbcluster.clusters.servers.data_template import Variable
from pytest_dbcluster.clusters.servers.options import differences
from pytest_dbcluster.clusters.servers.variables import ALWAYS_STATIC, needs_start
from pytest_dbcluster.clusters.startup import ResolvedCluster, bring_up
from pytest_dbcluster.clusters.switch import Switch, is_switched
from pytest_dbcluster.clusters.topology import Topology, topology
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.provisioner import Provisioner, name_of
from pytest_dbcluster.network import NetworkNeeds
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec, HostNeeds, join_releases
from pytest_dbcluster.system import cache
from pytest_dbcluster.system.tracing.recorder import span
from pytest_dbcluster.workloads.workload import HasDataSet, Workload

FORMAT = 6  # of a reference in the cache; increase it if its fields or the compared variables change
TRIED = 4  # with up to so many options, we try each one to find the one that must be static


@dataclasses.dataclass(frozen=True)
class Variant:
    """A resolved spec. Topology, proxy class and dialect follow from spec and release, so equality ignores them."""

    spec: ClusterSpec
    """The spec."""

    release: Release
    """The programs of its release."""

    topology: Topology = dataclasses.field(compare=False, repr=False)
    """Its topology."""

    proxy_class: type[Proxy] | None = dataclasses.field(compare=False, repr=False)
    """The class of its proxy; None for no proxy."""

    dialect: Dialect = dataclasses.field(compare=False, repr=False)
    """The dialect of its servers."""

    static: tuple[tuple[str, str], ...]
    """Sorted pairs of the options that the cluster starts with."""

    dynamic: tuple[tuple[str, str], ...]
    """Sorted pairs of the options that a switch sets."""

    data_set_of: HasDataSet | None = None
    """The workload of the data set that the servers start with; None for servers that start empty."""

    settings: tuple[tuple[str, str], ...] = ()
    """Sorted pairs of the topology's options, which a switch sets too."""

    ends: tuple[str, ...] | None = None
    """``client`` and ``proxy``, if they are on the cluster's network path; None for a cluster without a path."""

    releases: tuple[Release, ...] = ()
    """The programs of each node, if nodes differ; then ``release`` is the oldest. Empty if all have ``release``."""

    @property
    def release_name(self) -> str:
        """The name of the release, or of those of all nodes: ``mariadb:10.11+11.8``."""
        return join_releases([release.name for release in self.releases or [self.release]])

    @property
    def version(self) -> str:
        """The exact version, or those of all nodes: ``10.11.19+11.8.6``."""
        return join_releases([release.version for release in self.releases or [self.release]])

    @property
    def programs(self) -> tuple[str, ...]:
        """The key of the programs of each node; one for all if nodes do not differ."""
        return tuple(release.key for release in self.releases or [self.release])

    @property
    def network(self) -> NetworkNeeds | None:
        """The network that a switch sets on the cluster's path; None for a cluster without a path."""
        return None if self.ends is None else self.spec.needs.network or network.REST

    @property
    def _at_start(self) -> ClusterSpec:
        """The spec at the start of the cluster: if it has a path, the path delays nothing."""
        if self.ends is None:
            return self.spec
        return dataclasses.replace(self.spec, needs=self.spec.needs.at_rest(self.ends))

    @property
    def options(self) -> dict[str, str]:
        """Static and dynamic options together."""
        return {**dict(self.static), **dict(self.dynamic)}

    @property
    def asked(self) -> dict[str, str]:
        """The options of the servers and of the topology."""
        return {**self.options, **dict(self.settings)}

    @property
    def proxy_settings(self) -> dict[str, float]:
        """The value of each option of the proxy, by name; empty without a proxy."""
        return self.proxy_class.read_settings(self.spec, self.topology) if self.proxy_class else {}

    def on_instance(self, number: int) -> Variant:
        """The same variant on another cluster of the same kind; instances are numbered from 0."""
        return dataclasses.replace(self, spec=dataclasses.replace(self.spec, instance=number))

    def with_data_set_of(self, workload: Workload) -> Variant:
        """The same variant on servers that start with the data set of this workload, if it has one.

        Then the options that decide the layout of tables on disk become static, because the data set has them. Nodes of
        several releases start without it, and the workload makes its tables there.
        """
        if not isinstance(workload, HasDataSet) or self.releases:
            return self
        return dataclasses.replace(self.with_static(self.dialect.shaping), data_set_of=workload)

    def with_static(self, names: Collection[str]) -> Variant:
        """The same variant with these dynamic options made static."""
        static = dict(self.static) | {name: value for name, value in self.dynamic if name in names}
        dynamic = tuple(pair for pair in self.dynamic if pair[0] not in names)
        return dataclasses.replace(self, static=tuple(sorted(static.items())), dynamic=dynamic)

    def to_start(self, options: Mapping[str, str] | None = None) -> ResolvedCluster:
        """The input of ``bring_up`` for a cluster of this variant, with its static options or with ``options``."""
        chosen = dict(self.static) if options is None else options
        return ResolvedCluster(
            self._at_start, self.release, self.topology, self.proxy_class, chosen, dict(self.settings), self.releases
        )

    @property
    def cluster_key(self) -> tuple[object, ...]:
        """Variants with equal keys share one running cluster."""
        spec, data_set = self.spec, self.data_set_of.data_set if self.data_set_of else ""
        own = (spec.topology, spec.nodes, self.programs, spec.proxy, self._at_start.needs, spec.instance)
        return (*own, *self.proxy_settings.items(), self.static, data_set)


def share_path(variants: Sequence[Variant]) -> list[Variant]:
    """The same variants; if one of them needs a network, all get a path with the same ends.

    So variants that differ only in their network share a cluster, and all have a path.
    """
    if all(variant.ends is None for variant in variants):
        return list(variants)
    ends = tuple(sorted({end for variant in variants for end in variant.ends or ()}))
    # A cluster without a proxy has no such end.
    return [
        dataclasses.replace(variant, ends=tuple(end for end in ends if end != network.PROXY or variant.spec.proxy))
        for variant in variants
    ]


def split(variant: Variant, variables: Mapping[str, Variable], common: Mapping[str, str] | None = None) -> Variant:
    """The same variant with its options split into static and dynamic ones.

    variables: those of the server, which say what can change at run time. The variables of IDENTITY are also static,
    since a switch neither sets nor compares them. So are those that take effect only at a restart of replication. A
    switch may restart the appliers, if the topology permits it, so what they alone read is dynamic there.
    common: options of every cluster of the run. Every cluster starts with them, and a variant with another value
    switches to that value.
    """
    base, options = dict(common or {}), variant.options
    replication = variant.dialect.replication
    restarted = replication.read_by_appliers if variant.topology.restarts_appliers else frozenset()
    at_start = ALWAYS_STATIC | (replication.read_at_start - restarted)
    dynamic = {
        name: value
        for name, value in options.items()
        if name in variables and base.get(name) != value and not (name in at_start or needs_start(variables[name]))
    }
    static = base | {name: value for name, value in options.items() if name not in dynamic}
    return dataclasses.replace(variant, static=tuple(sorted(static.items())), dynamic=tuple(sorted(dynamic.items())))


def unequal_sharing(variants: Sequence[Variant]) -> bool:
    """Whether some clusters run more variants with data sets than others, and so warm up in fewer blocks."""
    keys = [variant.cluster_key for variant in variants]
    return len({keys.count(key) for key in keys}) > 1 and all(variant.data_set_of for variant in variants)


@dataclasses.dataclass(frozen=True)
class Reference:
    """The cold-start reference of a variant."""

    changes: dict[str, str]
    """The variables that a switch sets, with their values."""

    obstacle: str
    """Why no switch is possible; empty if it is."""


Building = Callable[[], AbstractContextManager[None]]


class References:
    """Finds the cold-start references of variants on small clusters of their topology, and keeps them in the cache."""

    def __init__(self, provisioner: Provisioner, progress: Report, building: Building = contextlib.nullcontext) -> None:
        self._provisioner = provisioner
        self._progress = progress
        self._building = building  # a context in which servers may start

    def make_switchable(self, variant: Variant, variables: Mapping[str, Variable]) -> Variant:
        """The same variant, with static options in place of those that a switch cannot set or reset.

        One static option is often enough. Then the variant shares a cluster with those that start with the same option.
        This tries the options that the obstacle names first. Each try starts two servers, so a variant with more
        options than ``TRIED`` starts with all of them.

        MariaDB 10.11 and 11.8 need this for innodb_flush_log_at_trx_commit=2 on a disk with unbuffered writes. A start
        with it turns innodb_log_file_buffering on. A running server also turns that on, but does not turn it off.
        """
        if not variant.dynamic or not (obstacle := self._reference(variant, variables).obstacle):
            return variant
        names = [name for name, _ in variant.dynamic]
        for name in sorted(names, key=lambda name: name not in obstacle) if 1 < len(names) <= TRIED else ():
            started = variant.with_static([name])
            # A server may refuse one option, such as a collation without its character set.
            with contextlib.suppress(ProvisionError):
                if not self._reference(started, variables, report=False).obstacle:
                    return started
        return variant.with_static(names)

    def changes(self, variant: Variant, variables: Mapping[str, Variable]) -> dict[str, str] | None:
        """Every variable that the variant's dynamic options change, with its cold-start value.

        None if a switch of a running server there and back does not restore all variables of a cold start. Then at
        least one of the options must be static (``make_switchable``).
        """
        if not variant.dynamic:
            return {}
        reference = self._reference(variant, variables)
        return None if reference.obstacle else reference.changes

    def _reference(self, variant: Variant, variables: Mapping[str, Variable], *, report: bool = True) -> Reference:
        """The reference from the cache, or from servers that this starts. report: whether to report an obstacle.

        Raises ProvisionError if a server does not start.
        """
        release, topology = variant.release, variant.topology.alike or variant.spec.topology
        # A topology with roles gets all nodes of the spec, since options may require that number of nodes.
        nodes = 1 if variant.topology.minimum_nodes == 1 or variant.topology.alike else variant.spec.nodes
        alone = variant.spec.nodes == 1 or bool(variant.topology.alike)
        # MariaDB's innodb_log_file_buffering, for one, depends on the disk.
        where = [name_of(self._provisioner), self._provisioner.disk, variant.spec.needs.memory]
        key = json.dumps([FORMAT, release.key, topology, alone, nodes, where, variant.static, variant.dynamic])
        name = f"{release.product}-{release.version}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
        path = cache.root() / "references" / name
        waits_for = f"another process that reads the cold-start reference {path.stem}"
        known = cache.read_manifest(path, lambda fields: Reference(**fields))
        if known is not None:
            return known
        # The machine first: a process that waits for it must not hold a lock that the owner of the machine needs.
        with (
            self._building(),
            cache.hold_file(path.with_name(f"{name}.lock"), progress=self._progress, waits_for=waits_for),
        ):
            reference = cache.read_manifest(path, lambda fields: Reference(**fields))
            if reference is None:
                self._progress(f"reading the cold-start reference of {variant.spec} on {release.name}")
                with span("reference", variant=str(variant.spec)):
                    reference = self._find(variant, variables, nodes)
                if reference.obstacle and report:
                    asked = formatting.some([f"{name}={value}" for name, value in variant.dynamic])
                    self._progress(
                        f"running servers cannot switch to the options of {variant.spec} and back ({asked}), because "
                        f"{reference.obstacle}; so servers start with one or more of them, and variants that differ "
                        "in those get separate clusters"
                    )
                cache.write_manifest(path, dataclasses.asdict(reference))
        return reference

    def _find(self, variant: Variant, variables: Mapping[str, Variable], nodes: int) -> Reference:
        with self._server(variant, variant.options, nodes) as server:
            wanted = server.nodes[0].variables()
        # Surplus appliers end only when they apply a write of another node, so a single node would keep them.
        if variant.dialect.galera and not dict(variant.dynamic).keys().isdisjoint(variant.dialect.galera.appliers):
            nodes = min(2, variant.spec.nodes)
        with self._server(variant, dict(variant.static), nodes) as server:
            changed = differences(server.nodes[0].variables(), wanted)
            changes = {name: after for name, (_, after) in changed.items() if is_switched(name)}
            read_only = [name for name in changes if name in variables and variables[name].read_only]
            obstacle = f"its options change read-only variables: {', '.join(read_only)}" if read_only else ""
            if not read_only:
                try:
                    switch = Switch(server)
                    switch.to(changes)
                    switch.to({})
                except ProvisionError as error:
                    obstacle = str(error)
        return Reference(changes, obstacle)

    @contextlib.contextmanager
    def _server(self, variant: Variant, options: dict[str, str], nodes: int) -> Iterator[Cluster]:
        name = variant.topology.alike or variant.spec.topology
        needs = HostNeeds(memory=variant.spec.needs.memory)  # its options may need that much
        spec = ClusterSpec(name, nodes=nodes, release=variant.release.release_name, needs=needs, name="reference")
        smallest = dataclasses.replace(variant, spec=spec, topology=topology(name), proxy_class=None, settings=())
        cluster = bring_up(smallest.to_start(options), self._provisioner)
        try:
            yield cluster
        finally:
            cluster.close()
            self._provisioner.give_back(cluster.hosts)
