"""The time until a command of `dbcluster` has answered: wall time of processes, alternating with an empty program.

    python benchmarks/start_up.py [--runs 20]

`dbcluster ps` lists the runs of this machine: with many of them it reads as many files.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

from benchmarks import ratios
from pytest_dbcluster.errors import ProvisionError

TARGET = 0.15  # seconds
PROGRAM = Path(sys.executable).with_name("dbcluster")
COMMANDS = {"dbcluster --help": (PROGRAM, "--help"), "dbcluster ps": (PROGRAM, "ps")}
EMPTY = (sys.executable, "-c", "pass")


def run(command: tuple[str | Path, ...]) -> None:
    """Run a command. Raises ProvisionError with its output if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ProvisionError(f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stdout}{done.stderr}")


def main() -> None:
    """Reads the command line and prints the table."""
    arguments = ratios.arguments(__doc__, 20, "runs of each command").parse_args()
    actions = [functools.partial(ratios.seconds, functools.partial(run, one)) for one in (*COMMANDS.values(), EMPTY)]
    for action in actions:  # read every file once
        action()
    *ours, empty = ratios.alternate(arguments.runs, *actions)
    print("| command | seconds | `python -c pass` | ratio | |")
    print("|---|---|---|---|---|")
    for name, seconds in zip(COMMANDS, ours, strict=True):
        print(ratios.line(f"`{name}`", seconds, empty, TARGET, absolute=True))


if __name__ == "__main__":
    ratios.run(main)
