"""Cluster: running nodes with their endpoints and proxy, which can settle and be checked."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
from collections.abc import Sequence

from pytest_dbcluster import wait
from pytest_dbcluster.clusters.proxy import Proxy
from pytest_dbcluster.clusters.servers.connection import Endpoint
from pytest_dbcluster.clusters.servers.node import LOAD, Node
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import ConfigError, NotReady, ProvisionError, SeriesVoid, WorkloadError
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.spec import ClusterSpec

MOST_LOGGED = 5
MOST_SAID = 1000  # characters


class Cluster:
    """A running cluster: nodes, endpoints, proxy; settled and checked on demand."""

    def __init__(
        self, spec: ClusterSpec, topology: Topology, hosts: Sequence[Host], nodes: Sequence[Node], proxy: Proxy | None
    ) -> None:
        self.spec = spec
        self.topology = topology
        self.hosts = hosts
        self.nodes = list(nodes)
        self.proxy = proxy
        self.dirty = ""
        self.ready_seconds = 0.0  # from the start of the first server

    @property
    def writers(self) -> Sequence[Node]:
        """The nodes that take writes, the one that a load is sent to first. Raises ProvisionError for none."""
        return self.topology.writers(self.nodes)

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
        reading = self.topology.readers(self.nodes) or self.writers
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
        self.proxy.follow()
        return self.proxy.problems()

    def backlog(self) -> list[str]:
        """What is still to be applied, and then to be flushed, on some node; empty when the cluster is settled."""
        return self.topology.backlog(self.nodes) or [problem for node in self.nodes for problem in node.unflushed()]

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
        return (found or self.topology.violations(self.nodes)) + self.logged()

    def logged(self) -> list[str]:
        """The [ERROR] lines of every node since this was last asked, each with its node."""
        return [f"{node.name} logged: {line}" for node in self.nodes for line in node.new_errors()]

    def load_failure(self, what: str, words: str) -> WorkloadError:
        """The error of a load that failed on this cluster: ``what`` ended how, its tool's words, and logged errors.

        Lines that several clients printed alike appear once. Raises NodeDied when a server has died: that is the
        cause then.
        """
        for node in self.nodes:
            node.survived()
        output = "\n".join(dict.fromkeys(words.strip().splitlines()))
        logged = [
            f"\n    {node.name} logged: {line}"
            for node in self.nodes
            for line in _distinct(node.new_errors())[:MOST_LOGGED]
        ]
        return WorkloadError(f"{what}: {output[-MOST_SAID:] or 'it said nothing'}" + "".join(logged))

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


def _distinct(lines: Sequence[str]) -> list[str]:
    """Lines of an error log without their times; those of several threads that say the same are one."""
    return list(dict.fromkeys(line[line.find("[ERROR]") :] for line in lines))
