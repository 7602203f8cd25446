"""Cluster: running nodes and their proxy. Gives endpoints, waits until nodes are at rest, and checks the nodes."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.proxy import Proxy
from pytest_dbcluster.clusters.servers.connection import Endpoint
from pytest_dbcluster.clusters.servers.node import LOAD, Node, of_each
from pytest_dbcluster.clusters.table_rows import digests_by_node
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import ConfigError, NotReady, ProvisionError, SeriesVoid, WorkloadError
from pytest_dbcluster.hosts.host import EndsCommands, Host
from pytest_dbcluster.hosts.kept_logs import FILES, KeptLogs
from pytest_dbcluster.hosts.network.path import path_of
from pytest_dbcluster.spec import ClusterSpec
from pytest_dbcluster.system.tracing.recorder import span

LOST_SECONDS = 0.5  # between two checks of the hosts while a workload runs
STOPPED_SECONDS = 2.5  # between two checks of the servers, whose hosts may be on other machines
MOST_LOGGED = 5  # log lines of each node in an error
MOST_OUTPUT = 1000  # characters of a tool's output in an error


class Cluster:
    """A running cluster; ``startup.bring_up`` makes it.

    - members: all nodes in order, ``node1`` first.
    - proxy: None for a cluster without one.
    - path: the network between the nodes; None without requirements on the network.
    - dirty: why no later round may use the cluster, set by ``check``; empty while it is usable.
    - acknowledged: commits that servers acknowledged to workloads, by schema, for the checks of the workloads.
    - ready_seconds: seconds from the start of the first server until the cluster was ready.
    - events: how many events it had, after each of which it was made whole.
    - expected_errors: patterns of [ERROR] lines that are no fault, because an event on this cluster causes them.
    """

    def __init__(
        self, spec: ClusterSpec, topology: Topology, hosts: Sequence[Host], nodes: Sequence[Node], proxy: Proxy | None
    ) -> None:
        self.spec = spec
        self.topology = topology
        self.hosts = hosts
        self.members = list(nodes)
        self.proxy = proxy
        self.path = path_of(hosts)
        self.dirty = ""
        self.acknowledged: dict[str, Any] = {}
        self.ready_seconds = 0.0
        self.events = 0
        self.expected_errors: set[str] = set()

    @property
    def nodes(self) -> list[Node]:
        """The nodes with a server, in order; nodes without one are standbys."""
        return list(self.topology.serving(self.members))

    @property
    def unusable(self) -> str:
        """Why no later round may use the cluster: it is dirty, or a host is lost; empty while it is usable."""
        return self.dirty or next(filter(None, (host.why_lost() for host in self.hosts)), "")

    @property
    def lost_host(self) -> str:
        """Why some, but not all hosts are lost; otherwise empty. A dead supervisor loses all its hosts at once."""
        lost = [why for host in self.hosts if (why := host.why_lost())]
        return lost[0] if 0 < len(lost) < len(self.hosts) else ""

    @property
    def writers(self) -> Sequence[Node]:
        """The nodes that accept writes; without a proxy, workloads use the first. Raises ProvisionError for none."""
        return self.topology.writers(self.nodes)

    def writer(self) -> Endpoint:
        """Return the endpoint for a workload that writes: the proxy's writer, or the first node for writes."""
        return _for_loads(self.proxy.writer() if self.proxy else self.writers[0].endpoint)

    def reader(self) -> Endpoint:
        """Return the endpoint for a workload that only reads: the proxy's round robin over the nodes for reads.

        Without a proxy it is the first node for reads: a replica, if the topology has replicas. Raises ProvisionError
        if no node accepts reads.
        """
        if self.proxy:
            return _for_loads(self.proxy.reader())
        readers = self.topology.readers(self.nodes) or self.writers
        return _for_loads(readers[0].endpoint)

    def require_writers(self, endpoints: Sequence[Endpoint], load: str) -> None:
        """Raise ConfigError if a workload would write to a read-only node.

        ``load`` is the workload's name for the message. Without this check, the workload's first statement would fail
        with the server's read-only error. That does not say how to fix it.
        """
        writers = [node.name for node in self.writers]
        refusing = dict.fromkeys(name for endpoint in endpoints for name in endpoint.nodes if name not in writers)
        if refusing:
            raise ConfigError(
                f"{load} writes, but {', '.join(refusing)} of {self.spec} is read-only and only "
                f'{", ".join(writers)} accepts writes: set to="writer"'
            )

    def problems(self) -> list[str]:
        """Return the reasons why the cluster is not ready, one line each; empty if it is ready. Raises NodeDied.

        Once the nodes are ready, this updates the proxy's routes and returns the proxy's problems.
        """
        problems = self.topology.problems(self.nodes)
        if problems or self.proxy is None:
            return problems
        self.proxy.follow()
        return self.proxy.problems()

    def backlog(self) -> list[str]:
        """Return what nodes must still apply; if nothing, what they must still flush. Empty at rest."""
        return self.topology.backlog(self.nodes) or self.flush()

    def flush(self) -> list[str]:
        """Flush the log of each node, and return what is still not on disk, one line each."""
        return self._of_each(Node.flush_log)

    def backlog_with(
        self, statements: Callable[[Node], Sequence[str]]
    ) -> tuple[list[str], list[list[list[tuple[Any, ...]]]] | None]:
        """Return what nodes must still apply, and the rows of more statements of each node.

        A node runs them after the query about its backlog, in the same round trip. The rows are None if the topology
        does not query each node.
        """
        asked = [node.append_statements(statements(node)) for node in self.nodes]
        lines = self.topology.backlog([node for node, _ in asked])
        answers = [connection.answers for _, connection in asked]
        known = [answer for answer in answers if answer is not None]
        return lines, known if len(known) == len(answers) else None

    def _of_each(self, lines: Callable[[Node], Sequence[str]]) -> list[str]:
        return [line for found in of_each(self.nodes, lines) for line in found]

    def settle(self, seconds: float = 1.0) -> bool:
        """Wait until every node has applied and flushed everything; return False after ``seconds``."""
        try:
            wait.until(self.backlog, f"cluster {self.spec}", seconds=seconds, poll=0.01)
        except NotReady:
            return False
        return True

    def check(self, tables: Sequence[str] = ()) -> None:
        """Raise SeriesVoid if a node lags behind, ``tables`` differ between nodes, or a log has a new [ERROR] line.

        Raises ProvisionError for a node that died or stopped replicating. Every error sets ``dirty``, so that no later
        round uses the cluster.
        """
        try:
            faults = self._faults(tables)
        except ProvisionError as error:
            self.dirty = str(error)
            raise
        if faults:
            self.dirty = "; ".join(faults)
            raise SeriesVoid(f"cluster {self.spec} failed its check after the rounds: {'; '.join(faults)}")

    def _faults(self, tables: Sequence[str]) -> list[str]:
        faults = self.problems()
        if not faults and not self.settle(30):
            faults = [f"not drained after 30 s: {'; '.join(self.backlog())}"]
        # One server cannot differ from another, and it needs a minute to read a large table.
        for table in tables if not faults and len(self.nodes) > 1 else ():
            sums = digests_by_node(self.nodes, table)
            if len(set(sums.values())) > 1 or None in sums.values():
                faults.append(f"table {table} differs between nodes: {sums}")
        return (faults or self.topology.violations(self.nodes)) + self.new_errors()

    def new_errors(self) -> list[str]:
        """Return the [ERROR] lines of every node since the last call, each with the node's name.

        Expected ones are not among them.
        """
        lines = self._of_each(lambda node: [f"{node.name} logged: {line}" for line in node.new_errors()])
        return [line for line in lines if not any(re.search(pattern, line) for pattern in self.expected_errors)]

    @contextlib.contextmanager
    def fit(self, seconds: float) -> Iterator[list[str]]:
        """Wait until the cluster is healthy for another round, and prepare it in the block.

        After the block, the list has the result of ``new_errors``. Another thread reads it, because on other machines
        that takes as long as a statement. Raises NotReady after ``seconds``, and NodeDied.
        """
        lines: list[str] = []
        with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="dbcluster-logs") as reading:
            logged = reading.submit(self.new_errors)
            if waited := bool(self.problems()):
                wait.until(self.problems, f"cluster {self.spec} for the next round", seconds=seconds)
            yield lines
            lines += logged.result() + (self.new_errors() if waited else [])

    @contextlib.contextmanager
    def ending_loads(self, clients: Sequence[Host]) -> Iterator[None]:
        """End the commands of load generators if a host of the cluster is lost, or a signal stops a server.

        Neither closes a connection, so workloads would wait forever. clients: the hosts of the load generators.
        ``load_failure`` has the reason.
        """
        over, ending = threading.Event(), [client for client in clients if isinstance(client, EndsCommands)]

        def watch() -> None:
            due = time.monotonic()
            while not over.wait(LOST_SECONDS):
                look = time.monotonic() >= due
                if any(host.why_lost() for host in self.hosts) or (look and self._any_stopped()):
                    for client in ending:
                        client.end_commands()
                if look:
                    due = time.monotonic() + STOPPED_SECONDS

        watching = threading.Thread(target=watch, name=f"hosts of {self.spec}", daemon=True)
        if ending:
            watching.start()
        try:
            yield
        finally:
            over.set()
            if watching.is_alive():
                watching.join()

    def _any_stopped(self) -> bool:
        with contextlib.suppress(ProvisionError):  # a host without an answer may be slow, or paused on purpose
            return any(of_each(self.nodes, Node.is_stopped))
        return False

    def load_failure(self, what: str, words: str) -> WorkloadError:
        """Return the error for a workload that failed on this cluster, with the tool's output and logged errors.

        ``what`` names the tool and its end; ``words`` is the tool's output. Equal lines appear once, with the names of
        all their nodes. Raises NodeDied if a server has died, because that is the cause.
        """
        for node in self.nodes:
            node.raise_if_dead()
        output = "\n".join(dict.fromkeys(words.strip().splitlines()))
        by_line: dict[str, list[str]] = {}
        for node in self.nodes:
            for line in _distinct(node.new_errors())[:MOST_LOGGED]:
                by_line.setdefault(line, []).append(node.name)
        logged = [f"\n    {', '.join(names)} logged: {line}" for line, names in by_line.items()]
        return WorkloadError(f"{what}: {output[-MOST_OUTPUT:] or 'it printed nothing'}" + "".join(logged))

    def keep_logs(self, logs: KeptLogs | None, error: BaseException) -> None:
        """Copy the logs of the nodes and the proxy to a permanent place, because ``error`` has ended this cluster."""
        if logs is None:
            return
        hosts = {node.name: node.host for node in self.members}
        programs = list(self.proxy.processes) if self.proxy else []
        if self.proxy and self.proxy.host:
            own = self.proxy.host.directory
            hosts[self.proxy.name] = self.proxy.host
            places = self.proxy.places.items()
            hosts |= {f"{self.proxy.name}-{name}": host for name, host in places if host.directory != own}
        logs.keep(self.spec.short_name, hosts, error, (*FILES, *(f"{program}.log" for program in programs)))

    def close(self) -> None:
        """Kill the proxy and every server. An ended server is not an error."""
        with span("close", trace_row(self.spec)):
            try:
                self._kill()
            finally:
                self.disconnect()

    def disconnect(self) -> None:
        """Close all control connections. An open one keeps the ssh connection that forwards it."""
        for node in self.members:
            node.sql.close()

    def _kill(self) -> None:
        if self.proxy:
            self.proxy.close()
        for node in self.members:  # signal all before waiting: a large process takes a while to end
            with contextlib.suppress(ProvisionError):  # the supervisor ended, and its servers ended with it
                if node.process and node.running:
                    node.process.signal(signal.SIGKILL)
        for node in self.members:
            with contextlib.suppress(ProvisionError):
                node.kill()


def trace_row(spec: ClusterSpec) -> str:
    """The row of a cluster in a trace; equal clusters have a number."""
    return f"cluster {spec.short_name}" + (f" {spec.instance + 1}" if spec.instance else "")


def _for_loads(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with the workload account, which, unlike the control account, obeys read_only."""
    return dataclasses.replace(endpoint, user=LOAD, tls=False)


def _distinct(lines: Sequence[str]) -> list[str]:
    """Return error log lines without their timestamps, each text once."""
    return list(dict.fromkeys(line[line.find("[ERROR]") :] for line in lines))
