"""The matrix: what each claim gave on each release of a run. Rows are claims, columns are releases.

A claim that compares releases belongs to no column: it stands in the closing table alone. A claim without a figure
has a dash where its topology is not to be had or its test did not reach it, and ``error`` where nothing could be told;
the reasons are numbered and stand below.
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
from pathlib import Path
from typing import Any

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables import closing, layout
from pytest_dbcluster.reporting.tables.layout import Block, Row

RELEASE = "db_release"  # the property of a measuring test's report that names its release
FILE = "matrix.csv"
TITLE = "matrix: speed ratio and verdict of each claim on each release"
BEFORE = ("claim", "load")  # left of the releases
CSV = ("test", *BEFORE, "metric", "release", "version", "ratio", "low", "high", "verdict", "why")
SKIPPED, BROKEN, NOT_REACHED = "skipped", "error", "not reached"


@dataclasses.dataclass(frozen=True)
class Ended:
    """A test that did not come to its end on a release: skipped, broken, or ended by a claim that does not hold."""

    test: str
    release: str
    skipped: bool
    reason: str


@dataclasses.dataclass(frozen=True)
class Cell:
    """One claim on one release: its record, or a word with the reason; nothing where nobody asked it."""

    record: ClaimRecord | None = None
    word: str = ""
    why: str = ""


@dataclasses.dataclass(frozen=True)
class MatrixRow:
    """A row. ``test`` is a node id without the release; ``text`` is empty when no release came as far as a claim."""

    test: str
    text: str
    load: str
    cells: tuple[Cell, ...]


@dataclasses.dataclass(frozen=True)
class Matrix:
    """``releases`` head the columns: names, with the exact version that a server told."""

    releases: tuple[str, ...]
    claims: tuple[MatrixRow, ...]


def ended(reports: Mapping[str, Sequence[Any]]) -> list[Ended]:
    """The measuring tests among a terminal reporter's reports that did not pass, in the order of their reports."""
    found = []
    for report in (one for many in reports.values() for one in many):
        release = dict(getattr(report, "user_properties", ())).get(RELEASE)
        if release and report.outcome != "passed":
            found.append(Ended(report.nodeid, release, report.outcome == "skipped", _reason(report.longrepr)))
    return found


def _reason(said: Any) -> str:
    """The first line of why a test was skipped (path, line, reason), or has failed."""
    crash = getattr(said, "reprcrash", None)
    text = str(said[2] if isinstance(said, (tuple, list)) else crash.message if crash else said)
    return (text.removeprefix("Skipped: ").strip().splitlines() or [""])[0]


def matrix(records: Sequence[ClaimRecord], tests: Sequence[Ended] = ()) -> Matrix | None:
    """Every claim on every release; None where the run has fewer than two of them, or no claim."""
    records = [one for one in records if ", " not in one.release]
    releases = _releases([one.release for one in records], [one.release for one in tests])
    if not records or len(releases) < 2:
        return None
    asked = _asked(records)
    reasons: dict[tuple[str, str], Ended] = {}
    for one in tests:
        reasons.setdefault((bare(one.test, one.release), one.release), one)
    rows = []
    for test in dict.fromkeys([*(key[0] for key in asked), *(test for test, _ in reasons)]):
        claims = [key for key in asked if key[0] == test] or [(test, "", "", 1)]
        begun = {release for key in claims for release in asked.get(key, {})}
        for key in claims:
            of = asked.get(key, {})
            cells = [_cell(of.get(one), reasons.get((test, _name(one))), one in begun) for one in releases]
            rows.append(MatrixRow(test, key[1], key[2], tuple(cells)))
    return Matrix(tuple(releases), tuple(rows))


def _releases(measured: Sequence[str], others: Sequence[str]) -> list[str]:
    """Each column once, by vendor and version; a release on which nothing was measured has no exact version."""
    found = dict.fromkeys(measured)
    names = {_name(one) for one in found}
    found |= dict.fromkeys(one for one in others if one not in names)
    return sorted(found, key=lambda one: (one.partition(":")[0], [int(part) for part in re.findall(r"\d+", one)]))


def _name(release: str) -> str:
    return release.partition(" ")[0]


def _asked(records: Sequence[ClaimRecord]) -> dict[tuple[str, str, str, int], dict[str, ClaimRecord]]:
    """The records of each claim by release. A test may ask the same twice: those are two claims."""
    found: dict[tuple[str, str, str, int], dict[str, ClaimRecord]] = {}
    times: collections.Counter[tuple[str, str, str, str]] = collections.Counter()
    for one in records:
        test = bare(one.test, _name(one.release))
        times[test, one.text, one.load, one.release] += 1
        key = (test, one.text, one.load, times[test, one.text, one.load, one.release])
        found.setdefault(key, {})[one.release] = one
    return found


def bare(test: str, release: str) -> str:
    """A test's node id without the release among its parameters: the same on all of them."""
    head, bracket, parameters = test.partition("[")
    # pytest numbers ids that are equal, such as those of two directories of one release.
    left = re.sub(rf"(^|-){re.escape(release)}(_\d+)?(?=-|$)", "", parameters.removesuffix("]"), count=1)
    return f"{head}[{left.removeprefix('-')}]" if bracket and left else head


def _cell(record: ClaimRecord | None, end: Ended | None, begun: bool) -> Cell:
    if record or end is None:
        return Cell(record)
    if begun:
        return Cell(None, NOT_REACHED, f"its test ended before: {end.reason}")
    return Cell(None, SKIPPED if end.skipped else BROKEN, end.reason)


def word(cell: Cell) -> str:
    """The verdict in the closing table's word, or why there is none."""
    if cell.record is None:
        return cell.word
    return (closing.WORDS if cell.record.asserted else closing.BESIDE_WORDS)[cell.record.verdict.outcome]


def block(made: Matrix) -> tuple[Block, list[str]]:
    """The matrix as one wide table, and what stands below it: exact versions, and the numbered reasons."""
    reasons = list(dict.fromkeys(cell.why for claim in made.claims for cell in claim.cells if cell.why))
    names = collections.Counter(map(_name, made.releases))
    heads = [_name(one) if names[_name(one)] == 1 else one for one in made.releases]
    several = collections.Counter((claim.text, claim.load) for claim in made.claims)
    rows = []
    for claim in made.claims:
        test = claim.test.rpartition("::")[2]
        text = claim.text or test
        text += f" in {test}" if claim.text and several[claim.text, claim.load] > 1 else ""
        rows.append(Row((text, claim.load, *(_shown(cell, reasons) for cell in claim.cells)), _colour(claim)))
    below = [f"[{number}] {reason}" for number, reason in enumerate(reasons, 1)]
    return Block(TITLE, (*BEFORE, *heads), tuple(rows)), [f"releases: {', '.join(made.releases)}", *below]


def _shown(cell: Cell, reasons: Sequence[str]) -> str:
    """``1.26 holds``, ``0.98 open``, ``- [1]``, ``error [2]``."""
    if cell.record is None:
        return f"{BROKEN if cell.word == BROKEN else '-'} [{reasons.index(cell.why) + 1}]" if cell.word else ""
    ratio = cell.record.verdict.ratio
    return word(cell) if math.isnan(ratio) else f"{closing.number(ratio)} {word(cell)}"


def _colour(claim: MatrixRow) -> str:
    """That of the worst answer of a row; none where nothing was claimed."""
    outcomes = {cell.record.verdict.outcome for cell in claim.cells if cell.record and cell.record.asserted}
    if any(cell.word == BROKEN for cell in claim.cells):
        return closing.COLOURS[Outcome.FAILS]
    worst = [one for one in (Outcome.FAILS, Outcome.INCONCLUSIVE, Outcome.HOLDS) if one in outcomes]
    return closing.COLOURS[worst[0]] if worst else ""


def parts(whole: Block, width: int) -> list[Block]:
    """The table in blocks of as many releases as fit side by side; each has the claims on its left."""
    found, start = [], len(BEFORE)
    while start < len(whole.columns):
        ends = range(len(whole.columns), start, -1)
        found.append(
            next((one for end in ends if _fits(one := _part(whole, start, end), width)), None)
            or _part(whole, start, start + 1)
        )
        start += len(found[-1].columns) - len(BEFORE)
    if len(found) == 1:
        return found
    return [dataclasses.replace(one, title=f"{TITLE} ({n} of {len(found)})") for n, one in enumerate(found, 1)]


def _part(whole: Block, start: int, end: int) -> Block:
    def cut(cells: Sequence[str]) -> tuple[str, ...]:
        return (*cells[: len(BEFORE)], *cells[start:end])

    return Block(whole.title, cut(whole.columns), tuple(Row(cut(row.cells), row.colour) for row in whole.rows))


def _fits(one: Block, width: int) -> bool:
    return max(len(line) for line, _ in layout.text(one, width)) <= width


def show(reporter: Any, made: Matrix | None, width: int = 100) -> None:
    """Write the matrix after the closing table."""
    if made is None:
        return
    whole, below = block(made)
    for one in parts(whole, width):
        reporter.write_sep("=", one.title)
        for line, colour in layout.text(one, width):
            reporter.write_line(line, **({colour: True} if colour else {}))
    for said in below:
        for line in textwrap.wrap(said, width, subsequent_indent=layout.INDENT):
            reporter.write_line(line)


def text(made: Matrix, width: int = 200) -> str:
    """The matrix as plain text, for a page that scrolls."""
    whole, below = block(made)
    tables = ["\n".join(line for line, _ in layout.text(one, width)) for one in parts(whole, width)]
    return "\n\n".join([*tables, "\n".join(below)]) + "\n"


def markdown(made: Matrix) -> str:
    """The matrix as one Markdown table with its reasons."""
    whole, below = block(made)
    return "\n".join([layout.markdown(whole), *(f"- {said}" for said in below), ""])


def kept(directory: Path, made: Matrix | None) -> list[str]:
    """Write the matrix as CSV into the results directory; its part of the summary, nothing without a matrix."""
    if made is None:
        return []
    (directory / FILE).write_text(as_csv(made))
    return [markdown(made)]


def as_csv(made: Matrix) -> str:
    """A line for each claim and release; ratio and interval are empty where there are none."""
    lines = io.StringIO()
    write = csv.writer(lines, lineterminator="\n").writerow
    write(CSV)
    for claim in made.claims:
        for release, cell in zip(made.releases, claim.cells, strict=True):
            name, _, version = release.partition(" ")
            figures: Sequence[object] = ("", "", "")
            if (record := cell.record) is not None:
                found = (record.verdict.ratio, record.verdict.low, record.verdict.high)
                figures = [value if math.isfinite(value) else "" for value in found]
            metric = record.metric if record else ""
            write([claim.test, claim.text, claim.load, metric, name, version, *figures, word(cell).lower(), cell.why])
    return lines.getvalue()
