"""The overhead of a round: its wall time divided by its measured time.

    python benchmarks/round_cost.py [--runs 10] [--modes write mixed ...]

The wall time includes everything: switch, reset, settle, counters, start of the load generator, and drain. Quick rounds
run as in tests; long rounds run enough queries to last about 2 s. "shared": both variants on one cluster that switches
between 1 and 4 appliers; "own": each variant on its own cluster. "stock": one call of the published command line with
one iteration, which creates its table again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from benchmarks import ratios, stage
from fixtures.clusters import BUFFER_POOL, GALERA, SLAVE_THREADS_4
from pytest_dbcluster import MySQLSlap
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.workloads.mysqlslap import MODES

TARGETS = {"quick": 1.5, "long": 1.2}
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


def longer(load: MySQLSlap, seconds: float) -> MySQLSlap:
    """The same workload with enough queries for rounds of about 2 s, given that a quick round takes ``seconds``."""
    wanted = round(load.round_queries("quick") * LONG_SECONDS / seconds)
    queries = max(load.concurrency, wanted // load.concurrency * load.concurrency)
    return dataclasses.replace(load, queries=queries, quick_queries=queries)


def rounds(pool: Pool, load: MySQLSlap, clusters: str, blocks: int) -> Cost:
    """The cost of alternating rounds of one workload."""
    drawn = stage.blocks(stage.stage_of(pool, load, CLUSTERS[clusters]), blocks)
    return Cost.of([block_round for block in drawn for block_round in block])


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
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES, metavar="MODE")
    arguments = parser.parse_args()
    print("| mode | clusters | round | measured s | unmeasured s | wall / measured | |")
    print("|---|---|---|---|---|---|---|")
    with stage.clusters() as pool:
        for row in rows(pool, arguments.modes, arguments.runs):
            print(row, flush=True)


if __name__ == "__main__":
    ratios.run(main)
