"""How often `dbcluster compare` answers within its five minutes, for four changes of a my.cnf and for two equal files.

    python benchmarks/compare.py [--runs 10] [--seconds 300] [--only flush ...] [--keep FILE] [-- OPTIONS]

Each run is one command. It has two my.cnf files, another seed and the default workloads. Its time includes the starts
of the servers. It has answered when it says "no worse" or "worse" (exit status 0 or 3). The changes take turns, so that
a slow minute affects all of them. What follows `--` is passed to `dbcluster compare`, such as `--topology galera`.
--keep appends each run to a file. The table then has all runs of the file, so a run of hours may be divided.

Noise: the standard deviation of the log ratios of pairs of rounds, times the root of a round's seconds. So rounds of
one second have this noise in their throughput. The noisier workload counts. The time to an answer depends on it.
"""

from __future__ import annotations

import dataclasses
import json
import math
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import ratios, stage
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.tables.no_worse import TAIL, Result

TARGET = 0.9
EQUAL = "equal"  # two equal files, of which "worse" is a wrong answer
CHANGES = {
    "flush": ("innodb_flush_log_at_trx_commit = 1", "innodb_flush_log_at_trx_commit = 2"),
    "buffer_pool": ("innodb_buffer_pool_size = 16M", "innodb_buffer_pool_size = 1G"),
    "sync_binlog": ("log_bin\nsync_binlog = 1", "log_bin\nsync_binlog = 0"),
    "general_log": ("general_log = OFF", "general_log = ON"),
    EQUAL: ("", ""),
}
SHARED = "[mysqld]\nmax_connections = 200\n"
END_SECONDS = 60.0
RESULTS = [one for one in Result if one is not Result.BROKEN]  # an error ends the benchmark


@dataclasses.dataclass(frozen=True)
class Run:
    """One command: its result, its wall time in seconds, its last line, and the noise of its throughput."""

    result: Result
    seconds: float
    sentence: str
    noise: float = math.nan


def run_command(change: str, options: Sequence[str]) -> Run:
    """Run the command on one change. Raises ProvisionError with the output if it ends with an error."""
    with tempfile.TemporaryDirectory(prefix="dbcluster-files-") as directory:
        files = [Path(directory) / "current.cnf", Path(directory) / "candidate.cnf"]
        for file, lines in zip(files, CHANGES[change], strict=True):
            file.write_text(f"{SHARED}{lines}\n")
        program = str(Path(sys.executable).with_name("dbcluster"))
        equal = ["--equal"] if change == EQUAL else []
        asked = [f"--results={directory}/results", *options]
        command = [program, "compare", *(f"--cnf={file}" for file in files), *equal, *asked]
        done: list[tuple[int, str, str]] = []
        took = ratios.seconds(lambda: done.append(_output(command)))
        status, out, errors = done[0]
        if status not in {result.value for result in RESULTS}:
            raise ProvisionError(f"{' '.join(command)} ended with {status}: {out[-2000:]}{errors[-2000:]}")
        results = [option.partition("=")[2] for option in asked if option.startswith("--results=")][-1]
        run = Run(Result(status), took, out.splitlines()[-1], noise(stage.ROOT / results))
    stage.tell(f"{change}: {took:.0f} s, noise {run.noise:.0%}, {run.sentence}")
    return run


def noise(results: Path) -> float:
    """The noise of pairs of rounds of one second; nan without claims about the throughput."""
    found = []
    for claim in schema.claim_documents(results):
        if claim.asserted and claim.metric != TAIL and claim.verdict.pairs > 1:
            seconds = statistics.median(one for each in claim.seconds.values() for one in each)
            candidate, baseline = (claim.values[name] for name in (claim.candidate, claim.baseline))
            logs = [math.log(one / other) for one, other in zip(candidate, baseline, strict=True)]
            found.append(statistics.stdev(logs) * math.sqrt(seconds))
    return max(found, default=math.nan)


def _output(command: Sequence[str]) -> tuple[int, str, str]:
    """Exit status, output and errors of a command. An interrupt ends its servers too."""
    with subprocess.Popen(
        command,
        cwd=stage.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C reaches it only once, through this process
    ) as process:
        try:
            out, errors = process.communicate()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=END_SECONDS)
            raise
        return process.returncode, out, errors


def line(change: str, runs: Sequence[Run]) -> str:
    """The table line of one change."""
    counts = [sum(run.result is result for run in runs) for result in RESULTS]
    answered = 1 - counts[RESULTS.index(Result.UNKNOWN)] / len(runs)
    seconds, known = ratios.Figure.of([run.seconds for run in runs]), [run.noise for run in runs if run.noise >= 0]
    noises = ratios.Figure.of(known) if known else "unknown"
    cells = (change, seconds, noises, *counts, f"{answered:.2f}")
    return f"| {' | '.join(str(cell) for cell in cells)} | {'met' if answered >= TARGET else 'not met'} |"


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.arguments(__doc__, 10, "comparisons of each change")
    parser.add_argument("--seconds", type=float, default=300.0, metavar="S", help="of each comparison (default 300)")
    parser.add_argument("--only", nargs="*", choices=CHANGES, default=list(CHANGES), metavar="CHANGE", help="changes")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="append each run, and count those that are there")
    parser.add_argument("options", nargs="*", metavar="-- OPTION", help="for dbcluster compare")
    arguments = parser.parse_args()
    keep: Path | None = arguments.keep
    options = [f"--seconds={arguments.seconds:g}", *arguments.options]
    runs: dict[str, list[Run]] = {change: [] for change in arguments.only}
    for change, *fields in map(json.loads, keep.read_text().splitlines() if keep and keep.exists() else ()):
        runs.setdefault(change, []).append(Run(Result(fields[0]), *fields[1:]))
    try:
        for _ in range(arguments.runs):
            for change in arguments.only:
                runs[change].append(ran := run_command(change, options))
                if keep:
                    with keep.open("a") as file:
                        file.write(json.dumps([change, ran.result.value, *dataclasses.astuple(ran)[1:]]) + "\n")
    finally:
        head = (
            "change",
            "seconds",
            "noise",
            *(result.name.lower().replace("_", " ") for result in RESULTS),
            "answered",
        )
        print(f"| {' | '.join(head)} | target >= {TARGET:g} |\n|{'---|' * (len(head) + 1)}")
        for change, done in runs.items():
            if done:
                print(line(change, done), flush=True)


if __name__ == "__main__":
    ratios.run(main)
