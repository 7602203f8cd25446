"""Record documents: claims, curves and ledgers as they are saved, one JSON line each.

- ``claims.jsonl`` has a ClaimDocument for each claim.
- ``curves.jsonl`` has a CurveDocument for each curve.
- Ledgers are large and have separate files: the ``ledgers_file`` of a claim or curve has a LedgerDocument for each
  round with a ledger.

Every line has a format number. Raise FORMAT when a name is removed or changes its meaning. Readers ignore names that
they do not know, so a new name needs no new FORMAT.

JSON has no infinity: a number that is not finite is the string "inf", "-inf" or "nan".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from pytest_dbcluster.claims import kinds  # noqa: F401 (a claim of a document finds its kind, whatever was imported)
from pytest_dbcluster.reporting.documents.json_text import FileLine, Format
from pytest_dbcluster.reporting.records import ClaimRecord, CurvePoint, CurveRecord
from pytest_dbcluster.rounds.round import Round

FORMAT = 3
OLDER = {
    1: "it has the seconds of the rounds, not the rounds",
    2: "its rounds have another order and other looks",
}
KNOWN = Format(FORMAT, OLDER)


@dataclasses.dataclass(frozen=True)
class RoundDocument(Round):
    """A Round without its ledger, and without the latencies of statements, which are on the line of its ledger."""

    ledger_line: int | None = None
    """The line of the round's ledger in ``ledgers_file``, 1-based; None without a ledger."""


@dataclasses.dataclass(frozen=True)
class VoidBlock:
    """A round or block that did not count."""

    block: int
    """The number of the block, as in the rounds."""

    reason: str
    """The variant that made it void, and why."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClaimDocument(ClaimRecord, FileLine):
    """A line of ``claims.jsonl``: a ClaimRecord, and values derived from it for other readers.

    Paths are relative to the results directory. Fields with a default are missing in lines that are older than them.
    """

    rounds: Mapping[str, tuple[RoundDocument, ...]]
    """By variant, the rounds that the claim used; the n-th of all variants are the n-th pair."""

    void_rounds: tuple[tuple[RoundDocument, ...], ...]
    """The rounds of each element of ``void``."""

    void: tuple[VoidBlock, ...]
    """The rounds and blocks that did not count."""

    began: float | None
    """The start of the first round's load, in seconds since 1970 (UTC); None without rounds."""

    look: int
    """The number of the look that decided, 1-based."""

    looks: tuple[int, ...]
    """The numbers of pairs at which this claim could be judged."""

    baseline_first: tuple[bool, ...]
    """For each pair of ``candidate`` and ``baseline``, whether the baseline ran first."""

    seconds: Mapping[str, tuple[float, ...]]
    """By variant, the measured seconds of each of its rounds."""

    values: Mapping[str, tuple[float, ...]]
    """By variant, the claim's metric for each of its rounds, in the unit in which it is shown."""

    rounds_file: str
    """The CSV file of the rounds."""

    ledgers_file: str | None
    """The file of the ledgers; None without ledgers."""

    chart_file: str | None
    """The SVG file of the chart; None without a chart."""

    timeline_file: str | None = None
    """The CSV file of every second; None without one."""

    commits_file: str | None = None
    """The CSV file of the commits in each tenth of a second around the event; None for claims about rounds."""


@dataclasses.dataclass(frozen=True)
class PointDocument(CurvePoint):
    """A CurvePoint whose value is one that JSON has."""

    value: int | float | str | bool | None
    """The value of the curve's field; text for a value that JSON does not have."""

    rounds: tuple[RoundDocument, ...]
    """The rounds in the order in which they ran."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CurveDocument(CurveRecord, FileLine):
    """A line of ``curves.jsonl``: a CurveRecord, and its files.

    Paths are relative to the results directory. Fields with a default are missing in lines that are older than them.
    """

    points: tuple[PointDocument, ...]
    """The measured points, ordered by value, then by variant."""

    table_file: str
    """The CSV file of the points."""

    ledgers_file: str | None
    """The file of the ledgers; None without ledgers."""


@dataclasses.dataclass(frozen=True)
class TypeDocument:
    """A LedgerEntry: the transactions of one type."""

    attempts: Mapping[int, int]
    """By n (1-based), the number of transactions that ended at their n-th attempt."""

    committed: int
    """As in LedgerEntry."""

    rolled_back: int
    """As in LedgerEntry."""

    failed: int
    """As in LedgerEntry."""

    unknown: int
    """As in LedgerEntry."""

    aborted_seconds: float
    """As in LedgerEntry."""

    latencies: Mapping[int, int]
    """Counts by bucket (``rounds/histogram.py``)."""

    unknown_there: int = 0
    """As in LedgerEntry; missing in older lines."""

    unknown_gone: int = 0
    """As in LedgerEntry; missing in older lines."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LedgerDocument(FileLine):
    """The ledger of one round. Its line also has the round's ``RunResult.figures``, by name."""

    block: int
    """The block of the round, 0-based, as in the rounds of the claim."""

    position: int
    """The position of the round in its block, 0-based."""

    variant: str
    """The variant of the round."""

    void: str
    """The reason why the round does not count; empty if it counts."""

    by_second: tuple[int, ...]
    """The successful operations of each second of the round."""

    errors: tuple[tuple[int, str, int], ...]
    """(number of the server error, node, how often)."""

    types: Mapping[str, TypeDocument]
    """By name of the type, its transactions."""

    statements: Mapping[str, Mapping[int, int]] = dataclasses.field(default_factory=dict)
    """By name of the statement, its latencies as counts by bucket; missing in older lines."""
