"""Client CPU per committed TPC-C transaction: the plugin and other clients on the same servers.

    python benchmarks/tpcc_client.py [--cluster] [--runs 3] [--seconds 5] [--threads 16] [--warehouses 1]
        [--sysbench-tpcc DIR] [--only go-tpc ...]

The clients alternate. They use one server, or with --cluster all three nodes of a Galera cluster. CPU is user and
system time of the client process from its start to its end, without loading the tables. The servers count the commits;
a cluster counts those that were certified, because a COMMIT may fail there. The other clients are go-tpc on PATH, the
scripts sysbench-tpcc, and a plain driver with mysql-connector-python; missing clients are skipped.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import resource
import time
from collections.abc import Callable, Mapping, Sequence

from benchmarks import ratios, stage, tpcc_peers
from benchmarks.tpcc_peers import Comparison, Connector, GoTPC, Peer, SysbenchTPCC
from pytest_dbcluster import TPCC
from pytest_dbcluster.clusters.cluster import Cluster
from pytest_dbcluster.errors import WorkloadError

TARGETS = {"go-tpc": 0.45, "sysbench-tpcc": 1.0, "mysql-connector-python": 0.25}
CLUSTER_TARGETS = {"go-tpc": 0.6, "sysbench-tpcc": 1.0}
OURS = "ours"


@dataclasses.dataclass(frozen=True)
class Cost:
    """CPU seconds of a client, its committed transactions, and the wall seconds of its run."""

    cpu: float
    commits: int
    seconds: float

    @property
    def each(self) -> float:
        """CPU milliseconds per committed transaction."""
        return 1000 * self.cpu / self.commits

    @property
    def rate(self) -> float:
        """Committed transactions per second."""
        return self.commits / self.seconds


def children() -> float:
    """CPU seconds of all ended children of this process."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cost(name: str, cluster: Cluster, action: Callable[[], object]) -> Cost:
    """The cost of the client run by ``action``. Raises WorkloadError if the client committed nothing."""
    cpu, commits, began = children(), count_commits(cluster), time.monotonic()
    action()
    run = Cost(children() - cpu, count_commits(cluster) - commits, time.monotonic() - began)
    if not run.commits:
        raise WorkloadError(f"{name} ran for {run.seconds:.1f} s and {cluster.spec} counted no commit")
    stage.tell(f"{name}: {run.each:.3f} ms, {run.rate:.0f} transactions a second")
    return run


def count_commits(cluster: Cluster) -> int:
    """Transactions that clients have committed since the servers started: COMMITs, or on Galera certified writesets."""
    counter = "wsrep_local_commits" if len(cluster.nodes) > 1 else "com_commit"
    return sum(int(node.status(counter)[counter]) for node in cluster.nodes)


def costs_by_client(comparison: Comparison, peers: Sequence[Peer], runs: int, seconds: float) -> dict[str, list[Cost]]:
    """The costs of each client by name, the plugin's first."""
    cluster = comparison.setting.cluster
    load = TPCC(comparison.warehouses, comparison.threads, seconds, to="all" if len(cluster.nodes) > 1 else "writer")
    _populate(comparison, load, peers)
    clients: dict[str, Callable[[], object]] = {OURS: lambda: load.run(comparison.setting)}
    clients |= {peer.name: functools.partial(peer.run, comparison, seconds) for peer in peers}
    costs: dict[str, list[Cost]] = {name: [] for name in clients}

    def measure(name: str) -> float:
        costs[name].append(cost(name, cluster, clients[name]))
        return costs[name][-1].each

    ratios.alternate(runs, *(functools.partial(measure, name) for name in clients))
    return costs


def _populate(comparison: Comparison, load: TPCC, peers: Sequence[Peer]) -> None:
    """Load the tables of all clients at the same time, because one client waits for half a minute."""
    stage.tell("loading the tables of each client")
    for schema in (peer.schema for peer in peers if peer.schema):
        comparison.empty(schema)
    with concurrent.futures.ThreadPoolExecutor() as loading:
        waiting = [loading.submit(peer.load, comparison) for peer in peers]
        load.prepare(comparison.setting)
        for future in waiting:
            future.result()


def rows(
    measured_costs: Mapping[str, Sequence[Cost]], missing: Mapping[str, str], targets: Mapping[str, float] = TARGETS
) -> list[str]:
    """The table lines, one per client."""
    ours = [run.each for run in measured_costs[OURS]]
    lines = []
    for name, costs in measured_costs.items():
        each, rate = [run.each for run in costs], ratios.Figure.of([run.rate for run in costs]).median
        against = ratios.ratio(ours, each)
        judged = f"{against} | {ratios.target_text(against.median, targets[name])}" if name in targets else " |"
        lines.append(f"| {name} | {ratios.Figure.of(each)} | {rate:.0f} | {judged} |")
    return lines + [f"| {name} | skipped: {lacks} | | | |" for name, lacks in missing.items()]


def main() -> None:
    """Reads the command line and prints the table."""
    parser = tpcc_peers.arguments(__doc__, 3, "runs of each client")
    parser.add_argument("--seconds", type=tpcc_peers.seconds, default=5.0, metavar="S", help="of one run (default 5)")
    parser.add_argument("--only", nargs="+", choices=TARGETS, default=[*TARGETS], metavar="CLIENT")
    parser.add_argument("--cluster", action="store_true", help="three Galera nodes, all of which take writes")
    parser.add_argument("--threads", type=ratios.positive, default=16, metavar="N", help="connections (default 16)")
    parser.add_argument("--warehouses", type=ratios.positive, default=1, metavar="W", help="the scale (default 1)")
    arguments = parser.parse_args()
    targets, spec = (CLUSTER_TARGETS, tpcc_peers.CLUSTER) if arguments.cluster else (TARGETS, tpcc_peers.SERVER)
    clients: list[Peer] = [GoTPC(), SysbenchTPCC(arguments.sysbench_tpcc), Connector()]
    wanted = [client for client in clients if client.name in targets and client.name in arguments.only]
    peers, missing = tpcc_peers.split(wanted)
    with tpcc_peers.servers(spec, arguments.warehouses, arguments.threads) as comparison:
        costs = costs_by_client(comparison, peers, arguments.runs, arguments.seconds)
    print("| client | CPU ms a transaction | transactions/s | ours / this | |\n|---|---|---|---|---|")
    print("\n".join(rows(costs, missing, targets)))
    if Connector.name in costs:
        print(f"\n{Connector().kind()}")


if __name__ == "__main__":
    ratios.run(main)
