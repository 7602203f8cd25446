"""How long `pytest suites/galera -k "flush and write"` takes until its first verdict stands on the screen.

    python benchmarks/first_verdict.py [--runs 3] [--empty-runs 1]

Whole wall time from the start of the process. Cached: programs, templates and references are there (one run
before makes sure). Empty: the cache is a new directory, so the programs are fetched from the package mirror and
the time is partly the network's; --empty-runs 0 leaves it out.
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

TARGETS = {"cached": 60.0, "empty": 180.0}
SELECTED = ("suites/galera", "-k", "flush and write")
VERDICT = re.compile(r"^\s*(holds|FAILS|inconclusive)\s.*\bpairs\b")
END_SECONDS = 60.0


@contextlib.contextmanager
def process(results: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The run; what is left of it after the block is interrupted, and its servers end with it."""
    command = [sys.executable, "-m", "pytest", *SELECTED, f"--db-results={results}", "-p", "no:cacheprovider"]
    with subprocess.Popen(
        command,
        cwd=stage.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # Ctrl-C reaches it once, through us
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
    """Seconds to the first verdict, whatever it says. Raises ProvisionError with the output without any."""
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
    """The same with a cache of its own, beside ours because the servers' data goes to the same disk."""
    cache.root().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dbcluster-empty-", dir=cache.root().parent) as place:
        return until_verdict({"XDG_CACHE_HOME": place})


def row(kind: str, found: list[float]) -> str:
    """The line of the table."""
    figure = ratios.Figure.of(found)
    return f"| {kind} | {len(found)} | {figure} | {ratios.met(figure.median, TARGETS[kind])} |"


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 3, "runs with everything cached")
    parser.add_argument("--empty-runs", type=int, default=1, metavar="N", help="runs with an empty cache (default 1)")
    said = parser.parse_args()
    until_verdict({})  # fills the cache
    print("| cache | runs | seconds to the first verdict | |")
    print("|---|---|---|---|")
    print(row("cached", [until_verdict({}) for _ in range(said.runs)]), flush=True)
    if said.empty_runs > 0:
        print(row("empty", [from_empty() for _ in range(said.empty_runs)]))


if __name__ == "__main__":
    ratios.run(main)
