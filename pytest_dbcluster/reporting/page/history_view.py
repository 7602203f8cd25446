"""The part of the page about the history of its claims: a chart of each, and where the level changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_dbcluster.reporting.charts import colours
from pytest_dbcluster.reporting.history import views
from pytest_dbcluster.reporting.history.history_file import History
from pytest_dbcluster.reporting.history.views import ClaimHistory
from pytest_dbcluster.reporting.page.sources import Source


@dataclasses.dataclass(frozen=True)
class HistoryView:
    """One claim over its runs."""

    history: ClaimHistory
    """The runs; the template shows their number, and what changed."""

    chart: str
    """SVG text."""

    @property
    def title(self) -> str:
        """Claim, workload and release."""
        return f"{self.history.last.text}, {self.history.last.load}, {self.history.release}"


def view(read: Sequence[Source]) -> list[HistoryView]:
    """The histories of all claims of these results that have two runs or more."""
    history = History(
        tuple(dict.fromkeys(entry for source in read for entry in source.history.entries)),
        tuple(dict.fromkeys(item for source in read for item in source.history.accepted)),
    )
    found = []
    for number, item in enumerate(views.claims(history), 1):
        if svg := item.svg(f"history{number}"):
            found.append(HistoryView(item, colours.apply_theme(svg)))
    return found
