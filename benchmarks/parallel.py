"""The gain of two workers: wall time of a suite with -n2 over its wall time with -n0, and the measured share.

    python benchmarks/parallel.py [--runs 2] [--workers 2] [-- suites/galera -k "flush and write" ...]

Wall time from the start of the process to its end; programs and templates are cached (an unmeasured run first makes
sure). The suite runs on two releases with 12 pairs per claim, so that both sides measure the same rounds. Measured
rounds have the machine to themselves, so workers can only save unmeasured time. The measured share is the seconds of
all rounds in the results divided by the wall time; it excludes reset, switch, settle and warm-up.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import ratios, stage
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.reporting import schema

TARGET = 0.95
RELEASES = ("--db-release=mariadb:10.11", "--db-release=mariadb:11.8")
PAIRS = 12  # the first look of a claim
SUITE = ("suites/galera", "-k", "flush and write")
DONE = (0, 1)  # pytest's exit status after all tests have run


def run(selected: Sequence[str], workers: int) -> tuple[float, float]:
    """Wall time and measured time of one run, in seconds. Raises ProvisionError if the run measured nothing."""
    with tempfile.TemporaryDirectory(prefix="dbcluster-results-") as results:
        options = [*selected, *RELEASES, f"--db-max-pairs={PAIRS}", "--db-seed=1", f"--db-results={results}"]
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", f"-n{workers}", "-p", "no:cacheprovider", *options],
            cwd=stage.ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        wall, seconds = time.monotonic() - began, measured_seconds(Path(results))
    if done.returncode not in DONE or not seconds:
        raise ProvisionError(f"pytest -n{workers} ended with {done.returncode}: {done.stdout[-2000:]}")
    stage.tell(f"-n{workers}: {wall:.0f} s, of which {seconds:.0f} s measured")
    return wall, seconds


def measured_seconds(results: Path, column: str = "seconds") -> float:
    """The seconds of all rounds of a run's claims and curves; a round used by two of them counts once.

    column: ``seconds``, or a counter of the rounds such as ``drain_seconds``; a round without it adds nothing.
    """
    rounds: dict[tuple[str, float], float] = {}
    for path in results.glob("rounds/*.csv"):
        with path.open() as file:
            rows = [row for row in csv.DictReader(file) if row.get(column)]
            rounds |= {(row["variant"], float(row["started"])): float(row[column]) for row in rows}
    for done in (done for curve in schema.read_curves(results) for point in curve.points for done in point.rounds):
        seconds = done.outcome.seconds if column == "seconds" else done.counters.get(column, 0.0)
        rounds.setdefault((done.variant, done.started), seconds)
    return sum(rounds.values())


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 2, "pairs of runs")
    parser.add_argument("--workers", type=ratios.positive, default=2, metavar="N", help="workers (default 2)")
    parser.add_argument(
        "selected", nargs="*", default=SUITE, help="the arguments of pytest, after -- (default the flush suite)"
    )
    arguments = parser.parse_args()
    run(arguments.selected, 0)
    runs_of: dict[int, list[tuple[float, float]]] = {0: [], arguments.workers: []}

    def time_suite(workers: int) -> float:
        runs_of[workers].append(run(arguments.selected, workers))
        return runs_of[workers][-1][0]

    alone, beside = ratios.alternate(arguments.runs, lambda: time_suite(0), lambda: time_suite(arguments.workers))
    print("| workers | runs | wall seconds | share measured |")
    print("|---|---|---|---|")
    for workers, times in runs_of.items():
        share = ratios.Figure.of([seconds / wall for wall, seconds in times])
        print(f"| {workers} | {len(times)} | {ratios.Figure.of([wall for wall, _ in times])} | {share} |")
    gain = ratios.ratio(beside, alone)
    print(f"\n-n{arguments.workers} over -n0: {gain} ({ratios.target_text(gain.median, TARGET)})")


if __name__ == "__main__":
    ratios.run(main)
