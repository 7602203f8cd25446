"""What each suite takes, whole and at its default budget: wall time, the share of it that is measured, decided claims.

    python benchmarks/suites.py [galera replication ...] [--results DIR]

Without names all suites are run, which takes hours. Each one is `pytest suites/NAME` in a process of its own, with
programs, templates and references in the cache if they were there before. Wall time is from the start of the process to
its end. The measured share is the seconds of all rounds in the results, with their drains, divided by the wall time; it
excludes reset, switch, settle and warm-up. A drain is a part of the result: the throughput with it is shown beside each
claim. The share without drains stands in the next column. Claims count if a test asserts them. The machine cannot
show those that ask for more cores than the nodes have, or for a disk on which flushing costs something; the target is
for the others. Each that is inconclusive is listed with its reason below the table. --results keeps the results of each
suite in DIR/NAME.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
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

SHARE = 0.7  # of a suite's wall time, at least
DECIDED = 0.9  # of the claims that the machine can show, at least
KNOWN = sorted(path.name for path in (stage.ROOT / "suites").iterdir() if any(path.glob("test_*.py")))
HEAD = """\
| suite | wall minutes | share measured | without drains | claims | decided | cannot be shown | |
|---|---|---|---|---|---|---|---|"""
HIDDEN = ("nodes share ", "an fsync takes ")  # what the reasons of such claims begin with


@dataclasses.dataclass(frozen=True)
class Ran:
    """A suite that has run. wall, rounds, drains: seconds.

    inconclusive: the test and the reason of each open claim. hidden: how many of these the machine cannot show.
    """

    suite: str
    wall: float
    rounds: float
    drains: float
    claims: int
    inconclusive: Sequence[str]
    hidden: int = 0

    @classmethod
    def of(cls, suite: str, wall: float, results: Path) -> Ran:
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
        )

    @property
    def row(self) -> str:
        """The table line, with what is below its target."""
        share, decided = (self.rounds + self.drains) / self.wall, self.claims - len(self.inconclusive)
        missed = [f"share below {SHARE}"] if share < SHARE else []
        missed += [f"decided below {DECIDED}"] if decided < DECIDED * (self.claims - self.hidden) else []
        figures = f"{self.wall / 60:.1f} | {share:.2f} | {self.rounds / self.wall:.2f} | {self.claims} | {decided}"
        return f"| {self.suite} | {figures} | {self.hidden} | {', '.join(missed) or 'met'} |"


def run(suite: str, results: Path) -> Ran:
    """Run a suite whole; its progress goes to stderr. Raises ProvisionError if it did not end by itself."""
    command = [sys.executable, "-m", "pytest", f"suites/{suite}", f"--db-results={results}", "-p", "no:cacheprovider"]
    began = time.monotonic()
    done = subprocess.run(command, cwd=stage.ROOT, stdout=sys.stderr, check=False)
    if done.returncode not in DONE:
        raise ProvisionError(f"pytest suites/{suite} ended with {done.returncode}")
    return Ran.of(suite, time.monotonic() - began, results)


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
    arguments = parser.parse_args()
    print(HEAD, flush=True)
    with keep(arguments.results) as directory:
        ran = []
        for suite in arguments.suites or KNOWN:
            ran.append(run(suite, directory / suite))
            print(ran[-1].row, flush=True)
    for one in ran:
        for line in one.inconclusive:
            print(f"\n{one.suite}: inconclusive: {line}")


if __name__ == "__main__":
    ratios.run(main)
