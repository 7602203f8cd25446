"""``bring_up``: how a cluster comes up, on one screen."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import itertools
import time
from collections.abc import Mapping

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.proxy import Proxy
from pytest_dbcluster.clusters.servers import options as opts
from pytest_dbcluster.clusters.servers.data_template import Template, template
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec

READY_SECONDS = 90.0
TRIES = 3


@dataclasses.dataclass(frozen=True, eq=False)
class ResolvedCluster:
    """What a cluster is started from: everything in it has been looked up, and checked against each other.

    options: the server options of every node, by name.
    """

    spec: ClusterSpec
    release: Release
    topology: Topology
    proxy_class: type[Proxy] | None
    options: Mapping[str, str]


def bring_up(
    resolved: ResolvedCluster,
    provisioner: Provisioner,
    *,
    start: Template | None = None,
    progress: Report = lambda _: None,
) -> Cluster:
    """A cluster that is ready.

    ``start`` is what its nodes start as copies of; the release's template without it.
    Raises ConfigError for a value that a server refuses, or ProvisionError with the server's own words; nothing stays
    behind then.
    """
    for attempt in itertools.count(1):
        cluster = _configured(resolved, provisioner, start, progress)
        began = time.monotonic()
        try:
            cluster.topology.form(cluster.nodes)
            if cluster.proxy:
                cluster.proxy.start()
            wait.until(cluster.problems, f"cluster {resolved.spec}", seconds=READY_SECONDS, poll=0.05)
            cluster.ready_seconds = time.monotonic() - began
            for node in cluster.nodes:
                node.new_errors()  # what a start logs is not an error of a later round
            opts.compare_started(resolved.options, cluster.nodes[0].variables(), resolved.release.name)
            return cluster
        except BaseException as error:
            cluster.close()
            provisioner.give_back(cluster.hosts)
            if not _port_taken(error, attempt, progress):
                raise
    raise AssertionError("unreachable")


def _port_taken(error: BaseException, attempt: int, progress: Report) -> bool:
    """Whether a server found its port taken, and others are to be tried, which is said then."""
    if "Address already in use" not in str(error) or attempt == TRIES:
        return False
    progress(f"a port was taken in the meantime; trying others ({attempt} of {TRIES})")
    return True


def _configured(
    resolved: ResolvedCluster, provisioner: Provisioner, start: Template | None, progress: Report
) -> Cluster:
    spec, release, topology = resolved.spec, resolved.release, resolved.topology.for_cluster()
    made = start or ready_template(release, provisioner, resolved.options, progress)
    hosts = provisioner.acquire(spec.on_release(release.asked))
    nodes: list[Node] = []
    try:
        nodes += [Node(host.name, host, release, host.port(3306), made.password) for host in hosts]
        with concurrent.futures.ThreadPoolExecutor(len(nodes)) as copies:
            list(copies.map(lambda node: _copy(made, node, durable=start is not None), nodes))
        for node in nodes:
            node.configure(opts.merged(topology.options(node, nodes), resolved.options))
        proxy = resolved.proxy_class(provisioner, topology, nodes) if resolved.proxy_class else None
        return Cluster(spec, topology, hosts, nodes, proxy)
    except BaseException:
        provisioner.give_back(hosts)
        raise


def _copy(made: Template, node: Node, *, durable: bool) -> None:
    node.host.copy_tree(str(made.data), node.data, durable=durable)


def ready_template(
    release: Release, provisioner: Provisioner, options: Mapping[str, str], progress: Report
) -> Template:
    """The template that these options start from; made on a host of its own when the cache has none."""
    fixed = dialect(release.product, release.version).initial
    initial = {name: value for name, value in options.items() if name in fixed}
    for attempt in itertools.count(1):
        try:
            return _template(release, provisioner, initial, progress)
        except ProvisionError as error:
            if not _port_taken(error, attempt, progress):
                raise ProvisionError(f"could not make the data template of {release.name}: {error}") from error
    raise AssertionError("unreachable")


def _template(release: Release, provisioner: Provisioner, initial: Mapping[str, str], progress: Report) -> Template:
    borrowed: list[Host] = []

    def host() -> Host:
        borrowed.extend(provisioner.acquire(ClusterSpec("standalone", release=release.asked, name="template")))
        return borrowed[0]

    try:
        return template(release, host, initial, progress)
    finally:
        provisioner.give_back(borrowed)
