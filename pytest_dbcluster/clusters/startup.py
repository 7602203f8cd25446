"""Start clusters: ``bring_up`` copies the data, writes each my.cnf, starts the servers, and waits until ready.

A node's my.cnf has the topology's options (``Topology.options``) and the user's options, which win
(``servers.node.merge``). ``servers.node.Node.configure`` writes it; see ``_configure`` below.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.bringing import bring
from pytest_dbcluster.clusters.cluster import Cluster, trace_row
from pytest_dbcluster.clusters.dialects.lookup import dialect
from pytest_dbcluster.clusters.proxy import Proxy
from pytest_dbcluster.clusters.servers import options as opts
from pytest_dbcluster.clusters.servers.data_template import FILE, Template, directory_of, template, upgraded_template
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.formatting import Report
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system.tracing.recorder import span

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

    releases: tuple[Release, ...] = ()
    """The programs of each node, if nodes differ; ``release`` is then the oldest of them. Else empty."""


def bring_up(
    resolved: ResolvedCluster,
    provisioner: Provisioner,
    *,
    start: Template | None = None,
    progress: Report = lambda _: None,
) -> Cluster:
    """Start a cluster, wait until it is ready (at most ``READY_SECONDS``, longer on slower hosts), and return it.

    ``start`` is the data directory that every node starts from; the default is the template of the release. Nodes of a
    newer release start from an upgraded copy of the oldest release's template.
    ``progress`` receives messages for people, such as values that a server changes. If another program takes a port,
    ``bring_up`` makes up to ``TRIES`` attempts. Raises ProvisionError with the server's message for a value that it
    refuses. After an error no server, process or host remains.
    """
    for attempt in itertools.count(1):
        with span("start", trace_row(resolved.spec), attempt=attempt):
            with span("prepare data"):
                cluster = _configure(resolved, provisioner, start, progress)
            try:
                _make_ready(resolved, cluster)
                for line in _adjustments(resolved, cluster):
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


def _make_ready(resolved: ResolvedCluster, cluster: Cluster) -> None:
    """Start the servers, and wait until the cluster is ready. Raises NotReady and ProvisionError."""
    with span("form") as formed:
        cluster.topology.form(cluster.members)
        if cluster.proxy:
            cluster.proxy.start()
        limit = READY_SECONDS * max(host.patience for host in cluster.hosts)
        with span("wait until ready"):
            wait.until(cluster.problems, f"cluster {resolved.spec}", seconds=limit, poll=0.05)
        cluster.topology.after_forming(cluster.members)
        if resolved.settings:
            cluster.topology.apply(resolved.settings, cluster.nodes)
    cluster.ready_seconds = formed.seconds
    for node in cluster.nodes:
        node.new_errors()  # discard: an error of the start does not belong to a later round


def _adjustments(resolved: ResolvedCluster, cluster: Cluster) -> list[str]:
    """One line for each of the user's options that the server has changed; without options nothing is read."""
    if not resolved.options:
        return []
    first = cluster.nodes[0]
    return opts.adjustments(resolved.options, first.variables(), first.release.name)


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
    templates = {
        other.key: origin if other.key == release.key else _upgraded_template(origin, other, provisioner, progress)
        for other in resolved.releases or [release]
    }
    needs = dataclasses.replace(spec.needs, replication_link=topology.replication_link)
    hosts = provisioner.acquire(dataclasses.replace(spec, needs=needs).on_release(release.release_name))
    nodes: list[Node] = []
    try:
        for host, own in zip(hosts, resolved.releases or [release] * len(hosts), strict=True):
            nodes.append(Node(host.name, host, own, host.port(3306), origin.password))
        for key, template in templates.items():
            alike = [node for node in nodes if node.release.key == key]
            bring(alike[0].release, [node.host for node in alike])
            topology.place(str(template.data), alike, durable=start is not None)
        for node in nodes:  # every node of a cluster gets its my.cnf here
            known = {name: value for name, value in resolved.options.items() if name not in node.dialect.implied}
            node.configure(topology.options(node, nodes), known if resolved.releases else resolved.options)
        proxy = resolved.proxy_class(provisioner, topology, nodes) if resolved.proxy_class else None
        if proxy:
            proxy.option_values = proxy.read_settings(spec, topology)
        cluster = Cluster(spec, topology, hosts, nodes, proxy)
        if spec.needs.network and cluster.path is None:
            raise Unsupported(f"cluster {spec} needs a network with delays, which these hosts do not have")
        return cluster
    except BaseException:
        provisioner.give_back(hosts)
        raise


def _upgraded_template(origin: Template, release: Release, provisioner: Provisioner, progress: Report) -> Template:
    """The template of a newer release with the data of ``origin``. If it is missing, a separate host makes it."""
    with _workshop(release, provisioner) as host:
        return upgraded_template(origin, release, host, progress)


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
            with span("template", release=release.name):
                return _template(release, provisioner, initial, progress)
        except ProvisionError as error:
            if not _tries_again(error, attempt, progress):
                raise ProvisionError(f"could not make the data template of {release.name}: {error}") from error
    raise AssertionError("unreachable")


def _template(release: Release, provisioner: Provisioner, initial: Mapping[str, str], progress: Report) -> Template:
    with _workshop(release, provisioner) as host:
        return template(release, host, initial, progress)


@contextlib.contextmanager
def _workshop(release: Release, provisioner: Provisioner) -> Iterator[Callable[[], Host]]:
    """A function that returns a separate host with the programs of a release. Keeps its logs after an error."""
    borrowed: list[Host] = []

    def host() -> Host:
        borrowed.append(provisioner.workshop(ClusterSpec("standalone", release=release.release_name, name="template")))
        bring(release, borrowed)
        return borrowed[0]

    try:
        yield host
    except ProvisionError as error:
        if provisioner.logs:
            provisioner.logs.keep("template", {lent.name: lent for lent in borrowed}, error)
        raise
    finally:
        provisioner.give_back(borrowed)
