"""HAProxy before a cluster: a writer that stays with one node, a reader that takes nodes in turn.

Each node is checked over HTTP against our status port, because a server that accepts connections may still be a
donor, a joiner or outside of the primary component, or have another role. Both listeners name every node and the
checks decide: where nodes have roles each listener asks for its own, so that the writer follows the primary; where
they have none, one check serves both.
"""

from __future__ import annotations

import csv
import io
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster import registry
from pytest_dbcluster.clusters.proxies.haproxy import health_server
from pytest_dbcluster.clusters.proxy import MOST_CONNECTIONS, Proxy, through
from pytest_dbcluster.clusters.servers.connection import Endpoint, SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.find import find

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
{readers}

frontend statistics
    mode http
    bind {address}:{statistics}
    timeout client 5s
    stats enable
    stats uri /
"""
CHECK = """\
    option httpchk GET {path}
    default-server inter 1s fastinter 100 downinter 100 fall 3 rise 1 on-marked-down shutdown-sessions"""


class HAProxy(Proxy):
    """One haproxy and one status port, on a host of their own."""

    name = "haproxy"

    def __init__(self, provisioner: Provisioner, topology: Topology, nodes: Sequence[Node]) -> None:
        super().__init__(provisioner, topology, nodes)
        self._ports = PORTS
        self._tracked = False

    def start(self) -> None:
        """Start both processes; nothing stays behind when that fails. Raises ProvisionError."""
        release = find("haproxy")
        try:
            host = self.acquire()
            self._ports = (host.port(PORTS[0]), host.port(PORTS[1]), host.port(PORTS[2]))
            ours = self.provisioner.beside(host)
            watched = self._watched(ours)
            self._tracked = tracked(watched)
            self.spawn(
                "status_port",
                health_server.HealthSettings(ours.address, *self.account, watched).text(),
                [sys.executable, "-P", health_server.__file__],
                {"PYTHONPATH": str(Path(registry.__file__).parents[1])},
                ours,
            )
            self.spawn(
                self.name,
                configuration(host.address, self._ports, watched, ours.address),
                [str(release.program("haproxy")), "-db", "-f"],
                release.environment,
            )
        except BaseException:
            self.close()
            raise

    def _watched(self, host: Host) -> list[health_server.Watched]:
        return [
            health_server.Watched(
                node.name,
                node.host.address,
                node.port,
                host.port(FIRST_STATUS_PORT + n),
                self.topology.health(node, self.nodes),
                node.endpoint.tls,
            )
            for n, node in enumerate(self.nodes)
        ]

    def problems(self) -> list[str]:
        """Servers that are not in the listeners of their roles, or a listener that does not answer.

        Raises ProvisionError for a dead process.
        """
        if not self.host:
            return ["haproxy has not been started"]
        self.alive()
        try:
            with urllib.request.urlopen(f"{self.statistics_url};csv", timeout=5) as answer:
                text = answer.read().decode()
        except (urllib.error.URLError, OSError) as error:
            return [f"haproxy gives no statistics on {self.statistics_url}: {getattr(error, 'reason', error)}"]
        roles = {role: [node.name for node in nodes] for role, nodes in self.roles().items()}
        found = misplaced(text, [node.name for node in self.nodes], roles, tracked=self._tracked)
        return found or _unanswered("writer", self.writer()) + _unanswered("reader", self.reader())

    @property
    def statistics_url(self) -> str:
        """Haproxy's own page about its servers."""
        return f"http://{self.host.address if self.host else ''}:{self._ports[2]}/"

    def writer(self) -> Endpoint:
        """Leads to the first node that takes writes; to the next one while that is not well."""
        return self.endpoint(self._ports[0], self.roles()["writer"][:1])

    def reader(self) -> Endpoint:
        """Leads to every node that takes reads and is well, in turn."""
        return self.endpoint(self._ports[1], self.roles()["reader"])


def tracked(nodes: Sequence[health_server.Watched]) -> bool:
    """Whether one check serves both listeners, so that a node is asked once and not twice."""
    return all(node.health.reader == node.health.writer for node in nodes)


def configuration(
    address: str, ports: tuple[int, int, int], nodes: Sequence[health_server.Watched], checked_at: str = ""
) -> str:
    """The text of haproxy.cfg; ``checked_at`` is the address of the status ports, where it is another one."""
    one = tracked(nodes)
    writers = [] if one else [CHECK.format(path=health_server.PATHS["writer"])]
    readers = [CHECK.format(path=health_server.PATHS["reader"])]
    for n, node in enumerate(nodes):
        server = f"    server {node.name} {node.address}:{node.port}"
        check = f"check addr {checked_at or address} port {node.status_port}"
        # When the first node is back, the second must not keep a share of the writes.
        role = "backup" if n else "on-marked-up shutdown-backup-sessions"
        follows = f"track reader/{node.name} on-marked-down shutdown-sessions" if one else check
        writers.append(f"{server} {follows} {role}")
        readers.append(f"{server} {check}")
    return CONFIGURATION.format(
        address=address,
        maximum=MOST_CONNECTIONS,
        writer=ports[0],
        reader=ports[1],
        statistics=ports[2],
        writers="\n".join(writers),
        readers="\n".join(readers),
    )


def misplaced(statistics: str, names: Sequence[str], roles: Mapping[str, Sequence[str]], *, tracked: bool) -> list[str]:
    """The servers that are not in the listeners of their roles after a check, out of haproxy's statistics as CSV.

    tracked: the writer's servers follow the reader's checks and have none of their own.
    """
    rows = {(row["# pxname"], row["svname"]): row for row in csv.DictReader(io.StringIO(statistics))}
    found = []
    for name in names:
        for listener in ("reader", "writer"):
            row = rows.get((listener, name), {})
            own = listener == "reader" or not tracked
            if problem := _misplaced(f"{listener}/{name}", row, wanted=name in roles[listener], checked=own):
                found.append(f"haproxy: {problem}")
                if tracked:
                    break
    return found


def _misplaced(server: str, row: Mapping[str, str], *, wanted: bool, checked: bool) -> str:
    check = row.get("check_status", "").removeprefix("* ")  # the next check is under way
    state = row.get("status", "missing")
    words = " ".join(filter(None, (check, row.get("check_code"), row.get("last_chk"))))
    if state.startswith("UP") != wanted:
        why = f" ({words or 'not checked yet'})" if checked else ""
        return f"{server} is {state}{why}{'' if wanted else ', wanted DOWN'}"
    # Haproxy calls a server UP before its first check.
    return f"{server} is {state} ({words or 'not checked yet'})" if checked and wanted and check != "L7OK" else ""


def _unanswered(listener: str, endpoint: Endpoint) -> list[str]:
    try:
        through(f"haproxy's {listener}", endpoint, "SELECT 1")
    except SQLError as error:
        return [str(error)]
    return []
