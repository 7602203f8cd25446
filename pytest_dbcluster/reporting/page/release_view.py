"""Claims by release: each claim once, with a column for each release, machine, storage or directory that differs."""

from __future__ import annotations

import collections
import dataclasses
import math
import re
import statistics
from collections.abc import Sequence

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.documents import claim_id
from pytest_dbcluster.reporting.page import words
from pytest_dbcluster.reporting.page.sources import Source
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables.layout import Block, Row
from pytest_dbcluster.rounds import metrics

TITLE = "claims by release"
ID_LETTERS = 6  # of a machine that are shown
Keyed = Sequence[tuple[Source, ClaimRecord, str]]  # each claim with its directory and its address in the page


@dataclasses.dataclass(frozen=True)
class ReleaseCell:
    """A claim in one column; all empty where it was not measured.

    medians: of candidate and baseline, with unit. key: the address of its details in the page.
    """

    state: str = ""
    symbol: str = ""
    ratio: str = ""
    interval: str = ""
    medians: str = ""
    key: str = ""


@dataclasses.dataclass(frozen=True)
class ReleaseView:
    """columns: releases, each with what else differs. rows: claim, load, and a cell for each column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[ReleaseCell, ...]], ...]


def view(keyed: Keyed) -> ReleaseView | None:
    """The claims by release, and by storage, provisioner, machine and directory where these differ.

    None where nothing differs. A claim that compares releases has a column of its own for each pair of them.
    """
    named = _columns(keyed)
    columns = sorted(set(named), key=_rising)
    if len(columns) < 2:
        return None
    rows: dict[tuple[str, int], dict[str, ReleaseCell]] = {}
    heads: dict[tuple[str, int], tuple[str, str]] = {}
    times: collections.Counter[tuple[str, str]] = collections.Counter()
    for (_, record, key), column in zip(keyed, named, strict=True):
        claim = _claim(record)
        times[claim, column] += 1  # results of an older version have no ids, and a test may claim the same twice
        row = (claim, times[claim, column])
        rows.setdefault(row, {})[column] = _cell(record, key)
        heads.setdefault(row, (record.text, record.load))
    return ReleaseView(
        tuple(columns),
        tuple(
            (*heads[row], tuple(cells.get(column, ReleaseCell()) for column in columns)) for row, cells in rows.items()
        ),
    )


def _claim(record: ClaimRecord) -> str:
    """What is the same for a claim on all releases."""
    name = record.release.partition(" ")[0]
    return record.claim_id or " | ".join((claim_id.bare(record.test, name), record.text, record.load))


def _columns(keyed: Keyed) -> list[str]:
    """The column of each claim: its release, and what else differs. Directories are named where all else is equal."""
    aspects = [_aspects(source, record) for source, record, _ in keyed]
    differ = [place for place in range(1, len(_ASPECTS)) if len({one[place] for one in aspects}) > 1]
    named = [", ".join((one[0], *(_ASPECTS[place].format(one[place]) for place in differ))) for one in aspects]
    places: dict[str, set[str]] = {}
    for (source, _, _), column in zip(keyed, named, strict=True):
        places.setdefault(column, set()).add(source.name)
    return [
        f"{column} in {source.name}" if len(places[column]) > 1 else column
        for (source, _, _), column in zip(keyed, named, strict=True)
    ]


_ASPECTS = ("{}", "storage {}", "{}", "machine {}")


def _aspects(source: Source, record: ClaimRecord) -> tuple[str, ...]:
    """Release, storage, provisioner and machine of a claim."""
    machine = source.run.machine.id[:ID_LETTERS] if source.run else ""
    return record.release, record.storage or "of the machine", record.provisioner or "local", machine or "unknown"


def _rising(column: str) -> tuple[str, list[int], str]:
    """The sort key of a column: 10.5 comes before 10.11."""
    release, _, rest = column.partition(",")
    return (
        release.partition(":")[0],
        [int(part) for part in re.findall(r"\d+", release.partition(" in ")[0])],
        rest or column,
    )


def _cell(record: ClaimRecord, key: str) -> ReleaseCell:
    state = words.state(record)
    return ReleaseCell(state, words.SYMBOLS[state], words.ratio(record), words.interval(record), _medians(record), key)


def _medians(record: ClaimRecord) -> str:
    """``2610 v 1980 /s``: candidate and baseline; empty where a round has no such figure."""
    try:
        values = [rounds_csv.values(record, name) for name in (record.candidate, record.baseline)]
    except (ConfigError, KeyError):
        return ""
    finite = [[value for value in many if math.isfinite(value)] for many in values]
    if not all(finite):
        return ""
    first, second = (words.figure(statistics.median(many)) for many in finite)
    return f"{first} v {second} {metrics.unit(record.metric)}".rstrip()


def block(shown: ReleaseView) -> Block:
    """The view as a table of texts, for the terminal and for Markdown."""
    rows = [
        Row((text, load, *(f"{cell.ratio} ({cell.interval}) {cell.state}" if cell.state else "" for cell in cells)))
        for text, load, cells in shown.rows
    ]
    return Block(TITLE, ("claim", "load", *shown.columns), tuple(rows))
