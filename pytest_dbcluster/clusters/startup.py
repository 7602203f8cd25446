"""Start clusters: ``bring_up`` copies the data, writes each my.cnf, starts the servers, and waits until ready.

A node's my.cnf has the topology's options (``Topology.options``) and the user's options, which win
(``servers.node.merge``). ``servers.node.Node.configure`` writes it; see ``_configure`` below.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Mapping

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.bringing import bring
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.proxy import Proxy
from pytest_dbcluster.clusters.servers import options as opts
from pytest_dbcluster.clusters.servers.data_template import FILE, Template, directory_of, template
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec

READY_SECONDS = 90.0
TRIES = 3


@dataclasses.dataclass(frozen=True, eq=False)
class ResolvedCluster:
    """The input of ``bring_up``: names and options are already checked."""

    spec: ClusterSpec
    """The spec."""

    release: Release
    """Its programs."""

    topology: Topology
    """Its topology."""

    proxy_class: type[Proxy] | None
    """Class of its proxy; None for a cluster without one."""

    options: Mapping[str, str]
    """The user's server options, by name; they are the same on every node."""

    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Options of the topology, by name."""


def bring_up(
    resolved: ResolvedCluster,
    provisioner: Provisioner,
    *,
    start: Template | None = None,
    progress: Report = lambda _: None,
) -> Cluster:
    """Start a cluster, wait until it is ready (at most ``READY_SECONDS``, longer on slower hosts), and return it.

    ``start`` is the data directory that every node starts from; the default is the template of the release.
    ``progress`` receives messages for people, such as values that a server changes. If another program takes a port,
    ``bring_up`` makes up to ``TRIES`` attempts. Raises ProvisionError with the server's message for a value that it
    refuses. After an error no server, process or host remains.
    """
    for attempt in itertools.count(1):
        cluster = _configure(resolved, provisioner, start, progress)
        began = time.monotonic()
        try:
            cluster.topology.form(cluster.members)
            if cluster.proxy:
                cluster.proxy.start()
            limit = READY_SECONDS * max(host.patience for host in cluster.hosts)
            wait.until(cluster.problems, f"cluster {resolved.spec}", seconds=limit, poll=0.05)
            cluster.topology.after_forming(cluster.members)
            if resolved.settings:
                cluster.topology.apply(resolved.settings, cluster.nodes)
            cluster.ready_seconds = time.monotonic() - began
            for node in cluster.nodes:
                node.new_errors()  # discard: an error of the start does not belong to a later round
            for line in opts.adjustments(resolved.options, cluster.nodes[0].variables(), resolved.release.name):
                progress(line)
            return cluster
        except BaseException as error:
            again = _tries_again(error, attempt, progress)
            if not again:
                cluster.keep_logs(provisioner.logs, error)
            cluster.close()
            provisioner.give_back(cluster.hosts)
            if not again:
                raise
    raise AssertionError("unreachable")


def _tries_again(error: BaseException, attempt: int, progress: Report) -> bool:
    """Return whether to try again with other ports: another program took a port. Reports the retry."""
    if "Address already in use" not in str(error) or attempt == TRIES:
        return False
    progress(f"another program took a port; trying other ports (attempt {attempt} of {TRIES} failed)")
    return True


def _configure(
    resolved: ResolvedCluster, provisioner: Provisioner, start: Template | None, progress: Report
) -> Cluster:
    """Return the cluster with copied data and a my.cnf on every node; no server runs yet."""
    spec, release, topology = resolved.spec, resolved.release, resolved.topology.for_cluster()
    origin = start or ready_template(release, provisioner, resolved.options, progress)
    needs = dataclasses.replace(spec.needs, replication_link=topology.replication_link)
    hosts = provisioner.acquire(dataclasses.replace(spec, needs=needs).on_release(release.release_name))
    nodes: list[Node] = []
    try:
        bring(release, hosts)
        nodes += [Node(host.name, host, release, host.port(3306), origin.password) for host in hosts]
        topology.place(str(origin.data), nodes, durable=start is not None)
        for node in nodes:  # every node of a cluster gets its my.cnf here
            node.configure(topology.options(node, nodes), resolved.options)
        proxy = resolved.proxy_class(provisioner, topology, nodes) if resolved.proxy_class else None
        cluster = Cluster(spec, topology, hosts, nodes, proxy)
        if spec.needs.network and cluster.path is None:
            raise Unsupported(f"cluster {spec} needs a network with delays, which these hosts do not have")
        return cluster
    except BaseException:
        provisioner.give_back(hosts)
        raise


def _fixed_options(release: Release, options: Mapping[str, str]) -> dict[str, str]:
    """The options that a data directory fixes."""
    fixed_names = dialect(release.product, release.version).initial
    return {name: value for name, value in options.items() if name in fixed_names}


def has_template(release: Release, options: Mapping[str, str]) -> bool:
    """Whether the cache has the template for these options, so that ``ready_template`` starts nothing."""
    return (directory_of(release, _fixed_options(release, options)) / FILE).exists()


def ready_template(
    release: Release, provisioner: Provisioner, options: Mapping[str, str], progress: Report
) -> Template:
    """Return the template for these options from the cache; if it is missing, make it on a separate host.

    Only options that a data directory fixes (``Dialect.initial``) select the template. Raises ProvisionError.
    """
    initial = _fixed_options(release, options)
    for attempt in itertools.count(1):
        try:
            return _template(release, provisioner, initial, progress)
        except ProvisionError as error:
            if not _tries_again(error, attempt, progress):
                raise ProvisionError(f"could not make the data template of {release.name}: {error}") from error
    raise AssertionError("unreachable")


def _template(release: Release, provisioner: Provisioner, initial: Mapping[str, str], progress: Report) -> Template:
    borrowed: list[Host] = []

    def host() -> Host:
        borrowed.append(provisioner.workshop(ClusterSpec("standalone", release=release.release_name, name="template")))
        bring(release, borrowed)
        return borrowed[0]

    try:
        return template(release, host, initial, progress)
    except ProvisionError as error:
        if provisioner.logs:
            provisioner.logs.keep("template", {lent.name: lent for lent in borrowed}, error)
        raise
    finally:
        provisioner.give_back(borrowed)
