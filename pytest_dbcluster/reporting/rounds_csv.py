"""The rounds of a claim as numbers: the claim's metric of each round, and the CSV file of all figures."""

from __future__ import annotations

import csv
import io
import itertools
import math

from pytest_dbcluster.claims import estimators, intervals
from pytest_dbcluster.claims.pairs import Pairs
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.rounds import metrics, pairing
from pytest_dbcluster.rounds.outages.outage import PER_SECOND
from pytest_dbcluster.rounds.round import SPEEDS, Round

COLUMNS = (
    "pair",
    "block",
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
    """The claim's metric for each round of a variant, in the unit in which it is shown."""
    return [metrics.display_value(measured, record.metric, record.load) for measured in record.rounds[variant]]


def pairs(record: ClaimRecord, candidate: str, baseline: str) -> Pairs:
    """The pairs of two variants of a claim, as the claim compared them: the lower latency is the higher speed."""
    shared = min(len(record.rounds[name]) for name in (candidate, baseline))  # one of them may have left a race
    shown = values(record, candidate)[:shared], values(record, baseline)[:shared]
    if metrics.unit(record.metric) == metrics.LATENCY:
        shown = shown[::-1]
    rounds = record.rounds[candidate][:shared], record.rounds[baseline][:shared]
    made = pairing.pairs_of(*rounds, shown, instances=record.instances, counts=metrics.is_counter(record.metric))
    return pairing.with_ends(made, *rounds) if record.metric == metrics.CAPACITY else made


def compared_pairs(record: ClaimRecord) -> Pairs:
    """The pairs that the ratio of the verdict compares; for ``fades`` the pairs of both of its pairs of variants."""
    if record.verdict.claim.of_kind.composed:
        parts = [pairs(record, *two) for two in reversed(steps(record))]
        return record.verdict.claim.of_kind.subclaims(record.verdict.claim, parts, ())[0][1]
    return pairs(record, record.candidate, record.baseline)


def losses(record: ClaimRecord) -> list[float]:
    """The two ratios that ``fades`` compares, the ratio of its second pair first."""
    return [estimators.factor(intervals.estimate(pairs(record, *two))) for two in steps(record)]


def steps(record: ClaimRecord) -> list[tuple[str, str]]:
    """The pairs of variants that the claim compares, candidate first; all neighbours for a claim about an order."""
    return record.verdict.claim.of_kind.comparisons(tuple(record.rounds))


def as_csv(record: ClaimRecord) -> str:
    """A line for each round in the order in which the rounds ran: COLUMNS, percentiles, counters, samples.

    A void round has the pair of the round that replaced it. It comes before it, with the reason in the column ``void``.
    """
    void = [drawn for block in record.void_rounds for drawn in remarks.with_reasons(block)]
    rounds = sorted(
        {id(drawn): drawn for drawn in itertools.chain(void, *record.rounds.values())}.values(),
        key=lambda drawn: (drawn.block, drawn.started, not drawn.void, drawn.position),
    )
    pairs = {
        (drawn.block, drawn.position): number
        for of_variant in record.rounds.values()
        for number, drawn in enumerate(of_variant, 1)
    }
    counted = sorted({name for drawn in rounds for name in drawn.counters})
    sampled = sorted({name for drawn in rounds for name in drawn.samples})
    tails = list(metrics.QUANTILES) if any(drawn.outcome.ledger for drawn in rounds) else []
    of_events = list(metrics.OF_EVENTS) if any(drawn.outage for drawn in rounds) else []
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write([*COLUMNS, *of_events, *(f"{name}_ms" for name in tails), *counted, *(f"sample:{name}" for name in sampled)])
    for drawn in rounds:
        cells = [
            pairs.get((drawn.block, drawn.position)),
            *_own(drawn),
            *(_of_event(drawn, name, record.load) if drawn.outage else None for name in of_events),
            *(metrics.display_value(drawn, name, record.load) if drawn.outcome.ledger else None for name in tails),
            *map(drawn.counters.get, counted),
            *map(drawn.samples.get, sampled),
        ]
        write(map(_cell, cells))
    return text.getvalue()


def commits_csv(record: ClaimRecord) -> str:
    """A line for each tenth of a second of each repetition of an event, as CSV; empty without events.

    Columns: the variant, the repetition (1-based), the begin of the tenth, and its commits of writing transactions.
    The begin is in seconds since the event. The last tenth of a repetition is not whole.
    """
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write(["variant", "repetition", "seconds", "commits"])
    empty = text.tell()
    for name, rounds in record.rounds.items():
        for number, one in enumerate((drawn.outage for drawn in rounds), 1):
            for tenth, commits in enumerate(one.commits_by_tenth, one.first_tenth) if one else ():
                write([name, number, tenth / PER_SECOND, commits])
    return text.getvalue() if text.tell() > empty else ""


def _of_event(drawn: Round, name: str, load: str) -> object:
    """A figure of a repetition; the way in which its node came back as text."""
    if name == metrics.RETURNED_BY:
        return drawn.outage.returned.how if drawn.outage and drawn.outage.returned else None
    return metrics.of_event(drawn, name, load)


def _own(drawn: Round) -> list[object]:
    """The cells of COLUMNS after the pair, which is 1-based; block and position in it are 0-based."""
    outcome = drawn.outcome
    return [
        drawn.block,
        drawn.position,
        drawn.variant,
        outcome.seconds,
        outcome.operations,
        outcome.commits,
        outcome.done,
        *(getattr(drawn, name) for name in SPEEDS),
        drawn.wall,
        int(drawn.settled),
        drawn.started,
        outcome.rate,
        outcome.client_seconds,
        outcome.busiest,
        drawn.limited,
        drawn.void,
    ]


def _cell(value: object) -> object:
    """The value, or an empty cell for None and NaN."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else value
