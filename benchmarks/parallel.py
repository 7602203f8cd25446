"""What two workers gain: the wall time of a suite with -n2 over that with -n0, and how much of it is measuring.

    python benchmarks/parallel.py [--runs 2] [--workers 2] [-- suites/galera -k "flush and write" ...]

Whole wall time from the start of the process to its end, programs and templates cached (a run before makes sure).
The suite runs on two releases, each claim for 6 pairs, so that both ways measure the same rounds. Measured rounds have
the machine alone: workers can only save what is not measuring. The share is the seconds of all rounds in the results
over the wall time; reset, switch, settle and warm-up are not among them.
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

TARGET = 0.95
RELEASES = ("--db-release=mariadb:10.11", "--db-release=mariadb:11.8")
PAIRS = 6
SUITE = ("suites/galera", "-k", "flush and write")
DONE = (0, 1)  # what pytest ends with when all tests have run


def run(selected: Sequence[str], workers: int) -> tuple[float, float]:
    """Wall time and measured seconds of one run. Raises ProvisionError with the output of one that measured nothing."""
    with tempfile.TemporaryDirectory(prefix="dbcluster-results-") as results:
        words = [*selected, *RELEASES, f"--db-max-pairs={PAIRS}", "--db-seed=1", f"--db-results={results}"]
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", f"-n{workers}", "-p", "no:cacheprovider", *words],
            cwd=stage.ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        wall, seconds = time.monotonic() - began, measured(Path(results))
    if done.returncode not in DONE or not seconds:
        raise ProvisionError(f"pytest -n{workers} ended with {done.returncode}: {done.stdout[-2000:]}")
    stage.tell(f"-n{workers}: {wall:.0f} s, of which {seconds:.0f} s measured")
    return wall, seconds


def measured(results: Path) -> float:
    """The seconds of all rounds of a run, each once: a second claim is about the rounds of the first."""
    found: dict[tuple[str, str], float] = {}
    for path in results.glob("rounds/*.csv"):
        with path.open() as file:
            found |= {(row["variant"], row["started"]): float(row["seconds"]) for row in csv.DictReader(file)}
    return sum(found.values())


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 2, "pairs of runs")
    parser.add_argument("--workers", type=ratios.positive, default=2, metavar="N", help="workers (default 2)")
    parser.add_argument(
        "selected", nargs="*", default=SUITE, help="what pytest runs, behind -- (default the flush suite)"
    )
    said = parser.parse_args()
    run(said.selected, 0)
    several: dict[int, list[tuple[float, float]]] = {0: [], said.workers: []}

    def one(workers: int) -> float:
        several[workers].append(run(said.selected, workers))
        return several[workers][-1][0]

    alone, beside = ratios.alternate(said.runs, lambda: one(0), lambda: one(said.workers))
    print("| workers | runs | wall seconds | share measured |")
    print("|---|---|---|---|")
    for workers, found in several.items():
        share = ratios.Figure.of([seconds / wall for wall, seconds in found])
        print(f"| {workers} | {len(found)} | {ratios.Figure.of([wall for wall, _ in found])} | {share} |")
    gain = ratios.ratio(beside, alone)
    print(f"\n-n{said.workers} over -n0: {gain} ({ratios.met(gain.median, TARGET)})")


if __name__ == "__main__":
    ratios.run(main)
