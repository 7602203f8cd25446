"""Time until `pytest suites/galera -k "flush and write"` shows its first verdict.

    python benchmarks/first_verdict.py [--runs 3] [--empty-runs 1]

Wall time from the start of the process. Cached: programs, templates and references are in the cache (an unmeasured run
first populates it). Empty: the cache is a new directory, so the run downloads the programs, and the time depends on the
network; --empty-runs 0 skips it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import ratios, stage
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.system import cache

TARGETS = {"cached": 25.0, "empty": 180.0}
SELECTED = ("suites/galera", "-k", "flush and write")
VERDICT = re.compile(r"^\s*\S (holds|refuted|inconclusive)\s")
END_SECONDS = 60.0


@contextlib.contextmanager
def process(results: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The pytest run as a process. The end of the block interrupts it, so that its servers stop."""
    command = [sys.executable, "-m", "pytest", *SELECTED, f"--db-results={results}", "-p", "no:cacheprovider"]
    with subprocess.Popen(
        command,
        cwd=stage.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # Ctrl-C reaches it only once, through this process
        env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
    ) as started:
        try:
            yield started
        finally:
            started.send_signal(signal.SIGINT)
            try:
                started.communicate(timeout=END_SECONDS)
            except subprocess.TimeoutExpired:
                started.kill()


def until_verdict(environment: dict[str, str]) -> float:
    """The seconds to the first verdict of any outcome. Raises ProvisionError with the output if there is none."""
    began, seen = time.monotonic(), []
    with (
        tempfile.TemporaryDirectory(prefix="dbcluster-results-") as results,
        process(Path(results), environment) as started,
    ):
        assert started.stdout
        for line in started.stdout:
            seen.append(line)
            if VERDICT.match(line):
                stage.tell(line.rstrip())
                return time.monotonic() - began
    raise ProvisionError(f"the run ended without a verdict: {''.join(seen)[-2000:]}")


def from_empty() -> float:
    """The seconds to the first verdict with an empty cache, on the same disk as the normal cache."""
    cache.root().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dbcluster-empty-", dir=cache.root().parent) as directory:
        return until_verdict({"XDG_CACHE_HOME": directory})


def row(kind: str, times: list[float]) -> str:
    """The table line of one kind of cache."""
    figure = ratios.Figure.of(times)
    return f"| {kind} | {len(times)} | {figure} | {ratios.target_text(figure.median, TARGETS[kind])} |"


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 3, "runs with everything cached")
    parser.add_argument("--empty-runs", type=int, default=1, metavar="N", help="runs with an empty cache (default 1)")
    arguments = parser.parse_args()
    until_verdict({})  # not measured: populates the cache
    print("| cache | runs | seconds to the first verdict | |")
    print("|---|---|---|---|")
    print(row("cached", [until_verdict({}) for _ in range(arguments.runs)]), flush=True)
    if arguments.empty_runs > 0:
        print(row("empty", [from_empty() for _ in range(arguments.empty_runs)]))


if __name__ == "__main__":
    ratios.run(main)
