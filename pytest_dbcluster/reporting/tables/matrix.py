"""The matrix: the result of each claim on each release of a run. Rows are claims, columns are releases.

``matrix`` makes it; ``show`` prints it after the closing table; ``write`` saves it as ``matrix.csv``. A claim that
compares releases has no column, so only the closing table has it. A cell without a claim says why: ``skipped``,
``not reached`` or ``broken``. Its number refers to the reasons below the table.
"""

from __future__ import annotations

import collections
import csv
import dataclasses
import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import wording
from pytest_dbcluster.reporting.documents.claim_id import bare
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables import closing, layout, states
from pytest_dbcluster.reporting.tables.layout import Row, TableBlock

RELEASE = "db_release"  # the property of a measuring test's report that names its release
FILE = "matrix.csv"
TITLE = "matrix: speed ratio and verdict of each claim on each release"
BEFORE = ("claim", "load")  # left of the releases
NARROWEST = 28  # characters of a line besides claim and load: one release, the gaps, and wrapped text
CSV = ("test", *BEFORE, "metric", "release", "version", "ratio", "low", "high", "verdict", "why")
SKIPPED, BROKEN, NOT_REACHED = "skipped", "broken", "not reached"
WORST = (BROKEN, "refuted", "inconclusive", "holds")


@dataclasses.dataclass(frozen=True)
class EndedTest:
    """A test that did not pass on a release: skipped, broken, or ended by a claim that does not hold."""

    test: str
    """Its node id."""

    release: str
    """The release, such as ``mariadb:10.11``."""

    skipped: bool
    """Whether pytest counts it as skipped, as it does with inconclusive claims."""

    reason: str
    """The first line of pytest's message."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One claim on one release: its record, or a word with the reason. All are empty if the claim was not tried."""

    record: ClaimRecord | None = None
    """The claim."""

    word: str = ""
    """SKIPPED, BROKEN or NOT_REACHED."""

    why: str = ""
    """The reason for the word."""


@dataclasses.dataclass(frozen=True)
class MatrixRow:
    """A claim on all releases."""

    test: str
    """The node id of its test without the release."""

    text: str
    """The claim as written; empty if no release reached a claim."""

    load: str
    """The workload; empty if no release reached a claim."""

    cells: tuple[Cell, ...]
    """One cell for each release, in the order of ``Matrix.releases``."""


@dataclasses.dataclass(frozen=True)
class Matrix:
    """The table of claims by release."""

    releases: tuple[str, ...]
    """The columns, such as ``mariadb:10.11 10.11.19``; without the exact version if nothing was measured."""

    claims: tuple[MatrixRow, ...]
    """The rows."""


def ended_tests(reports: Mapping[str, Sequence[Any]]) -> list[EndedTest]:
    """The measuring tests that did not pass, in the order of their reports.

    ``reports`` are the reports of pytest's terminal reporter, by outcome. Reports of workers of pytest-xdist are among
    them: xdist sends them with their outcome, message and ``user_properties``.
    """
    tests = []
    for report in (report for category in reports.values() for report in category):
        release = dict(getattr(report, "user_properties", ())).get(RELEASE)
        if release and report.outcome != "passed":
            tests.append(EndedTest(report.nodeid, release, report.outcome == "skipped", reason(report.longrepr)))
    return tests


def reason(longrepr: Any) -> str:
    """The first line of pytest's message (``longrepr``): of a skip (path, line, reason), or of a failure."""
    crash = getattr(longrepr, "reprcrash", None)
    text = str(longrepr[2] if isinstance(longrepr, (tuple, list)) else crash.message if crash else longrepr)
    return (text.removeprefix("Skipped: ").strip().splitlines() or [""])[0]


def matrix(records: Sequence[ClaimRecord], tests: Sequence[EndedTest] = ()) -> Matrix | None:
    """Every claim on every release; None if the run has fewer than two releases, or no claim."""
    records = [record for record in records if ", " not in record.release]
    releases = _releases([record.release for record in records], [test.release for test in tests])
    if not records or len(releases) < 2:
        return None
    answered = _by_claim(records)
    reasons: dict[tuple[str, str], EndedTest] = {}
    for ended_test in tests:
        reasons.setdefault((bare(ended_test.test, ended_test.release), ended_test.release), ended_test)
    rows = []
    for test in dict.fromkeys([*(key[0] for key in answered), *(test for test, _ in reasons)]):
        claims = [key for key in answered if key[0] == test] or [(test, "", "", 1)]
        begun = {release for key in claims for release in answered.get(key, {})}
        for key in claims:
            by_release = answered.get(key, {})
            cells = [
                _cell(by_release.get(release), reasons.get((test, _name(release))), release in begun)
                for release in releases
            ]
            rows.append(MatrixRow(test, key[1], key[2], tuple(cells)))
    return Matrix(tuple(releases), tuple(rows))


def _releases(measured: Sequence[str], others: Sequence[str]) -> list[str]:
    """Each column once, by vendor and version; a release without measurements has no exact version."""
    releases = dict.fromkeys(measured)
    names = {_name(release) for release in releases}
    releases |= dict.fromkeys(release for release in others if release not in names)
    return sorted(releases, key=_vendor_and_version)


def _vendor_and_version(release: str) -> tuple[str, list[int]]:
    """The sort key of a column: 10.5 comes before 10.11."""
    return release.partition(":")[0], [int(part) for part in re.findall(r"\d+", release)]


def _name(release: str) -> str:
    """A release without its exact version: ``mariadb:10.11``."""
    return release.partition(" ")[0]


def _by_claim(records: Sequence[ClaimRecord]) -> dict[tuple[str, str, str, int], dict[str, ClaimRecord]]:
    """The records by claim (test, text, load, number), then by release.

    A test may make the same claim twice on a release: these are claims 1 and 2.
    """
    claims: dict[tuple[str, str, str, int], dict[str, ClaimRecord]] = {}
    times: collections.Counter[tuple[str, str, str, str]] = collections.Counter()
    for record in records:
        test = bare(record.test, _name(record.release))
        times[test, record.text, record.load, record.release] += 1
        key = (test, record.text, record.load, times[test, record.text, record.load, record.release])
        claims.setdefault(key, {})[record.release] = record
    return claims


def _cell(record: ClaimRecord | None, end: EndedTest | None, begun: bool) -> Cell:
    if record or end is None:
        return Cell(record)
    if begun:
        return Cell(None, NOT_REACHED, f"its test ended before: {end.reason}")
    return Cell(None, SKIPPED if end.skipped else BROKEN, end.reason)


def word(cell: Cell) -> str:
    """The verdict in the words of the closing table; SKIPPED, BROKEN or NOT_REACHED for a cell without a record."""
    if cell.record is None:
        return cell.word
    return closing.word(cell.record)


def block(made: Matrix) -> tuple[TableBlock, list[str]]:
    """The matrix as one wide table, and the lines below it: exact versions, then the numbered reasons."""
    reasons = list(dict.fromkeys(cell.why for claim in made.claims for cell in claim.cells if cell.why))
    names = collections.Counter(map(_name, made.releases))
    heads = [_name(release) if names[_name(release)] == 1 else release for release in made.releases]
    times = collections.Counter((claim.text, claim.load) for claim in made.claims)
    rows = []
    for claim in made.claims:
        test = claim.test.rpartition("::")[2]
        text = claim.text or test
        text += f" in {test}" if claim.text and times[claim.text, claim.load] > 1 else ""
        rows.append(Row((text, claim.load, *(_cell_text(cell, reasons) for cell in claim.cells)), _colour(claim)))
    below = [f"[{number}] {reason}" for number, reason in enumerate(reasons, 1)]
    return TableBlock(TITLE, (*BEFORE, *heads), tuple(rows)), [f"releases: {', '.join(made.releases)}", *below]


def _cell_text(cell: Cell, reasons: Sequence[str]) -> str:
    """``1.26x holds``, ``0.98x inconclusive``, ``skipped [1]``, ``broken [2]``."""
    if cell.record is None:
        return f"{cell.word} [{reasons.index(cell.why) + 1}]" if cell.word else ""
    verdict = cell.record.verdict
    return word(cell) if math.isnan(verdict.ratio) else f"{wording.ratio(verdict)} {word(cell)}"


def _colour(claim: MatrixRow) -> str:
    """The colour of the worst outcome of a row; empty without claims."""
    found = {word(cell) for cell in claim.cells}
    return next((states.COLOURS[state] for state in WORST if state in found), "")


def parts(whole: TableBlock, width: int) -> list[TableBlock]:
    """The table split into blocks of as many releases as fit into ``width`` characters; each repeats the claims."""
    blocks, start = [], len(BEFORE)
    while start < len(whole.columns):
        ends = range(len(whole.columns), start, -1)
        blocks.append(
            next((part for end in ends if _fits(part := _part(whole, start, end), width)), None)
            or _part(_narrow_names(whole, width), start, start + 1)
        )
        start += len(blocks[-1].columns) - len(BEFORE)
    if len(blocks) == 1:
        return blocks
    return [
        dataclasses.replace(part, title=f"{TITLE} ({number} of {len(blocks)})") for number, part in enumerate(blocks, 1)
    ]


def _part(whole: TableBlock, start: int, end: int) -> TableBlock:
    """The claims with the columns from ``start`` to before ``end``, 0-based."""

    def cut(cells: Sequence[str]) -> tuple[str, ...]:
        return (*cells[: len(BEFORE)], *cells[start:end])

    return TableBlock(whole.title, cut(whole.columns), tuple(Row(cut(row.cells), row.colour) for row in whole.rows))


def _narrow_names(whole: TableBlock, width: int) -> TableBlock:
    """The table with long names in its claims and loads elided, so one release fits into ``width`` characters."""
    longest = (width - NARROWEST) // len(BEFORE)

    def narrow(cells: Sequence[str]) -> tuple[str, ...]:
        before = [re.sub(r"[^\s(]+", lambda word: formatting.elide(word[0], longest), cell) for cell in cells[:2]]
        return (*before, *cells[len(BEFORE) :])

    return dataclasses.replace(whole, rows=tuple(Row(narrow(row.cells), row.colour) for row in whole.rows))


def _fits(part: TableBlock, width: int) -> bool:
    return max(len(line) for line, _ in layout.text(part, width)) <= width


def show(reporter: Any, made: Matrix | None, width: int = 100) -> None:
    """Print the matrix on pytest's terminal reporter, ``width`` characters wide; nothing for None."""
    if made is None:
        return
    whole, below = block(made)
    for part in parts(whole, width):
        reporter.write_sep("=", part.title)
        for line, colour in layout.text(part, width):
            reporter.write_line(line, **({colour: True} if colour else {}))
    for note in below:
        for line in textwrap.wrap(note, width, subsequent_indent=layout.INDENT):
            reporter.write_line(line)


def text(made: Matrix, width: int = 200) -> str:
    """The matrix as plain text, for Allure."""
    whole, below = block(made)
    tables = ["\n".join(line for line, _ in layout.text(part, width)) for part in parts(whole, width)]
    return "\n\n".join([*tables, "\n".join(below)]) + "\n"


def markdown(made: Matrix) -> str:
    """The matrix as one Markdown table with its reasons."""
    whole, below = block(made)
    return "\n".join([layout.markdown(whole), *(f"- {note}" for note in below), ""])


def as_csv(made: Matrix) -> str:
    """A line for each claim and release, with columns as in CSV. Ratio, low and high are empty unless finite."""
    lines = io.StringIO()
    add = csv.writer(lines, lineterminator="\n").writerow
    add(CSV)
    for claim in made.claims:
        for release, cell in zip(made.releases, claim.cells, strict=True):
            name, _, version = release.partition(" ")
            figures: Sequence[object] = ("", "", "")
            if (record := cell.record) is not None:
                interval = (record.verdict.ratio, record.verdict.low, record.verdict.high)
                figures = [value if math.isfinite(value) else "" for value in interval]
            metric = record.metric if record else ""
            add([claim.test, claim.text, claim.load, metric, name, version, *figures, word(cell).lower(), cell.why])
    return lines.getvalue()
