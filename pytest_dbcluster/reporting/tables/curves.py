"""The table of a curve for the terminal and ``summary.md``, and its CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from pytest_dbcluster.formatting import amount
from pytest_dbcluster.reporting.records import CurvePoint, CurveRecord
from pytest_dbcluster.reporting.tables.layout import Block, Row
from pytest_dbcluster.rounds import ledger_summary, metrics

COLUMNS = ("variant", "metric", "unit", "rounds", "median", "low", "high")
LATENCIES = tuple(f"p{100 * share:g}_ms" for share in ledger_summary.SHOWN)
WIDE = 3  # maximum number of variants that are columns; more variants become rows


def block(made: CurveRecord) -> Block:
    """The table: a row for each value, and a column for each variant.

    More than WIDE variants would not fit side by side: then there is a row for each value and variant.
    """
    title = f"curve: {made.load}, {metrics.label(made.metric)}, median (95 % interval)"
    notes = "; ".join(made.notes)
    if len(made.variants) > WIDE:
        cells: list[tuple[str, ...]] = [
            (str(point.value), point.variant, shown(point), str(len(point.rounds))) for point in made.points
        ]
        columns: tuple[str, ...] = (made.field, "variant", metrics.unit(made.metric), "rounds")
    else:
        medians = {(point.value, point.variant): shown(point) for point in made.points}
        cells = [(str(value), *(medians.get((value, name), "-") for name in made.variants)) for value in made.values]
        columns = (made.field, *made.variants)
    remarks = [""] * (len(cells) - 1) + [notes]
    return Block(title, columns, tuple(Row(row, "", remark) for row, remark in zip(cells, remarks, strict=True)))


def shown(point: CurvePoint) -> str:
    """The median with its 95 % interval, ``1234 (1200 .. 1260)``; without it where there is none."""
    if point.low is None or point.high is None:
        return amount(point.median)
    return f"{amount(point.median)} ({amount(point.low)} .. {amount(point.high)})"


def as_csv(made: CurveRecord) -> str:
    """A line for each value and variant, with latencies in milliseconds over all its rounds together.

    Latencies of an open loop include the operations that never ended, as in claims.
    """
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write([made.field, *COLUMNS, *LATENCIES])
    unit = metrics.unit(made.metric)
    for point in made.points:
        low, high = ("" if bound is None else bound for bound in (point.low, point.high))
        figures = (len(point.rounds), point.median, low, high, *_latencies(point))
        write([point.value, point.variant, made.metric, unit, *figures])
    return text.getvalue()


def _latencies(point: CurvePoint) -> Sequence[object]:
    """The cells of LATENCIES; empty for a load without a ledger."""
    latencies = metrics.latencies(point.rounds)
    return [1e3 * latencies.percentile(share) if latencies.total else "" for share in ledger_summary.SHOWN]
