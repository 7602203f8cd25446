"""``bring_up(spec)``: how a cluster comes up, on one screen."""

from __future__ import annotations

import concurrent.futures
import itertools
import time
from collections.abc import Callable, Mapping
from typing import cast

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.proxy import proxy_class
from pytest_dbcluster.clusters.servers import options as opts
from pytest_dbcluster.clusters.servers.data_template import Template, template
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import topology
from pytest_dbcluster.errors import ProvisionError, Unsupported
from pytest_dbcluster.hosts.host import Host, Trees, own_port
from pytest_dbcluster.hosts.provisioner import Provisioner, unmet
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec

READY_SECONDS = 90.0
TRIES = 3
Progress = Callable[[str], None]


def bring_up(
    spec: ClusterSpec,
    release: Release,
    provisioner: Provisioner,
    *,
    options: Mapping[str, str],
    start: Template | None = None,
    progress: Progress = lambda _: None,
) -> Cluster:
    """A cluster that is ready. ``options`` are the resolved server options of the spec.

    ``start`` is what its nodes start as copies of; the release's template without it.
    Raises ConfigError, Unsupported, or ProvisionError with the server's own words; nothing stays behind then.
    """
    for attempt in itertools.count(1):
        cluster = _configured(spec, release, provisioner, options, start, progress)
        began = time.monotonic()
        try:
            cluster.topology.form(cluster.nodes)
            if cluster.proxy:
                cluster.proxy.start()
            wait.until(cluster.problems, f"cluster {spec}", seconds=READY_SECONDS, poll=0.05)
            cluster.ready_seconds = time.monotonic() - began
            for node in cluster.nodes:
                node.new_errors()  # what a start logs is not an error of a later round
            opts.compare_started(options, cluster.nodes[0].variables(), release.name)
            return cluster
        except BaseException as error:
            cluster.close()
            provisioner.release(cluster.hosts)
            if not _port_taken(error, attempt, progress):
                raise
    raise AssertionError("unreachable")


def _port_taken(error: BaseException, attempt: int, progress: Progress) -> bool:
    """Whether a server found its port taken, and others are to be tried, which is said then."""
    if "Address already in use" not in str(error) or attempt == TRIES:
        return False
    progress(f"a port was taken in the meantime; trying others ({attempt} of {TRIES})")
    return True


def _configured(
    spec: ClusterSpec,
    release: Release,
    provisioner: Provisioner,
    options: Mapping[str, str],
    start: Template | None,
    progress: Progress,
) -> Cluster:
    form = topology(spec.topology)
    if lacking := proxy_class(spec.proxy).lacks(release) if spec.proxy else "":
        raise Unsupported(lacking)
    if lacking := unmet(provisioner, spec):
        raise Unsupported(lacking)
    if missing := form.needs - provisioner.offers:
        raise Unsupported(f"{spec.topology} needs {', '.join(sorted(missing))}, which this provisioner does not offer")
    made = start or ready_template(release, provisioner, options, progress)
    hosts = provisioner.acquire(spec.on_release(release.asked))
    nodes: list[Node] = []
    try:
        nodes += [Node(host.name, host, release, own_port(host, 3306), made.password) for host in hosts]
        with concurrent.futures.ThreadPoolExecutor(len(nodes)) as copies:
            list(copies.map(lambda node: _copy(made, node, durable=start is not None), nodes))
        for node in nodes:
            node.configure(opts.merged(form.options(node, nodes), options))
        before = proxy_class(spec.proxy)(provisioner, form, nodes) if spec.proxy else None
        return Cluster(spec, form, hosts, nodes, before)
    except BaseException:
        provisioner.release(hosts)
        raise


def _copy(made: Template, node: Node, *, durable: bool) -> None:
    cast(Trees, node.host).copy_tree(str(made.data), node.data, durable=durable)


def ready_template(
    release: Release, provisioner: Provisioner, options: Mapping[str, str], progress: Progress
) -> Template:
    """The template that these options start from; made on a host of its own when the cache has none."""
    from pytest_dbcluster.clusters.dialects.lookup import dialect

    fixed = dialect(release.product, release.version).initial
    initial = {name: value for name, value in options.items() if name in fixed}
    for attempt in itertools.count(1):
        try:
            return _template(release, provisioner, initial, progress)
        except ProvisionError as error:
            if not _port_taken(error, attempt, progress):
                raise ProvisionError(f"could not make the data template of {release.name}: {error}") from error
    raise AssertionError("unreachable")


def _template(release: Release, provisioner: Provisioner, initial: Mapping[str, str], progress: Progress) -> Template:
    borrowed: list[Host] = []

    def host() -> Host:
        borrowed.extend(provisioner.acquire(ClusterSpec("standalone", release=release.asked, name="template")))
        return borrowed[0]

    try:
        return template(release, host, initial, progress)
    finally:
        provisioner.release(borrowed)
