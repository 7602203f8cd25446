"""Watch: the state of each node and the route of the writes, several times a second through a repetition."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Sequence

from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.clusters.proxy import Proxy
from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.errors import DBClusterError
from pytest_dbcluster.hosts.host import Process
from pytest_dbcluster.rounds.outages.states import DOWN, READS, SILENT, UNREADY, WRITES, StateChange

LOOK = 0.2  # seconds between an answer and the next look
ANSWER_SECONDS = 1.0  # after which a server counts as one that does not answer; slower hosts get more
REAPED_SECONDS = 0.05  # after a lost connection: a killed process closes it before its end is known
FIRST_SECONDS = 2.0  # for the first look, before the load begins
END_SECONDS = 5.0  # until a thread must have ended; one that still waits then ends with its statement
Seen = list[tuple[float, str]]  # seconds since 1970, and what is seen since then
Ask = Callable[[], Sequence[str]]  # returns what is seen, in order; nothing to end the looks


class Watch:
    """The states of a cluster since the watch began, in a thread for each node and the proxy. ``close`` ends them.

    Each node is asked over a separate connection, because an event may block all others. It is open before the load
    begins, so that the load counts it among the connections of the server.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._over = threading.Event()
        self._nodes: dict[str, Seen] = {node.name: [] for node in cluster.members}
        self._routes: Seen = []
        self._began: dict[threading.Thread, threading.Event] = {}
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        """Start the threads, and wait for the first look of each."""
        for node in self._cluster.members:
            look = _NodeLook(self._cluster, node)
            self._start(self._nodes[node.name], look.states, SILENT, look.connection.close)
        if proxy := self._cluster.proxy:
            self._start(self._routes, functools.partial(_route, proxy), "", lambda: None)
        limit = time.monotonic() + FIRST_SECONDS
        for began in self._began.values():
            began.wait(max(0.0, limit - time.monotonic()))

    def _start(self, seen: Seen, ask: Ask, otherwise: str, end: Callable[[], None]) -> None:
        """Start a thread that asks. otherwise: what is seen without an answer. end: called at its end."""
        began = threading.Event()
        look = functools.partial(self._look, seen, ask, otherwise, end, began)
        thread = threading.Thread(target=look, daemon=True, name="dbcluster-watch")
        self._began[thread] = began
        thread.start()

    def close(self) -> None:
        """End the threads, each after one more look."""
        self._over.set()
        limit = time.monotonic() + END_SECONDS
        for thread in self._began:
            thread.join(max(0.0, limit - time.monotonic()))

    def nodes(self, event_at: float) -> dict[str, tuple[StateChange, ...]]:
        """The changes of each node. event_at: seconds since 1970."""
        return {name: _changes(seen, event_at) for name, seen in self._nodes.items()}

    def routes(self, event_at: float) -> tuple[StateChange, ...]:
        """The changes of the node that the proxy leads writes to; none for a proxy that does not say it."""
        return _changes(self._routes, event_at)

    def _look(self, seen: Seen, ask: Ask, otherwise: str, end: Callable[[], None], began: threading.Event) -> None:
        """Look until the watch is over, and once more: the cluster is whole by then."""
        last = False
        while not last:
            last = self._over.wait(LOOK if began.is_set() else 0)
            at, found = time.time(), _ask_or(otherwise, ask)
            if not found:
                break
            for state in found:
                # An answer is as old as its end. Without one, the server did not answer since we asked.
                if not seen or seen[-1][1] != state:
                    seen.append((at if state == otherwise else time.time(), state))
            began.set()
        began.set()
        end()


class _NodeLook:
    """Looks at one node, over one connection."""

    def __init__(self, cluster: Cluster, node: Node) -> None:
        self.connection = _connect(node)
        self._cluster = cluster
        self._node = node
        self._process: Process | None = None  # of the last look

    def states(self) -> Sequence[str]:
        """The state now; after ``down`` if the server has another process than at the last look."""
        before, self._process = self._process, self._node.process
        if not self._node.running:
            return [self._down()]
        replaced = before is not None and before is not self._process
        return [*([DOWN] if replaced else []), self._state()]

    def _state(self) -> str:
        """The state of a node whose server runs."""
        node, cluster = self._node, self._cluster
        health = cluster.topology.health(node, cluster.members)
        try:
            seen = self.connection.pairs(health.statement, ANSWER_SECONDS * node.host.patience)
        except DBClusterError:
            time.sleep(REAPED_SECONDS)
            return SILENT if node.running else self._down()
        if health.accepts("writer", seen):
            return WRITES
        return READS if health.accepts("reader", seen) else UNREADY

    def _down(self) -> str:
        """The state of a node without a server. Its connection would break with the next server."""
        self.connection.close()
        return DOWN


def _route(proxy: Proxy) -> Sequence[str]:
    """The node that the proxy leads writes to, or an empty name. Nothing if the proxy does not say it."""
    name = proxy.writes_to()
    return [] if name is None else [name]


def _ask_or(otherwise: str, ask: Ask) -> Sequence[str]:
    """The answer, or ``otherwise`` after an error: a host that dies while it is asked may raise any."""
    with contextlib.suppress(Exception):
        return ask()
    return [otherwise]


def _connect(node: Node) -> Connection:
    return Connection(node.name, node.endpoint, seconds=ANSWER_SECONDS * node.host.patience)


def _changes(seen: Seen, event_at: float) -> tuple[StateChange, ...]:
    return tuple(StateChange(round(at - event_at, 3), state) for at, state in list(seen))
