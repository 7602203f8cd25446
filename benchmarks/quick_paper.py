"""Compares the profile quick with the published command line (profile paper), mode by mode.

    python benchmarks/quick_paper.py [--runs 20] [--modes write ...]       seconds per query, quick / paper
    python benchmarks/quick_paper.py --ratio [--runs 160] [--budget 3600]  flush_2 / default, quick / paper

Rounds of both profiles alternate on the same clusters. Seconds are divided by the number of queries, because key and
read run other numbers of queries in quick. For each writing mode --ratio tests whether the speed of flush=2 over the
default is the same in both profiles within 15 %. It runs until that is decided, or until --runs or --budget is reached.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Sequence

from benchmarks import ratios, stage
from fixtures.clusters import FLUSH_2, GALERA
from pytest_dbcluster import ClusterSpec, MySQLSlap
from pytest_dbcluster.claims import critical_values, estimators, intervals, kinds, verdict
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.spec import PROFILES
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.workloads.mysqlslap import MODES, WRITING

RUNS = 20
WITHIN = 0.15
NOTABLE = 0.10
LEVEL = critical_values.ALPHAS[0]
CAUSES = {
    "key": "quick runs 5 times as many queries, so each query carries less of the connection time, which is measured "
    "too; ids come from CONNECTION_ID() and not from the client",
    "read": "quick runs a tenth of the queries, 2 per client, so each query carries more of the connection time",
    "update": "ids come from CONNECTION_ID() and not from the client, so other rows conflict",
    "mixed": "ids come from CONNECTION_ID() and not from the client",
}


class Both:
    """One workload in both profiles on the same clusters; quick starts first, because only quick keeps its tables."""

    def __init__(self, pool: Pool, mode: str, specs: Sequence[ClusterSpec]) -> None:
        self.load = MySQLSlap(mode, iterations=1)
        self.testbeds: dict[str, Testbed] = {
            profile: stage.stage_of(pool, self.load, specs, profile) for profile in PROFILES
        }
        self._coin = random.Random(mode)
        self._block = 0
        for testbed in self.testbeds.values():
            stage.blocks(testbed, 0)

    def block(self) -> tuple[dict[tuple[str, int], float], bool]:
        """One round of each profile and variant, in random order.

        Returns the seconds per query by (profile, 0-based variant), and whether paper ran the first variant first.
        """
        pairs = [(profile, number) for profile in PROFILES for number in range(len(self.testbeds[profile].names))]
        self._coin.shuffle(pairs)
        seconds = {}
        for position, (profile, number) in enumerate(pairs):
            done = self.testbeds[profile].round(number, block=self._block, position=position)
            seconds[profile, number] = done.seconds / self.load.round_queries(profile)
        self._block += 1
        return seconds, pairs.index((PROFILES[1], 0)) < pairs.index((PROFILES[0], 0))


def pairs_of(values: Sequence[float], paper_first: Sequence[bool]) -> Pairs:
    """Log ratios quick / paper as pairs, of which quick is the candidate."""
    return Pairs(tuple(values), (0.0,) * len(values), tuple(paper_first), openings=0)


def ratio_text(pairs: Pairs, level: float = LEVEL) -> str:
    """The ratio as the text ``0.97 (0.90 .. 1.05)``; the interval is unbounded for fewer than 14 pairs."""
    low, high = intervals.interval(pairs, level)
    middle = intervals.estimate(pairs)
    return f"{estimators.factor(middle):.3g} ({estimators.factor(low):.3g} .. {estimators.factor(high):.3g})"


def cause(mode: str, pairs: Pairs) -> str:
    """The cause of a difference above 10 %; another text if the difference is smaller or not significant."""
    low, high = intervals.interval(pairs, LEVEL)
    if abs(intervals.estimate(pairs)) <= math.log1p(NOTABLE):
        return "within 10 %"
    return "inconclusive: more runs would decide" if low <= 0 <= high else CAUSES.get(mode, "cause not known")


def speed_ratio(block: dict[tuple[str, int], float], profile: str) -> float:
    """The log of the second variant's speed over the first variant's, in one profile."""
    return math.log(block[profile, 0] / block[profile, 1])


def seconds_row(pool: Pool, mode: str, runs: int) -> str:
    """The table line of one mode: seconds per query, quick / paper, on the default cluster."""
    both = Both(pool, mode, [GALERA])
    drawn, paper_first = zip(*(both.block() for _ in range(runs)), strict=True)
    pairs = pairs_of([math.log(block["quick", 0] / block["paper", 0]) for block in drawn], paper_first)
    return f"| {mode} | {len(pairs)} | {ratio_text(pairs)} | {cause(mode, pairs)} |"


def ratio_row(pool: Pool, mode: str, runs: int, budget: float) -> str:
    """The table line of one mode: whether flush_2 / default agrees between the profiles."""
    both, limit = Both(pool, mode, [GALERA, FLUSH_2]), time.monotonic() + budget
    drawn: list[dict[tuple[str, int], float]] = []
    paper_first: list[bool] = []
    decided = None
    while decided is None:
        block, first = both.block()
        drawn.append(block)
        paper_first.append(first)
        values = [speed_ratio(block, "quick") - speed_ratio(block, "paper") for block in drawn]
        pairs = pairs_of(values, paper_first)
        over = f"budget of {budget:g} s used" if time.monotonic() > limit else ""
        terms = verdict.Terms(cap=min(runs, verdict.CAP), out_of_budget=over)
        decided = verdict.judge(kinds.same_as(WITHIN), pairs, terms)
    sides = " | ".join(
        f"{estimators.factor(statistics.median(speed_ratio(block, profile) for block in drawn)):.3g}"
        for profile in PROFILES
    )
    reason = f": {decided.reason}" if decided.reason else ""
    guarded = ratio_text(pairs, critical_values.GUARD_LEVEL)
    return f"| {mode} | {len(pairs)} | {sides} | {guarded} | {decided.outcome.value}{reason} |"


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, RUNS, "blocks per mode; with --ratio the maximum, default 160")
    parser.set_defaults(runs=None)
    parser.add_argument(
        "--modes", nargs="+", choices=MODES, metavar="MODE", help="default all; with --ratio the writing modes"
    )
    parser.add_argument("--ratio", action="store_true", help="compare flush_2 / default between the profiles")
    parser.add_argument(
        "--budget", type=float, default=3600.0, metavar="SECONDS", help="wall time per mode with --ratio"
    )
    arguments = parser.parse_args()
    runs = arguments.runs or (critical_values.LOOKS[-1] if arguments.ratio else RUNS)
    if arguments.ratio:
        print(f"| mode | blocks | quick: flush_2 / default | paper | quick / paper (90 %) | same within {WITHIN:.0%} |")
        print("|---|---|---|---|---|---|")
    else:
        print("| mode | blocks | seconds per query, quick / paper (99.9 %) | |")
        print("|---|---|---|---|")
    with stage.clusters() as pool:
        for mode in arguments.modes or (sorted(WRITING) if arguments.ratio else MODES):
            row = ratio_row(pool, mode, runs, arguments.budget) if arguments.ratio else seconds_row(pool, mode, runs)
            print(row, flush=True)


if __name__ == "__main__":
    ratios.run(main)
