"""The rounds of a claim as figures: one value a round, and all of them as CSV."""

from __future__ import annotations

import csv
import io
import itertools

from pytest_dbcluster import counters, notes
from pytest_dbcluster.record import ClaimRecord
from pytest_dbcluster.workload import SPEEDS

COLUMNS = (
    "pair",
    "position",
    "variant",
    "seconds",
    "operations",
    "commits",
    *SPEEDS,
    "wall",
    "settled",
    "started",
    "void",
)


def values(record: ClaimRecord, variant: str) -> list[float]:
    """The claim's metric, a value for each round of a variant."""
    rounds = record.rounds[variant]
    if record.metric in SPEEDS:
        return [getattr(one, record.metric) for one in rounds]
    return [counters.value(one.counters, record.metric, load=record.load) for one in rounds]


def steps(record: ClaimRecord) -> list[tuple[str, str]]:
    """What is compared, candidate first: the two variants of a claim, the neighbours of an order."""
    return list(itertools.pairwise(record.rounds))


def as_csv(record: ClaimRecord) -> str:
    """A line for each round in the order in which they ran: what the load said, then counters and samples.

    A void block stands before the one that was drawn for it, with its reason in the column ``void``.
    """
    void = [one for block in record.void for one in notes.as_void(block)]
    rounds = sorted(
        (one for many in (void, *record.rounds.values()) for one in many),
        key=lambda one: (one.block, not one.void, one.started, one.position),
    )
    counted = sorted({name for one in rounds for name in one.counters})
    sampled = sorted({name for one in rounds for name in one.samples})
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write([*COLUMNS, *counted, *(f"sample:{name}" for name in sampled)])
    for one in rounds:
        said = one.outcome
        write(
            [one.block + 1, one.position, one.variant, said.seconds, said.operations, _cell(said.commits)]
            + [one.throughput, one.drained_throughput, one.wall, int(one.settled), one.started, one.void]
            + [_cell(one.counters.get(name)) for name in counted]
            + [_cell(one.samples.get(name)) for name in sampled]
        )
    return text.getvalue()


def _cell(value: object) -> object:
    return "" if value is None else value
