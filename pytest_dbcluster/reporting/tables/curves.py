"""The table of a curve for the terminal and ``summary.md``, and its CSV file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims.claim import EQUAL
from pytest_dbcluster.formatting import NOTHING, amount
from pytest_dbcluster.measuring.curve import RELEASE
from pytest_dbcluster.reporting.records import CurvePoint, CurveRecord
from pytest_dbcluster.reporting.tables.layout import Row, TableBlock
from pytest_dbcluster.rounds import ledger_summary, metrics

RATIO = "ratio"  # the heading of the ratios to a reference
COLUMNS = ("variant", "metric", "unit", "rounds", "median", "low", "high")
LATENCIES = tuple(f"p{100 * share:g}_ms" for share in ledger_summary.SHOWN)
WIDE = 3  # maximum number of variants that are columns; more variants become rows


def block(made: CurveRecord) -> TableBlock:
    """The table: a row for each value, and a column for each variant.

    If there are more than WIDE variants, they do not fit side by side: each value and variant has a row. Shares of a
    baseline are short, so they always are columns. A curve with a reference has a second column for each variant: the
    ratio to the reference.
    """
    title = f"curve: {', '.join(filter(None, [made.load, made.parameters, figure(made)]))}"
    columns: tuple[str, ...] = (made.field, *made.variants)
    by_row: Sequence[tuple[str, ...]] = []
    if made.baseline:
        unit = metrics.unit(made.metric)
        columns = (made.field, *(f"{name}, {unit or '%'}" if name == made.baseline else name for name in made.variants))
    elif len(made.variants) > WIDE:
        ratio = (RATIO,) if made.reference else ()
        columns = (made.field, "variant", metrics.unit(made.metric), *ratio, "rounds")
        by_row = [
            (str(point.value), point.variant, *_cells(made, point), str(len(point.rounds))) for point in made.points
        ]
    elif made.reference:
        several = len(made.variants) > 1
        heads = [(name, f"{name}: {RATIO}" if several else RATIO) for name in made.variants]
        columns = (made.field, *(head for both in heads for head in both))
    cells = by_row or list(_rows(made))
    remarks = [""] * (len(cells) - 1) + ["; ".join([*made.notes, *_versions(made)])]
    return TableBlock(title, columns, tuple(Row(row, "", remark) for row, remark in zip(cells, remarks, strict=True)))


def _rows(made: CurveRecord) -> Iterator[tuple[str, ...]]:
    """The cells of a row for each value, with the variants side by side."""
    found = {(point.value, point.variant): _cells(made, point) for point in made.points}
    nothing = (NOTHING,) * (2 if made.reference else 1)
    for value in made.values:
        yield (str(value), *(cell for name in made.variants for cell in found.get((value, name), nothing)))


def _cells(made: CurveRecord, point: CurvePoint) -> tuple[str, ...]:
    """The cells of one point: its median or share, and its ratio to the curve's reference if there is one."""
    if made.baseline and point.variant != made.baseline:
        share = made.share(point)
        return (NOTHING if share is None else f"{100 * share:.0f} %",)
    return (median_text(point), *([ratio_text(point)] if made.reference else []))


def _versions(made: CurveRecord) -> list[str]:
    """The exact versions of a curve over releases."""
    return [f"releases: {made.release}"] if made.field == RELEASE else []


def figure(made: CurveRecord, shows: str = "median (95 % interval)") -> str:
    """What the table shows. shows: the words for a curve without a baseline."""
    if made.baseline:
        return f"medians in percent of {made.baseline}"
    ratio = f", ratio to {made.reference} (99.9 %)" if made.reference else ""
    return f"{metrics.label(made.metric)}, {shows}{ratio}"


def ratio_text(point: CurvePoint) -> str:
    """The ratio with its interval, ``1.12x (1.05 .. 1.19)``; without an interval if too few rounds bound it."""
    if point.ratio is None:
        return NOTHING
    if point.ratio_low is None and point.ratio_high is None:
        return formatting.ratio(point.ratio, EQUAL)
    low = 0.0 if point.ratio_low is None else point.ratio_low
    high = math.inf if point.ratio_high is None else point.ratio_high
    return formatting.with_interval(point.ratio, low, high, EQUAL)


def median_text(point: CurvePoint) -> str:
    """The median with its 95 % interval, ``1234 (1200 .. 1260)``; without an interval if there is none."""
    if point.low is None or point.high is None:
        return amount(point.median)
    return f"{amount(point.median)} ({amount(point.low)} .. {amount(point.high)})"


def as_csv(made: CurveRecord) -> str:
    """A line for each value and variant, with latencies in milliseconds over all its rounds together.

    Latencies of an open loop include the operations that never ended, as in claims. A curve with a baseline has a
    last column with the median as a share of the baseline's. One with a reference has the ratio to it, and its ends.
    """
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    relative = [f"share_of_{made.baseline}"] if made.baseline else []
    relative += ["ratio", "ratio_low", "ratio_high"] if made.reference else []
    write([made.field, *COLUMNS, *LATENCIES, *relative])
    unit = metrics.unit(made.metric)
    for point in made.points:
        low, high = ("" if bound is None else bound for bound in (point.low, point.high))
        figures = (len(point.rounds), point.median, low, high, *_latencies(point))
        share: list[object] = [made.share(point) or ""] if made.baseline else []
        ratio = (point.ratio, point.ratio_low, point.ratio_high) if made.reference else ()
        share += ["" if value is None else value for value in ratio]
        write([point.value, point.variant, made.metric, unit, *figures, *share])
    return text.getvalue()


def _latencies(point: CurvePoint) -> Sequence[object]:
    """The cells of LATENCIES; empty for a load without a ledger."""
    latencies = metrics.latencies(point.rounds)
    return [1e3 * latencies.percentile(share) if latencies.total else "" for share in ledger_summary.SHOWN]
