"""Terminals: a load script run by sysbench, and what its threads report.

The runtime of the scripts is workloads/lua/terminal.lua: it retries what a conflict ended, goes on after a lost
connection, keeps the pace, and leaves one report a thread.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import secrets
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_dbcluster.clusters.proxy import MOST_CONNECTIONS
from pytest_dbcluster.clusters.servers.connection import Endpoint
from pytest_dbcluster.clusters.servers.node import LOAD
from pytest_dbcluster.errors import CommandFailed, ConfigError, Unsupported, WorkloadError
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.workloads.workload import Setting

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster

LUA = Path(__file__).parent / "lua"
SEEDS = 1000  # blocks with inputs of their own
OLDEST = (1, 0)  # the first sysbench whose scripts have threads of their own
GRACE = 120.0  # seconds beyond the measured time: connecting, the backlog of an open loop, locks of 50 s
LINE = 300  # characters of a line that sysbench said; the statement of a bulk insert has half a million
# Our scripts end runs by themselves, which sysbench warns of.
NOISE = re.compile(r"\s*$|\(last message repeated|WARNING: Both event and time limits are disabled")


@dataclasses.dataclass(frozen=True)
class Call:
    """One script with its options.

    name: of the load, for messages. script: a file of workloads/lua, or else of sysbench's own. schema: the database
    that threads connect to. endpoints: handed out to the threads in turn. options: of the script. prepared: whether
    statements are prepared on the server.
    """

    name: str
    script: str
    threads: int
    schema: str
    endpoints: Sequence[Endpoint]
    options: Mapping[str, object] = dataclasses.field(default_factory=dict)
    prepared: bool = True


def sysbench(setting: Setting) -> Release:
    """The tool. Raises Unsupported when it is too old, and what ``release.find`` raises when there is none."""
    tool = find.find("sysbench", progress=setting.progress)
    program = str(tool.program("sysbench"))
    said = setting.client.run([program, "--version"], environment=tool.environment).stdout.strip()
    found = re.search(r"(\d+)\.(\d+)", said)
    if not found or (int(found[1]), int(found[2])) < OLDEST:
        raise Unsupported(
            f"{program} says {said!r}, and loads need sysbench {OLDEST[0]}.{OLDEST[1]} or later; "
            "`dbcluster fetch sysbench` gets one where apt has it"
        )
    if tool.scripts is None:
        raise Unsupported(f"{tool.name} {tool.version} ({tool.source}) came without its scripts (share/sysbench)")
    return tool


def endpoints(cluster: Cluster, to: str | None, *, writes: bool) -> list[Endpoint]:
    """Where the threads of a load connect, in turn.

    ``all``: directly to every node that takes it, which is each writer for what writes and each node for what only
    reads. None is ``all`` without a proxy; behind one it is its writer for what writes where one node alone takes
    writes, and its reader for the rest.
    """
    if to is None and cluster.proxy:
        to = "writer" if writes and len(cluster.writers) == 1 < len(cluster.nodes) else "reader"
    if to in ("writer", "reader"):
        return [cluster.writer() if to == "writer" else cluster.reader()]
    nodes = cluster.writers if writes else cluster.nodes
    return [dataclasses.replace(node.endpoint, user=LOAD, tls=False) for node in nodes]


def run(
    call: Call,
    setting: Setting,
    *,
    seconds: float,
    rate: float | None = None,
    seed: int = 1,
    outlive: bool = False,
) -> tuple[RunResult, list[dict[str, Any]]]:
    """Run the script for so many seconds; what it did, and the report of each thread with the nodes by their names.

    ``rate`` are transactions a second over all threads, None a closed loop. ``seed`` is that of the inputs, which are
    others in each block and the same for all variants of it. Raises WorkloadError with the tool's and
    the servers' words, ConfigError for more threads than connections, NodeDied when a server died, which ends no run:
    with ``outlive`` the reports are given nevertheless.
    """
    names = {node.query("SELECT CONCAT(@@hostname, ':', @@port)")[0][0]: node.name for node in setting.cluster.nodes}
    _require_room(call, setting.cluster)
    place, token = f"{setting.client.directory}/reports", secrets.token_hex(4)
    own = {"seconds": seconds, "pace": rate or 0, "reports": place, "token": token}
    own["seed"] = seed * SEEDS + setting.block % SEEDS
    setting.client.push(b"", f"{place}/begun")
    _execute(dataclasses.replace(call, options={**call.options, **own}), setting, "run", names, 2 * seconds + GRACE)
    reports = [_report(call, setting, f"{place}/report-{number}.json", token) for number in range(call.threads)]
    for one in reports:
        one["nodes"] = [names.get(said, said) for said in one["nodes"]]
        one["errors"] = [(number, names.get(said, said), times) for number, said, times in one["errors"]]
    if any(one["lost"] for one in reports) and not outlive:
        for node in setting.cluster.nodes:
            node.survived()
    return outcome(reports, rate), reports


def command(call: Call, setting: Setting, name: str, *, seconds: float) -> str:
    """Run a command of the script other than ``run``, such as ``prepare``; what it printed. Raises WorkloadError."""
    return _execute(call, setting, name, {}, seconds)


def _execute(call: Call, setting: Setting, name: str, names: Mapping[str, str], seconds: float) -> str:
    tool = find.find("sysbench", progress=setting.progress)
    secret = f"{setting.client.directory}/sysbench.cnf"
    user, password = call.endpoints[0].user, call.endpoints[0].password
    setting.client.push(f"mysql-user={user}\nmysql-password={password}\n".encode(), secret)
    script = LUA / call.script
    if not script.exists():
        script = (tool.scripts or LUA) / call.script
    environment = {**tool.environment, "LUA_PATH": f"{LUA}/?.lua;{tool.scripts}/?.lua;;"}
    general = {
        "config-file": secret,
        **_addresses(call),
        "mysql-db": call.schema,
        "threads": call.threads,
        "db-ps-mode": "auto" if call.prepared else "disable",
        "thread-stack-size": "256K",  # 64K, its default, is little for a handshake with TLS
        "time": 0,
        "events": 0,
        "verbosity": 0,
    }
    options = [f"--{key}={_text(value)}" for key, value in {**general, **call.options}.items()]
    line = [str(tool.program("sysbench")), *options, str(script), name]
    what = f"{call.name} {name if name != 'run' else ''}".strip()
    try:
        done = setting.client.run(line, seconds=seconds, environment=environment)
    except CommandFailed as error:
        words = _shortened(error.stderr.strip() or error.stdout, names)
        raise setting.cluster.load_failure(f"{what} {error.ended} on {setting.cluster.spec}", words) from error
    fatal = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.startswith("FATAL: ")]
    if fatal and name != "run":  # it ends with 0 although threads have failed; those of a run go on
        said = _shortened("\n".join(fatal), names)
        raise setting.cluster.load_failure(f"{what} lost threads on {setting.cluster.spec}", said)
    return done.stdout


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _shortened(words: str, names: Mapping[str, str]) -> str:
    """What sysbench said, nodes by their names and without half a megabyte of rows."""
    for said, name in names.items():
        words = words.replace(said, name)
    lines = [line.removeprefix("FATAL: ")[:LINE] for line in words.splitlines() if not NOISE.match(line)]
    return "\n".join(lines)


def _addresses(call: Call) -> dict[str, str]:
    """Hosts and ports as sysbench wants them, which connects to every port of each host. Raises Unsupported."""
    wanted = [(one.host, one.port) for one in call.endpoints]
    hosts, ports = dict.fromkeys(host for host, _ in wanted), dict.fromkeys(port for _, port in wanted)
    if len(wanted) != len(hosts) * len(ports):
        shown = ", ".join(f"{host}:{port}" for host, port in wanted)
        raise Unsupported(
            f"{call.name}: sysbench reaches several hosts at one port or several ports of one, not {shown}"
        )
    return {"mysql-host": ",".join(hosts), "mysql-port": ",".join(map(str, ports))}


def _require_room(call: Call, cluster: Cluster) -> None:
    """Raise ConfigError for more threads than a node has connections left, or than its proxy passes."""
    direct = {(node.endpoint.host, node.endpoint.port) for node in cluster.nodes}
    for place, one in enumerate(call.endpoints):
        threads = len(range(place, call.threads, len(call.endpoints)))
        if (one.host, one.port) not in direct and threads > MOST_CONNECTIONS:
            raise ConfigError(
                f"{call.name}: {call.threads} threads are {threads} connections to a proxy, which passes "
                f"{MOST_CONNECTIONS} at once: take fewer threads, or a cluster with proxy=None"
            )
        for node in (node for node in cluster.nodes if node.name in one.nodes):
            most = int(node.query("SELECT @@max_connections")[0][0])
            used = int(node.status("threads_connected")["threads_connected"])
            needed = math.ceil(threads / len(one.nodes)) + used
            if needed > most:
                raise ConfigError(
                    f"{call.name}: {call.threads} threads are {needed - used} connections to {node.name}, which "
                    f"takes {most} at once, {used} of them in use: set max_connections={needed} or more there, or "
                    "take fewer threads"
                )


def _report(call: Call, setting: Setting, path: str, token: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(setting.client.pull(path))
    except (FileNotFoundError, ValueError) as error:
        raise WorkloadError(f"{call.name} ended without a report of one of its threads ({path}): {error}") from None
    if found["token"] != token:
        raise WorkloadError(f"{call.name} ended without a report of one of its threads: {path} is of an earlier run")
    return found


def outcome(reports: Sequence[Mapping[str, Any]], rate: float | None = None) -> RunResult:
    """What all threads did together, from the first start to the last end."""
    seconds = max(one["ended"] for one in reports) - min(one["begun"] for one in reports)
    kinds = dict.fromkeys(kind for one in reports for kind in one["kinds"])
    entries = {kind: _entry([one["kinds"][kind] for one in reports if kind in one["kinds"]]) for kind in kinds}
    errors = _summed(((number, node), times) for one in reports for number, node, times in one["errors"])
    by_second = _summed((second, times) for one in reports for second, times in enumerate(one["by_second"]))
    ledger = Ledger(entries, errors)
    return RunResult(
        seconds,
        operations=ledger.total.tried,
        commits=ledger.total.committed,
        good=ledger.total.good,
        ledger=ledger,
        by_second=tuple(by_second.get(second, 0) for second in range(max(by_second, default=-1) + 1)),
        rate=rate,
        offered=sum(one["offered"] for one in reports) if rate else None,
        delay=statistics.fmean(one.get("delay", 0.0) for one in reports) if rate else None,
        client_seconds=next(one["process_cpu"] for one in reports if one["id"] == 0),
        busiest=max(one["cpu"] / (one["ended"] - one["begun"]) for one in reports),
    )


def _entry(parts: Sequence[Mapping[str, Any]]) -> LedgerEntry:
    """One type of transactions over all threads."""

    def total(name: str) -> Any:
        return sum(part[name] for part in parts)

    return LedgerEntry(
        attempts=_summed((tries, times) for part in parts for tries, times in part["attempts"]),
        committed=total("committed"),
        rolled_back=total("rolled_back"),
        failed=total("failed"),
        unknown=total("unknown"),
        aborted_seconds=total("aborted_seconds"),
        latencies=Histogram(_summed((key, times) for part in parts for key, times in part["latencies"])),
    )


def _summed(items: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    found: Counter[Any] = Counter()
    for key, times in items:
        found[key] += times
    return dict(found)
