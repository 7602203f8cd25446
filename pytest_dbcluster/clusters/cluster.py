"""bring_up(spec): the whole story on one screen. Cluster: what a test then holds."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import itertools
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.proxy import Follows, Proxy, proxy_class
from pytest_dbcluster.clusters.proxy import lacks as proxy_lacks
from pytest_dbcluster.clusters.servers import options as opts
from pytest_dbcluster.clusters.servers.data_template import Template, template
from pytest_dbcluster.clusters.servers.node import LOAD, Node
from pytest_dbcluster.clusters.topology import Settles, Topology, Verifies, readers, topology, writers
from pytest_dbcluster.errors import ConfigError, NotReady, ProvisionError, SeriesVoid, Unsupported
from pytest_dbcluster.hosts.host import Host, Trees, own_port
from pytest_dbcluster.hosts.provisioner import Provisioner, unmet
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.spec import ClusterSpec, Endpoint

READY_SECONDS = 90.0
TRIES = 3
Progress = Callable[[str], None]


class Cluster:
    """A running cluster: nodes, endpoints, proxy; settled and checked on demand."""

    def __init__(
        self, spec: ClusterSpec, form: Topology, hosts: Sequence[Host], nodes: Sequence[Node], before: Proxy | None
    ) -> None:
        self.spec = spec
        self.topology = form
        self.hosts = hosts
        self.nodes = list(nodes)
        self.proxy = before
        self.dirty = ""
        self.ready_seconds = 0.0  # from the start of the first server

    @property
    def writers(self) -> Sequence[Node]:
        """The nodes that take writes, the one that a load is sent to first. Raises ProvisionError for none."""
        return writers(self.topology, self.nodes)

    def writer(self) -> Endpoint:
        """Where a load goes that must meet one node only."""
        return _for_loads(self.proxy.writer() if self.proxy else self.writers[0].endpoint)

    def reader(self) -> Endpoint:
        """Where a load goes that only reads: the proxy's round robin over the nodes that take reads.

        Without a proxy it is the first of them: a replica where one node alone takes writes. Raises ProvisionError
        where there is none.
        """
        if self.proxy:
            return _for_loads(self.proxy.reader())
        reading = readers(self.topology, self.nodes) or self.writers
        return _for_loads(reading[0].endpoint)

    def require_writers(self, endpoints: Sequence[Endpoint], load: str) -> None:
        """Raise ConfigError for a load that writes where these endpoints lead, and a node there takes no writes.

        Its first statement would end in that server's words, which do not say who sent it there.
        """
        writing = [node.name for node in self.writers]
        refusing = dict.fromkeys(name for one in endpoints for name in one.nodes if name not in writing)
        if refusing:
            raise ConfigError(
                f"{load} writes and would be sent to {', '.join(refusing)} of {self.spec}, whose writes "
                f'{", ".join(writing)} alone takes: give it to="writer"'
            )

    def problems(self) -> list[str]:
        """What keeps the cluster from being ready; a proxy is told first who takes writes and reads now.

        Raises NodeDied.
        """
        found = self.topology.problems(self.nodes)
        if found or self.proxy is None:
            return found
        if hasattr(self.proxy, "follow"):
            cast(Follows, self.proxy).follow()
        return self.proxy.problems()

    def backlog(self) -> list[str]:
        """What is still to be applied, and then to be flushed, on some node; empty when the cluster is settled."""
        late = cast(Settles, self.topology).backlog(self.nodes) if hasattr(self.topology, "backlog") else []
        return late or [problem for node in self.nodes for problem in node.unflushed()]

    def settle(self, seconds: float = 1.0) -> bool:
        """Wait until every node has applied and flushed everything; False when ``seconds`` were not enough."""
        try:
            wait.until(self.backlog, f"cluster {self.spec}", seconds=seconds, poll=0.01)
        except NotReady:
            return False
        return True

    def check(self, tables: Sequence[str] = ()) -> None:
        """Raise SeriesVoid when a node is behind, tables differ between nodes, or an [ERROR] was logged.

        Raises ProvisionError for a node that is gone or has stopped to follow. Nobody uses the cluster again then.
        """
        try:
            found = self._faults(tables)
        except ProvisionError as error:
            self.dirty = str(error)
            raise
        if found:
            self.dirty = "; ".join(found)
            raise SeriesVoid(f"cluster {self.spec} failed its check after the rounds: {'; '.join(found)}")

    def _faults(self, tables: Sequence[str]) -> list[str]:
        found = self.problems()
        if not found and not self.settle(30):
            found = [f"not drained after 30 s: {'; '.join(self.backlog())}"]
        for table in tables if not found else ():
            sums = {node.name: node.query(f"CHECKSUM TABLE {table}")[0][1] for node in self.nodes}
            if len(set(sums.values())) > 1 or None in sums.values():
                found.append(f"table {table} differs between nodes: {sums}")
        if not found and hasattr(self.topology, "violations"):
            found += cast(Verifies, self.topology).violations(self.nodes)
        return found + self.logged()

    def logged(self) -> list[str]:
        """The [ERROR] lines of every node since this was last asked, each with its node."""
        return [f"{node.name} logged: {line}" for node in self.nodes for line in node.new_errors()]

    def close(self) -> None:
        """Stop the proxy and every server. Never raises for one that is gone already."""
        if self.proxy:
            self.proxy.close()
        with contextlib.suppress(ProvisionError):  # the supervisor is gone, and its servers with it
            for node in self.nodes:  # all at once: a large process takes a while to end
                if node.process and node.running:
                    node.process.signal(signal.SIGKILL)
            for node in self.nodes:
                node.kill()


def _for_loads(endpoint: Endpoint) -> Endpoint:
    """Loads have an account of their own, which cannot write where a server is read-only."""
    return dataclasses.replace(endpoint, user=LOAD, tls=False)


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
    if lacking := proxy_lacks(spec.proxy, release) if spec.proxy else "":
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
    from pytest_dbcluster.clusters.dialects.lookup import flavour

    fixed = flavour(release.product, release.version).initial
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
