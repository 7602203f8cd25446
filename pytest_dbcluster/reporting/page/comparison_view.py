"""Claims side by side: each claim once, with a column for each release, topology, storage, machine or run.

``claim_id`` identifies a claim. If topologies or storages are compared, their names are removed from it. They may be in
the names of variants and parameters.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import re
import statistics
from collections.abc import Callable, Iterator, Sequence

from pytest_dbcluster import registry
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import quantity
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.documents import claim_id
from pytest_dbcluster.reporting.page import words
from pytest_dbcluster.reporting.page.sources import Source
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables.layout import Row, TableBlock
from pytest_dbcluster.rounds import metrics

HEADING = "## Claims by "  # how the Markdown of a table begins
ID_LETTERS = 6  # of a machine that are shown
OWN_DISK = "the machine's own disk"
Claim = tuple[Source, ClaimRecord, str]  # with its directory and its address in the page
Keyed = Sequence[Claim]


@dataclasses.dataclass(frozen=True)
class ComparedCell:
    """A claim in one column."""

    record: ClaimRecord
    """The claim."""

    key: str
    """The address of its details in the page; empty without details."""

    @property
    def state(self) -> str:
        """A word of ``words.SYMBOLS``."""
        return words.state(self.record)

    @property
    def symbol(self) -> str:
        """The symbol of the state."""
        return words.SYMBOLS[self.state]

    @property
    def ratio(self) -> str:
        """The measured ratio."""
        return words.ratio(self.record)

    @property
    def interval(self) -> str:
        """The interval that decided."""
        return words.deciding_interval(self.record)

    @property
    def medians(self) -> str:
        """The medians of candidate and baseline with their unit, ``2610 v 1980 /s``.

        Empty for ``fades``, and if a round has no such figure.
        """
        record = self.record
        if record.verdict.claim.of_kind.composed:
            return ""
        try:
            values = [rounds_csv.values(record, name) for name in (record.candidate, record.baseline)]
        except (ConfigError, KeyError):
            return ""
        finite = [[value for value in many if math.isfinite(value)] for many in values]
        if not all(finite):
            return ""
        first, second = (words.figure(statistics.median(many)) for many in finite)
        return f"{first} v {second} {metrics.unit(record.metric)}".rstrip()


@dataclasses.dataclass(frozen=True)
class ComparedClaim:
    """A row: a claim with a cell for each column."""

    record: ClaimRecord
    """The first claim of the row, of which claim and workload are shown."""

    where: str
    """What tells this row from another row of the same claim; empty if there is no other."""

    cells: tuple[ComparedCell | None, ...]
    """A cell for each column; None if the claim was not measured there."""


@dataclasses.dataclass(frozen=True)
class ComparisonView:
    """Claims side by side."""

    by: str
    """A word of KNOWN."""

    columns: tuple[str, ...]
    """The values of this aspect."""

    rows: tuple[ComparedClaim, ...]
    """The claims."""

    notes: tuple[str, ...] = ()
    """What a reader must know, as sentences."""

    @property
    def title(self) -> str:
        """The heading: ``Claims by release``."""
        return f"Claims by {self.by}"

    @property
    def several(self) -> bool:
        """Whether a claim has several rows, so ``where`` must be shown."""
        return any(row.where for row in self.rows)


@dataclasses.dataclass(frozen=True)
class Aspect:
    """What claims can differ in.

    A claim about two values of an aspect with ``named``, such as one topology against another, has no column. Claims
    with one column are left out then.
    """

    of: Callable[[Source, ClaimRecord], str]
    """The aspect's value for a claim, as a reader knows it."""

    named: Callable[[ClaimRecord], list[str]] | None = None
    """The words by which the aspect may be in a claim's id; None if it never is."""


def _topology(source: Source, record: ClaimRecord) -> str:
    return claim_id.join_distinct(f"{spec.topology}{spec.nodes}" for spec in record.specs.values()) or "unknown"


def _topology_words(record: ClaimRecord) -> list[str]:
    return [word for spec in record.specs.values() for word in (f"{spec.topology}{spec.nodes}", spec.topology)]


def _storage(source: Source, record: ClaimRecord) -> str:
    return record.storage or OWN_DISK


def _storage_words(record: ClaimRecord) -> list[str]:
    names = [spec.storage for spec in record.specs.values() if spec.storage]
    return [word for name in names for word in (name, re.sub(r"[^a-zA-Z0-9.]+", "_", name))]  # as ClusterSpec names it


def _machine(source: Source, record: ClaimRecord) -> str:
    machine = source.run.machine if source.run else None
    return f"{machine.id[:ID_LETTERS]}, {machine.cpus} x {machine.cpu}" if machine and machine.id else "unknown machine"


ASPECTS = {
    "release": Aspect(lambda source, record: record.release),
    "topology": Aspect(_topology, _topology_words),
    "storage": Aspect(_storage, _storage_words),
    "machine": Aspect(_machine),
    "run": Aspect(lambda source, record: source.name),
}
KNOWN = tuple(ASPECTS)
# The aspects that distinguish rows of one claim, in this order.
ROWS = {**ASPECTS, "provisioner": Aspect(lambda source, record: record.provisioner or "local")}


def view(keyed: Keyed, by: str = KNOWN[0]) -> ComparisonView | None:
    """The claims by an aspect; None if no claim was measured on two of its values.

    Raises ConfigError for an unknown aspect, which lists the known ones.
    """
    if by not in ASPECTS:
        raise registry.unknown("comparison", by, KNOWN)
    aspect = ASPECTS[by]
    shown = [claim for claim in keyed if aspect.named is None or ", " not in aspect.of(*claim[:2])]
    grouped: dict[str, list[Claim]] = {}
    for claim in shown:
        grouped.setdefault(_identity(claim[1], aspect), []).append(claim)
    rows = [row for group in grouped.values() for row in _rows(group, by)]
    measured = [row for row in rows if len({aspect.of(*claim[:2]) for claim in row[1]}) > 1]
    if not measured:
        return None
    kept = measured if aspect.named else rows
    columns = list(dict.fromkeys(aspect.of(*claim[:2]) for _, row in kept for claim in row))
    if by != "run":
        columns.sort(key=_version_key)
    notes = [*_omission_note(len(rows) - len(kept), by), *_difference_note([row for _, row in measured], by)]
    return ComparisonView(by, tuple(columns), tuple(_row(*row, aspect, columns) for row in kept), tuple(notes))


def views(keyed: Keyed) -> list[ComparisonView]:
    """The view of each aspect; without those that divide the claims as an earlier aspect does."""
    found, seen = [], []
    for by, aspect in ASPECTS.items():
        values = [aspect.of(*claim[:2]) for claim in keyed]
        parts = [values.index(value) for value in values]
        if parts not in seen and (made := view(keyed, by)):
            found.append(made)
            seen.append(parts)
    return found


def _identity(record: ClaimRecord, aspect: Aspect) -> str:
    """The text that identifies a claim in all columns. Results of an older version have no ids."""
    name = record.release.partition(" ")[0]
    known = record.claim_id or claim_id.SEPARATOR.join((claim_id.bare(record.test, name), record.text, record.load))
    return claim_id.without(known, aspect.named(record)) if aspect.named else known


def _rows(group: list[Claim], by: str) -> Iterator[tuple[str, list[Claim]]]:
    """The rows of one claim: the text that distinguishes each, and its claims, at most one for each column.

    As few aspects as possible distinguish them, and a number if nothing differs.
    """
    split: tuple[str, ...] = ()
    for name in ROWS:
        most = _most(group, by, split)
        if most == 1:
            break
        if name != by and _most(group, by, (*split, name)) < most:
            split = (*split, name)
    parts: dict[tuple[str, ...], list[Claim]] = {}
    for claim in group:
        parts.setdefault(_values(claim, split), []).append(claim)
    for values, claims in parts.items():
        times: collections.Counter[str] = collections.Counter()
        numbered: dict[int, list[Claim]] = {}
        for claim in claims:
            column = ASPECTS[by].of(*claim[:2])
            times[column] += 1  # a test of an older version may claim the same twice
            numbered.setdefault(times[column], []).append(claim)
        for number, row in numbered.items():
            yield ", ".join([*values, *([f"number {number}"] if len(numbered) > 1 else [])]), row


def _values(claim: Claim, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(ROWS[name].of(*claim[:2]) for name in names)


def _most(group: Sequence[Claim], by: str, split: Sequence[str]) -> int:
    """The most claims that one cell would have, if these aspects distinguished the rows."""
    return max(collections.Counter(_values(claim, (by, *split)) for claim in group).values())


def _omission_note(number: int, by: str) -> list[str]:
    if not number:
        return []
    return [f"left out {quantity(number, 'claim')} measured on only one {by}"]


def _difference_note(rows: Sequence[Sequence[Claim]], by: str) -> list[str]:
    """The sentence about other differences between the columns of a row."""
    names = [
        name
        for name in ROWS
        if name not in (by, "run") and any(len({_values(claim, [name]) for claim in row}) > 1 for row in rows)
    ]
    return [f"the columns of some claims also differ in {' and '.join(names)}"] if names else []


def _row(where: str, claims: Sequence[Claim], aspect: Aspect, columns: Sequence[str]) -> ComparedClaim:
    cells = {aspect.of(source, record): ComparedCell(record, key) for source, record, key in claims}
    return ComparedClaim(claims[0][1], where, tuple(map(cells.get, columns)))


def _version_key(column: str) -> list[str | int]:
    """The sort key of a column: 10.5 comes before 10.11."""
    return [int(part) if part.isdigit() else part for part in re.split(r"([0-9]+)", column)]


def block(shown: ComparisonView) -> TableBlock:
    """The view as a table of texts, for the terminal and for Markdown."""
    where = ("where",) if shown.several else ()
    rows = [
        Row((row.record.text, row.record.load, *([row.where] if where else []), *map(_text, row.cells)))
        for row in shown.rows
    ]
    return TableBlock(shown.title, ("claim", "load", *where, *shown.columns), tuple(rows))


def _text(cell: ComparedCell | None) -> str:
    if cell is None:
        return ""
    medians = f", {cell.medians}" if cell.medians else ""
    return f"{cell.ratio} ({cell.interval}) {cell.state}{medians}"
