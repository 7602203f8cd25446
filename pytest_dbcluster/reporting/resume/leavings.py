"""Leavings: removes what a killed run has left in its results directory, before another run continues it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.results_directory import (
    ALLURE_PAGE,
    BENCHMARK,
    FOLDERS,
    HISTORY,
    OURS,
    PAGE,
    SUMMARY,
    TABLE,
)
from pytest_dbcluster.reporting.tables import matrix

MADE_AGAIN = (
    SUMMARY,
    matrix.FILE,
    PAGE,
    TABLE,
    ALLURE_PAGE,
    HISTORY,
    BENCHMARK,
)  # from all answers, at the end of a run
NUMBER = re.compile(r"\d+")


def remove(directory: Path, named: Sequence[str]) -> None:
    """Remove torn last lines, files that no line names, and what the end of a run makes again.

    named: the files that the lines name, relative to the directory. Files that are not ours stay. Raises OSError.
    """
    for name in (schema.CLAIMS, schema.CURVES):
        _end_at_last_line(directory / name)
    for name in MADE_AGAIN:
        (directory / name).unlink(missing_ok=True)
    for path in _of_folders(directory):
        if str(path.relative_to(directory)) not in named:
            path.unlink()


def _of_folders(directory: Path) -> Iterator[Path]:
    """The files of claims and curves."""
    for pattern in OURS:
        if pattern.partition("/")[0] in FOLDERS:
            yield from directory.glob(pattern)


def _end_at_last_line(path: Path) -> None:
    """Remove a last line without its end."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return
    if text and not text.endswith(b"\n"):
        os.truncate(path, text.rfind(b"\n") + 1)


def highest(names: Sequence[str]) -> int:
    """The highest number at the beginning of a file's name, such as 7 of ``rounds/07-claim.csv``; 0 for none."""
    numbers = (NUMBER.match(Path(name).name) for name in names)
    return max((int(found.group()) for found in numbers if found), default=0)
