"""How results, histories, clusters and loads grow: each at two sizes or more, with the exponent of the growth.

    python benchmarks/scale.py [claims history nodes connections terminals] [--claims 5000] [--lines 100000]

- claims: a results directory with so many copies of the claims of --results. CPU milliseconds for each claim to write
  its files, to read it, and to draw it on the page. The size of the page, and the memory of this process.
- history: a history file of so many lines, 100 for each claim. CPU seconds to read it, to compare a run with it, and to
  print its table.
- nodes: Galera of 3, 6 and 9 nodes in network namespaces (as root): seconds until ready, and beside a round of
  mysqlslap.
- connections: one server under sysbench with 1000 and 10 000 connections: seconds beside a round.
- terminals: TPC-C with 64 terminals on one, two and four load hosts (stand-in hosts, as root): the same.

The exponent compares the largest size with the smallest one. 1 is a linear growth; of a figure for each claim, 0 is.
Nothing should grow faster, and what is beside a round should grow slower than the number of nodes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import ratios, stage
from pytest_dbcluster import TPCC, ClusterSpec, MySQLSlap, SysBench, Workload
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.hosts.provisioner import Provisioner
from pytest_dbcluster.hosts.provisioners.ssh.provisioner import SshProvisioner
from pytest_dbcluster.reporting.history import guard, history_file, views
from pytest_dbcluster.reporting.history.entry import Entry, entry_of
from pytest_dbcluster.reporting.page import report_page, sources
from pytest_dbcluster.reporting.page.sources import Source
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.results_directory import Results
from tests.support.stand_ins import StandIns

RUNS = 100  # of each claim in a history
NODES, CONNECTIONS, LOAD_HOSTS = (3, 6, 9), (1000, 10_000), (1, 2, 4)
SPARE = 100  # connections of the plugin itself, and of the servers
TERMINALS = 64
Row = Mapping[str, float]


def cpu(action: Callable[[], object]) -> float:
    """The CPU seconds of this process that an action takes."""
    began = time.process_time()
    action()
    return time.process_time() - began


def claims(size: int, directory: Path, source: Source) -> Row:
    """What a results directory of so many claims takes, in milliseconds of CPU for each claim."""
    results = Results(directory)
    wrote = cpu(lambda: [results.add(one) for one in many(source, size)])
    reading = cpu(lambda: sources.read_all([directory]))
    read = sources.read_all([directory])
    pages: list[str] = []
    page = cpu(lambda: pages.append(report_page.html(read)))
    each = {"written": wrote, "read": reading, "page": page}
    parts = {f"{name}, ms of CPU a claim": 1000 * took / size for name, took in each.items()}
    return {**parts, "page, MB": len(pages[0]) / 1e6, "memory, MB": memory()}


def many(source: Source, size: int) -> Iterator[ClaimRecord]:
    """So many different claims: those of a source in turn, each time under another load."""
    for number, one in zip(range(size), itertools.cycle(source.claims), strict=False):
        yield dataclasses.replace(one, load=f"{one.load} {number}", claim_id=f"c{number}")


def memory() -> float:
    """The most memory that this process had so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def entries(lines: int, source: Source) -> Iterator[Entry]:
    """So many entries of a history: each claim once in each of RUNS runs."""
    assert source.run, "``main`` refuses results without it"
    each = list(many(source, lines // RUNS))
    for number in range(RUNS):
        at = dataclasses.replace(source.run, run_id=f"run{number:03}", began=source.run.began + 86400 * number)
        yield from (entry_of(one, at) for one in each)


def history(lines: int, directory: Path, source: Source) -> Row:
    """What a history of so many lines takes, in seconds of CPU."""
    path = directory / "history.jsonl"
    history_file.add(path, list(entries(lines, source)))
    read = cpu(lambda: history_file.read(path))
    found = history_file.read(path)
    last = f"run{RUNS - 1:03}"
    judged = cpu(lambda: guard.judge(found, {last}))
    shown = cpu(lambda: views.table(found))
    size = path.stat().st_size / 1e6
    return {"MB": size, "read, s": read, "compared, s": judged, "table, s": shown, "memory, MB": memory()}


def beside(spec: ClusterSpec, load: Workload, blocks: int, provisioner: Provisioner | None = None) -> Row:
    """Seconds until the first round of a cluster begins, and beside the measured part of a round."""
    with stage.clusters(provisioner) as pool:
        testbed = stage.stage_of(pool, load, [spec])
        began = time.monotonic()
        first = testbed.round(0, block=-1, position=0)
        started = time.monotonic() - began - first.wall
        drawn = [testbed.round(0, block=block, position=0) for block in range(blocks)]
        testbed.end()
    for void in filter(None, {one.void for one in drawn}):
        stage.tell(f"{spec}: void: {void}")
    spare = statistics.median(one.wall - one.seconds for one in drawn)
    speed = statistics.median(one.outcome.operations / one.seconds for one in drawn)
    return {"first round after, s": started, "beside a round, s": spare, "operations/s": speed}


def nodes(number: int, blocks: int) -> Row:
    """A cluster of so many nodes in namespaces."""
    return beside(ClusterSpec("galera", nodes=number).with_needs(rtt=0.0), MySQLSlap("write"), blocks)


def connections(number: int, blocks: int) -> Row:
    """One server with so many connections."""
    options = {"max_connections": number + SPARE, "open_files_limit": 4 * number, "table_open_cache": 2 * number}
    spec = ClusterSpec("standalone").with_options(**options)
    return beside(spec, SysBench("oltp_point_select", threads=number, seconds=4.0), blocks)


def terminals(number: int, blocks: int) -> Row:
    """64 terminals on so many load hosts."""
    with StandIns(count=1, load=number) as hosts:
        made = SshProvisioner(machines=hosts.servers, load_machines=hosts.loads, config=hosts.config)
        with contextlib.closing(made):
            load = TPCC(warehouses=4, threads=TERMINALS, seconds=2.0)
            return beside(ClusterSpec("standalone"), load, blocks, made)


def table(what: str, rows: Mapping[int, Row]) -> list[str]:
    """The table of one part: a line for each size, and the exponents of the growth from the first size to the last."""
    names = [*next(iter(rows.values()))]
    lines = [f"| {what} | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    lines += [f"| {size} | {' | '.join(f'{row[name]:.3g}' for name in names)} |" for size, row in rows.items()]
    return [*lines, f"| exponent | {' | '.join(f'{exponent(rows, name):.2f}' for name in names)} |", ""]


def exponent(rows: Mapping[int, Row], name: str) -> float:
    """The power of the size that a figure grows with; of a figure for each claim it is 0 for a linear growth."""
    (small, first), *_, (large, last) = rows.items()
    if not (first[name] > 0 and last[name] > 0):
        return math.nan
    return math.log(last[name] / first[name]) / math.log(large / small)


def in_directory(measure: Callable[[int, Path, Source], Row], sizes: Sequence[int], source: Source) -> dict[int, Row]:
    """The rows of a part that writes files, each size in its own directory."""
    found = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="dbcluster-scale-") as made:
            found[size] = measure(size, Path(made), source)
            stage.tell(f"{measure.__name__} {size}: {found[size]}")
    return found


def on_servers(measure: Callable[[int, int], Row], sizes: Sequence[int], blocks: int) -> dict[int, Row]:
    """The rows of a part that runs rounds."""
    found = {}
    for size in sizes:
        found[size] = measure(size, blocks)
        stage.tell(f"{measure.__name__} {size}: {found[size]}")
    return found


def main() -> None:
    """Reads the command line and prints the tables."""
    parser = ratios.plain(__doc__)
    parts = ("claims", "history", "nodes", "connections", "terminals")
    parser.add_argument("parts", nargs="*", choices=[*parts, []], metavar="PART", help=f"of {', '.join(parts)}")
    parser.add_argument("--claims", type=ratios.positive, default=5000, metavar="N", help="at most (default 5000)")
    parser.add_argument("--lines", type=ratios.positive, default=100_000, metavar="N", help="at most (default 100000)")
    parser.add_argument("--blocks", type=ratios.positive, default=5, metavar="N", help="rounds each (default 5)")
    parser.add_argument("--results", type=Path, default=Path("reports/latest"), metavar="DIR", help="claims to copy")
    given = parser.parse_args()

    def read() -> Source:
        found = sources.read(given.results)
        if not found.claims or found.run is None:
            raise ConfigError(f"{given.results} has no claims of a run: name the results of one with --results")
        return found

    chosen = {
        "claims": lambda: in_directory(claims, (max(1, given.claims // 10), given.claims), read()),
        "history": lambda: in_directory(history, (max(RUNS, given.lines // 10), max(RUNS, given.lines)), read()),
        "nodes": lambda: on_servers(nodes, NODES, given.blocks),
        "connections": lambda: on_servers(connections, CONNECTIONS, given.blocks),
        "terminals": lambda: on_servers(terminals, LOAD_HOSTS, given.blocks),
    }
    for part in given.parts or parts:
        print("\n".join(table(part, chosen[part]())), flush=True)


if __name__ == "__main__":
    ratios.run(main)
