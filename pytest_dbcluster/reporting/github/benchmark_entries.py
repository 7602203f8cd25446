"""Claims as input of github-action-benchmark, which draws a value over commits: its tool ``customBiggerIsBetter``.

https://github.com/benchmark-action/github-action-benchmark#examples lists the fields of an entry. The action compares
a value only with the previous run, and without intervals; ``--db-history`` compares with several runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims.claim import STATES
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.rounds import metrics

UNIT = "times as fast"
UNIT_OF_LOSSES = "times the share that is kept"


def text(records: Sequence[ClaimRecord]) -> bytes:
    """The file: a JSON list with the ratio of each claim about speed, where larger is better.

    Claims about counters and events are left out, because less is better there, and so are claims without an estimate.
    """
    import msgspec

    return msgspec.json.format(msgspec.json.encode(list(_entries(records))), indent=1) + b"\n"


def _entries(records: Sequence[ClaimRecord]) -> Iterator[dict[str, object]]:
    for record in records:
        verdict = record.verdict
        kind = verdict.claim.of_kind
        about_speed = kind.is_ratio and kind.has_history and not metrics.is_counter(record.metric)
        if not about_speed or not math.isfinite(verdict.ratio):
            continue
        low, high = (formatting.ratio(end) for end in (verdict.low, verdict.high))
        said = f"{STATES[verdict.outcome]} after {formatting.quantity(verdict.pairs, 'pair')}"
        yield {
            # The action makes a series of each name, so a name identifies the claim and never changes.
            "name": f"{record.claim_id} | {', '.join(_names(record))}",
            "unit": UNIT_OF_LOSSES if kind.composed else UNIT,
            "value": verdict.ratio,
            "range": f"{low} .. {high}",
            "extra": f"{said}\n{record.repeat}",
        }


def _names(record: ClaimRecord) -> list[str]:
    return [release.partition(" ")[0] for release in record.release.split(", ")]
