"""What each suite takes, whole and at its default budget: wall time, the share of it that is measured, decided claims.

    python benchmarks/suites.py [galera replication ...] [--results DIR] [--keep FILE]

Without names all suites are run, which takes hours. With --keep, each suite is added to a file. The table has all
suites of the file, so the hours may be divided. Each suite is run as a separate process, `pytest suites/NAME`.
Programs, templates and references are in the cache if they were there before.

- Wall time: from the start of the process to its end.
- Share measured: the seconds of all rounds with their drains, divided by the wall time. Reset, switch, settle and
  warm-up are not measured. Their minutes stand in a column.
- Without drains: the same share without drains. A drain is a part of the result: each claim shows the throughput with
  it.
- Claims: those that a test asserts. Inconclusive ones are listed below the table with their reasons.
- Not shown: claims that this machine cannot show. They ask for more cores than the nodes have, or for a disk on which
  flushing costs something. The target is for the others.
- Memory: the largest memory of the process of pytest.

--results keeps the results of each suite in DIR/NAME.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import ratios, stage
from benchmarks.parallel import DONE, measured_seconds
from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.errors import ProvisionError
from pytest_dbcluster.reporting import schema

LOOK = 1.0  # seconds between two looks at the memory
SHARE = 0.7  # of a suite's wall time, at least
DECIDED = 0.9  # of the claims that the machine can show, at least
KNOWN = sorted(path.name for path in (stage.ROOT / "suites").iterdir() if any(path.glob("test_*.py")))
HEAD = """\
| suite | wall minutes | not measured | share measured | without drains | claims | decided | not shown | memory, MB | |
|---|---|---|---|---|---|---|---|---|---|"""
HIDDEN = ("nodes share ", "an fsync takes ")  # what the reasons of such claims begin with


@dataclasses.dataclass(frozen=True)
class Ran:
    """A suite that has run. wall, rounds, drains: seconds.

    inconclusive: the test and the reason of each open claim. hidden: how many of these the machine cannot show. memory:
    bytes.
    """

    suite: str
    wall: float
    rounds: float
    drains: float
    claims: int
    inconclusive: Sequence[str]
    hidden: int = 0
    memory: int = 0

    @classmethod
    def of(cls, suite: str, wall: float, results: Path, memory: int = 0) -> Ran:
        """What the results of a suite say."""
        asserted = [claim for claim in schema.read_claims(results) if claim.asserted]
        still_open = [claim for claim in asserted if claim.verdict.outcome is Outcome.INCONCLUSIVE]
        whys = [f"{claim.test.rpartition('/')[2]}: {claim.text}: {claim.verdict.reason}" for claim in still_open]
        hidden = sum(claim.verdict.reason.startswith(HIDDEN) for claim in still_open)
        return cls(
            suite,
            wall,
            measured_seconds(results),
            measured_seconds(results, "drain_seconds"),
            len(asserted),
            whys,
            hidden,
            memory,
        )

    @property
    def row(self) -> str:
        """The table line, with what is below its target."""
        share, decided = (self.rounds + self.drains) / self.wall, self.claims - len(self.inconclusive)
        missed = [f"share below {SHARE}"] if share < SHARE else []
        missed += [f"decided below {DECIDED}"] if decided < DECIDED * (self.claims - self.hidden) else []
        time = f"{self.wall / 60:.1f} | {self.rest / 60:.1f} | {share:.2f} | {self.rounds / self.wall:.2f}"
        rest = f"{self.hidden} | {self.memory / 1e6:.0f} | {', '.join(missed) or 'met'}"
        return f"| {self.suite} | {time} | {self.claims} | {decided} | {rest} |"

    @property
    def rest(self) -> float:
        """The seconds that are not measured."""
        return self.wall - self.rounds - self.drains


def run(suite: str, results: Path) -> Ran:
    """Run a suite whole; its progress goes to stderr. Raises ProvisionError if it did not end by itself."""
    command = [sys.executable, "-m", "pytest", f"suites/{suite}", f"--db-results={results}", "-p", "no:cacheprovider"]
    began, memory = time.monotonic(), 0
    with subprocess.Popen(command, cwd=stage.ROOT, stdout=sys.stderr) as process:
        while process.poll() is None:
            memory = max(memory, peak(process.pid))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LOOK)
    if process.returncode not in DONE:
        raise ProvisionError(f"pytest suites/{suite} ended with {process.returncode}")
    return Ran.of(suite, time.monotonic() - began, results, memory)


def peak(pid: int) -> int:
    """The most bytes of memory that a process has had; 0 for one that has ended."""
    with contextlib.suppress(OSError):
        if found := re.search(r"^VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE):
            return 1024 * int(found[1])
    return 0


def kept(file: Path | None) -> list[Ran]:
    """The suites that a file has."""
    return [Ran(**json.loads(line)) for line in file.read_text().splitlines()] if file and file.exists() else []


def suite_name(name: str) -> str:
    """The name of a suite, from the command line."""
    if name not in KNOWN:
        raise argparse.ArgumentTypeError(f"{name!r} is not a suite: {', '.join(KNOWN)}")
    return name


@contextlib.contextmanager
def keep(directory: Path | None) -> Iterator[Path]:
    """Where results go: the directory given, or one that is removed at the end."""
    if directory:
        yield directory.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="dbcluster-results-") as made:
        yield Path(made)


def main() -> None:
    """Reads the command line and prints the table."""
    parser = ratios.plain(__doc__)
    parser.add_argument("suites", nargs="*", type=suite_name, metavar="NAME", help=f"one of {', '.join(KNOWN)}")
    parser.add_argument("--results", type=Path, metavar="DIR", help="keep the results of each suite in DIR/NAME")
    parser.add_argument(
        "--keep", type=Path, metavar="FILE", help="add each suite to this file, and show all that it has"
    )
    arguments = parser.parse_args()
    ran = kept(arguments.keep)
    print(HEAD, *(one.row for one in ran), sep="\n", flush=True)
    with keep(arguments.results) as directory:
        for suite in arguments.suites or KNOWN:
            ran.append(run(suite, directory / suite))
            print(ran[-1].row, flush=True)
            if arguments.keep:
                with arguments.keep.open("a") as file:
                    file.write(json.dumps(dataclasses.asdict(ran[-1])) + "\n")
    print(f"\nnot measured in all: {sum(one.rest for one in ran) / 60:.1f} min")
    for one in ran:
        for line in one.inconclusive:
            print(f"\n{one.suite}: inconclusive: {line}")


if __name__ == "__main__":
    ratios.run(main)
