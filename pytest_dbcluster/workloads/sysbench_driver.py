"""The sysbench driver: runs a Lua script with sysbench, and adds up the reports of its threads.

``run`` runs one round and returns its ``RunResult``; ``command`` runs any other command of a script, such as prepare.
A round is divided between all hosts of the load generator, a command runs on the first one.
The scripts run on workloads/lua/terminal.lua. It retries transactions after a conflict, reconnects after a lost
connection, keeps the arrival rate, and writes one report for each thread.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import math
import re
import secrets
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_dbcluster.clusters.bringing import bring
from pytest_dbcluster.clusters.proxy import MOST_CONNECTIONS
from pytest_dbcluster.clusters.servers.connection import Endpoint
from pytest_dbcluster.clusters.servers.node import LOAD
from pytest_dbcluster.errors import CommandFailed, ConfigError, Unsupported, WorkloadError
from pytest_dbcluster.hosts.host import Host, at_once
from pytest_dbcluster.releases import find
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import LoadHost, RunResult
from pytest_dbcluster.workloads import load_hosts
from pytest_dbcluster.workloads.load_hosts import Share, Signals
from pytest_dbcluster.workloads.workload import LoadEnded, Setting

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node

LUA = Path(__file__).parent / "lua"
SEEDS = 1000  # blocks with different inputs; block 1000 repeats those of block 0
OLDEST = (1, 0)  # the first sysbench with thread_init, thread_run and thread_done in scripts
GRACE = 120.0  # seconds added to the timeout of a run: connecting, the backlog of an open loop, locks of 50 s
WHICH = "SELECT CONCAT(@@hostname, ':', @@port, ':', CRC32(@@datadir))"  # as in terminal.lua
LINE = 300  # characters shown of a line of sysbench; the statement of a bulk insert has half a million
# Our scripts end runs themselves, and sysbench warns about that.
NOISE = re.compile(r"\s*$|\(last message repeated|WARNING: Both event and time limits are disabled")


@dataclasses.dataclass(frozen=True)
class Call:
    """One script with its options."""

    name: str
    """Of the workload, for messages."""

    script: str
    """A file of workloads/lua, otherwise one of sysbench's scripts."""

    threads: int
    schema: str
    """The database that threads connect to."""

    endpoints: Sequence[Endpoint]
    """Given to the threads in turn."""

    options: Mapping[str, object] = dataclasses.field(default_factory=dict)
    """Of the script."""

    prepared: bool = True
    """Whether the server prepares statements."""


def sysbench(setting: Setting) -> Release:
    """The sysbench to use. Raises Unsupported for an old one, and what ``releases.find.find`` raises for none."""
    tool = _brought(setting, setting.clients)
    program = str(tool.program("sysbench"))
    output = setting.client.run([program, "--version"], environment=tool.environment).stdout.strip()
    version = re.search(r"(\d+)\.(\d+)", output)
    if not version or (int(version[1]), int(version[2])) < OLDEST:
        raise Unsupported(
            f"{program} --version prints {output!r}, but workloads need sysbench {OLDEST[0]}.{OLDEST[1]} or later; "
            "`dbcluster fetch sysbench` downloads one where apt has it"
        )
    if tool.scripts is None:
        raise Unsupported(f"{tool.name} {tool.version} ({tool.source}) came without its scripts (share/sysbench)")
    return tool


def _brought(setting: Setting, hosts: Sequence[Host]) -> Release:
    """The release of sysbench, which these hosts have then, with our scripts."""
    tool = find.find("sysbench", progress=setting.progress)
    bring(tool, hosts)
    at_once(hosts, lambda host: host.bring(LUA), hosts)
    return tool


def endpoints(cluster: Cluster, to: str | None, *, writes: bool) -> list[Endpoint]:
    """The endpoints that the threads of a workload connect to in turn.

    to: ``writer``, ``reader``, ``all`` or None. ``all`` connects directly to each writer for a workload that writes,
    and to each node for one that only reads. None without a proxy is ``all``. None with a proxy is the proxy's writer
    endpoint for a workload that writes where only one node takes writes, otherwise its reader endpoint.
    """
    if to is None and cluster.proxy:
        to = "writer" if writes and len(cluster.writers) == 1 < len(cluster.nodes) else "reader"
    if to in ("writer", "reader"):
        return [cluster.writer() if to == "writer" else cluster.reader()]
    nodes = cluster.writers if writes else cluster.nodes
    return [dataclasses.replace(node.endpoint, user=LOAD, tls=False) for node in nodes]


def which(node: Node) -> str:
    """What the terminals call this node: the server's own answer to ``WHICH``."""
    return str(node.query(WHICH)[0][0])


def run(
    call: Call,
    setting: Setting,
    *,
    seconds: float,
    rate: float | None = None,
    seed: int = 1,
    outlive: bool = False,
    heard: Callable[[Sequence[Mapping[str, Any]]], None] = lambda reports: None,
) -> tuple[RunResult, list[dict[str, Any]]]:
    """Run one round of the script. Returns its result, and the report of each thread with the names of nodes.

    seconds: in which transactions start. rate: transactions a second over all threads; None is a closed loop. seed: of
    the inputs, which differ between blocks and are the same for all variants of a block. outlive: return the reports
    even when a server died. heard: called with the reports as soon as they are there, also when the run then raises.
    Several hosts of the setting divide the threads; a thread has the same number, endpoint, inputs and part of the rate
    as on one host.

    Raises WorkloadError with the messages of sysbench and the servers. For an error of a server that no retry solves it
    is LoadEnded, whose message has the node, the statement, and what was done until then; the threads of other load
    hosts go on until the end of the round. Raises ConfigError for more threads than connections, and
    NodeDied after the run when a server died, unless ``outlive`` is set.
    """
    names = {which(node): node.name for node in setting.cluster.nodes}
    _require_room(call, setting.cluster)
    own = {"seconds": seconds, "arrival_rate": rate or 0, "token": secrets.token_hex(4)}
    own["seed"] = seed * SEEDS + setting.block % SEEDS
    divided = load_hosts.shares(setting.clients, call.threads)
    if len(divided) == 1:
        reports = _run_share(call, setting, divided[0], own, names)
    else:
        reports = _run_divided(call, setting, divided, own, names)
    for report in reports:  # which have nodes by address
        report["nodes"] = [names.get(address, address) for address in report["nodes"]]
        report["errors"] = [(number, names.get(address, address), times) for number, address, times in report["errors"]]
    heard(reports)
    result = outcome(reports, rate)
    for share in divided:
        name = _named(call, share) if len(divided) > 1 else call.name
        _require_whole(name, setting.cluster, _part(share, reports), names, result)
    if any(report["lost"] for report in reports) and not outlive:
        for node in setting.cluster.nodes:
            node.survived()
    if len(divided) > 1:
        used = _used(divided, reports)
        late = [min(report["late"] for report in _part(share, reports)) for share in divided]
        result = dataclasses.replace(
            result,
            load_hosts=used,
            client_seconds=sum(one.client_seconds for one in used),
            void=load_hosts.begun_late(divided, late, seconds),
        )
    return result, reports


def _run_divided(
    call: Call, setting: Setting, divided: Sequence[Share], own: Mapping[str, Any], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Run a share on each host, begun at one time. The reports' times are seconds since then, by each host's clock."""

    def signals(share: Share) -> Signals:
        place = f"{_reports_directory(share.host)}/{{}}-{own['token']}"
        return Signals(place.format("ready"), place.format("go"))

    def run_share(share: Share) -> list[dict[str, Any]]:
        turned = share.first % len(call.endpoints)  # sysbench gives its first thread the first endpoint
        mine = dataclasses.replace(
            call,
            name=_named(call, share),
            threads=share.count,
            endpoints=[*call.endpoints[turned:], *call.endpoints[:turned]],
        )
        begins = {"first": share.first, "terminals": share.of, **dataclasses.asdict(signals(share))}
        return _run_share(mine, setting, share, {**own, **begins}, names)

    parts = load_hosts.together(divided, signals, run_share, seconds=GRACE)
    for part in parts:
        begun = min(report["begun"] for report in part)
        for report in part:
            report |= {"begun": report["begun"] - begun, "ended": report["ended"] - begun}
    return [report for part in parts for report in part]


def _run_share(
    call: Call, setting: Setting, share: Share, own: Mapping[str, Any], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Run sysbench on one host, and return the reports of its threads; one of them may have ended the run."""
    host, directory = share.host, _reports_directory(share.host)
    host.push(b"", f"{directory}/begun")  # makes the directory
    call = dataclasses.replace(call, options={**call.options, **own, "reports": directory})
    paths = [f"{directory}/report-{number}.json" for number in range(call.threads)]

    def reports() -> list[dict[str, Any]]:
        return at_once(paths, lambda path: _report(call, host, path, own["token"]), [host])

    try:
        _execute(call, setting, host, "run", names, 2 * own["seconds"] + GRACE)
    except WorkloadError:
        with contextlib.suppress(WorkloadError):  # of a report that is missing: then sysbench itself failed
            left = reports()
            if any(report.get("problem") for report in left):
                return left
        raise
    return reports()


def _require_whole(
    name: str, cluster: Cluster, reports: Sequence[Mapping[str, Any]], names: Mapping[str, str], result: RunResult
) -> None:
    """Raise LoadEnded if a server's error ended a run: number, node, statement, message, and what was done before."""
    problem = next(filter(None, (report.get("problem") for report in reports)), None)
    if not problem:
        return
    node = names.get(problem["node"], problem["node"])
    where = f"on {node} at {problem['statement'] or 'a statement'}" if node else "while connecting"
    at = f"{where}{' (while committing)' if problem['committing'] else ''} of {problem['kind'] or 'no transaction'}"
    ledger = result.ledger or Ledger()
    kinds = ", ".join(f"{entry.committed} {kind}" for kind, entry in ledger.entries.items() if entry.committed)
    errors = ", ".join(f"{code} on {node} x {count}" for (code, node), count in sorted(ledger.errors.items()))
    total = ledger.total
    words = (
        f"error {problem['number']} {at}: {problem['message'][:LINE]}; until then, in {result.seconds:.2g} s: "
        f"{total.committed} committed{f' ({kinds})' if kinds else ''}, {total.rolled_back} rolled back by design, "
        f"{total.failed} failed, {total.unknown} unknown; errors: {errors or 'none'}"
    )
    raise LoadEnded(str(cluster.load_failure(f"{name} ended early on {cluster.spec}", words)), result)


def _named(call: Call, share: Share) -> str:
    return f"{call.name} from load host {share.name}"


def _reports_directory(host: Host) -> str:
    return f"{host.directory}/reports"


def _part(share: Share, reports: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The reports of a share, of those of all terminals."""
    return reports[share.first : share.first + share.count]


def _used(divided: Sequence[Share], reports: Sequence[Mapping[str, Any]]) -> tuple[LoadHost, ...]:
    """What each of several hosts took for its part."""
    used = []
    for share in divided:
        part = _part(share, reports)
        used.append(
            LoadHost(share.name, share.host.machine, share.host.cores(), part[0]["process_cpu"], _busiest(part))
        )
    return tuple(used)


def command(call: Call, setting: Setting, name: str, *, seconds: float) -> str:
    """Run a command of the script other than ``run``, such as ``prepare``, and return its output.

    seconds: the timeout. Raises WorkloadError with sysbench's message, NodeDied when a server died.
    """
    return _execute(call, setting, setting.client, name, {}, seconds)


def _execute(call: Call, setting: Setting, host: Host, name: str, names: Mapping[str, str], seconds: float) -> str:
    tool = _brought(setting, [host])
    secret = f"{host.directory}/sysbench.cnf"
    user, password = call.endpoints[0].user, call.endpoints[0].password
    host.push_once(f"mysql-user={user}\nmysql-password={password}\n".encode(), secret)
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
        "thread-stack-size": "256K",  # the default, 64K, is too small for a TLS handshake
        "time": 0,
        "events": 0,
        "verbosity": 0,
    }
    options = [f"--{key}={_text(value)}" for key, value in {**general, **call.options}.items()]
    line = [str(tool.program("sysbench")), *options, str(script), name]
    what = f"{call.name} {name if name != 'run' else ''}".strip()
    try:
        done = host.run(line, seconds=seconds, environment=environment)
    except CommandFailed as error:
        message = _shortened(error.stderr.strip() or error.stdout, names)
        raise setting.cluster.load_failure(f"{what} {error.ended} on {setting.cluster.spec}", message) from error
    fatal = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.startswith("FATAL: ")]
    if fatal and name != "run":  # sysbench ends with 0 although threads failed; in a run the other threads go on
        message = _shortened("\n".join(fatal), names)
        raise setting.cluster.load_failure(f"{what} lost threads on {setting.cluster.spec}", message)
    return done.stdout


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _shortened(message: str, names: Mapping[str, str]) -> str:
    """Sysbench's message with the names of nodes for their addresses, and with lines cut to LINE characters."""
    for address, name in names.items():
        message = message.replace(address, name)
    lines = [line.removeprefix("FATAL: ")[:LINE] for line in message.splitlines() if not NOISE.match(line)]
    return "\n".join(lines)


def _addresses(call: Call) -> dict[str, str]:
    """Sysbench's options for hosts and ports. sysbench connects to every listed port of every listed host.

    Raises Unsupported when the endpoints are not all combinations of some hosts and ports.
    """
    wanted = [(endpoint.host, endpoint.port) for endpoint in call.endpoints]
    hosts, ports = dict.fromkeys(host for host, _ in wanted), dict.fromkeys(port for _, port in wanted)
    if len(wanted) != len(hosts) * len(ports):
        shown = ", ".join(f"{host}:{port}" for host, port in wanted)
        raise Unsupported(
            f"{call.name}: sysbench reaches several hosts at one port, or several ports of one host, not {shown}"
        )
    return {"mysql-host": ",".join(hosts), "mysql-port": ",".join(map(str, ports))}


def _require_room(call: Call, cluster: Cluster) -> None:
    """Raise ConfigError for more threads than a node has free connections, or than a proxy allows."""
    direct = {(node.endpoint.host, node.endpoint.port) for node in cluster.nodes}
    for number, endpoint in enumerate(call.endpoints):
        threads = len(range(number, call.threads, len(call.endpoints)))
        if (endpoint.host, endpoint.port) not in direct and threads > MOST_CONNECTIONS:
            raise ConfigError(
                f"{call.name}: {call.threads} threads are {threads} connections to a proxy, which passes "
                f"{MOST_CONNECTIONS} at once: take fewer threads, or a cluster with proxy=None"
            )
        for node in (node for node in cluster.nodes if node.name in endpoint.nodes):
            maximum = int(node.query("SELECT @@max_connections")[0][0])
            used = int(node.status("threads_connected")["threads_connected"])
            needed = math.ceil(threads / len(endpoint.nodes)) + used
            if needed > maximum:
                raise ConfigError(
                    f"{call.name}: {call.threads} threads are {needed - used} connections to {node.name}, which "
                    f"takes {maximum} at once, {used} of them in use: set max_connections={needed} or more there, or "
                    "take fewer threads"
                )


def _report(call: Call, host: Host, path: str, token: str) -> dict[str, Any]:
    """The report of one thread. Raises WorkloadError where it is missing or from another run."""
    try:
        report: dict[str, Any] = json.loads(host.pull(path))
    except (FileNotFoundError, ValueError) as error:
        raise WorkloadError(f"{call.name} ended without a report of one of its threads ({path}): {error}") from None
    if report["token"] != token:
        raise WorkloadError(f"{call.name} ended without a report of one of its threads: {path} is of an earlier run")
    return report


def outcome(reports: Sequence[Mapping[str, Any]], rate: float | None = None) -> RunResult:
    """The result of all threads together. Its seconds run from the first thread's start to the last thread's end."""
    seconds = max(report["ended"] for report in reports) - min(report["begun"] for report in reports)
    kinds = dict.fromkeys(kind for report in reports for kind in report["kinds"])
    entries = {kind: _entry([report["kinds"][kind] for report in reports if kind in report["kinds"]]) for kind in kinds}
    errors = _summed(((number, node), times) for report in reports for number, node, times in report["errors"])
    ledger = Ledger(entries, errors)
    return RunResult(
        seconds,
        operations=ledger.total.tried,
        commits=ledger.total.committed,
        good=ledger.total.good,
        ledger=ledger,
        by_second=_by_place([report["by_second"] for report in reports]),
        by_tenth=_by_place([report["by_tenth"] for report in reports]),
        rate=rate,
        offered=sum(report["offered"] for report in reports) if rate else None,
        delay=statistics.fmean(report.get("delay", 0.0) for report in reports) if rate else None,
        client_seconds=next(report["process_cpu"] for report in reports if report["id"] == 0),
        busiest=_busiest(reports),
    )


def _busiest(reports: Sequence[Mapping[str, Any]]) -> float:
    """The largest share of its time that one of these threads was on a CPU, 0 to 1."""
    return float(max(report["cpu"] / (report["ended"] - report["begun"]) for report in reports))


def _entry(parts: Sequence[Mapping[str, Any]]) -> LedgerEntry:
    """The ledger entry of one type of transaction, from the parts of all threads."""

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


def _by_place(counts: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """The sum of these lists, place by place; a shorter list counts as 0 beyond its end."""
    return tuple(map(sum, itertools.zip_longest(*counts, fillvalue=0)))


def _summed(items: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    total: Counter[Any] = Counter()
    for key, count in items:
        total[key] += count
    return dict(total)
