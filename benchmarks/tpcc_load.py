"""How long one warehouse of TPC-C takes to load: by us, over go-tpc on the same server.

    python benchmarks/tpcc_load.py [--runs 5] [--warehouses 1]

Alternating, each into a fresh schema; creating the tables is part of the time, dropping the last ones is not, and
neither checks what it has loaded. One load of each kind before them is dropped: the server's files and its buffer pool
grow in it. go-tpc is used where it is on PATH; without it ours is shown alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks import ratios, stage, tpcc_peers
from benchmarks.tpcc_peers import GoTPC, Peer, Place
from pytest_dbcluster import TPCC
from pytest_dbcluster.workloads.tpcc.conditions import SCHEMA

TARGET = 0.5


def timed(place: Place, name: str, schema: str, load: Callable[[], object]) -> float:
    """Seconds of one load, without those that dropping the last one took."""
    place.empty(schema)
    took = ratios.seconds(load)
    stage.tell(f"{name}: {took:.2f} s")
    return took


def measured(place: Place, peers: Sequence[Peer], runs: int) -> list[list[float]]:
    """The seconds of each run but the first: ours, then those of the peer when there is one."""
    load = TPCC(place.warehouses, place.threads)
    columns = ratios.alternate(
        runs + 1,
        lambda: timed(place, "ours", SCHEMA, lambda: load.populate(place.setting)),
        *(lambda peer=peer: timed(place, peer.name, peer.schema, lambda: peer.load(place)) for peer in peers),
    )
    return [column[1:] for column in columns]


def table(columns: Sequence[Sequence[float]], missing: dict[str, str]) -> str:
    """The table, and the ratio when there is one."""
    names = ["ours", *(["go-tpc"] if len(columns) > 1 else [])]
    lines = ["| loading | seconds |", "|---|---|"]
    lines += [f"| {name} | {ratios.Figure.of(column)} |" for name, column in zip(names, columns, strict=True)]
    lines += [f"| {name} | skipped: {lacks} |" for name, lacks in missing.items()]
    if len(columns) > 1:
        found = ratios.ratio(columns[0], columns[1])
        lines.append(f"\nours / go-tpc {found}, {ratios.met(found.median, TARGET)}")
    return "\n".join(lines)


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 5, "loads of each kind")
    parser.add_argument("--warehouses", type=ratios.positive, default=1, metavar="W", help="the scale (default 1)")
    said = parser.parse_args()
    peers, missing = tpcc_peers.split([GoTPC()])
    with tpcc_peers.lone_server(said.warehouses) as place:
        columns = measured(place, peers, said.runs)
    print(table(columns, missing))


if __name__ == "__main__":
    ratios.run(main)
