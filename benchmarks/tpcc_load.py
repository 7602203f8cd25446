"""Time to load one TPC-C warehouse: the plugin over go-tpc on the same server.

    python benchmarks/tpcc_load.py [--runs 5] [--warehouses 1]

Both alternate, each into an empty schema. The time includes creating the tables, and our digests of them, but not
dropping the previous tables, and neither side checks the loaded data. The first load of each side does not count,
because the server's files and its buffer pool grow in it. Without go-tpc on PATH only the plugin's time is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks import ratios, stage, tpcc_peers
from benchmarks.tpcc_peers import Comparison, GoTPC, Peer
from pytest_dbcluster import TPCC
from pytest_dbcluster.workloads.tpcc.conditions import SCHEMA

TARGET = 0.35


def time_load(comparison: Comparison, name: str, schema: str, load: Callable[[], object]) -> float:
    """The seconds of one load, without dropping the previous tables."""
    comparison.empty(schema)
    took = ratios.seconds(load)
    stage.tell(f"{name}: {took:.2f} s")
    return took


def measure(comparison: Comparison, peers: Sequence[Peer], runs: int) -> list[list[float]]:
    """The seconds of each run but the first: the plugin's, then go-tpc's if it is there."""
    load = TPCC(comparison.warehouses, comparison.threads)
    columns = ratios.alternate(
        runs + 1,
        lambda: time_load(comparison, "ours", SCHEMA, lambda: load.populate(comparison.setting)),
        *(
            lambda peer=peer: time_load(comparison, peer.name, peer.schema, lambda: peer.load(comparison))
            for peer in peers
        ),
    )
    return [column[1:] for column in columns]


def table(columns: Sequence[Sequence[float]], missing: dict[str, str]) -> str:
    """The table, and the ratio if go-tpc was measured."""
    names = ["ours", *(["go-tpc"] if len(columns) > 1 else [])]
    lines = ["| loading | seconds |", "|---|---|"]
    lines += [f"| {name} | {ratios.Figure.of(column)} |" for name, column in zip(names, columns, strict=True)]
    lines += [f"| {name} | skipped: {lacks} |" for name, lacks in missing.items()]
    if len(columns) > 1:
        quotient = ratios.ratio(columns[0], columns[1])
        lines.append(f"\nours / go-tpc {quotient}, {ratios.target_text(quotient.median, TARGET)}")
    return "\n".join(lines)


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 5, "loads of each kind")
    parser.add_argument("--warehouses", type=ratios.positive, default=1, metavar="W", help="the scale (default 1)")
    arguments = parser.parse_args()
    peers, missing = tpcc_peers.split([GoTPC()])
    with tpcc_peers.servers(warehouses=arguments.warehouses) as comparison:
        columns = measure(comparison, peers, arguments.runs)
    print(table(columns, missing))


if __name__ == "__main__":
    ratios.run(main)
