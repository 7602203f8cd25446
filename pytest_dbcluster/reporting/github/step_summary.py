"""The summary of a run for GitHub Actions: a step summary, annotations of red and inconclusive tests, and outputs.

Everything is made from the results directory. GitHub drops a whole step summary that exceeds its size limit. So ours
leaves out details before that, and says so:
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#step-isolation-and-limits
"""

from __future__ import annotations

import dataclasses
import html
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_dbcluster import formatting
from pytest_dbcluster.reporting import unwritten
from pytest_dbcluster.reporting.documents.run_document import TestDocument
from pytest_dbcluster.reporting.github import benchmark_entries
from pytest_dbcluster.reporting.page import sources, summary, words
from pytest_dbcluster.reporting.page.sources import Source
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.results_directory import BENCHMARK
from pytest_dbcluster.reporting.tables import closing, joint_error
from pytest_dbcluster.reporting.tables.states import COMPARED
from pytest_dbcluster.reporting.unwritten import Unwritten, append

LIMIT = 1_000_000  # bytes; GitHub's is 1024 KiB
RESERVED = 500  # of them, reserved for the sentences about omissions
AT_LIMIT = "this summary is at GitHub's size limit"
STEP_SUMMARY, OUTPUT = "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"  # environment variables that name files
WORKSPACE = "GITHUB_WORKSPACE"  # names the directory of the checkout
LEVELS = {"refuted": "error", "broken": "error", "inconclusive": "warning"}
ORDER = ("refuted", "inconclusive", "holds", COMPARED)
BAR, SPAN = 21, math.log(8)  # characters of an interval's bar, which reaches from 1/8 to 8
COUNTED = ("holds", "refuted", "inconclusive", "broken", "skipped")


@dataclasses.dataclass(frozen=True)
class Files:
    """The files that GitHub reads after a step; None for one that it did not name."""

    summary: Path | None
    """The file of the step's summary."""

    output: Path | None
    """The file of the step's outputs."""

    root: str = "."
    """The root directory of the tests, relative to the checkout; it begins the paths of annotations.

    "." for a directory that is not below it: the checkout may be mounted at another path.
    """


def files(environment: Mapping[str, str], *, asked: bool, root: Path | None = None) -> Files | None:
    """The files of this step; None outside of GitHub Actions, unless they are asked for.

    root: the root directory of the tests; None for that of the checkout.
    """
    if not asked and environment.get("GITHUB_ACTIONS") != "true":
        return None
    summary, output = (Path(name) if (name := environment.get(each)) else None for each in (STEP_SUMMARY, OUTPUT))
    checkout = environment.get(WORKSPACE)
    place = os.path.relpath(os.path.realpath(root), os.path.realpath(checkout)) if root and checkout else "."
    return Files(summary, output, "." if place.startswith("..") else place)


def write(directory: Path, to: Files, lost: Unwritten) -> list[str]:
    """Add the summary and outputs of the run in this directory to the files; return the annotations, one a line.

    The file for github-action-benchmark is written to the results directory. Files that cannot be written are noted in
    ``lost``. Raises ConfigError if the results cannot be read.
    """
    source = sources.read(directory)
    with lost.note(directory / BENCHMARK):
        unwritten.write(directory / BENCHMARK, benchmark_entries.text(source.claims))
    for path, text in ((to.summary, markdown(source)), (to.output, outputs(source))):
        if path is not None:
            with lost.note(path):
                append(path, text.encode())
    return annotation_lines(source, to.root)


def markdown(source: Source) -> str:
    """The step summary: the sentence, broken tests, a table of all claims, and folded details; at most LIMIT bytes.

    The part before the table gets at most half of it, so there is always room for claims.
    """
    ranked = sorted(source.claims, key=lambda record: ORDER.index(words.state(record)))
    head = [f"## {_text(summary.sentence([source]))}", "", _facts(source), ""]
    head += [f"{_text(joint)}.", ""] if (joint := joint_error.line(source.claims)) else []
    notes = _fit([f"> {_text(words.as_sentence(note))}" for note in source.notes], LIMIT // 4)
    broken = _fit(_broken_lines(source), LIMIT // 4)
    head += [*notes, "", *broken, *_more(len(source.tests("broken")) - len(broken), "broken test"), ""]
    table = ["| | claim | load | release | ratio | 1/8 .. 1 .. 8 |", "|---|---|---|---|---:|---|"]
    left = LIMIT - _size([*head, *table]) - RESERVED
    rows = _fit([_row(record) for record in ranked], left)
    details = _fit([_details(record) for record in ranked if words.state(record) in LEVELS], left - _size(rows))
    cut = len(ranked) - len(rows)
    if cut:
        details = []
    return "\n".join([*head, *(table if rows else []), *rows, "", *_more(cut, "claim"), *details, ""])


def _fit(texts: Sequence[str], most: int) -> list[str]:
    """The first texts that fit into so many bytes."""
    fitting: list[str] = []
    for text in texts:
        most -= _size([text])
        if most < 0:
            break
        fitting.append(text)
    return fitting


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _more(missing: int, what: str) -> list[str]:
    """The sentence about omissions; empty if nothing was left out."""
    if not missing:
        return []
    are = "is" if missing == 1 else "are"
    return [f"{formatting.quantity(missing, f'more {what}')} {are} in the results: {AT_LIMIT}.", ""]


def _facts(source: Source) -> str:
    facts = [f"{name}: {_text(value)}" for name, value in summary.about(source).items() if value and name != "command"]
    return " · ".join(facts)


def _broken_lines(source: Source) -> list[str]:
    return [f"- **broken** `{_code(test.test)}`: {_text(test.reason)}" for test in source.tests("broken")]


def _row(record: ClaimRecord) -> str:
    state = words.state(record)
    release = record.release.partition(" ")[0] if "," not in record.release else record.release
    cells = (
        f"{words.SYMBOLS[state]} {state}",
        f"`{_code(record.text)}`",
        _text(record.load),
        _text(release),
        f"{words.ratio(record)} ({words.deciding_interval(record)})",
        f"`{bar(record)}`",
    )
    return f"| {' | '.join(cells)} |"


def bar(record: ClaimRecord) -> str:
    """The interval of a ratio on an axis of logarithms from 1/8 to 8: ``·····│──●──·``, cut off at the ends."""
    if not record.verdict.claim.of_kind.is_ratio:
        return " " * BAR
    least, most, _ = closing.deciding_interval(record)
    low, at, high = (_place(value) for value in (least, record.verdict.ratio, most))
    if at is None:
        return " " * BAR
    ends = (low if low is not None else 0, high if high is not None else BAR - 1)
    known = words.deciding_interval(record) != formatting.NO_INTERVAL
    drawn = ["─" if known and ends[0] <= place <= ends[1] else " " for place in range(BAR)]
    drawn[BAR // 2] = "┼" if drawn[BAR // 2] == "─" else "│"
    drawn[at] = "●"
    return "".join(drawn)


def _place(value: float) -> int | None:
    """The place of a ratio on the bar, 0-based; None for nan."""
    if math.isnan(value):
        return None
    log = math.log(value) if 0 < value < math.inf else math.copysign(math.inf, value - 1)
    return round((max(-SPAN, min(SPAN, log)) / SPAN + 1) / 2 * (BAR - 1))


def _details(record: ClaimRecord) -> str:
    state = words.state(record)
    reason = f": {record.verdict.reason}" if state == "inconclusive" else ""
    title = html.escape(f"{state}: {words.sentence(record)} ({record.load}){reason}")
    return f"<details><summary>{title}</summary>\n\n```\n{record.message.replace('```', '` ` `')}\n```\n\n</details>"


def _text(text: str) -> str:
    """The text as Markdown that shows it: a server's message may have any characters."""
    shown = html.escape(" ".join(text.split()), quote=False)
    for character in "\\|`*_[]#":
        shown = shown.replace(character, f"\\{character}")
    return shown


def _code(text: str) -> str:
    return text.replace("`", "'").replace("|", "\\|").replace("\n", " ")


def annotation_lines(source: Source, root: str = ".") -> list[str]:
    """A workflow command for each test that is refuted, broken or inconclusive, at the line of the test.

    root: as in ``Files``. A test outside of the checkout has no place.
    """
    return [_annotation(test, source.claims, root) for test in source.tests(*LEVELS)]


def _annotation(test: TestDocument, claims: Sequence[ClaimRecord], root: str) -> str:
    """The test with its first claim of the test's state, or with pytest's message."""
    own = (record for record in claims if record.test == test.test and words.state(record) == test.outcome)
    why = next(map(closing.one_line, own), test.reason)
    file = os.path.normpath(f"{root}/{test.file}") if test.file and test.line else ".."
    place = "" if file == ".." or file.startswith("../") else f"file={_property(file)},line={test.line},"
    return f"::{LEVELS[test.outcome]} {place}title={_property(test.outcome)}::{_data(f'{test.test}: {why}')}"


def _data(text: str) -> str:
    """The text of a workflow command: it has no line ends, and a per cent sign begins an escape."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def outputs(source: Source) -> str:
    """Lines for later steps: the number of tests by outcome, and the paths of the results."""
    numbers = [f"{outcome}={len(source.tests(outcome))}" for outcome in COUNTED]
    paths = [f"results={source.directory}", f"benchmark={source.directory / BENCHMARK}"]
    return "\n".join([*numbers, *paths, ""])
