"""What the samples of every second cost: CPU without any load, and the speed of a load with and without them.

    python benchmarks/timeline_cost.py [--runs 3] [--connections 50] [--budget 75] [--seed N]

CPU: three Galera nodes are idle but for open connections, of which a status lists all. Each run takes many samples at
once and divides, because the CPU times of processes come in ticks of 10 ms; the same time without samples is
subtracted. A measurement takes one sample a second, so the seconds of a sample are the share of a core.

Speed: a claim that the same load on the same cluster is as fast with the samples as without them, ``same_as`` within
5 %, in rounds of 2 s. Both together take about three minutes; populating the tables for the first time comes on top.
"""

from __future__ import annotations

import contextlib
import secrets
import time

import psutil

from benchmarks import ratios, stage
from fixtures.clusters import GALERA
from pytest_dbcluster import MySQLSlap, SysBench
from pytest_dbcluster.claims.claim import Verdict
from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.measuring.drawing.rules import Rules
from pytest_dbcluster.measuring.measurement import Measurement
from pytest_dbcluster.measuring.series import series_of
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.testbed import Testbed
from pytest_dbcluster.testbed.timeline import Place, Timeline
from pytest_dbcluster.workloads.workload import Setting

TARGET = 0.5  # % of a core for each node
SECONDS, INTERVAL = 6.0, 0.01
WITHIN = 0.05
LOAD = SysBench("oltp_point_select", to="writer", seconds=2.0)  # needs CPU alone; two samples or more in each round


def cpu_use(setting: Setting) -> tuple[float, float]:
    """The CPU seconds so far of this process, and of all servers."""
    servers = [psutil.Process(node.process.pid).cpu_times() for node in setting.cluster.nodes if node.process]
    return time.process_time(), sum(times.user + times.system for times in servers)


def cost(setting: Setting) -> tuple[float, float, int]:
    """CPU seconds of the plugin and of all servers for some samples, and their number."""
    timeline = Timeline(INTERVAL)
    before = cpu_use(setting)
    with timeline.during(Place("cost", 0, 0), setting):
        time.sleep(SECONDS)
    timeline.stop()
    between = cpu_use(setting)
    time.sleep(SECONDS)
    after = cpu_use(setting)
    plugin, servers = (2 * mid - first - last for first, mid, last in zip(before, between, after, strict=True))
    return plugin, servers, len(timeline.moments)


def row(setting: Setting) -> str:
    """The table line of one run."""
    plugin, servers, samples = cost(setting)
    nodes = len(setting.cluster.nodes)
    shares = [100 * seconds / samples / nodes for seconds in (plugin, servers)]
    target = ratios.target_text(sum(shares), TARGET)
    return f"| {samples} | {shares[0]:.2f} | {shares[1]:.2f} | {sum(shares):.2f} | {target} |"


class Sampled(Testbed):
    """Two equal variants on one cluster; every second is sampled in the rounds of the first one alone."""

    def round(self, variant: int, *, block: int, position: int) -> Round:
        """Run one round of a variant, reset included, with or without the samples."""
        if variant:
            return super().round(variant, block=block, position=position)
        timeline, place = Timeline(), Place(self.names[variant], block, position)
        try:
            with timeline.during(place, stage.setting(self._pool, self, 0, "quick")):
                return super().round(variant, block=block, position=position)
        finally:
            timeline.stop()


def same(pool: Pool, seed: int, budget: float) -> Verdict:
    """The verdict on the claim that the load is as fast with the samples as without them."""
    equal = GALERA.with_options(lock_wait_timeout=86399).named("without")  # a switch that changes nothing
    variants = stage.stage_of(pool, LOAD, [GALERA.named("with"), equal]).variants
    measurement = Measurement(Sampled(LOAD, variants, pool, "quick", stage.tell), Rules(seed, budget=budget))
    sampled, plain = series_of(measurement)
    answer = sampled.same_as(plain, within=WITHIN)
    stage.tell(answer.message)
    return answer.verdict


def costs(pool: Pool, runs: int, connections: int) -> None:
    """Print the table of the CPU that samples take."""
    print("| samples | plugin, % of a core for each node | server, % | together, % | |")
    print("|---|---|---|---|---|")
    setting = stage.setting(pool, stage.stage_of(pool, MySQLSlap("read"), [GALERA.named("with")]), 0, "quick")
    with contextlib.ExitStack() as stack:
        for node in setting.cluster.nodes * connections:
            connection = stack.enter_context(contextlib.closing(Connection(node.name, node.endpoint)))
            connection.query("SELECT 1")
        for _ in range(runs):
            print(row(setting), flush=True)


def line(verdict: Verdict) -> str:
    """The table line of the claim."""
    low, high = verdict.decided_low, verdict.decided_high
    shown = f"{verdict.ratio:.3f} (90 %: {low:.3f} .. {high:.3f})"
    return f"| {LOAD} | {shown} | {verdict.pairs} | same within {WITHIN:g}: {verdict.outcome.value} |"


def main() -> None:
    """Reads the command line and prints the tables."""
    parser = ratios.arguments(__doc__, 3, "times that samples are taken")
    parser.add_argument("--connections", type=int, default=50, metavar="N", help="open connections of each node")
    parser.add_argument("--budget", type=float, default=75.0, metavar="S", help="measured seconds of the claim")
    parser.add_argument("--seed", type=int, default=secrets.randbits(63), metavar="N", help="of its order of rounds")
    arguments = parser.parse_args()
    with stage.clusters() as pool:
        costs(pool, arguments.runs, arguments.connections)
        print("\n| load | speed with samples / without | pairs | |")
        print("|---|---|---|---|", flush=True)
        print(line(same(pool, arguments.seed, arguments.budget)))


if __name__ == "__main__":
    ratios.run(main)
