"""The share of one core that the plugin's own process uses while a round is measured, without its children.

    python benchmarks/plugin_cpu.py [--runs 20] [--modes write mixed ...]

"measured": while the workload ran, as sampled by each round (in ticks of 10 ms, so the script averages many rounds).
The target is for this share, because it could disturb the servers. "whole": with switch, reset, settle and drain.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks import ratios, stage
from fixtures.clusters import GALERA, SLAVE_THREADS_4
from pytest_dbcluster import MySQLSlap
from pytest_dbcluster.rounds.round import Round
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.workloads.mysqlslap import MODES

TARGET = 5.0


def share(rounds: Sequence[Round], sample: str = "cpu_plugin") -> float:
    """The percentage of one core over all rounds, weighted by their seconds."""
    used = sum(drawn.samples[sample] * drawn.seconds for drawn in rounds)
    return 100 * used / sum(drawn.seconds for drawn in rounds)


def row(pool: Pool, mode: str, blocks: int) -> str:
    """The table line of one mode."""
    testbed = stage.stage_of(pool, MySQLSlap(mode), [GALERA, SLAVE_THREADS_4])
    stage.blocks(testbed, 1)  # starts the clusters and loads the tables
    began, cpu = time.monotonic(), time.process_time()
    rounds = [drawn for block in stage.blocks(testbed, blocks) for drawn in block]
    whole = 100 * (time.process_time() - cpu) / (time.monotonic() - began)
    measured = share(rounds)
    return f"| {mode} | {len(rounds)} | {measured:.1f} | {whole:.1f} | {ratios.target_text(measured, TARGET)} |"


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 20, "blocks of two rounds for each mode")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES, metavar="MODE")
    arguments = parser.parse_args()
    print("| mode | rounds | measured, % of one core | whole, % | |")
    print("|---|---|---|---|---|")
    with stage.clusters() as pool:
        for mode in arguments.modes:
            print(row(pool, mode, arguments.runs), flush=True)


if __name__ == "__main__":
    ratios.run(main)
