"""The results directory: claims as JSON lines, their rounds as CSV, their charts, and the table as Markdown."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.reporting import charts, rounds_csv
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.reporting.tables import closing, layout, matrix

FORMAT = 1
CLAIMS = "claims.jsonl"
SUMMARY = "summary.md"
OURS = (CLAIMS, SUMMARY, matrix.FILE, "rounds/*.csv", "rounds/*.jsonl", "charts/*.svg", "curves/*.csv", "curves/*.svg")


@dataclasses.dataclass(frozen=True)
class ResultFiles:
    """What the results directory has of one claim or curve: its figures; no chart where none can be drawn."""

    rounds: Path
    chart: Path | None


def clear(directory: Path) -> None:
    """Remove the results of a run before; what others left in the directory stays."""
    for pattern in OURS:
        for path in directory.glob(pattern):
            path.unlink()


class Results:
    """The files of one run. The first claim replaces those of the run before; each is kept when it is answered."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._begun = False
        self._count = 0
        self._curves = 0

    def add(self, record: ClaimRecord) -> ResultFiles:
        """Keep one claim."""
        kept = self._next(record)
        kept.rounds.write_text(rounds_csv.as_csv(record))
        if ledgers := rounds_csv.as_ledgers(record):
            kept.rounds.with_suffix(".jsonl").write_text(ledgers)
        # Its line first: whatever ends the drawing loses a picture, and no verdict.
        self._listed(record, kept if charts.drawable(record) else dataclasses.replace(kept, chart=None))
        return self._with_chart(kept, charts.chart(record))

    def adopt(self, record: ClaimRecord, theirs: ResultFiles) -> ResultFiles:
        """Keep one claim whose files another process has written elsewhere: they are moved."""
        kept = self._next(record)
        _move(theirs.rounds.with_suffix(".jsonl"), kept.rounds.with_suffix(".jsonl"))
        return self._listed(record, _moved(theirs, kept))

    def add_curve(self, record: CurveRecord, table: str) -> ResultFiles:
        """Keep a curve's table and chart."""
        kept = self._next_curve(record)
        kept.rounds.write_text(table)
        return self._with_chart(kept, charts.curve(record))

    def adopt_curve(self, record: CurveRecord, theirs: ResultFiles) -> ResultFiles:
        """The same of a curve that another process has written elsewhere."""
        return _moved(theirs, self._next_curve(record))

    def _next(self, record: ClaimRecord) -> ResultFiles:
        """Where the next claim goes."""
        self._begin()
        self._count += 1
        name = f"{self._count:02}-{_file_name(record.text)}-{_file_name(record.load)}"
        return ResultFiles(self._directory / "rounds" / f"{name}.csv", self._directory / "charts" / f"{name}.svg")

    def _next_curve(self, record: CurveRecord) -> ResultFiles:
        self._begin()
        self._curves += 1
        place = self._directory / "curves" / f"{self._curves:02}-{_file_name(record.load)}-{record.field}"
        return ResultFiles(place.with_name(f"{place.name}.csv"), place.with_name(f"{place.name}.svg"))

    def _with_chart(self, kept: ResultFiles, drawn: str | None) -> ResultFiles:
        if kept.chart and drawn is not None:
            kept.chart.write_text(drawn)
            return kept
        return dataclasses.replace(kept, chart=None)

    def _listed(self, record: ClaimRecord, kept: ResultFiles) -> ResultFiles:
        with (self._directory / CLAIMS).open("a") as file:
            file.write(json.dumps(self._as_json(record, kept), allow_nan=False) + "\n")
        return kept

    def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        for name in ("rounds", "charts", "curves"):
            (self._directory / name).mkdir(parents=True, exist_ok=True)
        clear(self._directory)

    def _as_json(self, record: ClaimRecord, kept: ResultFiles) -> dict[str, Any]:
        """Everything of the record; of its rounds the seconds and the metric's values, and where the rest is."""
        said = {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
        del said["rounds"]
        said["void"] = [{"pair": block[0].block + 1, "reason": remarks.reason(block)} for block in record.void]
        began = [one.started for many in record.rounds.values() for one in many]
        return {
            "format": FORMAT,
            "began": min(began, default=None),
            **{name: plain(value) for name, value in said.items()},
            "seconds": {name: [one.seconds for one in many] for name, many in record.rounds.items()},
            "values": {name: plain(rounds_csv.values(record, name)) for name in record.rounds},
            "rounds_file": str(kept.rounds.relative_to(self._directory)),
            "chart_file": str(kept.chart.relative_to(self._directory)) if kept.chart else None,
        }

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
        blocks += matrix.kept(self._directory, releases)
        about = [f"- {name}: {value}" for name, value in about_run([*records, *curves]).items()]
        total = [closing.total(records) + ".", "", closing.legend(records) + ".", ""] if records else []
        lines = [*blocks, *total, *about]
        lines += [f"- {note}" for note in notes]
        (self._directory / SUMMARY).write_text("\n".join(lines) + "\n")
        return [f"results: {self._directory}/{{{SUMMARY},{CLAIMS}}}", *([] if charts.available() else [charts.MISSING])]


def _moved(theirs: ResultFiles, kept: ResultFiles) -> ResultFiles:
    _move(theirs.rounds, kept.rounds)
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


def plain(value: Any) -> Any:
    """The value as JSON can have it: no number that is not finite, enumerations by their value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "_", text).strip("_.")[:60]
