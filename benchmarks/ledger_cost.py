"""The throughput that the ledger and the histograms cost: the same workload with and without them, alternating.

    python benchmarks/ledger_cost.py [--runs 20] [--seconds 1] [--loads tpcc oltp_point_select]

One server on this machine that does not wait for its disk (flush=0), so that the load generator competes with the
server for the CPU. Without the ledger each thread only counts the outcomes of its transactions, not their attempts, not
their duration and not their end times, and it keeps no orders. oltp_point_select has the shortest transactions, so it
shows the highest cost.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from benchmarks import ratios, stage, tpcc_peers
from benchmarks.tpcc_peers import Comparison
from pytest_dbcluster import TPCC, SysBench
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.workloads import sysbench_driver
from pytest_dbcluster.workloads.sysbench import SCHEMA as SYSBENCH_SCHEMA
from pytest_dbcluster.workloads.sysbench_driver import Call
from pytest_dbcluster.workloads.tpcc.conditions import SCHEMA as TPCC_SCHEMA

TARGET = 3.0  # percent of the throughput
LOADS = ("tpcc", "oltp_point_select")
ROWS = 10_000


@dataclasses.dataclass(frozen=True)
class Speed:
    """The speed of one round: ``rate`` in transactions per second, ``cpu`` in load generator CPU us per transaction."""

    rate: float
    cpu: float

    @classmethod
    def of(cls, done: RunResult) -> Speed:
        """The speed of a round; good operations are counted with and without the ledger."""
        return cls(done.done / done.seconds, 1e6 * (done.client_seconds or 0.0) / done.done)


def prepare(comparison: Comparison, name: str) -> Call:
    """The sysbench call of a workload; loads its tables first."""
    to = [comparison.setting.cluster.writer()]
    if name == "tpcc":
        TPCC(comparison.warehouses, comparison.threads).prepare(comparison.setting)
        return Call(
            name, "tpcc.lua", comparison.threads, TPCC_SCHEMA, to, {"warehouses": comparison.warehouses}, prepared=False
        )
    SysBench(name, size=ROWS, threads=comparison.threads).prepare(comparison.setting)
    own = {"script": name, "tables": 1, "table_size": ROWS, "auto_inc": False}
    return Call(name, "oltp.lua", comparison.threads, SYSBENCH_SCHEMA, to, own)


def one_round(comparison: Comparison, call: Call, seconds: float, *, ledger: bool) -> Speed:
    """The speed of a round of ``seconds`` seconds, with or without the ledger."""
    call = dataclasses.replace(call, options={**call.options, "ledger": ledger})
    return Speed.of(sysbench_driver.run(call, comparison.setting, seconds=seconds)[0])


def loss(on: Sequence[float], off: Sequence[float]) -> ratios.Figure:
    """The percentage of throughput that the ledger costs, pair by pair; negative if rounds with it were faster."""
    return ratios.Figure.of([100 * (1 - with_ledger / without) for with_ledger, without in zip(on, off, strict=True)])


def row(name: str, on: Sequence[Speed], off: Sequence[Speed]) -> str:
    """The table line of one workload."""
    taken = loss([speed.rate for speed in on], [speed.rate for speed in off])
    cpu = ratios.difference([speed.cpu for speed in on], [speed.cpu for speed in off]).median
    rates = " | ".join(f"{ratios.Figure.of([speed.rate for speed in part]).median:.0f}" for part in (off, on))
    of = ratios.Figure.of([speed.cpu for speed in off]).median
    return f"| {name} | {rates} | {taken} | {cpu:+.2f} of {of:.0f} | {ratios.target_text(taken.median, TARGET)} |"


def measure(comparison: Comparison, name: str, runs: int, seconds: float) -> str:
    """The table line of one workload from ``runs`` pairs of rounds; one pair before them is dropped."""
    call = prepare(comparison, name)
    on: list[Speed] = []
    off: list[Speed] = []
    for pair in range(runs + 1):
        stage.tell(f"{name}: pair {pair} of {runs}")
        for ledger in (pair % 2 == 0, pair % 2 == 1):  # the first round of a pair alternates
            (on if ledger else off).append(one_round(comparison, call, seconds, ledger=ledger))
    return row(name, on[1:], off[1:])


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 20, "pairs of rounds for each load")
    parser.add_argument("--seconds", type=tpcc_peers.seconds, default=1.0, metavar="S", help="of a round (default 1)")
    parser.add_argument("--loads", nargs="+", choices=LOADS, default=LOADS, metavar="LOAD")
    arguments = parser.parse_args()
    print("| load | off, transactions/s | on | lost, % | client CPU, us a transaction | |\n|---|---|---|---|---|---|")
    with tpcc_peers.servers(tpcc_peers.SERVER.with_options(innodb_flush_log_at_trx_commit="0")) as comparison:
        for name in arguments.loads:
            print(measure(comparison, name, arguments.runs, arguments.seconds), flush=True)


if __name__ == "__main__":
    ratios.run(main)
