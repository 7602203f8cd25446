"""How much of one core the plugin's own process takes while a round is measured; its children do not count.

    python benchmarks/plugin_cpu.py [--runs 20] [--modes write mixed ...]

"measured": while the load ran, as each round samples it (in ticks of 10 ms, so many rounds are averaged); this
is what could disturb the servers, and what the target is for. "whole": with switch, reset, settle and drain.
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
    """Per cent of one core over all rounds, each weighing as long as it lasted."""
    used = sum(one.samples[sample] * one.seconds for one in rounds)
    return 100 * used / sum(one.seconds for one in rounds)


def row(pool: Pool, mode: str, blocks: int) -> str:
    """The line of one mode."""
    rooms = stage.stage_of(pool, MySQLSlap(mode), [GALERA, SLAVE_THREADS_4])
    stage.blocks(rooms, 1)  # clusters and tables are made here
    began, cpu = time.monotonic(), time.process_time()
    found = [one for block in stage.blocks(rooms, blocks) for one in block]
    whole = 100 * (time.process_time() - cpu) / (time.monotonic() - began)
    measured = share(found)
    return f"| {mode} | {len(found)} | {measured:.1f} | {whole:.1f} | {ratios.met(measured, TARGET)} |"


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 20, "blocks of two rounds for each mode")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES, metavar="MODE")
    said = parser.parse_args()
    print("| mode | rounds | measured, % of one core | whole, % | |")
    print("|---|---|---|---|---|")
    with stage.clusters() as pool:
        for mode in said.modes:
            print(row(pool, mode, said.runs), flush=True)


if __name__ == "__main__":
    ratios.run(main)
