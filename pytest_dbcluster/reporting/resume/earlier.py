"""``Earlier``: the answers of the run that is continued, and what became of each of them."""

from __future__ import annotations

import dataclasses
import os
import pwd
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.reporting import schema
from pytest_dbcluster.reporting.documents import record_documents
from pytest_dbcluster.reporting.documents.claim_id import SEPARATOR, key_of_test
from pytest_dbcluster.reporting.documents.run_document import RunDocument, RunIdentity, read_run
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord, Reading, fields_of
from pytest_dbcluster.reporting.results_directory import ResultFiles, chart_of_curve
from pytest_dbcluster.reporting.resume import leavings
from pytest_dbcluster.reporting.resume.digests import changed_parts

NAME = "dbcluster_earlier"
OPTION = "--db-resume"


@dataclasses.dataclass(frozen=True)
class Key:
    """What identifies an answer within one results directory."""

    test: str
    """The node id of its test."""

    claim_id: str
    """The id of its claim."""


@dataclasses.dataclass(eq=False)
class Earlier:
    """The answers in a results directory when a run begins to continue it."""

    directory: Path
    """The results directory."""

    run: RunDocument | None = None
    """Its ``run.json``; None if it has no such file."""

    answers: dict[Key, ClaimRecord] = dataclasses.field(default_factory=dict)
    """By key, the claims in the order of ``claims.jsonl``."""

    files: dict[Key, ResultFiles] = dataclasses.field(default_factory=dict)
    """By key, the files of each claim."""

    curves: list[CurveRecord] = dataclasses.field(default_factory=list)
    """Its curves."""

    curve_tables: list[Path] = dataclasses.field(default_factory=list)
    """The CSV file of each curve."""

    taken: dict[Key, Reading] = dataclasses.field(default_factory=dict)
    """By key, how a test of this run reads an answer that it took over."""

    outdated: dict[Key, list[str]] = dataclasses.field(default_factory=dict)
    """By key, the changed parts of what an answer depends on."""

    kept: set[tuple[str, ...]] = dataclasses.field(default_factory=set)
    """The keys of the curves that this run has kept."""

    @property
    def line(self) -> str:
        """What there is to take over, in a sentence."""
        drawn = sum(bool(curve.drawn) for curve in self.curves)
        found = ((len(self.answers), "answered claim"), (drawn, "drawn curve"))
        parts = [quantity(number, what) for number, what in found if number]
        if unfinished := [curve for curve in self.curves if not curve.drawn]:
            points = quantity(sum(len(curve.values) for curve in unfinished), "point")
            parts.append(f"{points} of {quantity(len(unfinished), 'unfinished curve')}")
        found_text = ", ".join(parts)
        if not found_text:
            return f"{OPTION}: {self.directory} has no answered claim, so everything is measured"
        began = f" of the run of {_minute(self.run.began)}" if self.run else ""
        return f"{OPTION}: {self.directory} has {found_text}{began}"

    def lines(self, measured: int) -> list[str]:
        """What became of the answers, at the end of the run. measured: the number of claims that it measured."""
        kept = sum(bool(curve.drawn) for curve in self.curves if curve_key_of(curve) in self.kept)
        if not self.answers and not kept:
            return []
        left = len(self.answers) - len(self.taken) - len(self.outdated)
        clauses = [
            f"{OPTION}: {quantity(len(self.taken), 'answer')} taken over, {quantity(measured, 'claim')} measured"
        ]
        if kept:
            clauses[0] += f", {quantity(kept, 'drawn curve')} kept"
        if self.outdated:
            parts = dict.fromkeys(part for parts in self.outdated.values() for part in parts)
            clauses.append(f"{quantity(len(self.outdated), 'answer')} no longer valid ({', '.join(parts)} changed)")
        if left:
            clauses.append(f"{quantity(left, 'answer')} of tests that this run did not reach or select")
        return ["; ".join(clauses)]

    def find(self, claim_id: str, depends_on: Mapping[str, str]) -> Key | None:
        """The answer of a claim that depends on the same; None without such an answer."""
        for key, record in self.answers.items():
            same = key.claim_id == claim_id and key not in self.outdated
            if same and not changed_parts(record.depends_on, depends_on):
                return key
        return None

    def find_outdated(self, claim_id: str, releases: Sequence[str], depends_on: Mapping[str, str]) -> list[Key]:
        """Note in ``outdated`` the answers of a claim on these releases if something that they depend on has changed.

        Returns their keys. An answer that another test of this run has taken over stays valid. releases: such as
        ``mariadb:10.11``.
        """
        found = []
        for key, record in self.answers.items():
            same = key.claim_id == claim_id and _names(record.release) == list(releases)
            if same and key not in self.taken and key not in self.outdated:
                self.outdated[key] = changed_parts(record.depends_on, depends_on)
                found.append(key)
        return found

    def take(self, key: Key, reading: Reading) -> ClaimRecord:
        """The answer as the test reads it that takes it over."""
        self.taken[key] = reading
        return reading.of(self.answers[key])

    @property
    def has_changed_lines(self) -> bool:
        """Whether a test that took over an answer reads it otherwise, or is called otherwise, than an earlier test."""
        return any(reading.changes(self.answers[key]) for key, reading in self.taken.items())

    def as_read(self, line: dict[str, Any]) -> dict[str, Any]:
        """The content of a line of ``claims.jsonl`` as the test reads it that took over its answer."""
        reading = self.taken.get(key_of_line(line))
        return reading.of_line(line) if reading else line

    @property
    def numbers(self) -> tuple[int, int]:
        """The highest numbers in the names of the files of claims and of curves."""
        claims = [str(files.rounds) for files in self.files.values()]
        return leavings.highest(claims), leavings.highest([str(path) for path in self.curve_tables])

    def tidy(self) -> None:
        """Remove what a killed run has left in the directory. Raises OSError."""
        leavings.remove(self.directory, _file_names(self))

    def has(self, test: str, release: str) -> bool:
        """Whether a test has an answer or a drawn curve, so it may need no cluster. test: its node id."""
        name = key_of_test(test, release)
        if any(curve.drawn and curve_key_of(curve)[0] == name for curve in self.curves):
            return True
        return any(key.claim_id.partition(SEPARATOR)[0] == name for key in self.answers)

    def curve(self, key: tuple[str, ...]) -> CurveRecord | None:
        """The curve with this key; None without such a curve."""
        return next((curve for curve in self.curves if curve_key_of(curve) == key), None)

    def chart(self, key: tuple[str, ...]) -> Path | None:
        """The chart of the curve with this key; None without a chart."""
        for curve, table in zip(self.curves, self.curve_tables, strict=True):
            if curve_key_of(curve) == key and (found := chart_of_curve(table)).exists():
                return found
        return None

    @property
    def runs(self) -> tuple[RunIdentity, ...]:
        """The ``continues`` of a run that continues this one: its own, then this one."""
        if self.run is None:
            return ()
        return (*self.run.continues, RunIdentity(**fields_of(RunIdentity, self.run)))


def key_of_line(line: Mapping[str, Any]) -> Key:
    """The key of a line of ``claims.jsonl``."""
    return Key(str(line["test"]), str(line["claim_id"]))


def curve_key(test: str, release: str, load: str, field: str, number: int) -> tuple[str, ...]:
    """What identifies a curve within one results directory, whatever other releases the run has."""
    names = _names(release)
    return (key_of_test(test, *names), *names, load, field, str(number))


def curve_key_of(record: CurveRecord) -> tuple[str, ...]:
    """The key of a curve."""
    return curve_key(record.test, record.release, record.load, record.field, record.number)


def curve_key_of_line(line: Mapping[str, Any]) -> tuple[str, ...]:
    """The key of a line of ``curves.jsonl``."""
    return curve_key(line["test"], line["release"], line["load"], line["field"], line.get("number", 0))


def _names(releases: str) -> list[str]:
    """The releases of a record without exact versions."""
    return [release.partition(" ")[0] for release in releases.split(", ")]


def _minute(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def of(config: Any) -> Earlier | None:
    """The answers that this run may take over; None for a run that continues none."""
    found: Earlier | None = config.pluginmanager.get_plugin(NAME)
    return found


def begin(config: Any, directory: Path, *, tidy: bool = True) -> None:
    """Read the answers in a results directory, for ``of``. tidy: remove what a killed run has left in it.

    Raises ConfigError, and changes nothing, for lines that cannot be read; raises OSError.
    """
    earlier = read(directory)
    if tidy:
        earlier.tidy()
    config.pluginmanager.register(earlier, NAME)


def read(directory: Path) -> Earlier:
    """The answers in a results directory; empty if it does not exist. Raises ConfigError if it cannot be read."""
    if not directory.is_dir():
        return Earlier(directory)
    try:
        if directory.stat().st_uid != os.geteuid():
            raise ConfigError(f"it belongs to {_owner(directory)}, and a run continues only results of its own user")
        earlier = Earlier(directory, read_run(directory))
        for document in schema.claim_documents(directory, whole=False):
            if not document.claim_id:
                raise ConfigError("an older version wrote its claims, and they have no id")
            key = Key(document.test, document.claim_id)
            earlier.answers[key] = schema.claim_of(directory, document)
            earlier.files[key] = _files(directory, document)
        for drawn in schema.curve_documents(directory, whole=False):
            earlier.curves.append(schema.curve_of(directory, drawn))
            earlier.curve_tables.append(directory / drawn.table_file)
    except (ConfigError, OSError) as error:
        raise ConfigError(f"{OPTION} cannot continue {directory}: {error}; or measure all again without it") from None
    return earlier


def _owner(directory: Path) -> str:
    try:
        return pwd.getpwuid(directory.stat().st_uid).pw_name
    except (KeyError, OSError):
        return "another user"


def _files(directory: Path, document: record_documents.ClaimDocument) -> ResultFiles:
    chart, timeline = (directory / name if name else None for name in (document.chart_file, document.timeline_file))
    return ResultFiles(directory / document.rounds_file, chart, 0, timeline)


def _file_names(earlier: Earlier) -> list[str]:
    """The files of all claims and curves, relative to the directory."""
    paths = [path for files in earlier.files.values() for path in files.paths]
    for table in earlier.curve_tables:
        paths += [table, table.with_suffix(".jsonl"), chart_of_curve(table)]
    return [str(path.relative_to(earlier.directory)) for path in paths]
