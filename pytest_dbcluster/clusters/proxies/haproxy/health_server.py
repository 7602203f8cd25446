"""The health server: one HTTP port for each node; status 200 while the node accepts traffic, 503 while it does not.

``GET /`` asks whether the node accepts reads, ``GET /writer`` whether it accepts writes. The body is one line of text.
Each HTTP request queries the node's server, but at most once every ``FRESH`` seconds. Each connection has a separate
thread, which closes it after ``PATIENCE`` seconds.

Run as ``python -P health_server.py CONFIG`` on the host of a proxy, one process for all nodes. CONFIG is a JSON file
with mode 0600, because it has the password; ``HealthSettings.text()`` is its contents.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Protocol

from pytest_dbcluster.clusters.servers.connection import Connection, Endpoint, SQLError
from pytest_dbcluster.clusters.servers.health import Health
from pytest_dbcluster.hosts.host import through_socket

FRESH = 0.09  # seconds; just below 100 ms, the shortest interval of a proxy's checks
PATIENCE = 2.0  # seconds; timeout of the server, and the longest time of a connection of an HTTP client
MOST_CONNECTIONS = 256  # at the same time for each node; one more closes the oldest connection
PATHS = {"reader": "/", "writer": "/writer"}


@dataclasses.dataclass(frozen=True)
class Watched:
    """One node, with the port on which we report its health."""

    name: str
    """Name of the node."""

    address: str
    """Address of its server."""

    port: int
    """Port of its server."""

    status_port: int
    """Port on which we report its health."""

    health: Health = dataclasses.field(default_factory=Health)
    """The conditions of its health."""

    tls: bool = False
    """Whether the connection to its server needs TLS."""

    tunnel: str = ""
    """The path of a socket that leads to the node; empty if the address is reachable."""

    also: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Values that are healthy too, by name: those of a donor."""


@dataclasses.dataclass(frozen=True)
class HealthSettings:
    """The settings of the process."""

    listen: str
    """Address to listen on."""

    user: str
    """Name of the control account."""

    password: str = dataclasses.field(repr=False)
    """Password of the control account."""

    nodes: Sequence[Watched]
    """The nodes."""

    drained: str = ""
    """The path of a file with the names of the nodes that accept no traffic; a missing file has none."""

    def text(self) -> str:
        """Return the settings as JSON for ``read``; the text has the password."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def read(cls, text: str) -> HealthSettings:
        """Return the settings from the text of a file."""
        document = json.loads(text)
        nodes = [Watched(**{**node, "health": Health(**node["health"])}) for node in document["nodes"]]
        return cls(document["listen"], document["user"], document["password"], nodes, document["drained"])


class HealthConnection(Protocol):
    """The part of a connection that ``State`` uses."""

    def pairs(self, statement: str, seconds: float) -> dict[str, str]:
        """Run a statement with two columns; return value by name. Raises SQLError, after ``seconds`` at the latest."""


class State:
    """The health of one node, queried again if the last result is older than ``FRESH`` seconds.

    One thread at a time queries it, without a lock. Others wait for it, at most ``PATIENCE`` seconds.
    """

    def __init__(self, node: Watched, connection: HealthConnection, drained: str = "") -> None:
        self.node = node
        self._connection = connection
        self._drained = Path(drained)
        self._wanted = {"reader": node.health.reader, "writer": node.health.writer}
        self._seen: Mapping[str, str] = {}
        self._refused = ""
        self._asked = float("-inf")
        self._asking = False  # whether a thread uses the connection
        self._news = threading.Condition()

    def now(self, role: str = "reader") -> tuple[bool, str]:
        """Return whether the node is healthy for a role (``reader`` or ``writer``), and one line with the reason."""
        with self._news:
            asks = self._stale and not self._asking
            self._asking = self._asking or asks
        if asks:
            self._ask()
        with self._news:
            known = self._news.wait_for(lambda: not self._asking, PATIENCE)
            seen = self._seen
            refused = self._refused if known else f"{self.node.name} does not answer"
        if refused or self._is_drained():
            return False, refused or f"{self.node.name} is drained"
        wanted = self._wanted[role]
        lacking = [
            f"{name} is {seen.get(name)!r}, wanted {value!r}"
            for name, value in wanted.items()
            if seen.get(name) not in (value, self.node.also.get(name, value))
        ]
        found = "; ".join(lacking) or ", ".join(seen[name] for name in wanted) or "answers"
        return not lacking, f"{self.node.name}: {found}"

    def _is_drained(self) -> bool:
        with contextlib.suppress(OSError):  # no node is drained, or there is no such file
            return self.node.name in self._drained.read_text().split()
        return False

    @property
    def _stale(self) -> bool:
        return time.monotonic() - self._asked > FRESH

    def _ask(self) -> None:
        seen, refused = self._seen, ""
        try:
            seen = self._connection.pairs(self.node.health.statement, PATIENCE)
        except SQLError as error:
            refused = " ".join(f"{error}".split())
        finally:
            with self._news:
                self._seen, self._refused, self._asked = seen, refused, time.monotonic()
                self._asking = False
                self._news.notify_all()


class _Server(socketserver.ThreadingTCPServer):
    """The listener of one node. It drops slow and silent clients, which delay no other client."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], state: State) -> None:
        self.state = state
        self._open: dict[socket.socket, float] = {}  # the start of each connection, oldest first
        self._changing = threading.Lock()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; drop the oldest connection if there are too many."""
        with self._changing:
            if len(self._open) >= MOST_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                _drop(oldest)
            self._open[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, and forget it."""
        with self._changing:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Drop old connections; called twice a second, and after each connection."""
        limit = time.monotonic() - PATIENCE
        with self._changing:
            for connection, began in self._open.items():
                if began < limit:
                    _drop(connection)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing: the HTTP client has closed its connection, or was too slow."""


def _drop(connection: socket.socket) -> None:
    """End the reading and writing of a connection; its thread then sees the end of the stream, and closes it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE
    wbufsize = -1  # buffered, so one packet: haproxy closes the connection as soon as it has read the status
    server: _Server

    def do_GET(self) -> None:
        role = next((role for role, path in PATHS.items() if path == self.path), None)
        if role is None:
            self._answer(404, f"no answer at {self.path}; there is one at {' and '.join(PATHS.values())}")
        else:
            healthy, line = self.server.state.now(role)
            self._answer(200 if healthy else 503, line)

    def _answer(self, status: int, line: str) -> None:
        body = f"{line}\n".encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing: a check comes twice a second."""


def serve(settings: HealthSettings) -> list[socketserver.TCPServer]:
    """Listen for every node, each in a separate thread, and return the listeners; ``shutdown()`` ends one.

    Raises OSError if another program has a port.
    """
    servers = []
    for node in settings.nodes:
        through = through_socket(node.tunnel) if node.tunnel else None
        endpoint = Endpoint(node.address, node.port, settings.user, settings.password, tls=node.tls, connects=through)
        state = State(node, Connection(node.name, endpoint, seconds=PATIENCE), settings.drained)
        try:
            servers.append(_Server((settings.listen, node.status_port), state))
        except OSError as error:
            raise OSError(
                error.errno, f"cannot listen on {settings.listen}:{node.status_port}: {error.strerror}"
            ) from None
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    return list(servers)


def main(arguments: Sequence[str]) -> int:
    """Serve the nodes in the file CONFIG until a signal kills the process; return 1 for a port in use."""
    try:
        serve(HealthSettings.read(Path(arguments[0]).read_text()))
    except OSError as error:
        print(f"status port: {error.strerror}", file=sys.stderr)
        return 1
    threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
