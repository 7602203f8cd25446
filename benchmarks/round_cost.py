"""The overhead of a round: its wall time divided by its measured time.

    python benchmarks/round_cost.py [--runs 10] [--modes write mixed ...] [--loads mysqlslap sysbench tpcc]

The wall time includes everything: switch, reset, settle, counters, start of the load generator, and drain. Quick rounds
run as in tests; long rounds run enough queries to last about 2 s. "shared": both variants on one cluster that switches
between 1 and 4 appliers; "own": each variant on its own cluster. "stock": one call of the published command line with
one iteration, which creates its table again. Rounds of sysbench and TPC-C last 1 s. Above each row, stderr has the
parts of the unmeasured time, from the spans of the rounds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from benchmarks import ratios, stage
from fixtures.clusters import BUFFER_POOL, GALERA, SLAVE_THREADS_4
from pytest_dbcluster import TPCC, MySQLSlap, SysBench, Workload
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.system.tracing import recorder
from pytest_dbcluster.system.tracing.recorder import Recorder
from pytest_dbcluster.system.tracing.time_spent import GROUPS
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.workloads.mysqlslap import MODES

TARGETS = {"quick": 1.5, "long": 1.2}
LOADS = {
    "mysqlslap": MySQLSlap("write"),
    "sysbench": SysBench("oltp_read_write", threads=4, seconds=1.0),
    "tpcc": TPCC(threads=4, seconds=1.0),
}
UNMEASURED = {"mysqlslap": 0.06, "sysbench": 0.08, "tpcc": 0.12}  # seconds
LONG_SECONDS = 2.0
CLUSTERS = {"shared": (GALERA, SLAVE_THREADS_4), "own": (GALERA, BUFFER_POOL)}


@dataclasses.dataclass(frozen=True)
class Cost:
    """Measured seconds and wall seconds of some rounds, by round."""

    seconds: tuple[float, ...]
    wall: tuple[float, ...]

    @classmethod
    def of(cls, rounds: Sequence[Round]) -> Cost:
        """The cost of these rounds."""
        return cls(tuple(drawn.seconds for drawn in rounds), tuple(drawn.wall for drawn in rounds))

    @property
    def beside(self) -> float:
        """The median of the unmeasured seconds of a round."""
        return ratios.difference(self.wall, self.seconds).median

    def row(self, mode: str, clusters: str, rounds: str) -> str:
        """The table line; the published call has no target."""
        overhead = ratios.ratio(self.wall, self.seconds)
        judged = ratios.target_text(overhead.median, TARGETS[rounds]) if rounds in TARGETS else ""
        lasted = f"{ratios.Figure.of(self.seconds).median:.2f}"
        return f"| {mode} | {clusters} | {rounds} | {lasted} | {self.beside:.2f} | {overhead} | {judged} |"

    def unmeasured_row(self, load: str) -> str:
        """The table line of a workload, whose target is the unmeasured time."""
        overhead, lasted = ratios.ratio(self.wall, self.seconds), ratios.Figure.of(self.seconds).median
        judged = ratios.target_text(self.beside, UNMEASURED[load])
        return f"| {load} | shared | unmeasured | {lasted:.2f} | {self.beside:.3f} | {overhead} | {judged} |"


def parts(recorded: Recorder, cost: Cost) -> str:
    """The mean milliseconds of each part of a round beside its measured time, the largest first."""
    phases = (*GROUPS["overhead of rounds"], "drain")
    found = {phase: recorded.seconds.get(phase, 0.0) for phase in phases}
    found["workload beside measured"] = recorded.seconds.get("workload", 0.0) - sum(cost.seconds)
    ordered = sorted(found.items(), key=lambda part: -part[1])
    return ", ".join(f"{phase} {1000 * seconds / len(cost.seconds):.0f} ms" for phase, seconds in ordered)


def longer(load: MySQLSlap, seconds: float) -> MySQLSlap:
    """The same workload with enough queries for rounds of about 2 s, given that a quick round takes ``seconds``."""
    wanted = round(load.round_queries("quick") * LONG_SECONDS / seconds)
    queries = max(load.concurrency, wanted // load.concurrency * load.concurrency)
    return dataclasses.replace(load, queries=queries, quick_queries=queries)


def rounds(pool: Pool, load: Workload, clusters: str, blocks: int) -> Cost:
    """The cost of alternating rounds of one workload; its parts are printed to stderr."""
    with recorder.recording() as recorded:
        drawn = stage.blocks(stage.stage_of(pool, load, CLUSTERS[clusters]), blocks)
    cost = Cost.of([block_round for block in drawn for block_round in block])
    stage.tell(parts(recorded, cost))
    return cost


def stock(pool: Pool, mode: str) -> Cost:
    """The cost of one published call: the seconds that mysqlslap reports, and the wall time of the call."""
    load = MySQLSlap(mode, iterations=1)
    setting = stage.setting(pool, stage.stage_of(pool, load, [GALERA], "paper"), 0, "paper")
    measured: list[float] = []
    wall = ratios.seconds(lambda: measured.append(load.run(setting).seconds))
    return Cost(tuple(measured), (wall,))


def rows(pool: Pool, modes: Sequence[str], blocks: int) -> Iterator[str]:
    """Yields the table lines, each as soon as it is measured."""
    for clusters in CLUSTERS:
        for mode in modes:
            quick = rounds(pool, MySQLSlap(mode), clusters, blocks)
            yield quick.row(mode, clusters, "quick")
            load = longer(MySQLSlap(mode), ratios.Figure.of(quick.seconds).median)
            yield rounds(pool, load, clusters, blocks).row(mode, clusters, "long")
            if clusters == "shared":
                yield stock(pool, mode).row(mode, "one", "stock")


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 10, "blocks per table line; a block is one round of each variant")
    parser.add_argument("--modes", nargs="*", choices=MODES, default=MODES, metavar="MODE")
    parser.add_argument("--loads", nargs="*", choices=LOADS, default=[*LOADS], metavar="LOAD")
    arguments = parser.parse_args()
    print("| mode | clusters | round | measured s | unmeasured s | wall / measured | |")
    print("|---|---|---|---|---|---|---|")
    with stage.clusters() as pool:
        for load in arguments.loads:
            print(rounds(pool, LOADS[load], "shared", arguments.runs).unmeasured_row(load), flush=True)
        for row in rows(pool, arguments.modes, arguments.runs):
            print(row, flush=True)


if __name__ == "__main__":
    ratios.run(main)
