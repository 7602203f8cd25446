"""Sources: reads the results directories of a page, also those of killed runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.charts.timeline import Samples
from pytest_dbcluster.reporting.documents.run_document import CUT_SHORT, FILE, RunDocument, TestDocument, read_run
from pytest_dbcluster.reporting.history import history_file
from pytest_dbcluster.reporting.history.history_file import History
from pytest_dbcluster.reporting.page import timelines
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.reporting.results_directory import HISTORY

OURS = (schema.CLAIMS, schema.CURVES, FILE)
LISTED = ("broken", CUT_SHORT, "skipped")  # outcomes of tests without a claim


@dataclasses.dataclass(frozen=True)
class Source:
    """One results directory."""

    directory: Path
    """Its path."""

    name: str
    """Its path as the user gave it."""

    run: RunDocument | None
    """Its ``run.json``; None for results of an older version."""

    claims: tuple[ClaimRecord, ...]
    """Its claims."""

    curves: tuple[CurveRecord, ...]
    """Its curves."""

    notes: tuple[str, ...] = ()
    """Sentences about what is missing."""

    timelines: tuple[Samples | None, ...] = ()
    """The samples of each claim; None for a claim without them."""

    history: History = dataclasses.field(default_factory=History)
    """The history of these claims; empty for a run without one."""

    def timeline(self, number: int) -> Samples | None:
        """The samples of the claim with this number, 0-based; None without them."""
        return self.timelines[number] if number < len(self.timelines) else None

    def tests(self, *outcomes: str) -> list[TestDocument]:
        """The tests that ended like this; empty without ``run.json``."""
        return [test for test in self.run.tests if test.outcome in outcomes] if self.run else []


def read_all(directories: Sequence[Path]) -> list[Source]:
    """The results of these directories. Raises ConfigError as ``read`` does, and if one is named twice."""
    for number, directory in enumerate(directories):
        if directory.resolve() in [other.resolve() for other in directories[:number]]:
            raise ConfigError(f"{directory}: it is named twice; name each results directory once")
    return [read(directory) for directory in directories]


def read(directory: Path) -> Source:
    """The results of a directory.

    Raises ConfigError for a directory that does not exist, cannot be read, or has no ended test. It raises it too for a
    directory without results of ours, and for another format.
    """
    try:
        if not directory.is_dir():
            raise ConfigError(f"{directory}: there is no such results directory; a measuring run creates one")
        if not any((directory / name).exists() for name in OURS):
            raise ConfigError(f"{directory}: {_what_it_is(directory)}")
        run = read_run(directory)
        claims = tuple(schema.read_claims(directory, whole=False))
        curves = tuple(schema.read_curves(directory, whole=False))
        samples = tuple(timelines.read_all(directory))
        history = history_file.read(directory / HISTORY)
        notes = (*map(_torn_note, schema.torn_files(directory)), *_about(run), *history.problems)
    except OSError as error:
        raise ConfigError(f"cannot read {error.filename or directory}: {error.strerror}") from None
    if not claims and not curves and not (run and run.tests):
        raise ConfigError(f"{directory}: no test of this run has ended, so there is nothing to report")
    return Source(directory, str(directory), run, claims, curves, notes, samples, history)


def _what_it_is(directory: Path) -> str:
    """Why a directory without our files is not a results directory, and what to do."""
    if directory.name == "allure-results" or any(directory.glob("*-result.json")):
        return f"this is a directory of Allure; name the results directory above it, such as {directory.parent}"
    nested = sorted(path.parent.name for name in OURS for path in directory.glob(f"*/{name}"))
    inside = f"; it has results in {', '.join(dict.fromkeys(nested))}" if nested else ""
    return f"it is not a results directory: it has none of {', '.join(OURS)}{inside}"


def _torn_note(name: str) -> str:
    return f"the last line of {name} is incomplete, because the run ended while writing it: it is left out"


def _about(run: RunDocument | None) -> list[str]:
    """Sentences about a run that was cut short. ``run`` is None for results of an older version."""
    if run is None:
        return ["the file run.json is missing: broken and skipped tests, the machine and the commit are unknown"]
    ended = f"{run.ended_tests} of {quantity(run.selected, 'test')} ended"
    if run.cut_short:
        return [f"the run was cut short ({run.cut_short}): {ended}"]
    if run.ended is None:
        return [f"the run was killed, or is still running: {ended}"]
    return []
