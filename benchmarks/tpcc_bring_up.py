"""How long three Galera nodes with ten loaded warehouses take until a load can begin, from the cache.

    python benchmarks/tpcc_bring_up.py [--runs 3] [--warehouses 10]

The warehouses are loaded once, into an entry of the cache that is this script's own and is removed at the end; that
takes the time that a second bring-up saves. A bring-up begins with the spec and ends when the load has found its
tables: copying, starting and forming are in it, programs and template are cached.
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
    """TPC-C whose data set nobody else uses."""

    mark: str = ""

    @property
    def data_set(self) -> str:
        """What the tables hold, and whose they are."""
        return f"{super().data_set}, {self.mark}"


@contextlib.contextmanager
def own_entry(warehouses: int) -> Iterator[Filled]:
    """A load that is not in the cache yet, and will not be when the block has ended."""
    load = Filled(warehouses, mark=f"benchmark {secrets.token_hex(4)}")
    try:
        yield load
    finally:
        for entry in datasets.datasets():
            if entry.name == load.data_set:
                shutil.rmtree(entry.path, ignore_errors=True)


def variant(pool: Pool, load: Filled) -> Variant:
    """Three nodes that hold the load's tables."""
    spec = ClusterSpec("galera", nodes=NODES)
    return pool.resolution.resolve(spec.on_release(ReleaseName.parse(DEFAULT_RELEASE))).with_data_set_of(load)


def filling(load: Filled) -> float:
    """Seconds until the tables are in the cache."""
    with stage.clusters() as pool:
        chosen = variant(pool, load)
        client = pool.client(chosen.release)
        return ratios.seconds(
            lambda: datasets.dataset_template(
                load, chosen.release, pool.provisioner, client, dict(chosen.static), stage.tell
            )
        )


def bring_up(load: Filled) -> float:
    """Seconds until the load could begin on a cluster that started from them."""
    with stage.clusters() as pool:

        def start() -> None:
            chosen = variant(pool, load)
            cluster = pool.running([chosen])[0].cluster
            load.prepare(Setting(cluster, pool.client(chosen.release), chosen.release, "quick", stage.tell))

        took = ratios.seconds(start)
        stage.tell(f"ready in {took:.2f} s")
        return took


def table(filled: float, ready: list[float], warehouses: int) -> str:
    """The two lines, their ratio, and whether the target is met."""
    found, against = ratios.Figure.of(ready), ratios.ratio(ready, [filled] * len(ready))
    return (
        f"| {NODES} nodes, {warehouses} warehouses | seconds |\n|---|---|\n"
        f"| loading them, once | {filled:.3g} |\n| bring-up from the cache | {found} |\n\n"
        f"bring-up / loading {against}; seconds of a bring-up: {ratios.met(found.median, TARGET)}"
    )


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 3, "bring-ups")
    parser.add_argument("--warehouses", type=ratios.positive, default=10, metavar="W", help="the scale (default 10)")
    said = parser.parse_args()
    stage.server()
    find.find("sysbench", progress=stage.tell)
    with own_entry(said.warehouses) as load:
        filled = filling(load)
        ready = [bring_up(load) for _ in range(said.runs)]
    print(table(filled, ready, said.warehouses))


if __name__ == "__main__":
    ratios.run(main)
