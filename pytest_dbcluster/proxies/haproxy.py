"""HAProxy before a cluster: a writer that stays with one node, a reader that takes every node in turn.

Each node is checked over HTTP against our status port, because a server that accepts connections may still be a
donor, a joiner or outside of the primary component. One check serves both listeners.
"""

from __future__ import annotations

import contextlib
import csv
import io
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest_dbcluster
from pytest_dbcluster import status_port
from pytest_dbcluster.errors import DBClusterError, ProvisionError
from pytest_dbcluster.host import Host, Process
from pytest_dbcluster.node import Node
from pytest_dbcluster.provisioner import Provisioner
from pytest_dbcluster.release import find
from pytest_dbcluster.spec import ClusterSpec, Endpoint
from pytest_dbcluster.sql import Connection, SQLError

MAX_CONNECTIONS = 1500
PORTS = (3306, 3307, 8404)  # writer, reader, statistics, on a host of its own
FIRST_STATUS_PORT = 9200

# Three failed checks take a node out, so that one slow answer of a busy machine does not cut a load's connections.
# "redispatch 1" sends a connection that was refused to another node at once.
CONFIGURATION = """\
global
    maxconn {maximum}

defaults
    mode tcp
    timeout connect 5s
    timeout client 24h
    timeout server 24h
    timeout check 2s
    retries 3
    option redispatch 1

listen writer
    bind {address}:{writer}
{writers}

listen reader
    bind {address}:{reader}
    balance roundrobin
    option httpchk GET /
    default-server inter 1s fastinter 100 downinter 100 fall 3 rise 1 on-marked-down shutdown-sessions
{readers}

frontend statistics
    mode http
    bind {address}:{statistics}
    timeout client 5s
    stats enable
    stats uri /
"""


class HAProxy:
    """One haproxy and one status port, on a host of their own."""

    def __init__(self, provisioner: Provisioner, nodes: Sequence[Node]) -> None:
        self.provisioner = provisioner
        self.nodes = list(nodes)
        self.host: Host | None = None
        self.processes: dict[str, Process] = {}
        self._ports = PORTS

    def start(self) -> None:
        """Start both processes; nothing stays behind when that fails. Raises ProvisionError."""
        release = find("haproxy")
        try:
            self.host = self.provisioner.acquire(ClusterSpec("standalone", name="haproxy"))[0]
            self._ports = (_port(self.host, PORTS[0]), _port(self.host, PORTS[1]), _port(self.host, PORTS[2]))
            watched = self._watched(self.host)
            self._spawn(
                "status_port",
                status_port.Settings(self.host.address, *_account(self.nodes[0]), watched).text(),
                [sys.executable, "-m", status_port.__name__],
                {"PYTHONPATH": str(Path(pytest_dbcluster.__file__).parent.parent)},
            )
            self._spawn(
                "haproxy",
                configuration(self.host.address, self._ports, watched),
                [str(release.program("haproxy")), "-db", "-f"],
                release.environment,
            )
        except BaseException:
            self.close()
            raise

    def _watched(self, host: Host) -> list[status_port.Watched]:
        return [
            status_port.Watched(
                node.name,
                node.host.address,
                node.port,
                _port(host, FIRST_STATUS_PORT + n),
                status_port.SYNCED if node.options.get("wsrep_on") == "ON" else {},
                node.endpoint.tls,
            )
            for n, node in enumerate(self.nodes)
        ]

    def _spawn(self, name: str, settings: str, command: list[str], environment: Mapping[str, str]) -> None:
        assert self.host
        file = f"{self.host.directory}/{name}.cfg"
        self.host.push(settings.encode(), file)
        self.processes[name] = self.host.spawn(
            [*command, file], log=self.log(name), directory=self.host.directory, environment=environment
        )

    def log(self, name: str = "haproxy") -> str:
        """Where a process of ours, ``haproxy`` or ``status_port``, writes: haproxy each node that comes or goes."""
        return f"{self.host.directory if self.host else '.'}/{name}.log"

    def problems(self) -> list[str]:
        """Servers that are not up, or a listener that does not answer. Raises ProvisionError for a dead process."""
        if not self.host:
            return ["haproxy has not been started"]
        self._alive()
        try:
            with urllib.request.urlopen(f"{self.statistics_url};csv", timeout=5) as answer:
                found = servers_down(answer.read().decode(), [node.name for node in self.nodes])
        except (urllib.error.URLError, OSError) as error:
            return [f"haproxy gives no statistics on {self.statistics_url}: {getattr(error, 'reason', error)}"]
        return found or _unanswered(self.writer(), "writer") + _unanswered(self.reader(), "reader")

    @property
    def statistics_url(self) -> str:
        """Haproxy's own page about its servers."""
        return f"http://{self.host.address if self.host else ''}:{self._ports[2]}/"

    def _alive(self) -> None:
        assert self.host
        for name, process in self.processes.items():
            status = process.status()
            if status is not None:
                words = self.host.pull(self.log(name)).decode("utf-8", "replace").strip()
                raise ProvisionError(
                    f"{name} before {len(self.nodes)} nodes ended with {status}; its last words "
                    f"({self.log(name)}): {words[-1500:] or '(it printed nothing)'}"
                )

    def writer(self) -> Endpoint:
        """Leads to the first node; to the next one while the first is not well."""
        return self._endpoint(self._ports[0], self.nodes[:1])

    def reader(self) -> Endpoint:
        """Leads to every node that is well, in turn."""
        return self._endpoint(self._ports[1], self.nodes)

    def _endpoint(self, port: int, nodes: Sequence[Node]) -> Endpoint:
        address = self.host.address if self.host else self.nodes[0].host.address
        tls = self.nodes[0].endpoint.tls
        return Endpoint(address, port, *_account(self.nodes[0]), nodes=tuple(node.name for node in nodes), tls=tls)

    def close(self) -> None:
        """End both processes and give the host back. Never raises for what is gone already."""
        for process in reversed(self.processes.values()):
            with contextlib.suppress(DBClusterError):
                process.signal(signal.SIGKILL)
                limit = time.monotonic() + 5
                while process.status() is None and time.monotonic() < limit:
                    time.sleep(0.005)
        self.processes = {}
        if self.host:
            self.provisioner.release([self.host])
            self.host = None


def configuration(address: str, ports: tuple[int, int, int], nodes: Sequence[status_port.Watched]) -> str:
    """The text of haproxy.cfg. The writer follows the reader's checks, so a node is asked once, not twice."""
    writers, readers = [], []
    for n, node in enumerate(nodes):
        server = f"    server {node.name} {node.address}:{node.port}"
        # When the first node is back, the second must not keep a share of the writes.
        role = "backup" if n else "on-marked-up shutdown-backup-sessions"
        writers.append(f"{server} track reader/{node.name} on-marked-down shutdown-sessions {role}")
        readers.append(f"{server} check addr {address} port {node.status_port}")
    return CONFIGURATION.format(
        address=address,
        maximum=MAX_CONNECTIONS,
        writer=ports[0],
        reader=ports[1],
        statistics=ports[2],
        writers="\n".join(writers),
        readers="\n".join(readers),
    )


def servers_down(statistics: str, names: Sequence[str]) -> list[str]:
    """The servers of both listeners that have not passed a check, out of haproxy's statistics as CSV."""
    rows = {(row["# pxname"], row["svname"]): row for row in csv.DictReader(io.StringIO(statistics))}
    found = []
    for name in names:
        checked, tracking = rows.get(("reader", name), {}), rows.get(("writer", name), {})
        check = checked.get("check_status", "").removeprefix("* ")  # the next check is under way
        state, writer = checked.get("status", "missing"), tracking.get("status", "missing")
        if not state.startswith("UP") or check != "L7OK":
            words = " ".join(filter(None, (check, checked.get("check_code"), checked.get("last_chk"))))
            found.append(f"haproxy: reader/{name} is {state} ({words or 'not checked yet'})")
        elif not writer.startswith("UP"):
            found.append(f"haproxy: writer/{name} is {writer}")
    return found


def _unanswered(endpoint: Endpoint, listener: str) -> list[str]:
    connection = Connection(f"haproxy's {listener}", endpoint, seconds=5)
    try:
        connection.query("SELECT 1")
    except SQLError as error:
        return [str(error)]
    finally:
        connection.close()
    return []


def _account(node: Node) -> tuple[str, str]:
    return node.endpoint.user, node.endpoint.password


def _port(host: Host, own: int) -> int:
    taken: int = host.port() if hasattr(host, "port") else own
    return taken


PROXY = HAProxy
