"""What the ledger and the histograms take of a load's throughput: the same load with them off and on, alternating.

    python benchmarks/ledger_cost.py [--runs 20] [--seconds 1] [--loads tpcc oltp_point_select]

On a lone server on this machine that does not wait for its disk (flush=0), so that what the load generator takes of
the CPU is missing where the server would use it. Off: each thread counts how its transactions ended, and neither their
attempts nor how long they took nor when they ended.
oltp_point_select has the shortest transactions of all, so it is where the ledger shows most.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from benchmarks import ratios, stage, tpcc_peers
from benchmarks.tpcc_peers import Place
from pytest_dbcluster import TPCC, SysBench
from pytest_dbcluster.rounds.round import RunResult
from pytest_dbcluster.workloads import sysbench_driver
from pytest_dbcluster.workloads.sysbench import SCHEMA as SYSBENCH_SCHEMA
from pytest_dbcluster.workloads.sysbench_driver import Call
from pytest_dbcluster.workloads.tpcc.conditions import SCHEMA as TPCC_SCHEMA

TARGET = 3.0  # per cent of the throughput
LOADS = ("tpcc", "oltp_point_select")
ROWS = 10_000


@dataclasses.dataclass(frozen=True)
class Speed:
    """What one round did: transactions a second, and the load generator's CPU microseconds for each."""

    rate: float
    cpu: float

    @classmethod
    def of(cls, done: RunResult) -> Speed:
        """The speed of a round, ledger or not: what ended as asked is counted in both."""
        return cls(done.done / done.seconds, 1e6 * (done.client_seconds or 0.0) / done.done)


def prepared(place: Place, name: str) -> Call:
    """The call of a load, on tables that are there."""
    to = [place.setting.cluster.writer()]
    if name == "tpcc":
        TPCC(place.warehouses, place.threads).prepare(place.setting)
        return Call(name, "tpcc.lua", place.threads, TPCC_SCHEMA, to, {"warehouses": place.warehouses}, prepared=False)
    SysBench(name, size=ROWS, threads=place.threads).prepare(place.setting)
    own = {"script": name, "tables": 1, "table_size": ROWS, "auto_inc": False}
    return Call(name, "oltp.lua", place.threads, SYSBENCH_SCHEMA, to, own)


def one_round(place: Place, call: Call, seconds: float, *, ledger: bool) -> Speed:
    """A round of so many seconds with the ledger or without it."""
    call = dataclasses.replace(call, options={**call.options, "ledger": ledger})
    return Speed.of(sysbench_driver.run(call, place.setting, seconds=seconds)[0])


def lost(on: Sequence[float], off: Sequence[float]) -> ratios.Figure:
    """Per cent of the throughput that the ledger takes, pair by pair; below 0 where it was quicker with it."""
    return ratios.Figure.of([100 * (1 - one / other) for one, other in zip(on, off, strict=True)])


def row(name: str, on: Sequence[Speed], off: Sequence[Speed]) -> str:
    """The line of one load."""
    taken = lost([one.rate for one in on], [one.rate for one in off])
    cpu = ratios.difference([one.cpu for one in on], [one.cpu for one in off]).median
    rates = " | ".join(f"{ratios.Figure.of([one.rate for one in part]).median:.0f}" for part in (off, on))
    of = ratios.Figure.of([one.cpu for one in off]).median
    return f"| {name} | {rates} | {taken} | {cpu:+.2f} of {of:.0f} | {ratios.met(taken.median, TARGET)} |"


def measured(place: Place, name: str, runs: int, seconds: float) -> str:
    """The line of one load from so many pairs; one pair before them is dropped."""
    call = prepared(place, name)
    on: list[Speed] = []
    off: list[Speed] = []
    for pair in range(runs + 1):
        stage.tell(f"{name}: pair {pair} of {runs}")
        for ledger in (pair % 2 == 0, pair % 2 == 1):  # neither is always the first
            (on if ledger else off).append(one_round(place, call, seconds, ledger=ledger))
    return row(name, on[1:], off[1:])


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 20, "pairs of rounds for each load")
    parser.add_argument("--seconds", type=tpcc_peers.seconds, default=1.0, metavar="S", help="of a round (default 1)")
    parser.add_argument("--loads", nargs="+", choices=LOADS, default=LOADS, metavar="LOAD")
    said = parser.parse_args()
    print("| load | off, transactions/s | on | lost, % | client CPU, us a transaction | |\n|---|---|---|---|---|---|")
    with tpcc_peers.lone_server(innodb_flush_log_at_trx_commit="0") as place:
        for name in said.loads:
            print(measured(place, name, said.runs, said.seconds), flush=True)


if __name__ == "__main__":
    ratios.run(main)
