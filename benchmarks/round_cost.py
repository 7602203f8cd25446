"""What a round costs beyond what it measures: its wall time over its measured time.

    python benchmarks/round_cost.py [--runs 10] [--modes write mixed ...]

Everything is counted: switch, reset, settle, counters, the load's start, drain. Quick rounds are as tests draw
them; long ones run so many queries that they last about 2 s. "shared": both variants on one cluster, which is
switched between 1 applier and 4; "own": variants on clusters of their own. "stock": one call of the published
command line with one iteration, which makes its table anew.
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
    """Measured and wall seconds of some rounds."""

    seconds: tuple[float, ...]
    wall: tuple[float, ...]

    @classmethod
    def of(cls, rounds: Sequence[Round]) -> Cost:
        """The cost of these rounds."""
        return cls(tuple(one.seconds for one in rounds), tuple(one.wall for one in rounds))

    @property
    def beside(self) -> float:
        """Unmeasured seconds of the round in the middle."""
        return ratios.difference(self.wall, self.seconds).median

    def row(self, mode: str, clusters: str, rounds: str) -> str:
        """The line of the table; the published call has no target."""
        found = ratios.ratio(self.wall, self.seconds)
        judged = ratios.met(found.median, TARGETS[rounds]) if rounds in TARGETS else ""
        lasted = f"{ratios.Figure.of(self.seconds).median:.2f}"
        return f"| {mode} | {clusters} | {rounds} | {lasted} | {self.beside:.2f} | {found} | {judged} |"


def longer(load: MySQLSlap, seconds: float) -> MySQLSlap:
    """The same load with as many queries as make a round of ``seconds`` last about 2 s."""
    wanted = round(load.round_queries("quick") * LONG_SECONDS / seconds)
    queries = max(load.concurrency, wanted // load.concurrency * load.concurrency)
    return dataclasses.replace(load, queries=queries, quick_queries=queries)


def rounds(pool: Pool, load: MySQLSlap, clusters: str, blocks: int) -> Cost:
    """The cost of alternating rounds of one load."""
    found = stage.blocks(stage.stage_of(pool, load, CLUSTERS[clusters]), blocks)
    return Cost.of([one for block in found for one in block])


def stock(pool: Pool, mode: str) -> Cost:
    """The cost of one published call: what the tool says, and how long it took."""
    load = MySQLSlap(mode, iterations=1)
    place = stage.setting(pool, stage.stage_of(pool, load, [GALERA], "paper"), 0, "paper")
    measured: list[float] = []
    wall = ratios.seconds(lambda: measured.append(load.run(place).seconds))
    return Cost(tuple(measured), (wall,))


def rows(pool: Pool, modes: Sequence[str], blocks: int) -> Iterator[str]:
    """The lines of the table, each when it is there."""
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
    parser = ratios.arguments(__doc__, 10, "blocks of rounds, each variant once, for each line of the table")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES, metavar="MODE")
    said = parser.parse_args()
    print("| mode | clusters | round | measured s | beside it s | wall / measured | |")
    print("|---|---|---|---|---|---|---|")
    with stage.clusters() as pool:
        for row in rows(pool, said.modes, said.runs):
            print(row, flush=True)


if __name__ == "__main__":
    ratios.run(main)
