"""Curves as text: a table of each, and a CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from pytest_dbcluster.reporting.records import CurvePoint, CurveRecord
from pytest_dbcluster.reporting.tables.layout import Block, Row
from pytest_dbcluster.rounds import ledger_summary, metrics

COLUMNS = ("variant", "metric", "unit", "rounds", "median", "low", "high")
LATENCIES = tuple(f"p{100 * share:g}_ms" for share in ledger_summary.SHOWN)
WIDE = 3  # variants side by side; more of them stand below each other


def block(made: CurveRecord) -> Block:
    """The table: a row for each value, or where many variants were measured for each value and variant."""
    title = f"curve: {made.load}, {metrics.label(made.metric)}, median (95 % interval)"
    notes = "; ".join(made.notes)
    if len(made.variants) > WIDE:
        cells: list[tuple[str, ...]] = [
            (str(one.value), one.variant, shown(one), str(len(one.rounds))) for one in made.points
        ]
        columns: tuple[str, ...] = (made.field, "variant", metrics.unit(made.metric), "rounds")
    else:
        by_place = {(one.value, one.variant): shown(one) for one in made.points}
        cells = [(str(value), *(by_place.get((value, name), "-") for name in made.variants)) for value in made.values]
        columns = (made.field, *made.variants)
    remarks = [""] * (len(cells) - 1) + [notes]
    return Block(title, columns, tuple(Row(row, "", remark) for row, remark in zip(cells, remarks, strict=True)))


def shown(point: CurvePoint) -> str:
    """``1234 (1200 .. 1260)``."""
    if point.low is None or point.high is None:
        return f"{point.median:.4g}"
    return f"{point.median:.4g} ({point.low:.4g} .. {point.high:.4g})"


def as_csv(made: CurveRecord) -> str:
    """A line for each value and variant; the latencies are those of all its rounds together, in milliseconds.

    Those of an open loop count what was lost, as claims do.
    """
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write([made.field, *COLUMNS, *LATENCIES])
    for one in made.points:
        unit = metrics.unit(made.metric)
        low, high = ("" if value is None else value for value in (one.low, one.high))
        write([one.value, one.variant, made.metric, unit, len(one.rounds), one.median, low, high, *_latencies(one)])
    return text.getvalue()


def _latencies(point: CurvePoint) -> Sequence[object]:
    latencies = metrics.latencies(point.rounds)
    return [1e3 * latencies.percentile(share) if latencies.total else "" for share in ledger_summary.SHOWN]
