"""The rounds of a claim as figures: one value a round, and all of them as CSV."""

from __future__ import annotations

import csv
import io
import itertools
import math

from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.round import SPEEDS, Round

COLUMNS = (
    "pair",
    "position",
    "variant",
    "seconds",
    "operations",
    "commits",
    "good",
    *SPEEDS,
    "wall",
    "settled",
    "started",
    "rate",
    "client_seconds",
    "busiest",
    "limited",
    "void",
)


def values(record: ClaimRecord, variant: str) -> list[float]:
    """The claim's metric, a value for each round of a variant."""
    return [metrics.shown(one, record.metric, record.load) for one in record.rounds[variant]]


def steps(record: ClaimRecord) -> list[tuple[str, str]]:
    """What is compared, candidate first: the two variants of a claim, the neighbours of an order."""
    return list(itertools.pairwise(record.rounds))


def as_csv(record: ClaimRecord) -> str:
    """A line for each round in the order in which they ran: what the load said, then counters and samples.

    A void block stands before the one that was drawn for it, with its reason in the column ``void``.
    """
    void = [one for block in record.void for one in remarks.as_void(block)]
    rounds = sorted(
        (one for many in (void, *record.rounds.values()) for one in many),
        key=lambda one: (one.block, not one.void, one.started, one.position),
    )
    counted = sorted({name for one in rounds for name in one.counters})
    sampled = sorted({name for one in rounds for name in one.samples})
    tails = list(metrics.QUANTILES) if any(one.outcome.ledger for one in rounds) else []
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write([*COLUMNS, *(f"{name}_ms" for name in tails), *counted, *(f"sample:{name}" for name in sampled)])
    for one in rounds:
        found = [
            *_own(one),
            *(metrics.shown(one, name, record.load) if one.outcome.ledger else None for name in tails),
            *map(one.counters.get, counted),
            *map(one.samples.get, sampled),
        ]
        write(map(_cell, found))
    return text.getvalue()


def _own(one: Round) -> list[object]:
    """The cells of COLUMNS."""
    said = one.outcome
    return [
        one.block + 1,
        one.position,
        one.variant,
        said.seconds,
        said.operations,
        said.commits,
        said.done,
        *(getattr(one, name) for name in SPEEDS),
        one.wall,
        int(one.settled),
        one.started,
        said.rate,
        said.client_seconds,
        said.busiest,
        one.limited,
        one.void,
    ]


def _cell(value: object) -> object:
    """Empty for what a round does not have."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else value
