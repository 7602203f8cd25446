"""Timelines: the samples of every second of a claim, read from the CSV files of a results directory.

A timeline decides nothing. If its file is missing or damaged, only its chart is left out.
"""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.charts.timeline import Samples

ABOUT = ("time", "seconds", "variant", "block", "position")  # columns that are no metric
MOST_SAMPLES = 600  # of a chart: more are averaged


@dataclasses.dataclass(frozen=True)
class Named:
    """What a line of ``claims.jsonl`` says about its timeline; the rest of the line is ignored."""

    timeline_file: str | None = None
    """The CSV file, relative to the results directory; None without one."""


def read_all(directory: Path) -> list[Samples | None]:
    """The timeline of each claim of a results directory, in the order of the claims; None without one."""
    import msgspec

    path = directory / schema.CLAIMS
    if not path.exists():
        return []
    lines = [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    names = [msgspec.json.decode(line, type=Named).timeline_file for line in lines]
    return [read(directory, name) if name else None for name in names]


def read(directory: Path, name: str) -> Samples | None:
    """The samples of one file; None for a file that is missing, damaged, or outside of the directory."""
    path = directory / name
    try:
        if not path.resolve().is_relative_to(directory.resolve()):
            return None
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        return _samples(rows)
    except (OSError, ValueError, csv.Error):
        return None


def _samples(rows: Sequence[dict[str, str]]) -> Samples | None:
    """The samples in these rows. Raises ValueError for a cell that is not a number."""
    if not rows or "seconds" not in rows[0]:
        return None
    every = math.ceil(len(rows) / MOST_SAMPLES)
    groups = [rows[start : start + every] for start in range(0, len(rows), every)]
    names = [name for name in rows[0] if name and name not in ABOUT]
    return Samples(
        tuple(_mean(group, "seconds") for group in groups),
        {name: tuple(_mean(group, name) for group in groups) for name in names},
    )


def _mean(rows: Sequence[dict[str, str]], name: str) -> float:
    """The mean of a column, without unknown cells; nan if all are unknown."""
    values = [float(row[name]) for row in rows if row.get(name)]
    return math.fsum(values) / len(values) if values else math.nan
