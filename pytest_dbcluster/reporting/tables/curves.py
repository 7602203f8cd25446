"""The table of a curve for the terminal and ``summary.md``, and its CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from pytest_dbcluster.formatting import amount
from pytest_dbcluster.reporting.records import CurvePoint, CurveRecord
from pytest_dbcluster.reporting.tables.layout import Row, TableBlock
from pytest_dbcluster.rounds import ledger_summary, metrics

COLUMNS = ("variant", "metric", "unit", "rounds", "median", "low", "high")
LATENCIES = tuple(f"p{100 * share:g}_ms" for share in ledger_summary.SHOWN)
WIDE = 3  # maximum number of variants that are columns; more variants become rows


def block(made: CurveRecord) -> TableBlock:
    """The table: a row for each value, and a column for each variant.

    If there are more than WIDE variants, they do not fit side by side: each value and variant has a row. Shares of a
    baseline are short, so they always are columns.
    """
    title = f"curve: {', '.join(filter(None, [made.load, made.parameters, figure(made)]))}"
    notes = "; ".join(made.notes)
    medians = {(point.value, point.variant): median_text(point) for point in made.points}
    columns: tuple[str, ...] = (made.field, *made.variants)
    if made.baseline:
        unit = metrics.unit(made.metric)
        columns = (made.field, *(f"{name}, {unit or '%'}" if name == made.baseline else name for name in made.variants))
        shares = {(point.value, point.variant): made.share(point) for point in made.points}
        medians |= {
            key: "-" if share is None else f"{100 * share:.0f} %"
            for key, share in shares.items()
            if key[1] != made.baseline
        }
    elif len(made.variants) > WIDE:
        columns = (made.field, "variant", metrics.unit(made.metric), "rounds")
    if made.baseline or len(made.variants) <= WIDE:
        cells = [(str(value), *(medians.get((value, name), "-") for name in made.variants)) for value in made.values]
    else:
        cells = [(str(point.value), point.variant, median_text(point), str(len(point.rounds))) for point in made.points]
    remarks = [""] * (len(cells) - 1) + [notes]
    return TableBlock(title, columns, tuple(Row(row, "", remark) for row, remark in zip(cells, remarks, strict=True)))


def figure(made: CurveRecord, shows: str = "median (95 % interval)") -> str:
    """What the table shows. shows: the words for a curve without a baseline."""
    if made.baseline:
        return f"medians in percent of {made.baseline}"
    return f"{metrics.label(made.metric)}, {shows}"


def median_text(point: CurvePoint) -> str:
    """The median with its 95 % interval, ``1234 (1200 .. 1260)``; without an interval if there is none."""
    if point.low is None or point.high is None:
        return amount(point.median)
    return f"{amount(point.median)} ({amount(point.low)} .. {amount(point.high)})"


def as_csv(made: CurveRecord) -> str:
    """A line for each value and variant, with latencies in milliseconds over all its rounds together.

    Latencies of an open loop include the operations that never ended, as in claims. A curve with a baseline has a
    last column with the median as a share of the baseline's.
    """
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    relative = [f"share_of_{made.baseline}"] if made.baseline else []
    write([made.field, *COLUMNS, *LATENCIES, *relative])
    unit = metrics.unit(made.metric)
    for point in made.points:
        low, high = ("" if bound is None else bound for bound in (point.low, point.high))
        figures = (len(point.rounds), point.median, low, high, *_latencies(point))
        share = [made.share(point) or ""] if relative else []
        write([point.value, point.variant, made.metric, unit, *figures, *share])
    return text.getvalue()


def _latencies(point: CurvePoint) -> Sequence[object]:
    """The cells of LATENCIES; empty for a load without a ledger."""
    latencies = metrics.latencies(point.rounds)
    return [1e3 * latencies.percentile(share) if latencies.total else "" for share in ledger_summary.SHOWN]
