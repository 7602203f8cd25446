"""Time until a workload can begin on three Galera nodes with ten TPC-C warehouses from the cache.

    python benchmarks/tpcc_bring_up.py [--runs 3] [--warehouses 10]

The script loads the warehouses once, into its own cache entry, and removes the entry at the end. A bring-up from the
cache saves this loading time. A bring-up begins with the spec and ends when the workload has found its tables. It
includes copying, starting and joining; programs and template are cached.
"""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import shutil
from collections.abc import Iterator

from benchmarks import ratios, stage
from pytest_dbcluster import TPCC, ClusterSpec, ReleaseName
from pytest_dbcluster.releases import find
from pytest_dbcluster.spec import DEFAULT_RELEASE
from pytest_dbcluster.testbed import datasets
from pytest_dbcluster.testbed.pool import Pool
from pytest_dbcluster.testbed.variants import Variant
from pytest_dbcluster.workloads.workload import Setting

TARGET = 10.0
NODES = 3


@dataclasses.dataclass(frozen=True)
class Filled(TPCC):
    """TPC-C with a data set that only this script uses."""

    mark: str = ""

    @property
    def data_set(self) -> str:
        """The name of the data set, with the mark of this script."""
        return f"{super().data_set}, {self.mark}"


@contextlib.contextmanager
def own_entry(warehouses: int) -> Iterator[Filled]:
    """A workload without a data set in the cache; the end of the block removes the data set that was made meanwhile."""
    load = Filled(warehouses, mark=f"benchmark {secrets.token_hex(4)}")
    try:
        yield load
    finally:
        for entry in datasets.datasets():
            if entry.name == load.data_set:
                shutil.rmtree(entry.path, ignore_errors=True)


def variant(pool: Pool, load: Filled) -> Variant:
    """A variant of three nodes with the workload's data set."""
    spec = ClusterSpec("galera", nodes=NODES)
    return pool.resolution.resolve(spec.on_release(ReleaseName.parse(DEFAULT_RELEASE))).with_data_set_of(load)


def populate(load: Filled) -> float:
    """The seconds until the data set is in the cache."""
    with stage.clusters() as pool:
        chosen = variant(pool, load)
        client = pool.client(chosen.release)
        return ratios.seconds(
            lambda: datasets.dataset_template(
                load, chosen.release, pool.provisioner, client, dict(chosen.static), stage.tell
            )
        )


def bring_up(load: Filled) -> float:
    """The seconds until the workload can begin on a cluster that starts from the data set."""
    with stage.clusters() as pool:

        def start() -> None:
            chosen = variant(pool, load)
            cluster = pool.running([chosen])[0].cluster
            load.prepare(Setting(cluster, pool.client(chosen.release), chosen.release, "quick", stage.tell))

        took = ratios.seconds(start)
        stage.tell(f"ready in {took:.2f} s")
        return took


def table(filled: float, ready: list[float], warehouses: int) -> str:
    """The table, with the ratio and whether the target is met."""
    bring_ups, against = ratios.Figure.of(ready), ratios.ratio(ready, [filled] * len(ready))
    return (
        f"| {NODES} nodes, {warehouses} warehouses | seconds |\n|---|---|\n"
        f"| loading the warehouses, once | {filled:.3g} |\n| bring-up from the cache | {bring_ups} |\n\n"
        f"bring-up / loading {against}; seconds of a bring-up: {ratios.target_text(bring_ups.median, TARGET)}"
    )


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 3, "bring-ups")
    parser.add_argument("--warehouses", type=ratios.positive, default=10, metavar="W", help="the scale (default 10)")
    arguments = parser.parse_args()
    stage.server()
    find.find("sysbench", progress=stage.tell)
    with own_entry(arguments.warehouses) as load:
        filled = populate(load)
        ready = [bring_up(load) for _ in range(arguments.runs)]
    print(table(filled, ready, arguments.warehouses))


if __name__ == "__main__":
    ratios.run(main)
