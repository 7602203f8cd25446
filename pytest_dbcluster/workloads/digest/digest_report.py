"""The report of a digest: ``digest.md``, and its short form for the terminal."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping, Sequence

from pytest_dbcluster.formatting import duration, elide, quantity, size
from pytest_dbcluster.workloads.digest.class_outcomes import APART, CONFLICT, RARE, UNEXPLAINED, WRITTEN, ClassOutcome
from pytest_dbcluster.workloads.digest.log.log_files import GENERAL, LogFile
from pytest_dbcluster.workloads.digest.log.sessions import LogTotals
from pytest_dbcluster.workloads.digest.schema.schema_tables import SchemaTables

NOTHING = "-"
REPORT = "digest.md"
WIDTH = 200  # characters of a statement
REFUSED = {
    UNEXPLAINED: "These files are not in workload.toml, and do not run until you edit them.",
    APART: "These files are not in workload.toml. They run, and do not do what the log did.",
}


@dataclasses.dataclass(frozen=True)
class UnfittedStatement:
    """A statement that may find another number of rows than in the log."""

    file: str
    """The file of its transaction."""

    text: str
    """Its text, with ``?`` for each literal."""

    reason: str
    """Why generated rows are not fitted to its conditions."""


@dataclasses.dataclass
class LogDigest:
    """What became of a log."""

    log: LogFile
    """The file."""

    totals: LogTotals
    """What it has in all."""

    classes: list[ClassOutcome]
    """Its classes, and what became of each."""

    rare: int
    """Transactions of classes that were too many to keep."""

    rare_seconds: float
    """The seconds of these transactions."""

    rows: Mapping[str, int]
    """The generated rows of each table; 0 for an empty one."""

    row_reasons: Mapping[str, str]
    """Where the number of rows comes from, by table."""

    stand_ins: Mapping[str, str]
    """The variables in place of texts of the log, with their values."""

    kept_literals: bool
    """Whether these values are the texts of the log."""

    schema: str
    """The database in the log; empty if the log tells none."""

    tables: SchemaTables
    """The tables of this database."""

    unfitted: Sequence[UnfittedStatement] = ()
    """The statements to whose conditions generated rows are not fitted."""

    @property
    def runnable(self) -> list[ClassOutcome]:
        """The classes that became a file which can run."""
        return [one for one in self.classes if one.status == WRITTEN]

    @property
    def refused(self) -> list[ClassOutcome]:
        """The classes whose file is there, and must not run."""
        return [one for one in self.classes if one.status in REFUSED]

    @property
    def has_times(self) -> bool:
        """Whether the log has the times of statements."""
        return self.log.kind != GENERAL and self.totals.seconds > 0

    @property
    def measure(self) -> str:
        """What the coverage is a share of."""
        return "time" if self.has_times else "statements"

    def share(self, seconds: float, statements: int) -> float:
        """A part of the log, 0 to 1, in time or in statements."""
        return seconds / self.totals.seconds if self.has_times else statements / max(1, self.totals.statements)

    @property
    def coverage(self) -> float:
        """The part of the log that the workload covers."""
        return sum(self.share(one.of.seconds, _statements(one)) for one in self.runnable)


def _statements(one: ClassOutcome) -> int:
    """The statements of a class, with BEGIN and COMMIT."""
    return one.of.statements + one.of.controls


def percent(share: float) -> str:
    """A share as text: ``12 %``, ``0.3 %``."""
    return f"{100 * share:.0f} %" if share >= 0.0995 or not share else f"{100 * share:.2g} %"


def parts(digest: LogDigest) -> list[tuple[str, int, float]]:
    """What the log consists of: a name, transactions, and the share of its time."""
    found: collections.Counter[str] = collections.Counter()
    shares: collections.Counter[str] = collections.Counter()
    for one in digest.classes:
        found[one.status] += one.of.count
        shares[one.status] += digest.share(one.of.seconds, _statements(one))  # type: ignore[assignment]
    if digest.rare:
        found[RARE] += digest.rare
        shares[RARE] += digest.share(digest.rare_seconds, digest.rare)  # type: ignore[assignment]
    totals = digest.totals
    lines = [
        (name, found[name], float(shares[name]))
        for name in sorted(found, key=lambda name: (name != WRITTEN, -shares[name]))
    ]
    if totals.setup:
        lines.append(("statements that set up a session", 0, digest.share(totals.setup_seconds, totals.setup)))
    if totals.unfinished:
        share = digest.share(totals.unfinished_seconds, totals.unfinished)
        lines.append(("transactions without an end in the log", 0, share))
    if totals.too_long:
        lines.append(
            ("transactions of more than 1000 statements", totals.too_long, digest.share(totals.too_long_seconds, 0))
        )
    return lines


def terminal(digest: LogDigest, directory: str) -> list[str]:
    """The report for a terminal."""
    totals = digest.totals
    span = totals.last - totals.first
    lines = [
        f"read {quantity(totals.statements, 'statement')} of {quantity(totals.connections, 'connection')} in a "
        f"{digest.log.kind} of {size(digest.log.bytes)}" + (f", over {duration(span)}" if span > 0 else ""),
        f"wrote {quantity(len(digest.runnable), 'transaction')} into {directory}/; {coverage(digest)}",
    ]
    lines += [
        f"  {percent(share):>6}  {name}" for name, _, share in parts(digest) if name != WRITTEN and share >= 0.0005
    ]
    lines += refusals(digest, digest.refused)
    if digest.unfitted:
        lines.append(
            f"generated rows are not fitted to the conditions of {quantity(len(digest.unfitted), 'statement')}, which "
            f"{directory}/{REPORT} names"
        )
    if digest.stand_ins and not digest.kept_literals:
        lines.append(
            f"fill in {quantity(len(digest.stand_ins), 'text')} in {directory}/workload.toml, or keep the stand-ins; "
            "no text of the log is in a file"
        )
    if digest.totals.seconds and digest.log.unread:
        lines.append(f"{quantity(digest.log.unread, 'entry')} of the log could not be read")
    return lines


def coverage(digest: LogDigest) -> str:
    """What part of the log its transactions cover, as text."""
    return f"they cover {percent(digest.coverage)} of the log's {digest.measure}"


def refusals(digest: LogDigest, refused: Sequence[ClassOutcome]) -> list[str]:
    """A line for each of these classes, with its share of the log and the reason."""
    return [
        f"refused: {one.file}, {percent(digest.share(one.of.seconds, _statements(one)))}: {one.notes[0]}"
        for one in refused
    ]


def markdown(digest: LogDigest) -> str:
    """``digest.md``."""
    totals = digest.totals
    lines = [
        f"# Digest of {digest.log.path.name}",
        "",
        "Experimental. What became of the log, and what did not.",
        "",
    ]
    counts = f"{quantity(totals.statements, 'statement')}, {quantity(totals.connections, 'connection')}"
    lines.append(f"- {digest.log.kind}, {size(digest.log.bytes)}, {counts}")
    lines += [f"- database in the log: {digest.schema}"] if digest.schema else []
    lines += [f"- covered: {percent(digest.coverage)} of the log's {digest.measure}", ""]
    covered = [(name, str(count or NOTHING), percent(share)) for name, count, share in parts(digest)]
    lines += _table(("part", "transactions", f"share of {digest.measure}"), covered)
    lines += ["", "## Transactions", ""]
    files = [_file_row(digest, one) for one in digest.classes if one.status in (WRITTEN, *REFUSED)]
    lines += _table(("file", "weight", f"share of {digest.measure}", "transactions", "statements each"), files)
    for status, words in REFUSED.items():
        if notes := [f"- {one.file}: {note}" for one in digest.refused if one.status == status for note in one.notes]:
            lines += ["", f"## {status[0].upper()}{status[1:]}", "", words, "", *notes]
    lines += ["", "## Rows", ""]
    rows = [(name, str(rows), digest.row_reasons[name]) for name, rows in digest.rows.items() if rows]
    lines += _table(("table", "rows", "from"), rows)
    lines += _unfitted_lines(digest)
    if notes := [f"- {one.file}: {note}" for one in digest.runnable for note in dict.fromkeys(one.notes)]:
        lines += ["", "## Notes", "", *notes]
    conflicts = sum(one.of.count for one in digest.classes if one.status == CONFLICT)
    if conflicts:
        lines += ["", f"Rolled back before their end: {quantity(conflicts, 'transaction')}."]
        lines += ["Conflicts come from the load itself, so no file repeats them."]
    return "\n".join(lines) + "\n"


def _unfitted_lines(digest: LogDigest) -> list[str]:
    """The lines about statements whose conditions are not fitted."""
    if not digest.unfitted:
        return []
    lines = ["", "## Conditions that are not fitted", ""]
    lines += ["These statements may find more or fewer rows than in the log.", ""]
    return lines + [f"- {one.file}: {one.reason}: ``{elide(one.text, WIDTH)}``" for one in digest.unfitted]


def _file_row(digest: LogDigest, one: ClassOutcome) -> tuple[str, ...]:
    share = percent(digest.share(one.of.seconds, _statements(one)))
    each = f"{_statements(one) / one.of.count:.3g}"
    return one.file, str(one.weight or NOTHING), share, str(one.of.count), each


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]]
