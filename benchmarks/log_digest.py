"""How fast a log becomes a workload directory on one core, and how much memory that takes.

    python benchmarks/log_digest.py [--megabytes 200] [--runs 3] [--ad-hoc 0.01]

The slow log has transactions like those of sysbench's oltp_read_write. New processes digest it: one only splits
statements, one digests it whole. The log goes through a pipe, so a log of 10 GB needs no disk. A share of the
transactions is ad hoc: statements that no other transaction has, in any order. The rate is that of the CPU time of the
process, and memory is its largest resident size.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pytest_dbcluster.workloads.digest import digest_directory
from pytest_dbcluster.workloads.digest.log.log_files import open_log
from pytest_dbcluster.workloads.digest.log.statement_shapes import Shapes

TOKENISED, DIGESTED, MEMORY = 60_000, 20_000, 2**30
COLUMNS = ("id", "k", "c", "pad")
SCHEMA = "CREATE TABLE sbtest1 (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120), pad CHAR(60), KEY (k));\n"
HEAD = """\
# User@Host: app[app] @  [127.0.0.1]
# Thread_id: {thread}  Schema: test  QC_hit: No
# Query_time: 0.000121  Lock_time: 0.000004  Rows_sent: 1  Rows_examined: 1
# Rows_affected: 0  Bytes_sent: 64
SET timestamp={time};
{statement};
"""


@dataclasses.dataclass(frozen=True)
class DigestCost:
    """What one process needed."""

    statements: int
    seconds: float
    memory: int
    """Bytes of the largest resident size."""

    @property
    def rate(self) -> float:
        """Statements per second."""
        return self.statements / self.seconds


def transaction(drawn: random.Random) -> list[str]:
    """The statements of one transaction."""

    def text() -> str:
        return "-".join(f"{drawn.randrange(10**11):011d}" for _ in range(10))

    ids = [drawn.randint(1, 100_000) for _ in range(17)]
    ranges = [f"id BETWEEN {one} AND {one + 99}" for one in ids[10:14]]
    return [
        "BEGIN",
        *(f"SELECT c FROM sbtest1 WHERE id={one}" for one in ids[:10]),
        f"SELECT c FROM sbtest1 WHERE {ranges[0]}",
        f"SELECT SUM(k) FROM sbtest1 WHERE {ranges[1]}",
        f"SELECT c FROM sbtest1 WHERE {ranges[2]} ORDER BY c",
        f"SELECT DISTINCT c FROM sbtest1 WHERE {ranges[3]} ORDER BY c",
        f"UPDATE sbtest1 SET k=k+1 WHERE id={ids[14]}",
        f"UPDATE sbtest1 SET c='{text()}' WHERE id={ids[15]}",
        f"DELETE FROM sbtest1 WHERE id={ids[16]}",
        f"INSERT INTO sbtest1 (id, k, c, pad) VALUES ({ids[16]}, {ids[0]}, '{text()}', '{text()[:59]}')",
        "COMMIT",
    ]


def ad_hoc(drawn: random.Random) -> list[str]:
    """The statements of a transaction that no other one has."""
    columns = [", ".join(drawn.choices(COLUMNS, k=drawn.randint(1, 12))) for _ in range(drawn.randint(1, 30))]
    return ["BEGIN", *(f"SELECT {each} FROM sbtest1 WHERE id={drawn.randint(1, 10**5)}" for each in columns), "COMMIT"]


def write_log(path: Path, size: int, share: float) -> None:
    """Write a log of at least ``size`` bytes into a pipe. share: of the transactions that are ad hoc."""
    drawn, written, number = random.Random(1), 0, 0
    with path.open("w") as file:
        while written < size:
            number += 1
            statements = ad_hoc(drawn) if drawn.random() < share else transaction(drawn)
            entries = [HEAD.format(thread=number % 16 + 1, time=1_700_000_000 + number // 500, statement=one)
                       for one in statements]  # fmt: skip
            written += file.write("".join(entries))


def tokenise(log: Path) -> int:
    """Split every statement of a log; return their number."""
    shapes, count = Shapes(), 0
    with open_log(log) as file:
        for entry in file.entries():
            shapes.of(entry.text)
            count += 1
    return count


def digest(log: Path) -> int:
    """Digest a log whole; return the number of statements."""
    schema = log.with_suffix(".sql")
    schema.write_text(SCHEMA)
    found, _, _ = digest_directory.write_digest(
        log, schema, Path("digested"), keep_literals=False, progress=lambda line: None
    )
    return found.totals.statements


def cost(action: str, size: int, share: float) -> DigestCost:
    """The cost of an action on a log of ``size`` bytes in a new process."""
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "slow.log"
        os.mkfifo(log)
        command = [sys.executable, "-m", "benchmarks.log_digest", "--one", action, str(log)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]) as process:
            write_log(log, size, share)
            words, _ = process.communicate()
    count, seconds, memory = words.split()
    return DigestCost(int(count), float(seconds), int(memory))


def one(action: str, log: Path) -> None:
    """Run one action, and print statements, CPU seconds and bytes."""
    began = time.process_time()
    count = {"tokenise": tokenise, "digest": digest}[action](log)
    seconds = time.process_time() - began
    print(count, seconds, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def main() -> int:
    """Print the median of each figure with its target."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ad-hoc", type=float, default=0.01, metavar="SHARE")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one(arguments.one[0], Path(arguments.one[1]))
        return 0
    for action, target in (("tokenise", TOKENISED), ("digest", DIGESTED)):
        found = [cost(action, arguments.megabytes * 10**6, arguments.ad_hoc) for _ in range(arguments.runs)]
        rates = sorted(cost.rate for cost in found)
        median, memory = statistics.median(rates), max(cost.memory for cost in found)
        met = "met" if median >= target else "missed"
        print(f"{action}: {median:.0f} statements/s ({rates[0]:.0f} .. {rates[-1]:.0f}), target {target}: {met}")
        met = "met" if memory <= MEMORY else "missed"
        print(f"{action}: {memory / 2**20:.0f} MiB for {arguments.megabytes} MB, target {MEMORY / 2**20:.0f}: {met}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
