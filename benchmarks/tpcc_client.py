"""What a committed transaction of TPC-C takes of the client's CPU: by us, and by other clients on the same server.

    python benchmarks/tpcc_client.py [--runs 3] [--seconds 5] [--sysbench-tpcc DIR] [--only go-tpc ...]

One warehouse and four connections each, alternating. CPU is user and system time of the client's process from its
start to its end, population excluded; commits are those that the server counts. The others are go-tpc on PATH, the
scripts sysbench-tpcc, and a plain driver with mysql-connector-python; one that is missing is left out.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import resource
import time
from collections.abc import Callable, Mapping, Sequence

from benchmarks import ratios, stage, tpcc_peers
from benchmarks.tpcc_peers import Connector, GoTPC, Peer, Place, SysbenchTPCC
from pytest_dbcluster import TPCC
from pytest_dbcluster.clusters.servers.node import Node
from pytest_dbcluster.errors import WorkloadError

TARGETS = {"go-tpc": 0.6, "sysbench-tpcc": 1.0, "mysql-connector-python": 0.25}
OURS = "ours"


@dataclasses.dataclass(frozen=True)
class Cost:
    """CPU seconds of a client, the transactions that it committed, and the seconds that its run took."""

    cpu: float
    commits: int
    seconds: float

    @property
    def each(self) -> float:
        """CPU milliseconds of a committed transaction."""
        return 1000 * self.cpu / self.commits

    @property
    def rate(self) -> float:
        """Committed transactions a second."""
        return self.commits / self.seconds


def children() -> float:
    """CPU seconds of all children of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cost(name: str, node: Node, action: Callable[[], object]) -> Cost:
    """What a client took that ``action`` runs to its end. Raises WorkloadError when it committed nothing."""
    cpu, commits, began = children(), _commits(node), time.monotonic()
    action()
    found = Cost(children() - cpu, _commits(node) - commits, time.monotonic() - began)
    if not found.commits:
        raise WorkloadError(f"{name} ran for {found.seconds:.1f} s and {node.name} counted no COMMIT")
    stage.tell(f"{name}: {found.each:.3f} ms, {found.rate:.0f} transactions a second")
    return found


def _commits(node: Node) -> int:
    return int(node.status("com_commit")["com_commit"])


def measured(place: Place, peers: Sequence[Peer], runs: int, seconds: float) -> dict[str, list[Cost]]:
    """The costs of each client, ours first."""
    load, node = TPCC(place.warehouses, place.threads, seconds), place.setting.cluster.nodes[0]
    _populate(place, load, peers)
    clients: dict[str, Callable[[], object]] = {OURS: lambda: load.run(place.setting)}
    clients |= {peer.name: functools.partial(peer.run, place, seconds) for peer in peers}
    found: dict[str, list[Cost]] = {name: [] for name in clients}

    def one(name: str) -> float:
        found[name].append(cost(name, node, clients[name]))
        return found[name][-1].each

    ratios.alternate(runs, *(functools.partial(one, name) for name in clients))
    return found


def _populate(place: Place, load: TPCC, peers: Sequence[Peer]) -> None:
    """All at once: one of them waits for half a minute."""
    stage.tell("loading one warehouse for each client")
    for schema in (peer.schema for peer in peers if peer.schema):
        place.empty(schema)
    with concurrent.futures.ThreadPoolExecutor() as loading:
        waiting = [loading.submit(peer.load, place) for peer in peers]
        load.prepare(place.setting)
        for one in waiting:
            one.result()


def rows(found: Mapping[str, Sequence[Cost]], missing: Mapping[str, str]) -> list[str]:
    """The lines of the table, one for each client."""
    ours = [one.each for one in found[OURS]]
    lines = []
    for name, costs in found.items():
        each, rate = [one.each for one in costs], ratios.Figure.of([one.rate for one in costs]).median
        against = ratios.ratio(ours, each)
        judged = f"{against} | {ratios.met(against.median, TARGETS[name])}" if name in TARGETS else " |"
        lines.append(f"| {name} | {ratios.Figure.of(each)} | {rate:.0f} | {judged} |")
    return lines + [f"| {name} | skipped: {lacks} | | | |" for name, lacks in missing.items()]


def main() -> None:
    """Reads the command line and prints the table."""
    parser = tpcc_peers.arguments(__doc__, 3, "runs of each client")
    parser.add_argument("--seconds", type=tpcc_peers.seconds, default=5.0, metavar="S", help="of one run (default 5)")
    parser.add_argument("--only", nargs="+", choices=TARGETS, default=[*TARGETS], metavar="CLIENT")
    said = parser.parse_args()
    clients: list[Peer] = [GoTPC(), SysbenchTPCC(said.sysbench_tpcc), Connector()]
    peers, missing = tpcc_peers.split(clients)
    with tpcc_peers.lone_server() as place:
        found = measured(place, [peer for peer in peers if peer.name in said.only], said.runs, said.seconds)
    print("| client | CPU ms a transaction | transactions/s | ours / this | |\n|---|---|---|---|---|")
    print("\n".join(rows(found, {name: lacks for name, lacks in missing.items() if name in said.only})))
    if Connector.name in found:
        print(f"\n{Connector().kind()}")


if __name__ == "__main__":
    ratios.run(main)
