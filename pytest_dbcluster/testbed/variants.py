"""Variants: specs that one running cluster can serve in turn, and the switch between them.

Reading back what was set is not enough: setting one variable may move another, and setting it back may leave
that one moved. So each variant has a cold-start reference, all global variables of a server that was started
with its options, and after a switch all global variables of every node must equal it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import time
from collections.abc import Iterator, Mapping

from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.dialects.dialect import Dialect
from pytest_dbcluster.clusters.proxy import Proxy
from pytest_dbcluster.clusters.servers.connection import SQLError
from pytest_dbcluster.clusters.servers.data_template import Variable
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.servers.options import differences
from pytest_dbcluster.clusters.servers.variables import ALWAYS_STATIC, is_identity, needs_start
from pytest_dbcluster.clusters.startup import ResolvedCluster, bring_up
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import NotReady, ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system import cache
from pytest_dbcluster.workloads.workload import HasDataSet, Workload

FORMAT = 4  # raised when what a reference holds changes
APPLIERS = "wsrep_slave_threads"
DRAIN_TABLE = "dbcluster_control.drain"


@dataclasses.dataclass(frozen=True)
class Variant:
    """A spec with all that was looked up for it, its options split into what a start needs and what a switch does.

    topology, proxy_class, dialect: follow from spec and release, so they make no difference between variants.
    data_set_of: the load whose data set its servers start with, None for servers that start empty.
    """

    spec: ClusterSpec
    release: Release
    topology: Topology = dataclasses.field(compare=False, repr=False)
    proxy_class: type[Proxy] | None = dataclasses.field(compare=False, repr=False)
    dialect: Dialect = dataclasses.field(compare=False, repr=False)
    static: tuple[tuple[str, str], ...]
    dynamic: tuple[tuple[str, str], ...]
    data_set_of: HasDataSet | None = None

    @property
    def options(self) -> dict[str, str]:
        """All of its options."""
        return {**dict(self.static), **dict(self.dynamic)}

    def on_instance(self, number: int) -> Variant:
        """The same variant on another cluster that is alike."""
        return dataclasses.replace(self, spec=dataclasses.replace(self.spec, instance=number))

    def with_data_set_of(self, load: Workload) -> Variant:
        """The same variant on servers that start with the data set of this load, where it has one.

        An option that shapes tables takes servers of its own then: they hold tables that were made with it.
        """
        if not isinstance(load, HasDataSet):
            return self
        shaping = self.dialect.shaping
        static = dict(self.static) | {name: value for name, value in self.dynamic if name in shaping}
        dynamic = tuple(pair for pair in self.dynamic if pair[0] not in shaping)
        return dataclasses.replace(self, static=tuple(sorted(static.items())), dynamic=dynamic, data_set_of=load)

    def to_start(self, options: Mapping[str, str] | None = None) -> ResolvedCluster:
        """What a cluster of this variant is started from: with its static options, or with ``options``."""
        chosen = dict(self.static) if options is None else options
        return ResolvedCluster(self.spec, self.release, self.topology, self.proxy_class, chosen)

    @property
    def cluster_key(self) -> tuple[object, ...]:
        """Variants with equal keys share one running cluster."""
        spec, data_set = self.spec, self.data_set_of.data_set if self.data_set_of else ""
        own = (spec.topology, spec.nodes, self.release.key, spec.proxy, spec.needs, spec.instance)
        return (*own, self.static, data_set)


def split(variant: Variant, variables: Mapping[str, Variable], common: Mapping[str, str] | None = None) -> Variant:
    """The same variant, whose options are dynamic where the server says that it can change them while it runs.

    Those of IDENTITY are not, a switch neither sets nor compares them; nor are those that a server takes and does
    not follow before its replication is started again.
    ``common`` options lie under every cluster of the run: all of them are started with these, and a variant that
    wants another value switches to it.
    """
    base, options = dict(common or {}), variant.options
    at_start = ALWAYS_STATIC | variant.dialect.replication.read_at_start
    dynamic = {
        name: value
        for name, value in options.items()
        if name in variables and base.get(name) != value and not (name in at_start or needs_start(variables[name]))
    }
    static = base | {name: value for name, value in options.items() if name not in dynamic}
    return dataclasses.replace(variant, static=tuple(sorted(static.items())), dynamic=tuple(sorted(dynamic.items())))


@dataclasses.dataclass(frozen=True)
class Reference:
    """What a switch to a variant sets: ``changes`` by variable, and the ``obstacle`` that rules a switch out."""

    changes: dict[str, str]
    obstacle: str


class References:
    """What a switch to a variant has to set, found on the smallest clusters of the topology and kept in the cache."""

    def __init__(self, provisioner: Provisioner, progress: Report) -> None:
        self._provisioner = provisioner
        self._progress = progress

    def changes(self, variant: Variant, variables: Mapping[str, Variable]) -> dict[str, str] | None:
        """Every variable that the variant's dynamic options move, with its cold-start value.

        None when a running server cannot be brought there and back so that all of its variables are those of a
        cold start: then only a server that was started with the options can measure them.
        """
        if not variant.dynamic:
            return {}
        reference = self._reference(variant, variables)
        return None if reference.obstacle else reference.changes

    def _reference(self, variant: Variant, variables: Mapping[str, Variable]) -> Reference:
        release, topology = variant.release, variant.spec.topology
        # Where nodes have roles, options may ask for as many of them as the spec has.
        nodes = 1 if variant.topology.minimum_nodes == 1 else variant.spec.nodes
        alone = variant.spec.nodes == 1
        key = json.dumps([FORMAT, release.key, topology, alone, nodes, variant.static, variant.dynamic])
        name = f"{release.product}-{release.version}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
        file = cache.root() / "references" / name
        waits_for = f"another process that reads the cold-start reference {file.stem}"
        with cache.held(file.with_name(f"{name}.lock"), progress=self._progress, waits_for=waits_for):
            reference = cache.read_manifest(file, lambda fields: Reference(**fields))
            if reference is None:
                self._progress(f"reading the cold-start reference of {variant.spec} on {release.name}")
                reference = self._find(variant, variables, nodes)
                if reference.obstacle:
                    self._progress(f"{variant.spec} gets servers of its own: {reference.obstacle}")
                cache.write_manifest(file, dataclasses.asdict(reference))
        return reference

    def _find(self, variant: Variant, variables: Mapping[str, Variable], nodes: int) -> Reference:
        with self._server(variant, variant.options, nodes) as server:
            wanted = server.nodes[0].variables()
        # A lone node applies nothing, so its surplus appliers never wake and end; two nodes write to each other.
        if APPLIERS in dict(variant.dynamic):
            nodes = min(2, variant.spec.nodes)
        with self._server(variant, dict(variant.static), nodes) as server:
            moved = differences(server.nodes[0].variables(), wanted)
            changes = {name: after for name, (_, after) in moved.items() if not is_identity(name)}
            fixed = [name for name in changes if name in variables and variables[name].read_only]
            obstacle = f"its options move variables that are read-only: {', '.join(fixed)}" if fixed else ""
            if not fixed:
                try:
                    there_and_back = Switch(server)
                    there_and_back.to(changes)
                    there_and_back.to({})
                except ProvisionError as error:
                    obstacle = str(error)
        return Reference(changes, obstacle)

    @contextlib.contextmanager
    def _server(self, variant: Variant, options: dict[str, str], nodes: int) -> Iterator[Cluster]:
        spec = ClusterSpec(variant.spec.topology, nodes=nodes, release=variant.release.asked, name="reference")
        smallest = dataclasses.replace(variant, spec=spec, proxy_class=None)
        cluster = bring_up(smallest.to_start(options), self._provisioner)
        try:
            yield cluster
        finally:
            cluster.close()
            self._provisioner.give_back(cluster.hosts)


class Switch:
    """Turns one running cluster from variant to variant, and proves each time that it has arrived."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._cold = {node.name: node.variables() for node in cluster.nodes}
        self._now: dict[str, str] = {}

    def to(self, changes: Mapping[str, str]) -> None:
        """Set every variable of ``changes`` to its value and every other one to its cold-start value.

        Raises ProvisionError with the variables that did not arrive.
        """
        if dict(changes) == self._now:
            return
        for node in self.cluster.nodes:
            self._set(node, changes)
        self._match_appliers(changes)
        self._now = dict(changes)

    def _set(self, node: Node, changes: Mapping[str, str]) -> None:
        cold = self._cold[node.name]
        wanted = {**cold, **changes}
        wrong = _wrong(wanted, {**cold, **self._now})
        for _ in range(3):  # setting one may move another: the second pass sets that one back
            for name in sorted(wrong):
                try:
                    node.query(f"SET GLOBAL {name} = {_literal(wanted[name])}")
                except SQLError as error:
                    raise ProvisionError(f"could not switch {node.name} to {name}={wanted[name]}: {error}") from error
            wrong = _wrong(wanted, node.variables())
            if not wrong:
                return
        left = {name: f"{now} instead of {wanted[name]}" for name, now in wrong.items()}
        raise ProvisionError(f"after the switch of {node.name} these variables differ from a cold start: {left}")

    def _match_appliers(self, changes: Mapping[str, str], seconds: float = 20.0) -> None:
        """Surplus appliers end only when a writeset wakes them: write until their number is the asked one."""
        nodes, cold = self.cluster.nodes, self._cold[self.cluster.nodes[0].name]
        if cold.get("wsrep_on") != "ON":  # servers that could be Galera nodes have the variable too, and no applier
            return
        wanted = int({**cold, **changes}[APPLIERS])
        limit = time.monotonic() + seconds
        wrote = False
        while wrong := [f"{node.name} has {n}" for node in nodes if (n := _appliers(node)) not in (wanted, None)]:
            if time.monotonic() > limit:
                raise NotReady(f"{wanted} appliers on each node", seconds, wrong)
            self._write(first=not wrote)
            wrote = True

    def _write(self, *, first: bool) -> None:
        nodes = self.cluster.nodes
        if first:
            nodes[0].query(f"CREATE DATABASE IF NOT EXISTS {DRAIN_TABLE.split('.')[0]}")
            nodes[0].query(f"CREATE TABLE IF NOT EXISTS {DRAIN_TABLE} (id INT AUTO_INCREMENT PRIMARY KEY)")
        for node in nodes:  # a node applies what others write
            for _ in range(4):
                node.query(f"INSERT INTO {DRAIN_TABLE} () VALUES ()")
        nodes[0].query(f"DELETE FROM {DRAIN_TABLE}")


def _appliers(node: Node) -> int | None:
    said = node.status("wsrep_applier_thread_count").get("wsrep_applier_thread_count")
    return None if said is None else int(said)


def _wrong(wanted: Mapping[str, str], running: Mapping[str, str]) -> dict[str, str]:
    return {name: now for name, (_, now) in differences(wanted, running).items() if not is_identity(name)}


def _literal(value: str) -> str:
    if value.lstrip("-").replace(".", "", 1).isdigit():
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
