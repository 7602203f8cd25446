"""The status port: one small HTTP answer for each node, 200 while it may take traffic and 503 while it may not.

``GET /`` asks whether the node may take reads, ``GET /writer`` whether it may take writes.

Run as ``python -P health_server.py CONFIG`` on the host of a proxy, one process for all nodes. CONFIG is a JSON file
with mode 0600, because it holds the password: ``Settings.text()`` writes it. An answer is one line of
text. The server is asked only when somebody asks us, and never more often than every ``FRESH`` seconds.
"""

from __future__ import annotations

import dataclasses
import json
import socketserver
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Protocol

from pytest_dbcluster.clusters.servers.connection import Connection, Endpoint, SQLError
from pytest_dbcluster.clusters.servers.health import Health

FRESH = 0.09  # seconds; just below the shortest interval of a proxy's checks
PATIENCE = 2.0  # seconds for the server to answer
PATHS = {"reader": "/", "writer": "/writer"}


@dataclasses.dataclass(frozen=True)
class Watched:
    """A node, how it says what it may be used for, and the port on which we tell it."""

    name: str
    address: str
    port: int
    status_port: int
    health: Health = dataclasses.field(default_factory=Health)
    tls: bool = False


@dataclasses.dataclass(frozen=True)
class HealthSettings:
    """What the process needs to know."""

    listen: str
    user: str
    password: str = dataclasses.field(repr=False)
    nodes: Sequence[Watched]

    def text(self) -> str:
        """The settings as the file that ``read`` takes; it holds the password."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def read(cls, text: str) -> HealthSettings:
        """The settings out of a file's text."""
        said = json.loads(text)
        nodes = [Watched(**{**node, "health": Health(**node["health"])}) for node in said["nodes"]]
        return cls(said["listen"], said["user"], said["password"], nodes)


class Asked(Protocol):
    """What a state needs of a connection."""

    def pairs(self, statement: str) -> dict[str, str]:
        """A statement of two columns as a mapping. Raises SQLError."""


class State:
    """What one node may be used for, asked afresh when the last answer is older than ``FRESH``."""

    def __init__(self, node: Watched, connection: Asked) -> None:
        self.node = node
        self._connection = connection
        self._wanted = {"reader": node.health.reader, "writer": node.health.writer}
        self._seen: Mapping[str, str] = {}
        self._refused = ""
        self._asked = float("-inf")

    def now(self, role: str = "reader") -> tuple[bool, str]:
        """Well or not for a role, ``reader`` or ``writer``, and one line that says why."""
        if time.monotonic() - self._asked > FRESH:
            self._ask()
            self._asked = time.monotonic()
        if self._refused:
            return False, self._refused
        wanted = self._wanted[role]
        lacking = [
            f"{name} is {self._seen.get(name)!r}, wanted {value!r}"
            for name, value in wanted.items()
            if self._seen.get(name) != value
        ]
        return not lacking, f"{self.node.name}: {'; '.join(lacking) or ', '.join(wanted.values()) or 'answers'}"

    def _ask(self) -> None:
        try:
            self._seen, self._refused = self._connection.pairs(self.node.health.statement), ""
        except SQLError as error:
            self._refused = " ".join(f"{error}".split())


class _Server(socketserver.TCPServer):
    # One thread for each node: a server that hangs makes its own checks wait and nobody else's.
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], state: State) -> None:
        self.state = state
        super().__init__(address, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: whoever asked has gone away."""


class _Handler(BaseHTTPRequestHandler):
    timeout = PATIENCE
    wbufsize = -1  # one packet: haproxy closes as soon as it has read the status
    server: _Server

    def do_GET(self) -> None:
        role = next((role for role, path in PATHS.items() if path == self.path), None)
        if role is None:
            self._answer(404, f"no answer at {self.path}; there is one at {' and '.join(PATHS.values())}")
        else:
            well, line = self.server.state.now(role)
            self._answer(200 if well else 503, line)

    def _answer(self, status: int, line: str) -> None:
        body = f"{line}\n".encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: a check comes twice a second."""


def serve(settings: HealthSettings) -> list[socketserver.TCPServer]:
    """Listen for every node, each in a thread of its own; ``shutdown()`` ends one. Raises OSError for a taken port."""
    servers = []
    for node in settings.nodes:
        endpoint = Endpoint(node.address, node.port, settings.user, settings.password, tls=node.tls)
        state = State(node, Connection(node.name, endpoint, seconds=PATIENCE))
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
    """Serve the nodes of the file CONFIG until the process is ended."""
    try:
        serve(HealthSettings.read(Path(arguments[0]).read_text()))
    except OSError as error:
        print(f"status port: {error.strerror}", file=sys.stderr)
        return 1
    threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
