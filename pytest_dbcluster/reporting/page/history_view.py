"""What the page says about the history of its claims: a chart of each, and where the level changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_dbcluster.reporting.charts import colours
from pytest_dbcluster.reporting.history import views
from pytest_dbcluster.reporting.history.history_file import History
from pytest_dbcluster.reporting.page.sources import Source


@dataclasses.dataclass(frozen=True)
class HistoryView:
    """One claim over its runs. title: claim and release. chart: SVG text. sentences: what changed, and when."""

    title: str
    runs: int
    chart: str
    sentences: tuple[str, ...]


def view(read: Sequence[Source]) -> list[HistoryView]:
    """The histories of all claims of these results that have two runs or more."""
    history = History(
        tuple(dict.fromkeys(entry for source in read for entry in source.history.entries)),
        tuple(dict.fromkeys(item for source in read for item in source.history.accepted)),
    )
    found = []
    for number, item in enumerate(views.claims(history), 1):
        if svg := item.svg(f"history{number}"):
            title = f"{item.last.text}, {item.last.load}, {item.release}"
            found.append(HistoryView(title, len(item.entries), colours.themed(svg), tuple(item.sentences())))
    return found
