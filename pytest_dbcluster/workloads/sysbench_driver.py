"""The sysbench driver: runs a Lua script with sysbench, and adds up the reports of its threads.

``run`` runs one round and returns its ``RunResult``, on all load hosts. ``command`` runs another command of a script,
such as prepare, on the first load host. The scripts use workloads/lua/terminal.lua. It retries transactions after a
conflict, reconnects after a lost connection, and keeps the arrival rate. It writes one report per thread.
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
from pytest_dbcluster.clusters.servers.node import LOAD, of_each
from pytest_dbcluster.errors import CommandFailed, ConfigError, Unsupported, WorkloadError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.hosts.host import Host, at_once
from pytest_dbcluster.releases import apt, find
from pytest_dbcluster.releases.release import Release
from pytest_dbcluster.rounds.histogram import Histogram
from pytest_dbcluster.rounds.ledger import Ledger, LedgerEntry
from pytest_dbcluster.rounds.round import LoadHost, RunResult
from pytest_dbcluster.workloads import load_hosts, tls_files, until_stopped
from pytest_dbcluster.workloads.load_hosts import Share, Signals
from pytest_dbcluster.workloads.lua_tree import LuaTree
from pytest_dbcluster.workloads.until_stopped import UntilStopped
from pytest_dbcluster.workloads.workload import LoadEnded, Setting

if TYPE_CHECKING:
    from pytest_dbcluster.clusters.cluster import Cluster
    from pytest_dbcluster.clusters.servers.node import Node

LUA = Path(__file__).parent / "lua"
SEEDS = 1000  # blocks with different inputs; block 1000 repeats the inputs of block 0
OLDEST = (1, 0)  # the first version with thread_init, thread_run and thread_done in scripts
GRACE = 120.0  # seconds added to the timeout of a run, for connecting, an open loop's backlog, and locks of 50 s
WHICH = "SELECT CONCAT(@@hostname, ':', @@port, ':', CRC32(@@datadir))"  # as in terminal.lua
LINE = 300  # characters shown of a line of sysbench; a bulk insert has half a million
# Our scripts end runs themselves; sysbench warns about that.
NOISE = re.compile(r"\s*$|\(last message repeated|WARNING: Both event and time limits are disabled")


@dataclasses.dataclass(frozen=True)
class Call:
    """One script with its options."""

    name: str
    """The name of the workload, for messages."""

    script: str
    """The name of a script in workloads/lua, or of one of sysbench."""

    threads: int
    """Number of threads, each with one connection."""

    schema: str
    """The database that threads connect to."""

    endpoints: Sequence[Endpoint]
    """Endpoints, assigned to the threads round-robin."""

    options: Mapping[str, object] = dataclasses.field(default_factory=dict)
    """Options of the script."""

    prepared: bool = True
    """Whether the server prepares the statements."""

    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Option of the script -> the text of a file. Each load host gets the file, and the option its path there."""

    idle: int = 0
    """Number of further connections, which stay idle."""

    tls: bool = False
    """Whether the connections use TLS."""

    prefix: str = ""
    """Begins the names of the options of terminal.lua."""

    until: UntilStopped | None = None
    """Tells the load to stop; None for a load of a fixed length. Its reports have the times of commits and errors."""

    tree: LuaTree | None = None
    """A user's script. Each load host gets its files, and the option ``script`` of ours its path there."""

    def own(self, options: Mapping[str, object]) -> dict[str, object]:
        """Options of terminal.lua by the names that the script gives them."""
        return {f"{self.prefix}{name}": value for name, value in options.items()}


def sysbench(setting: Setting) -> Release:
    """The sysbench to use. Raises Unsupported for an old one, and the errors of ``releases.find.find``."""
    tool = _bring(setting, setting.clients)
    program = str(tool.program("sysbench"))
    output = setting.client.run([program, "--version"], environment=tool.environment).stdout.strip()
    version = re.search(r"(\d+)\.(\d+)", output)
    if not version or (int(version[1]), int(version[2])) < OLDEST:
        raise Unsupported(
            f"{program} --version prints {output!r}, but workloads need sysbench {OLDEST[0]}.{OLDEST[1]} or later; "
            f"{'install' if apt.missing_program() else '`dbcluster fetch sysbench` may download'} a newer one"
        )
    if tool.scripts is None:
        raise Unsupported(f"{tool.name} {tool.version} ({tool.source}) has no scripts (share/sysbench)")
    return tool


def _bring(setting: Setting, hosts: Sequence[Host]) -> Release:
    """Copy sysbench and our scripts to these hosts. Returns the release of sysbench."""
    tool = find.find("sysbench", progress=setting.progress)
    bring(tool, hosts)
    at_once(hosts, lambda host: host.bring(LUA), hosts)
    return tool


def endpoints(cluster: Cluster, to: str | None, *, writes: bool) -> list[Endpoint]:
    """The endpoints that the threads of a workload connect to, round-robin.

    to: ``writer``, ``reader``, ``all`` or None. ``all`` connects directly to each writer if the workload writes, to
    each node otherwise. None without a proxy is ``all``. None with a proxy is the proxy's writer endpoint if the
    workload writes and only one node accepts writes. Otherwise it is its reader endpoint.
    """
    if to is None and cluster.proxy:
        to = "writer" if writes and len(cluster.writers) == 1 < len(cluster.nodes) else "reader"
    if to in ("writer", "reader"):
        return [cluster.writer() if to == "writer" else cluster.reader()]
    nodes = cluster.writers if writes else cluster.nodes
    return [dataclasses.replace(node.endpoint, user=LOAD, tls=False) for node in nodes]


def which(node: Node) -> str:
    """The terminals' name for this node: the server's answer to ``WHICH``."""
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

    seconds: how long transactions start. rate: transactions per second over all threads; None is a closed loop.
    seed: of the inputs, which differ between blocks and are equal for all variants of a block. outlive: return the
    reports even if a server died. heard: called with the reports as soon as they arrive, even if the run then fails.
    Several load hosts divide the threads. A thread has the same number, endpoint, inputs and share of the rate as on
    one host.

    Raises WorkloadError with the messages of sysbench and the servers. If a server returns an error that no retry
    solves, it raises LoadEnded. The error has the node, the statement, and the work done until then. The threads of
    other load hosts go on until the end of the round. Raises ConfigError for more threads than connections. Raises
    NodeDied after the run if a server died, unless ``outlive`` is set.
    """
    names, connections = _ask_servers(setting.cluster)
    _require_room(call, setting.cluster, connections)
    seconds = call.until.longest if call.until else seconds
    own = {"seconds": seconds, "arrival_rate": rate or 0, "token": secrets.token_hex(4)}
    early = setting.objective.options(rate * seconds) if setting.objective and rate else {}
    own |= {"seed": seed * SEEDS + setting.block % SEEDS, **early}
    divided = load_hosts.shares(setting.clients, call.threads)
    if len(divided) == 1:
        reports = _run_share(call, setting, divided[0], own, names)
    else:
        reports = _run_on_hosts(call, setting, divided, own, names)
    reports = [_with_names(report, names) for report in reports]
    heard(reports)
    result = outcome(reports, rate)
    for share in divided:
        name = _title(call, share) if len(divided) > 1 else call.name
        _require_whole(name, setting, _part(share, reports), names, result)
    if any(report["lost"] for report in reports) and not outlive:
        for node in setting.cluster.nodes:
            node.raise_if_dead()
    if len(divided) > 1:
        used = _load_hosts(divided, reports)
        late = [min(report["late"] for report in _part(share, reports)) for share in divided]
        result = dataclasses.replace(
            result,
            load_hosts=used,
            client_seconds=sum(one.client_seconds for one in used),
            void=load_hosts.late_start(divided, late, seconds),
        )
    return result, reports


def _with_names(report: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The report of a thread with the names of nodes, in place of their addresses."""
    return {
        **report,
        "nodes": [names.get(address, address) for address in report["nodes"]],
        "errors": [(number, names.get(address, address), times) for number, address, times in report["errors"]],
        "failures": until_stopped.read_failures(report, names),
    }


def _run_on_hosts(
    call: Call, setting: Setting, divided: Sequence[Share], own: Mapping[str, Any], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Run a share on each host from one start time. Times in the reports are seconds since then, by its clock."""

    def signals(share: Share) -> Signals:
        place = f"{_reports_directory(share.host)}/{{}}-{own['token']}"
        return Signals(place.format("ready"), place.format("go"))

    def run_share(share: Share) -> list[dict[str, Any]]:
        turned = share.first % len(call.endpoints)  # sysbench's first thread gets the first endpoint
        mine = dataclasses.replace(
            call,
            name=_title(call, share),
            threads=share.count,
            endpoints=[*call.endpoints[turned:], *call.endpoints[:turned]],
        )
        begins = {"first": share.first, "terminals": share.of, **dataclasses.asdict(signals(share))}
        return _run_share(mine, setting, share, {**own, **begins}, names)

    parts = load_hosts.run_shares(divided, signals, run_share, seconds=GRACE)
    for part in parts:
        begun = min(report["begun"] for report in part)
        for report in part:
            report |= {"begun": report["begun"] - begun, "ended": report["ended"] - begun}
    return [report for part in parts for report in part]


def _run_share(
    call: Call, setting: Setting, share: Share, own: Mapping[str, Any], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Run sysbench on one host and return the reports of its threads. One of them may have ended the run."""
    host, directory = share.host, _reports_directory(share.host)
    host.push(b"", f"{directory}/begun")  # makes the directory
    stops = call.until.options(host, directory, own["token"]) if call.until else {}
    call = dataclasses.replace(call, options={**call.options, **call.own({**own, "reports": directory, **stops})})
    paths = [f"{directory}/report-{number}.json" for number in range(call.threads)]

    def reports() -> list[dict[str, Any]]:
        return at_once(paths, lambda path: _report(call, host, path, own["token"]), [host])

    try:
        _execute(call, setting, host, "run", names, 2 * own["seconds"] + GRACE)
    except WorkloadError:
        with contextlib.suppress(WorkloadError):  # if a report is missing, sysbench itself failed
            left = reports()
            if any(report.get("problem") for report in left):
                return left
        raise
    return until_stopped.with_our_clock(reports(), share) if call.until else reports()


def _require_whole(
    name: str, setting: Setting, reports: Sequence[Mapping[str, Any]], names: Mapping[str, str], result: RunResult
) -> None:
    """Raise LoadEnded if a server's error ended a run, with the error, the node, the statement and the work done."""
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
    raise LoadEnded(str(setting.cluster.load_failure(f"{name} ended early on {setting.where}", words)), result)


def _title(call: Call, share: Share) -> str:
    return f"{call.name} from load host {share.name}"


def _reports_directory(host: Host) -> str:
    return f"{host.directory}/reports"


def _part(share: Share, reports: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The reports of a share, out of the reports of all terminals."""
    return reports[share.first : share.first + share.count]


def _load_hosts(divided: Sequence[Share], reports: Sequence[Mapping[str, Any]]) -> tuple[LoadHost, ...]:
    """The CPU time of each load host."""
    return tuple(
        LoadHost(share.name, share.host.machine, share.host.cores(), part[0]["process_cpu"], _busiest(part))
        for share, part in ((share, _part(share, reports)) for share in divided)
    )


def command(call: Call, setting: Setting, name: str, *, seconds: float) -> str:
    """Run a command of the script other than ``run``, such as ``prepare``, and return its output.

    seconds: the timeout. Raises WorkloadError with sysbench's message, NodeDied if a server died.
    """
    return _execute(call, setting, setting.client, name, {}, seconds)


def _execute(call: Call, setting: Setting, host: Host, name: str, names: Mapping[str, str], seconds: float) -> str:
    tool = _bring(setting, [host])
    script = ours if (ours := LUA / call.script).exists() else (tool.scripts or LUA) / call.script
    environment = {**tool.environment, "LUA_PATH": f"{LUA}/?.lua;{tool.scripts}/?.lua;;"}
    options = [f"--{key}={_text(value)}" for key, value in _options(call, host, tool).items()]
    line = [str(tool.program("sysbench")), *options, str(script), name]
    if call.tls:  # sysbench reads its certificates from the working directory
        line = ["env", "-C", tls_files.push(setting.cluster, call.endpoints, host), *line]
    what = f"{call.name} {name if name != 'run' else ''}".strip()
    try:
        done = host.run(line, seconds=seconds, environment=environment)
    except CommandFailed as error:
        message = _shorten(call, error.stderr.strip() or error.stdout, names)
        raise setting.cluster.load_failure(f"{what} {error.ended} on {setting.where}", message) from error
    fatal = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.startswith("FATAL: ")]
    if fatal and name != "run":  # sysbench exits with 0 even if threads failed; in a run the other threads go on
        message = _shorten(call, "\n".join(fatal), names)
        raise setting.cluster.load_failure(f"{what} lost threads on {setting.where}", message)
    return done.stdout


def _options(call: Call, host: Host, tool: Release) -> dict[str, object]:
    """All options of sysbench, with the paths of the files that this writes to the host."""
    secret = f"{host.directory}/sysbench.cnf"
    user, password = call.endpoints[0].user, call.endpoints[0].password
    host.push_once(f"mysql-user={user}\nmysql-password={password}\n".encode(), secret)
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
    general |= {"mysql-ssl": True} if call.tls else {}
    pushed: dict[str, object] = {key: f"{host.directory}/{key}.lua" for key in call.files}
    for key, path in pushed.items():
        host.push_once(call.files[key].encode(), str(path))
    if call.tree:
        pushed |= call.own({"script": call.tree.push(host), "scripts": tool.scripts})
    return {**general, **call.options, **pushed}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _shorten(call: Call, message: str, names: Mapping[str, str]) -> str:
    """Replace addresses by the names of nodes in sysbench's message, and cut its lines to LINE characters."""
    message = call.tree.readable(message) if call.tree else message
    for address, name in names.items():
        message = message.replace(address, name)
    lines = [line.removeprefix("FATAL: ")[:LINE] for line in message.splitlines() if not NOISE.match(line)]
    return "\n".join(lines)


def _addresses(call: Call) -> dict[str, str]:
    """Sysbench's options for hosts and ports. sysbench connects to every listed port of every listed host.

    Raises Unsupported unless the endpoints are all combinations of some hosts and ports.
    """
    wanted = [(endpoint.host, endpoint.port) for endpoint in call.endpoints]
    hosts, ports = dict.fromkeys(host for host, _ in wanted), dict.fromkeys(port for _, port in wanted)
    if len(wanted) != len(hosts) * len(ports):
        shown = ", ".join(f"{host}:{port}" for host, port in wanted)
        raise Unsupported(
            f"{call.name}: sysbench connects to several hosts at one port, or several ports of one host, not to {shown}"
        )
    return {"mysql-host": ",".join(hosts), "mysql-port": ",".join(map(str, ports))}


def _ask_servers(cluster: Cluster) -> tuple[dict[str, str], dict[str, tuple[int, int]]]:
    """The nodes by the terminals' names for them, and the maximum of connections and the present ones by node."""

    def ask(node: Node) -> tuple[str, int, int]:
        connected = "SHOW GLOBAL STATUS LIKE 'threads_connected'"
        ((known,),), ((maximum,),), ((_, used),) = node.batch([WHICH, "SELECT @@max_connections", connected])
        return str(known), int(maximum), int(used)

    answers = {node.name: answer for node, answer in zip(cluster.nodes, of_each(cluster.nodes, ask), strict=True)}
    return {answer[0]: name for name, answer in answers.items()}, {name: answer[1:] for name, answer in answers.items()}


def _require_room(call: Call, cluster: Cluster, connections: Mapping[str, tuple[int, int]]) -> None:
    """Raise ConfigError for more threads than a node has free connections (``_ask_servers``), or a proxy allows."""
    direct = {(node.endpoint.host, node.endpoint.port) for node in cluster.nodes}
    for number, endpoint in enumerate(call.endpoints):
        threads = len(range(number, call.threads, len(call.endpoints))) + math.ceil(call.idle / len(call.endpoints))
        idle = f" beside {quantity(call.idle, 'idle connection')}" if call.idle else ""
        load = f"{quantity(call.threads, 'thread')}{idle}"
        if (endpoint.host, endpoint.port) not in direct and threads > MOST_CONNECTIONS:
            raise ConfigError(
                f"{call.name}: {load} are {threads} connections to a proxy, which accepts "
                f"{MOST_CONNECTIONS}: use fewer threads, or a cluster with proxy=None"
            )
        for name, (maximum, used) in connections.items():
            needed = math.ceil(threads / len(endpoint.nodes)) + used
            if name in endpoint.nodes and needed > maximum:
                raise ConfigError(
                    f"{call.name}: {load} are {quantity(needed - used, 'connection')} to {name}, which accepts "
                    f"{maximum}, {used} of them in use: set max_connections={needed} or more, or use fewer threads"
                )


def _report(call: Call, host: Host, path: str, token: str) -> dict[str, Any]:
    """The report of one thread. Raises WorkloadError if it is missing or from another run."""
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
    errors = _sum_by_key(((number, node), times) for report in reports for number, node, times in report["errors"])
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
        statements=_statements(reports),
        busiest=_busiest(reports),
        ended_early=any(report.get("ended_early") for report in reports),
    )


def _statements(reports: Sequence[Mapping[str, Any]]) -> dict[str, Histogram]:
    """The latencies of each statement, from the parts of all threads."""
    names = dict.fromkeys(name for report in reports for name in report.get("statements", ()))
    return {
        name: Histogram(_sum_by_key((key, times) for report in reports for key, times in report["statements"][name]))
        for name in names
    }


def _busiest(reports: Sequence[Mapping[str, Any]]) -> float:
    """The highest CPU use of one of these threads, 0 to 1."""
    return float(max(report["cpu"] / (report["ended"] - report["begun"]) for report in reports))


def _entry(parts: Sequence[Mapping[str, Any]]) -> LedgerEntry:
    """The ledger entry of one type of transaction, from the parts of all threads."""

    def total(name: str) -> Any:
        return sum(part[name] for part in parts)

    return LedgerEntry(
        attempts=_sum_by_key((tries, times) for part in parts for tries, times in part["attempts"]),
        committed=total("committed"),
        rolled_back=total("rolled_back"),
        failed=total("failed"),
        unknown=total("unknown"),
        aborted_seconds=total("aborted_seconds"),
        latencies=Histogram(_sum_by_key((key, times) for part in parts for key, times in part["latencies"])),
    )


def _by_place(counts: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """The element-wise sum of these lists; a shorter list counts as 0 beyond its end."""
    return tuple(map(sum, itertools.zip_longest(*counts, fillvalue=0)))


def _sum_by_key(items: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    total: Counter[Any] = Counter()
    for key, count in items:
        total[key] += count
    return dict(total)
