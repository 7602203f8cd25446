"""The part of the page about a sweep."""

from __future__ import annotations

import dataclasses

from pytest_dbcluster.reporting.charts import colours
from pytest_dbcluster.reporting.charts import curve as curve_chart
from pytest_dbcluster.reporting.page.claim_view import Table
from pytest_dbcluster.reporting.records import CurveRecord
from pytest_dbcluster.reporting.tables import curves


@dataclasses.dataclass(frozen=True)
class SweepView:
    """A sweep as text, table and chart."""

    record: CurveRecord
    """The sweep; the template shows some of its fields as they are."""

    key: str
    """The address of the sweep in the page."""

    source: str
    """Its results directory; empty on a page of one directory."""

    chart: str
    """SVG text."""

    table: Table
    """The median of each variant at each value."""

    @property
    def figure(self) -> str:
        """What the table shows."""
        return curves.figure(self.record, "median and its 95 % interval")

    @property
    def data(self) -> str:
        """The size of the workload's tables; empty if points differ in it."""
        sizes = {point.data for point in self.record.points}
        return sizes.pop() if len(sizes) == 1 else ""


def view(record: CurveRecord, key: str, source: str = "") -> SweepView:
    """The view of a sweep, with its address in the page."""
    made = curves.block(record)
    chart = colours.apply_theme(curve_chart.svg(record, key, titled=False) or "")
    return SweepView(record, key, source, chart, Table(made.columns, tuple(row.cells for row in made.rows)))
