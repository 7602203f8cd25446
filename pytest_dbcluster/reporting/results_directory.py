"""The results directory of a run: JSON lines, CSV files, charts, and the closing table as Markdown.

- ``claims.jsonl``, ``curves.jsonl``: one line for each record, see ``schema``.
- ``rounds/``, ``charts/``: CSV and ledgers of each claim, its commits around an event, and its SVG.
- ``timeline/``: CSV of every second of a claim.
- ``curves/``: CSV, ledgers and SVG of each curve.
- ``logs/TEST/CLUSTER/NODE/``: error log and my.cnf of each node of a cluster that failed.
- ``summary.md``: the closing table of ``tables/closing.py``.
- ``matrix.csv``: claims by release.
- ``index.html``: the page of ``page.report_page``, made from all the others. ``index.md``: its claims side by side,
  which ``dbcluster report`` writes. ``allure.html``: the page of Allure.
- ``history.jsonl``: the part of the run's history that is about its claims.
- ``github-benchmark.json``: the claims as input of github-action-benchmark.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster.formatting import file_name, near
from pytest_dbcluster.reporting import rounds_csv, schema
from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.charts import curve as curve_chart
from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.documents import json_text, record_documents, run_document
from pytest_dbcluster.reporting.documents.run_document import TestDocument
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.reporting.tables import closing, joint_error, layout, matrix
from pytest_dbcluster.reporting.unwritten import Unwritten, append, write
from pytest_dbcluster.rounds import busy_machine
from pytest_dbcluster.rounds.round import Round

SUMMARY = "summary.md"
FOLDERS = ("rounds", "charts", "curves", "timeline")
LOGS = "logs"
PAGE, TABLE, ALLURE_PAGE = "index.html", "index.md", "allure.html"
HISTORY = "history.jsonl"  # the history of the claims of this run
BENCHMARK = "github-benchmark.json"  # written in GitHub Actions
FILES = ("rounds_file", "ledgers_file", "commits_file", "chart_file", "timeline_file", "table_file")  # fields of a line
OURS = (
    *(schema.CLAIMS, schema.CURVES, SUMMARY, matrix.FILE, PAGE, TABLE, ALLURE_PAGE, HISTORY, BENCHMARK),
    *(
        "rounds/*.csv",
        "rounds/*.commits.csv",
        "rounds/*.jsonl",
        "charts/*.svg",
        "curves/*.csv",
        "curves/*.jsonl",
        "curves/*.svg",
    ),
    "timeline/*.csv",
    *(f"{LOGS}/*/*/*/*.log", f"{LOGS}/*/*/*/my.cnf"),
)


Replaces = Callable[[Mapping[str, Any]], bool]  # whether another line replaces this one


@dataclasses.dataclass(frozen=True)
class ResultFiles:
    """The files of one claim or curve."""

    rounds: Path
    """The CSV file."""

    chart: Path | None
    """The SVG file; None if no chart can be drawn."""

    line: int
    """The number of its line in ``claims.jsonl`` or ``curves.jsonl``, 1-based; 0 if it could not be written."""

    timeline: Path | None = None
    """The CSV file of every second; None for a curve."""

    @property
    def ledgers(self) -> Path:
        """The path of the ledgers; there is no such file if no round has a ledger."""
        return self.rounds.with_suffix(".jsonl")

    @property
    def commits(self) -> Path:
        """The path of the commits by tenth of a second; there is no such file for claims about rounds."""
        return self.rounds.with_name(f"{self.rounds.name.removesuffix('.csv')}.commits.csv")

    @property
    def paths(self) -> list[Path]:
        """The paths of all files, of which some may not exist."""
        return [path for path in (self.rounds, self.ledgers, self.commits, self.chart, self.timeline) if path]


def removes(results: Path, file: Path) -> bool:
    """Whether a run that writes into ``results``, or into ``results-2`` and so on, removes this file at its start."""
    place, asked = file.parent, Path(os.path.abspath(results))  # noqa: PTH100  (as in results_lock.take)
    numbered = place.parent == asked.parent and re.fullmatch(rf"{re.escape(asked.name)}(-[0-9]+)?", place.name)
    return bool(numbered) and file.name in OURS


def foreign_file(directory: Path) -> str:
    """A file with a name of ours, if no run has written into the directory; empty without one."""
    if any((directory / name).exists() for name in (run_document.FILE, schema.CLAIMS, schema.CURVES)):
        return ""
    found = (path for pattern in OURS for path in directory.glob(pattern))
    return next((str(path.relative_to(directory)) for path in found), "")


def clear(directory: Path, *, logs: bool = True) -> None:
    """Remove the results of an earlier run; other files in the directory stay. Raises OSError.

    logs: also the logs of clusters that failed.
    """
    for pattern in OURS:
        for path in directory.glob(pattern):
            if logs or not pattern.startswith(f"{LOGS}/"):
                path.unlink()
    for depth in (3, 2, 1, 0):
        for path in directory.glob("/".join([LOGS, *["*"] * depth])):
            with contextlib.suppress(OSError):  # a directory with other files stays
                path.rmdir()


class Results:
    """Writes the files of one run. Each claim is written when it is answered.

    The first claim or curve removes the files of the run before, so a run that measures nothing keeps them. If a file
    cannot be written, that is noted in ``unwritten``, and no error is raised. run_id: the id of the run, for its
    claims.
    """

    def __init__(self, directory: Path, unwritten: Unwritten | None = None, run_id: str = "") -> None:
        self.directory = directory
        self.run_id = run_id
        self.unwritten = unwritten or Unwritten()
        self._begun = False
        self._count = 0
        self._curves = 0
        self._numbers: dict[tuple[object, ...], int] = {}  # of the curves of this run
        self._lines: Counter[str] = Counter()  # lines written, by file

    def go_on(self, claims: int, curves: int) -> None:
        """Keep the files of the directory, and give later claims and curves higher numbers."""
        self._begun = True
        self._count, self._curves = claims, curves

    def rewrite(self, name: str, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> None:
        """Replace each line of a file by what ``change`` makes of its content; None removes the line.

        The files that a removed line names are removed too.
        """
        path, fresh = self.directory / name, self.directory / f".{name}"
        kept, left = [], []
        with self.unwritten.note(path):
            for line in path.read_bytes().splitlines(keepends=True):
                content = json_text.decode(line, str(path), record_documents.KNOWN)
                changed = change(content)
                if changed is None:
                    left += [content.get(field) for field in FILES if content.get(field)]
                else:
                    kept.append(line if changed == content else json_text.encode(changed))
            write(fresh, b"".join(kept))
            fresh.replace(path)
            for file in left:
                (self.directory / file).unlink(missing_ok=True)
                chart_of_curve(self.directory / file).unlink(missing_ok=True)  # which no line names
        self._lines[name] = len(kept)

    def add(self, record: ClaimRecord, timeline: str = "") -> ResultFiles:
        """Write the files of one claim, and its line in ``claims.jsonl``. timeline: its CSV text; empty for none."""
        kept = self._next(record)
        if kept.timeline and timeline:
            self._write(kept.timeline, timeline)
        self._write(kept.rounds, rounds_csv.as_csv(record))
        if commits := rounds_csv.commits_csv(record):
            self._write(kept.commits, commits)
        self._write_ledgers(kept, schema.claim_rounds(record))
        # Write the line before drawing the chart: a failure while drawing must not lose the verdict.
        line = self._add_line(record, kept if claim_chart.drawable(record) else dataclasses.replace(kept, chart=None))
        return self._with_chart(dataclasses.replace(kept, line=line), lambda: claim_chart.svg(record))

    def adopt(self, theirs: Path, line: int) -> ClaimRecord:
        """Move one claim from another results directory into this one, and return its record.

        ``theirs`` is the directory of a worker, ``line`` the line of its ``claims.jsonl``, 1-based. Raises ConfigError
        for a line that cannot be read.
        """
        document = schema.claim_document(theirs, line)
        record = schema.claim_of(theirs, document)
        chart = theirs / document.chart_file if document.chart_file else None
        timeline = theirs / document.timeline_file if document.timeline_file else None
        files = ResultFiles(theirs / document.rounds_file, chart, line, timeline)
        self._add_line(record, self._move_files(files, self._next(record)))
        return record

    def add_curve(self, record: CurveRecord, table: str, replaces: Replaces = lambda line: False) -> ResultFiles:
        """Write the files of one curve, and its line in ``curves.jsonl``; ``table`` is its CSV text.

        replaces: whether this one replaces a line, whose files are removed then.
        """
        kept = self._put_curve(record, table, replaces, "")
        return self._with_chart(kept, lambda: curve_chart.svg(record))

    def save_points(self, record: CurveRecord, table: str, replaces: Replaces) -> None:
        """Write a curve that is still being drawn, as ``add_curve`` does, without a chart."""
        # New names each time, so a killed run leaves the files that its line names.
        self._put_curve(record, table, replaces, f"-{len(record.values)}")

    def _put_curve(self, record: CurveRecord, table: str, replaces: Replaces, part: str) -> ResultFiles:
        kept = self._next_curve(record, part)
        self._write(kept.rounds, table)
        self._write_ledgers(kept, schema.curve_rounds(record))
        return dataclasses.replace(kept, line=self._put_curve_line(record, kept, replaces))

    def adopt_curve(self, theirs: Path, line: int, replaces: Callable[[CurveRecord], Replaces]) -> CurveRecord:
        """Move one curve as ``adopt`` moves a claim; ``line`` is its line in ``curves.jsonl``, 1-based.

        replaces: makes ``replaces`` of ``add_curve`` for the record.
        """
        document = schema.curve_document(theirs, line)
        record = schema.curve_of(theirs, document)
        table = theirs / document.table_file
        moved = self._move_files(ResultFiles(table, chart_of_curve(table), line), self._next_curve(record))
        self._put_curve_line(record, moved, replaces(record))
        return record

    def _next(self, record: ClaimRecord) -> ResultFiles:
        """The paths for the next claim."""
        self._begin()
        self._count += 1
        name = f"{self._count:02}-{file_name(record.text)}-{file_name(record.load)}"
        rounds, chart = self.directory / "rounds" / f"{name}.csv", self.directory / "charts" / f"{name}.svg"
        return ResultFiles(rounds, chart, self._count, self.directory / "timeline" / f"{self._count:02}.csv")

    def _next_curve(self, record: CurveRecord, part: str = "") -> ResultFiles:
        """The paths for the next curve, or for a part of it."""
        self._begin()
        key = (record.test, record.release, record.load, record.field, record.number)
        if key not in self._numbers:
            self._curves += 1
            self._numbers[key] = self._curves
        number = self._numbers[key]
        table = self.directory / "curves" / f"{number:02}-{file_name(record.load)}-{record.field}{part}.csv"
        return ResultFiles(table, chart_of_curve(table), number)

    def _with_chart(self, kept: ResultFiles, draw: Callable[[], str | None]) -> ResultFiles:
        """Write the SVG text that ``draw`` makes; return the files, without a chart if it makes none or fails."""
        if kept.chart:
            with self.unwritten.note_chart(kept.chart):
                if (drawn := draw()) is not None:
                    write(kept.chart, drawn)
        return kept if kept.chart and kept.chart.exists() else dataclasses.replace(kept, chart=None)

    def _write(self, path: Path, content: str | bytes) -> None:
        with self.unwritten.note(path):
            write(path, content)

    def _write_ledgers(self, kept: ResultFiles, rounds: Sequence[Round]) -> None:
        if ledgers := schema.ledger_lines(rounds):
            self._write(kept.ledgers, ledgers)

    def _move_files(self, theirs: ResultFiles, kept: ResultFiles) -> ResultFiles:
        """Move the files ``theirs`` to the paths ``kept``; return them, without a chart if there is none."""
        self._move(theirs.rounds, kept.rounds)
        self._move(theirs.ledgers, kept.ledgers)
        self._move(theirs.commits, kept.commits)
        if theirs.timeline and kept.timeline:
            self._move(theirs.timeline, kept.timeline)
        drawn = theirs.chart and kept.chart and self._move(theirs.chart, kept.chart)
        return kept if drawn else dataclasses.replace(kept, chart=None)

    def _move(self, source: Path, target: Path) -> bool:
        """Move a file if there is one; whether ``target`` exists then."""
        if source.exists():
            with self.unwritten.note(target):
                write(target, source.read_bytes())
                source.unlink()
        return target.exists()

    def _add_line(self, record: ClaimRecord, kept: ResultFiles) -> int:
        timeline = _if_exists(kept.timeline) if kept.timeline else None
        files = kept.rounds, _if_exists(kept.ledgers), kept.chart, timeline, _if_exists(kept.commits)
        rounds, *others = map(self._name, files)
        own = dataclasses.replace(record, run_id=self.run_id)
        return self._append(schema.CLAIMS, schema.claim_line(own, str(rounds), *others))

    def _put_curve_line(self, record: CurveRecord, kept: ResultFiles, replaces: Replaces) -> int:
        """Write the line of a curve, instead of the one that it replaces; return its number, as ``_append`` does."""
        table, ledgers = map(self._name, (kept.rounds, _if_exists(kept.ledgers)))
        document = schema.curve_line(record, str(table), ledgers)
        numbers = itertools.count(1)
        found: dict[int, dict[str, Any]] = {}

        def change(line: dict[str, Any]) -> dict[str, Any]:
            number = next(numbers)
            if not replaces(line):
                return line
            found[number] = line
            fresh: dict[str, Any] = json_text.decode(document, schema.CURVES, record_documents.KNOWN)
            return fresh

        if (self.directory / schema.CURVES).exists():
            self.rewrite(schema.CURVES, change)
        if not found:
            return self._append(schema.CURVES, document)
        left = {self.directory / line[field] for line in found.values() for field in FILES if line.get(field)}
        for path in left - set(kept.paths):
            path.unlink(missing_ok=True)
            chart_of_curve(path).unlink(missing_ok=True)  # which no line names
        return min(found)

    def _name(self, path: Path | None) -> str | None:
        """A path relative to the results directory, as in documents."""
        return str(path.relative_to(self.directory)) if path else None

    def _append(self, name: str, line: bytes) -> int:
        """Add a line to a file; return its number, 1-based, or 0 if it could not be written."""
        with self.unwritten.note(self.directory / name):
            append(self.directory / name, line)
            self._lines[name] += 1
            return self._lines[name]
        return 0

    def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        for name in FOLDERS:
            with self.unwritten.note(self.directory / name):
                (self.directory / name).mkdir(parents=True, exist_ok=True)
        with self.unwritten.note(self.directory):
            clear(self.directory, logs=False)  # this run may have kept some before its first claim

    def finish(
        self,
        records: Sequence[ClaimRecord],
        notes: Sequence[str],
        curves: Sequence[CurveRecord] = (),
        releases: matrix.Matrix | None = None,
        tests: Sequence[TestDocument] = (),
    ) -> list[str]:
        """Write ``summary.md`` and ``matrix.csv``; return the lines that tell the user where the results are.

        If nothing was measured, it writes only the notes and returns no lines. ``notes`` are at the end of the summary.
        tests: the tests of the run that have ended.
        """
        if not records and not curves:
            if notes:
                self._begin()
                self._write(self.directory / SUMMARY, "".join(f"- {note}\n" for note in notes))
            return []
        blocks = [layout.markdown(block) for block in closing.blocks(records, curves, tests)]
        if releases is not None:
            self._write(self.directory / matrix.FILE, matrix.as_csv(releases))
            blocks.append(matrix.markdown(releases))
        about = [f"- {name}: {value}" for name, value in about_run([*records, *curves]).items()]
        joint = [f"{line}.", ""] if (line := joint_error.line(records)) else []
        total = [closing.total(records, tests) + ".", "", *joint, closing.legend(records) + ".", ""] if records else []
        lines = [*blocks, *total, *about]
        lines += [f"- {note}" for note in notes]
        self._write(self.directory / SUMMARY, "\n".join(lines) + "\n")
        return [
            f"results: {near(self.directory, Path.cwd())}/{{{SUMMARY},{schema.CLAIMS}}}",
            *([] if drawing.available() else [drawing.MISSING]),
        ]


def _if_exists(path: Path) -> Path | None:
    return path if path.exists() else None


def chart_of_curve(table: Path) -> Path:
    """The path of a curve's chart: that of its CSV with another suffix. The name may contain dots."""
    return table.with_name(f"{table.name.removesuffix('.csv')}.svg")


def about_run(records: Sequence[ClaimRecord | CurveRecord]) -> dict[str, str]:
    """The data that all records of a run have in common, by name: releases, profile, seed, fingerprint."""
    releases = dict.fromkeys(record.release for record in records)
    first = records[0]
    known = {"release": ", ".join(releases), "profile": first.profile, "seed": str(first.seed), **first.fingerprint}
    return known | busy_machine.environment_entry(
        record.others for record in records if isinstance(record, ClaimRecord)
    )
