"""What the page says about a sweep."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster.reporting.charts import colours
from pytest_dbcluster.reporting.charts import curve as curve_chart
from pytest_dbcluster.reporting.page.claim_view import Table
from pytest_dbcluster.reporting.records import CurveRecord
from pytest_dbcluster.reporting.tables import curves


@dataclasses.dataclass(frozen=True)
class SweepView:
    """A sweep as text, table and chart. figure: what the table shows. notes: limits of the measurement."""

    key: str
    title: str
    figure: str
    release: str
    source: str
    test: str
    chart: str
    table: Table
    notes: tuple[str, ...]


def view(record: CurveRecord, key: str, source: str = "") -> SweepView:
    """The view of a sweep. ``key``: its address in the page."""
    made = curves.block(record)
    return SweepView(
        key=key,
        title=record.title,
        figure=curves.figure(record, "median and its 95 % interval"),
        release=record.release,
        source=source,
        test=record.test,
        chart=colours.themed(curve_chart.svg(record, key, titled=False) or ""),
        table=Table(made.columns, tuple(row.cells for row in made.rows)),
        notes=record.notes,
    )
