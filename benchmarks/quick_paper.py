"""Whether the profile quick measures what the published command line measures, mode by mode.

    python benchmarks/quick_paper.py [--runs 20] [--modes write ...]       seconds a query, quick / paper
    python benchmarks/quick_paper.py --ratio [--runs 160] [--budget 3600]  flush_2 / default, quick / paper

Rounds of both profiles alternate on the same clusters. Seconds are divided by queries, because key and read run
other numbers of them in quick. --ratio asks for each writing mode whether the speed of flush=2 over the default
is the same in both profiles within 15 %; it draws until that is decided, or --runs or --budget end it.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence

from benchmarks import ratios, stage
from fixtures.clusters import FLUSH_2, GALERA
from pytest_dbcluster import ClusterSpec, MySQLSlap
from pytest_dbcluster.claims import claim, critical_values, estimators, verdict
from pytest_dbcluster.spec import PROFILES
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.workloads.mysqlslap import MODES, WRITING

RUNS = 20
WITHIN = 0.15
NOTABLE = 0.10
LEVEL = critical_values.ALPHAS[0]
CAUSES = {
    "key": "quick runs 5 times as many queries, so connecting, inside the measured time, weighs less on each; "
    "ids come from CONNECTION_ID() and not from the client",
    "read": "quick runs a tenth of the queries, 2 per client, so connecting weighs more on each",
    "update": "ids come from CONNECTION_ID() and not from the client, so clients meet on other rows",
    "mixed": "ids come from CONNECTION_ID() and not from the client",
}


class Both:
    """One load in both profiles on the same clusters; quick goes first, since it alone makes tables to keep."""

    def __init__(self, pool: Pool, mode: str, specs: Sequence[ClusterSpec]) -> None:
        self.load = MySQLSlap(mode, iterations=1)
        self.rooms: dict[str, Testbed] = {
            profile: stage.stage_of(pool, self.load, specs, profile) for profile in PROFILES
        }
        self._coin = random.Random(mode)
        self._block = 0
        for rooms in self.rooms.values():
            stage.blocks(rooms, 0)

    def block(self) -> dict[tuple[str, int], float]:
        """Seconds a query by profile and variant, each measured once, in an order drawn by lot."""
        rooms = [(profile, number) for profile in PROFILES for number in range(len(self.rooms[profile].names))]
        self._coin.shuffle(rooms)
        found = {}
        for place, (profile, number) in enumerate(rooms):
            done = self.rooms[profile].round(number, block=self._block, position=place)
            found[profile, number] = done.seconds / self.load.round_queries(profile)
        self._block += 1
        return found


def shown(values: Sequence[float], level: float = LEVEL) -> str:
    """Log ratios as ``0.97 (0.90 .. 1.05)``; unbounded below six of them."""
    low, high = estimators.interval(values, level)
    middle = estimators.hodges_lehmann(values)
    return f"{estimators.factor(middle):.3g} ({estimators.factor(low):.3g} .. {estimators.factor(high):.3g})"


def cause(mode: str, values: Sequence[float]) -> str:
    """Why the profiles differ: only when they do by more than 10 %, and the interval does not hold "equal"."""
    low, high = estimators.interval(values, LEVEL)
    if abs(estimators.hodges_lehmann(values)) <= math.log1p(NOTABLE):
        return "within 10 %"
    return "open: more runs would tell" if low <= 0 <= high else CAUSES.get(mode, "cause not known")


def speed_ratio(block: dict[tuple[str, int], float], profile: str) -> float:
    """Log of the speed of the second variant over the first, as one profile sees it."""
    return math.log(block[profile, 0] / block[profile, 1])


def seconds_row(pool: Pool, mode: str, runs: int) -> str:
    """The line of one mode: seconds a query, quick / paper, on the default cluster."""
    both = Both(pool, mode, [GALERA])
    drawn = [both.block() for _ in range(runs)]
    values = [math.log(block["quick", 0] / block["paper", 0]) for block in drawn]
    return f"| {mode} | {len(values)} | {shown(values)} | {cause(mode, values)} |"


def ratio_row(pool: Pool, mode: str, runs: int, budget: float) -> str:
    """The line of one mode: does flush_2 / default agree between the profiles."""
    both, limit = Both(pool, mode, [GALERA, FLUSH_2]), time.monotonic() + budget
    drawn: list[dict[tuple[str, int], float]] = []
    values: list[float] = []
    found = None
    while found is None:
        drawn.append(both.block())
        values.append(speed_ratio(drawn[-1], "quick") - speed_ratio(drawn[-1], "paper"))
        over = f"budget of {budget:g} s used" if time.monotonic() > limit else ""
        found = verdict.judge(
            claim.same_as(WITHIN), values, verdict.Terms(cap=min(runs, verdict.CAP), out_of_budget=over)
        )
    sides = " | ".join(shown([speed_ratio(block, profile) for block in drawn]) for profile in PROFILES)
    reason = f": {found.reason}" if found.reason else ""
    guarded = shown(values, critical_values.GUARD_LEVEL)
    return f"| {mode} | {len(values)} | {sides} | {guarded} | {found.outcome.value}{reason} |"


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, RUNS, "blocks for each mode; with --ratio the most of them, 160 if not said")
    parser.set_defaults(runs=None)
    parser.add_argument("--modes", nargs="+", choices=MODES, metavar="MODE", help="default all; with --ratio writing")
    parser.add_argument("--ratio", action="store_true", help="compare flush_2 / default between the profiles")
    parser.add_argument("--budget", type=float, default=3600.0, metavar="SECONDS", help="of wall time a mode, --ratio")
    said = parser.parse_args()
    runs = said.runs or (critical_values.LOOKS[-1] if said.ratio else RUNS)
    if said.ratio:
        print(f"| mode | blocks | quick: flush_2 / default | paper | quick / paper (90 %) | same within {WITHIN:.0%} |")
        print("|---|---|---|---|---|---|")
    else:
        print("| mode | blocks | seconds a query, quick / paper (99.9 %) | |")
        print("|---|---|---|---|")
    with stage.clusters() as pool:
        for mode in said.modes or (sorted(WRITING) if said.ratio else MODES):
            row = ratio_row(pool, mode, runs, said.budget) if said.ratio else seconds_row(pool, mode, runs)
            print(row, flush=True)


if __name__ == "__main__":
    ratios.run(main)
