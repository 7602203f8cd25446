"""What the samples of every second cost: CPU of the plugin and of each server, without any load.

    python benchmarks/timeline_cost.py [--runs 5] [--connections 50]

Three Galera nodes are idle but for open connections, of which a status lists all. Each run takes many samples at once
and divides, because the CPU times of processes come in ticks of 10 ms; the same time without samples is subtracted.
A measurement takes one sample a second, so the seconds of a sample are the share of a core.
"""

from __future__ import annotations

import time

import psutil

from benchmarks import ratios, stage
from fixtures.clusters import GALERA
from pytest_dbcluster import MySQLSlap
from pytest_dbcluster.clusters.servers.connection import Connection
from pytest_dbcluster.testbed.timeline import Place, Timeline
from pytest_dbcluster.workloads.workload import Setting

TARGET = 0.5  # % of a core for each node
SECONDS, INTERVAL = 6.0, 0.01


def used(setting: Setting) -> tuple[float, float]:
    """The CPU seconds so far of this process, and of all servers."""
    servers = [psutil.Process(node.process.pid).cpu_times() for node in setting.cluster.nodes if node.process]
    return time.process_time(), sum(times.user + times.system for times in servers)


def cost(setting: Setting) -> tuple[float, float, int]:
    """CPU seconds of the plugin and of all servers for some samples, and their number."""
    timeline = Timeline(INTERVAL)
    before = used(setting)
    with timeline.during(Place("cost", 0, 0), setting):
        time.sleep(SECONDS)
    timeline.stop()
    between = used(setting)
    time.sleep(SECONDS)
    after = used(setting)
    plugin, servers = (2 * mid - first - last for first, mid, last in zip(before, between, after, strict=True))
    return plugin, servers, len(timeline.moments)


def row(setting: Setting) -> str:
    """The table line of one run."""
    plugin, servers, samples = cost(setting)
    nodes = len(setting.cluster.nodes)
    shares = [100 * seconds / samples / nodes for seconds in (plugin, servers)]
    return f"| {samples} | {shares[0]:.2f} | {shares[1]:.2f} | {sum(shares):.2f} | {ratios.met(sum(shares), TARGET)} |"


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 5, "times that samples are taken")
    parser.add_argument("--connections", type=int, default=50, metavar="N", help="open connections of each node")
    arguments = parser.parse_args()
    print("| samples | plugin, % of a core for each node | server, % | together, % | |")
    print("|---|---|---|---|---|")
    with stage.clusters() as pool:
        setting = stage.setting(pool, stage.stage_of(pool, MySQLSlap("read"), [GALERA]), 0, "quick")
        idle = [Connection(node.name, node.endpoint) for node in setting.cluster.nodes] * arguments.connections
        idle = [Connection(connection.name, connection.endpoint) for connection in idle]
        for connection in idle:
            connection.query("SELECT 1")
        for _ in range(arguments.runs):
            print(row(setting), flush=True)
        for connection in idle:
            connection.close()


if __name__ == "__main__":
    ratios.run(main)
