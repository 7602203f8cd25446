"""The table of the profile paper: seconds of the published command line, the published figures beside."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables.layout import Block, Row
from pytest_dbcluster.rounds.round import Round


def block(records: Sequence[ClaimRecord]) -> Block | None:
    """A row for each load and variant that ran the published command line; None when none did."""
    rows: dict[tuple[str, str, str], Row] = {}
    for record in records:
        for name, rounds in record.rounds.items():
            # Rounds of a load with a ledger last as long as they were told to, so their seconds say nothing.
            timed = rounds and rounds[0].outcome.ledger is None
            if record.profile == "paper" and timed and (record.load, name, record.release) not in rows:
                published = record.published_seconds.get(name, ())
                cells = (name, record.load, record.release, seconds(_measured(rounds)), seconds(published))
                rows[record.load, name, record.release] = Row(cells, "")
    if not rows:
        return None
    columns = ("variant", "load", "release", "seconds (least .. most)", "published")
    return Block("seconds of the published command line", columns, tuple(rows.values()))


def _measured(rounds: Sequence[Round]) -> tuple[float, ...]:
    """Mean of the averages, least and most of all iterations of all calls."""
    outcomes = [item.outcome for item in rounds]
    least = min(one.seconds if one.least is None else one.least for one in outcomes)
    most = max(one.seconds if one.most is None else one.most for one in outcomes)
    return statistics.fmean(one.seconds for one in outcomes), least, most


def seconds(cell: Sequence[float]) -> str:
    """``0.474 (0.416 .. 0.652)``, or a dash where there is nothing."""
    if len(cell) == 3:
        return f"{cell[0]:.3f} ({cell[1]:.3f} .. {cell[2]:.3f})"
    return f"{cell[0]:.3f}" if cell else "-"
