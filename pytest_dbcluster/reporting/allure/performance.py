"""The figures of claims as numbers, which Allure 3 lists in its section Metrics and draws over its history.

Allure shows the mean of all samples with one key. So each figure of a run has a separate key, the same in all runs.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.charts.claim import has_bounds
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.rounds import metrics

FILE = "claims-perf.json"
OF_A_RATIO = "x"  # its unit


def text(claims: Mapping[str, Sequence[ClaimRecord]]) -> str:
    """The file ``claims-perf.json``: ratio, interval and medians of each claim.

    claims: by directory; its name is empty if there is only one.
    """
    found = [sample for name, records in claims.items() for record in records for sample in _samples(record, name)]
    return json.dumps(found, indent=1) + "\n"


def _samples(record: ClaimRecord, directory: str) -> Iterator[dict[str, Any]]:
    """The samples of a claim as one group. Figures that are not finite have no sample."""
    releases = [release.partition(" ")[0] for release in record.release.split(", ")]  # without the exact version
    place = ", ".join(filter(None, (*releases, directory)))
    rounds = [drawn for many in record.rounds.values() for drawn in many]
    for figure, value, unit in _figures(record):
        if math.isfinite(value):
            yield {
                "id": (key := f"{record.claim_id}, {place}: {figure}"),
                "key": key,
                "value": value,
                "start": 1000 * min(drawn.started for drawn in rounds),
                "stop": 1000 * max(drawn.started + drawn.wall for drawn in rounds),
                "title": f"{place}: {figure}",
                "unit": unit,
                "group": record.claim_id,
            }


def _figures(record: ClaimRecord) -> Iterator[tuple[str, float, str]]:
    """Name, value and unit of each figure. Without an interval if there are too few pairs."""
    verdict = record.verdict
    if verdict.claim.of_kind.is_ratio:
        yield "ratio", verdict.ratio, OF_A_RATIO
        if has_bounds(verdict.low, verdict.high):
            yield "ratio, from", verdict.low, OF_A_RATIO
            yield "ratio, to", verdict.high, OF_A_RATIO
    for name in filter(None, (record.candidate, record.baseline)):
        if values := [value for value in rounds_csv.values(record, name) if math.isfinite(value)]:
            yield f"{record.metric} of {name}, median", statistics.median(values), metrics.unit(record.metric)
