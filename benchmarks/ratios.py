"""Shared code without servers: alternating runs, their ratios pair by pair, and whether a target is met."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_dbcluster import DBClusterError
from pytest_dbcluster.redaction import redact

INTERRUPTED = 130  # what a shell reports for SIGINT


@dataclass(frozen=True)
class Figure:
    """The median of some runs, with their minimum and maximum."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        """The figure of these runs. Raises ValueError if there are none."""
        if not values:
            raise ValueError("a figure needs one run or more")
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        return f"{self.median:.3g} ({self.least:.3g} .. {self.most:.3g})"


def ratio(ours: Sequence[float], others: Sequence[float]) -> Figure:
    """The quotient ours / others, run by run."""
    return Figure.of([mine / theirs for mine, theirs in zip(ours, others, strict=True)])


def difference(ours: Sequence[float], others: Sequence[float]) -> Figure:
    """The difference ours - others, run by run."""
    return Figure.of([mine - theirs for mine, theirs in zip(ours, others, strict=True)])


def seconds(action: Callable[[], object]) -> float:
    """The wall time of an action in seconds."""
    began = time.monotonic()
    action()
    return time.monotonic() - began


def alternate(runs: int, *actions: Callable[[], float]) -> list[list[float]]:
    """The results of each action, ``runs`` of each. The order is A B A B, so that a slow minute affects all actions."""
    rows = [[action() for action in actions] for _ in range(runs)]
    return [list(column) for column in zip(*rows, strict=True)]


def target_text(value: float, target: float) -> str:
    """The text ``target <= 3: met`` or ``target <= 3: not met``."""
    return f"target <= {target:g}: {'met' if value <= target else 'not met'}"


def line(
    what: str, ours: Sequence[float], others: Sequence[float], target: float | None = None, *, absolute: bool = False
) -> str:
    """A row of a table: both sides and their ratio. ``target``: of the ratio, or of our side if ``absolute``."""
    quotient = ratio(ours, others)
    judged = Figure.of(ours) if absolute else quotient
    said = "" if target is None else target_text(judged.median, target)
    return f"| {what} | {Figure.of(ours)} | {Figure.of(others)} | {quotient} | {said} |"


def plain(description: str | None) -> argparse.ArgumentParser:
    """A parser that shows the description as it is written."""
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def arguments(description: str | None, runs: int, what: str) -> argparse.ArgumentParser:
    """A parser with --runs; ``what`` is the help text of --runs."""
    parser = plain(description)
    parser.add_argument("--runs", type=positive, default=runs, metavar="N", help=f"{what} (default {runs})")
    return parser


def positive(text: str) -> int:
    """A whole number above 0, from the command line."""
    if not (text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def run(main: Callable[[], None]) -> None:
    """Run a script. Exit status: 0 whether its target is met or not, 1 if it could not measure, 130 for Ctrl-C."""
    try:
        main()
    except DBClusterError as error:
        sys.exit(redact(str(error)))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)
