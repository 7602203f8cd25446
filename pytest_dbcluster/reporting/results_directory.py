"""The results directory: claims as JSON lines, their rounds as CSV, their charts, and the table as Markdown."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from pytest_dbcluster.reporting import charts, rounds_csv, schema
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.reporting.tables import closing, layout, matrix
from pytest_dbcluster.rounds.round import Round

SUMMARY = "summary.md"
OURS = (
    *(schema.CLAIMS, schema.CURVES, SUMMARY, matrix.FILE),
    *("rounds/*.csv", "rounds/*.jsonl", "charts/*.svg", "curves/*.csv", "curves/*.jsonl", "curves/*.svg"),
)


@dataclasses.dataclass(frozen=True)
class ResultFiles:
    """What the results directory has of one claim or curve.

    rounds: its figures as CSV. chart: None where none can be drawn. line: its line in ``claims.jsonl`` or
    ``curves.jsonl``, 1-based.
    """

    rounds: Path
    chart: Path | None
    line: int

    @property
    def ledgers(self) -> Path:
        """Where the ledgers of its rounds are, if they have any."""
        return self.rounds.with_suffix(".jsonl")


def clear(directory: Path) -> None:
    """Remove the results of a run before; what others left in the directory stays."""
    for pattern in OURS:
        for path in directory.glob(pattern):
            path.unlink()


class Results:
    """The files of one run. The first claim replaces those of the run before; each is kept when it is answered."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._begun = False
        self._count = 0
        self._curves = 0

    def add(self, record: ClaimRecord) -> ResultFiles:
        """Keep one claim."""
        kept = self._next(record)
        kept.rounds.write_text(rounds_csv.as_csv(record))
        _write_ledgers(kept, schema.claim_rounds(record))
        # Its line first: whatever ends the drawing loses a picture, and no verdict.
        self._listed(record, kept if charts.drawable(record) else dataclasses.replace(kept, chart=None))
        return self._with_chart(kept, charts.chart(record))

    def adopt(self, theirs: Path, line: int) -> ClaimRecord:
        """Keep one claim that another process has kept in a directory of its own: its files are moved.

        ``line`` is its line in that directory's ``claims.jsonl``, 1-based. Raises ConfigError for one that cannot be
        read.
        """
        document = schema.claim_document(theirs, line)
        record = schema.claim_of(theirs, document)
        chart = theirs / document.chart_file if document.chart_file else None
        self._listed(record, _moved(ResultFiles(theirs / document.rounds_file, chart, line), self._next(record)))
        return record

    def add_curve(self, record: CurveRecord, table: str) -> ResultFiles:
        """Keep a curve's table and chart."""
        kept = self._next_curve(record)
        kept.rounds.write_text(table)
        _write_ledgers(kept, schema.curve_rounds(record))
        self._listed_curve(record, kept)
        return self._with_chart(kept, charts.curve(record))

    def adopt_curve(self, theirs: Path, line: int) -> CurveRecord:
        """The same of a curve, by its line in ``curves.jsonl``."""
        document = schema.curve_document(theirs, line)
        record = schema.curve_of(theirs, document)
        table = theirs / document.table_file
        self._listed_curve(record, _moved(ResultFiles(table, _curve_chart(table), line), self._next_curve(record)))
        return record

    def _next(self, record: ClaimRecord) -> ResultFiles:
        """Where the next claim goes."""
        self._begin()
        self._count += 1
        name = f"{self._count:02}-{_file_name(record.text)}-{_file_name(record.load)}"
        rounds, chart = self.directory / "rounds" / f"{name}.csv", self.directory / "charts" / f"{name}.svg"
        return ResultFiles(rounds, chart, self._count)

    def _next_curve(self, record: CurveRecord) -> ResultFiles:
        self._begin()
        self._curves += 1
        name = f"{self._curves:02}-{_file_name(record.load)}-{record.field}.csv"
        table = self.directory / "curves" / name
        return ResultFiles(table, _curve_chart(table), self._curves)

    def _with_chart(self, kept: ResultFiles, drawn: str | None) -> ResultFiles:
        if kept.chart and drawn is not None:
            kept.chart.write_text(drawn)
            return kept
        return dataclasses.replace(kept, chart=None)

    def _listed(self, record: ClaimRecord, kept: ResultFiles) -> None:
        rounds, ledgers, chart = map(self._name, (kept.rounds, _existing(kept.ledgers), kept.chart))
        self._append(schema.CLAIMS, schema.claim_line(record, str(rounds), ledgers, chart))

    def _listed_curve(self, record: CurveRecord, kept: ResultFiles) -> None:
        table, ledgers = map(self._name, (kept.rounds, _existing(kept.ledgers)))
        self._append(schema.CURVES, schema.curve_line(record, str(table), ledgers))

    def _name(self, path: Path | None) -> str | None:
        """The name of a file as documents have it."""
        return str(path.relative_to(self.directory)) if path else None

    def _append(self, name: str, line: bytes) -> None:
        with (self.directory / name).open("ab") as file:
            file.write(line)

    def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        for name in ("rounds", "charts", "curves"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        clear(self.directory)

    def finish(
        self,
        records: Sequence[ClaimRecord],
        notes: Sequence[str],
        curves: Sequence[CurveRecord] = (),
        releases: matrix.Matrix | None = None,
    ) -> list[str]:
        """Write the Markdown and the matrix; lines that say where everything is. Nothing when nothing was measured."""
        if not records and not curves:
            return []
        blocks = [layout.markdown(block) for block in closing.blocks(records, curves)]
        blocks += matrix.write(self.directory, releases)
        about = [f"- {name}: {value}" for name, value in about_run([*records, *curves]).items()]
        total = [closing.total(records) + ".", "", closing.legend(records) + ".", ""] if records else []
        lines = [*blocks, *total, *about]
        lines += [f"- {note}" for note in notes]
        (self.directory / SUMMARY).write_text("\n".join(lines) + "\n")
        return [
            f"results: {self.directory}/{{{SUMMARY},{schema.CLAIMS}}}",
            *([] if charts.available() else [charts.MISSING]),
        ]


def _write_ledgers(kept: ResultFiles, rounds: Sequence[Round]) -> None:
    if ledgers := schema.ledger_lines(rounds):
        kept.ledgers.write_bytes(ledgers)


def _existing(path: Path) -> Path | None:
    return path if path.exists() else None


def _curve_chart(table: Path) -> Path:
    """The chart of a curve stands beside its table. Its name may have dots."""
    return table.with_name(f"{table.name.removesuffix('.csv')}.svg")


def _moved(theirs: ResultFiles, kept: ResultFiles) -> ResultFiles:
    _move(theirs.rounds, kept.rounds)
    _move(theirs.ledgers, kept.ledgers)
    drawn = theirs.chart and kept.chart and _move(theirs.chart, kept.chart)
    return kept if drawn else dataclasses.replace(kept, chart=None)


def _move(source: Path, target: Path) -> bool:
    if source.exists():
        shutil.move(source, target)
    return target.exists()


def about_run(records: Sequence[ClaimRecord | CurveRecord]) -> dict[str, str]:
    """What all claims and curves of a run share: releases, profile, seed and the machine."""
    releases = dict.fromkeys(record.release for record in records)
    first = records[0]
    return {"release": ", ".join(releases), "profile": first.profile, "seed": str(first.seed), **first.fingerprint}


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "_", text).strip("_.")[:60]
