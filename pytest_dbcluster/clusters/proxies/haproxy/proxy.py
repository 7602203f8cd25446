"""HAProxy in front of a cluster: the writer listener stays with one node, the reader listener alternates nodes.

HAProxy checks each node over HTTP at our health server. A server that accepts connections may still be a donor, a
joiner, outside the primary component, or in another role. Both listeners list every node, and the checks decide. If
nodes have roles, each listener checks for its role, so the writer follows the primary. If not, both listeners share one
check.
"""

from __future__ import annotations

import contextlib
import csv
import http.client
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster import registry
from pytest_dbcluster.clusters.bringing import bring
from pytest_dbcluster.clusters.proxies.haproxy import health_server
from pytest_dbcluster.clusters.proxy import MOST_CONNECTIONS, Proxy, query_through
from pytest_dbcluster.clusters.proxy_options import CHECKS, SECONDS, ProxyOption
from pytest_dbcluster.clusters.servers.connection import Endpoint, SQLError
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.clusters.topology import Topology
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.host import Host
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.releases.find import find
from pytest_dbcluster.spec import ClusterSpec

PORTS = (3306, 3307, 8404)  # writer, reader, statistics; other ports if the proxy's host is shared
FIRST_STATUS_PORT = 9200
STATISTICS_SECONDS = 5.0
LOOK_SECONDS = 1.0  # for the statistics, of which the next look follows soon
TIMES = ("connect_timeout", "check_interval", "fast_interval", "check_timeout")  # options in seconds
FAIL_BACK = "on-marked-up shutdown-backup-sessions"

# By default three failed checks take a node out: one slow answer on a busy machine must not cut connections.
OPTIONS = (
    ProxyOption(
        "fail_back",
        True,
        "When the first node is up again, connections to other nodes end. OFF: they stay, and only new ones go to it.",
    ),
    ProxyOption(
        "connect_timeout",
        5,
        "Limit of a connection to a node, and the wait before the next try, at most 1 s (`timeout connect`).",
        SECONDS,
        0.01,
        60,
    ),
    ProxyOption("check_interval", 1, "Time between two checks of a node (`inter`).", SECONDS, 0.1, 60),
    ProxyOption(
        "fast_interval",
        0.1,
        "This time while a node is down or may change its state (`fastinter`, `downinter`).",
        SECONDS,
        0.1,
        60,
    ),
    ProxyOption(
        "check_timeout", 2, "Limit of a check; a paused server needs all of it (`timeout check`).", SECONDS, 0.1, 2
    ),
    ProxyOption("fall", 3, "Failed checks in a row that take a node out (`fall`).", CHECKS, 1, 100),
    ProxyOption("rise", 1, "Successful checks in a row that bring a node back (`rise`).", CHECKS, 1, 100),
    ProxyOption(
        "available_when_donor", False, "Whether a Galera node stays in while it is Donor/Desynced, as in a backup."
    ),
)
# "redispatch 1" sends a refused connection to another node at once.
CONFIGURATION = """\
global
    maxconn {maximum}

defaults
    mode tcp
    timeout connect {connect}
    timeout client 24h
    timeout server 24h
    timeout check {check}
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
    default-server inter {inter} fastinter {fast} downinter {fast} fall {fall} rise {rise} \
on-marked-down shutdown-sessions"""


class HAProxy(Proxy):
    """One haproxy and one health server, on a separate host."""

    name = "haproxy"
    options = OPTIONS

    def __init__(self, provisioner: Provisioner, topology: Topology, nodes: Sequence[Node]) -> None:
        super().__init__(provisioner, topology, nodes)
        self._ports = PORTS
        self._tracked = False

    @classmethod
    def read_settings(cls, spec: ClusterSpec, topology: Topology) -> dict[str, float]:
        """Return the value of each option, by name. Raises ConfigError also for donors of a topology without them."""
        settings = super().read_settings(spec, topology)
        if settings["available_when_donor"] and not topology.donor:
            raise ConfigError(
                f"proxy_options available_when_donor=ON of haproxy: nodes of {spec.topology} are never donors"
            )
        return settings

    def start(self) -> None:
        """Start both processes; after an error no process remains. Raises ProvisionError."""
        release = find("haproxy")
        try:
            host = self.acquire()
            self._ports = (host.port(PORTS[0]), host.port(PORTS[1]), host.port(PORTS[2]))
            ours = self.provisioner.beside(host)
            watched = self._watched_nodes(ours)
            self._tracked = share_one_check(watched)
            bring(release, [host])
            self.spawn(
                "status_port",
                health_server.HealthSettings(ours.address, *self.account, watched, _drained_file(ours)).text(),
                [sys.executable, "-P", health_server.__file__],
                {"PYTHONPATH": str(Path(registry.__file__).parents[1])},
                ours,
            )
            self.spawn(
                self.name,
                configuration(host.address, self._ports, watched, ours.address, settings=self.option_values),
                [str(release.program("haproxy")), "-db", "-f"],
                release.environment,
            )
        except BaseException:
            self.close()
            raise

    def _watched_nodes(self, host: Host) -> list[health_server.Watched]:
        return [
            health_server.Watched(
                node.name,
                node.host.address,
                node.port,
                host.port(FIRST_STATUS_PORT + n),
                self.topology.health(node, self.nodes),
                node.endpoint.tls,
                node.host.tunnel(node.port),
                self.topology.donor if self.option_values["available_when_donor"] else {},
            )
            for n, node in enumerate(self.nodes)
        ]

    def problems(self) -> list[str]:
        """Return nodes with the wrong state in a listener; if none, listeners that do not answer.

        Raises ProvisionError for a process that has ended.
        """
        if not self.host:
            return ["haproxy does not run yet"]
        self.alive()
        try:
            text = statistics(self.host, self._ports[2])
        except (http.client.HTTPException, OSError) as error:
            return [f"haproxy gives no statistics on {self.statistics_url}: {error}"]
        roles = {role: [node.name for node in nodes] for role, nodes in self.roles().items()}
        wrong = state_problems(text, [node.name for node in self.nodes], roles, tracked=self._tracked)
        return wrong or _answer_problems("writer", self.writer()) + _answer_problems("reader", self.reader())

    def drain(self, names: Sequence[str]) -> None:
        """Let the health server report these nodes as unhealthy, and no others. HAProxy then cuts their connections."""
        place = self.places["status_port"]
        place.push("\n".join(names).encode(), _drained_file(place))

    def drain_problems(self, name: str) -> list[str]:
        """Return the listeners that still lead to a node or have connections to it. Raises ProvisionError."""
        self.alive()
        try:
            text = statistics(self.host or self.places["status_port"], self._ports[2])
        except (http.client.HTTPException, OSError) as error:
            return [f"haproxy gives no statistics on {self.statistics_url}: {error}"]
        return [
            f"haproxy: {row['# pxname']}/{name} is {row['status']} with {row['scur']} connections"
            for row in csv.DictReader(io.StringIO(text))
            if row["svname"] == name and (not row["status"].startswith("DOWN") or row["scur"] != "0")
        ]

    def writes_to(self) -> str | None:
        """Return the first node that is up in the listener of writes; backups come last. Empty for none."""
        if not self.host:
            return ""
        names = [node.name for node in self.nodes]
        rows = csv.DictReader(io.StringIO(statistics(self.host, self._ports[2], LOOK_SECONDS)))
        up = [row for row in rows if row["# pxname"] == "writer" and row["svname"] in names and _is_up(row)]
        return next((row["svname"] for row in sorted(up, key=lambda row: row["act"] != "1")), "")

    @property
    def statistics_url(self) -> str:
        """The URL of haproxy's statistics page."""
        return f"http://{self.host.address if self.host else ''}:{self._ports[2]}/"

    def writer(self) -> Endpoint:
        """Return the writer: it leads to the first node that accepts writes, or to the next if that is unhealthy."""
        return self.endpoint(self._ports[0], self.roles()["writer"][:1])

    def reader(self) -> Endpoint:
        """Return the reader: it alternates over all healthy nodes that accept reads."""
        return self.endpoint(self._ports[1], self.roles()["reader"])


def _is_up(row: Mapping[str, str]) -> bool:
    return row["status"].startswith("UP")


def _drained_file(host: Host) -> str:
    return f"{host.directory}/drained"


def statistics(host: Host, port: int, seconds: float = STATISTICS_SECONDS) -> str:
    """Return haproxy's statistics as CSV. Raises OSError and HTTPException. seconds: the limit of each step."""
    asked = http.client.HTTPConnection(host.address, port, timeout=seconds)
    with contextlib.closing(asked):
        if host.connects:
            asked.sock = host.connects(host.address, port, seconds)
        asked.request("GET", "/;csv")
        answer = asked.getresponse()
        text = answer.read().decode()
        if answer.status != http.client.OK:
            raise OSError(f"{answer.status} {answer.reason}")
        return text


def share_one_check(nodes: Sequence[health_server.Watched]) -> bool:
    """Return whether both listeners share one check, because reads and writes have the same conditions."""
    return all(node.health.reader == node.health.writer for node in nodes)


def configuration(
    address: str,
    ports: tuple[int, int, int],
    nodes: Sequence[health_server.Watched],
    checked_at: str = "",
    *,
    settings: Mapping[str, float],
) -> str:
    """Return the text of haproxy.cfg.

    address, ports: the listeners' address, and the ports of writer, reader and statistics.
    checked_at: the address of the health server; empty for the same address.
    settings: the values of ``OPTIONS``, by name.
    """
    times = {name: f"{settings[name] * 1000:.0f}ms" for name in TIMES}
    numbers = {"fall": f"{settings['fall']:.0f}", "rise": f"{settings['rise']:.0f}"}
    check_with = {"inter": times["check_interval"], "fast": times["fast_interval"], **numbers}
    shared = share_one_check(nodes)
    writers = [] if shared else [CHECK.format(path=health_server.PATHS["writer"], **check_with)]
    readers = [CHECK.format(path=health_server.PATHS["reader"], **check_with)]
    for n, node in enumerate(nodes):
        server = f"    server {node.name} {node.address}:{node.port}"
        check = f"check addr {checked_at or address} port {node.status_port}"
        # When the first node is back, connections to the second must end, or both nodes would accept writes.
        role = "backup" if n else FAIL_BACK if settings["fail_back"] else ""
        follows = f"track reader/{node.name} on-marked-down shutdown-sessions" if shared else check
        writers.append(f"{server} {follows} {role}".rstrip())
        readers.append(f"{server} {check}")
    return CONFIGURATION.format(
        address=address,
        maximum=MOST_CONNECTIONS,
        connect=times["connect_timeout"],
        check=times["check_timeout"],
        writer=ports[0],
        reader=ports[1],
        statistics=ports[2],
        writers="\n".join(writers),
        readers="\n".join(readers),
    )


def state_problems(
    statistics: str, names: Sequence[str], roles: Mapping[str, Sequence[str]], *, tracked: bool
) -> list[str]:
    """Return one line for each server with the wrong or an unchecked state in a listener.

    statistics: haproxy's statistics as CSV. names: all nodes. roles: the nodes that must be up, by listener.
    tracked: the writer's servers follow the reader's checks and have no separate checks.
    """
    rows = {(row["# pxname"], row["svname"]): row for row in csv.DictReader(io.StringIO(statistics))}
    problems = []
    for name in names:
        for listener in ("reader", "writer"):
            row = rows.get((listener, name), {})
            own = listener == "reader" or not tracked
            if problem := _state_problem(f"{listener}/{name}", row, wanted=name in roles[listener], checked=own):
                problems.append(f"haproxy: {problem}")
                if tracked:
                    break
    return problems


def _state_problem(server: str, row: Mapping[str, str], *, wanted: bool, checked: bool) -> str:
    check = row.get("check_status", "").removeprefix("* ")  # "* ": the next check is in progress
    state = row.get("status", "missing")
    details = " ".join(filter(None, (check, row.get("check_code"), row.get("last_chk"))))
    if state.startswith("UP") != wanted:
        why = f" ({details or 'not checked yet'})" if checked else ""
        return f"{server} is {state}{why}{'' if wanted else ', wanted DOWN'}"
    # Haproxy shows a server as UP before its first check, so UP needs a check with the result L7OK.
    return f"{server} is {state} ({details or 'not checked yet'})" if checked and wanted and check != "L7OK" else ""


def _answer_problems(listener: str, endpoint: Endpoint) -> list[str]:
    try:
        query_through(f"haproxy's {listener}", endpoint, "SELECT 1")
    except SQLError as error:
        return [str(error)]
    return []
