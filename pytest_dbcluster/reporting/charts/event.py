"""The chart of a claim about an event: commits, stalls, marks and errors, and below them all values."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pytest_dbcluster.formatting import elide
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.charts.colours import INK, MARGIN, SOFT, style
from pytest_dbcluster.reporting.charts.drawing import Drawing
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.outages.outage import PER_SECOND, Outage
from pytest_dbcluster.rounds.round import Round

BEFORE = 4.0  # seconds before the event that are shown
NAME = 14  # letters of a variant that fit beside the axis
FAINT, STALLED = 0.18, 0.05  # of a single repetition, and of its stall; the median is drawn in full
ERRORS, FIRST, STEP = 3, 0.96, 0.075  # the most frequent ones; height of their first line, and of the next ones below


def draw(drawn: Drawing, record: ClaimRecord) -> None:
    """Draw both panels of a figure: commits of each variant, and its values with the bound of the claim."""
    above, below = drawn.axes
    every = [one.outage for rounds in record.rounds.values() for one in rounds if one.outage]
    ends = max((one.observed_seconds for one in every), default=1.0)
    for number, (name, rounds) in enumerate(record.rounds.items()):
        own = [one.outage for one in rounds if one.outage]
        _draw_commits(above, own, number, name)
        _draw_marks(above, own, ends, style(number).colour)
    _draw_errors(above, every)
    above.axvline(0, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    drawing.upright_label(above, "commits / 0.1 s")
    above.set_xlabel("seconds since the event", labelpad=1)
    above.set_xlim(-BEFORE, ends)
    above.set_ylim(bottom=0)
    drawing.few_ticks(above.yaxis, 4)
    drawing.few_ticks(above.xaxis, 9)
    drawing.legend(above, 4)
    draw_values(below, record)


def _draw_commits(axes: Any, outages: Sequence[Outage], number: int, name: str) -> None:
    """Draw the commits and the stall of each repetition faintly, their median, and the usual load with its half."""
    given, by_tenth = style(number), dict[int, list[int]]()
    for one in outages:
        tenths = range(one.first_tenth, one.first_tenth + len(one.commits_by_tenth))
        shown = [(tenth, count) for tenth, count in zip(tenths, one.commits_by_tenth, strict=True)][:-1]
        axes.plot(
            [tenth / PER_SECOND for tenth, _ in shown],
            [count for _, count in shown],
            color=given.colour,
            alpha=FAINT,
            linewidth=0.7,
        )
        if math.isfinite(one.stall):
            axes.axvspan(
                one.stall_at, one.stall_at + one.stall, color=given.colour, alpha=STALLED, linewidth=0, zorder=0
            )
        for tenth, count in shown:
            by_tenth.setdefault(tenth, []).append(count)
    common = sorted(tenth for tenth, counts in by_tenth.items() if 2 * len(counts) > len(outages))
    axes.plot(
        [tenth / PER_SECOND for tenth in common],
        [statistics.median(by_tenth[tenth]) for tenth in common],
        color=given.colour,
        linestyle=given.line,
        linewidth=1.4,
        label=f"{name}, median",
    )
    usual = [one.usual.rate for one in outages if math.isfinite(one.usual.rate)]
    if usual:
        rate = statistics.median(usual) / PER_SECOND
        axes.axhline(rate, color=SOFT, linewidth=0.9, linestyle=":", label="usual" if not number else None)
        axes.axhline(rate / 2, color=SOFT, linewidth=0.5, linestyle=":")


def _draw_marks(axes: Any, outages: Sequence[Outage], ends: float, colour: str) -> None:
    """Draw each mark that most repetitions have, at its median, with its seconds. ends: of the axis."""
    seconds: dict[str, list[float]] = {}
    for one in outages:
        for name, at in one.marks.items():
            seconds.setdefault(name, []).append(at)
    for name, found in seconds.items():
        if 2 * len(found) > len(outages) and (at := statistics.median(found)) < ends:
            axes.axvline(at, color=colour, linewidth=0.5)
            label = {"rotation": 90, "fontsize": 6, "color": colour, "ha": "right", "va": "bottom"}
            axes.text(at, 0.02, f"{name} {at:.1f} s", transform=axes.get_xaxis_transform(), clip_on=True, **label)


def _draw_errors(axes: Any, outages: Sequence[Outage]) -> None:
    """Draw the most frequent errors of the load, each as ticks on a line with its number and its count."""
    counts = Counter[int]()
    for one in outages:
        for error in one.errors:
            counts[error.number] += error.times
    for line, (number, times) in enumerate(counts.most_common(ERRORS)):
        height = FIRST - line * STEP
        at = [error.seconds for one in outages for error in one.errors if error.number == number]
        axes.plot(at, [height] * len(at), "|", transform=axes.get_xaxis_transform(), color=SOFT, markersize=4)
        title = f"error {number} x {times}" if number else f"connection lost x {times}"
        place = {"fontsize": 6, "color": SOFT, "ha": "left", "va": "center"}
        axes.text(0.005, height, title, transform=axes.transAxes, **place)


def draw_values(axes: Any, record: ClaimRecord) -> None:
    """Draw the value of each repetition as a dot, and the bound of a claim about one variant.

    The dot of a lower bound is hollow.
    """
    names = list(record.rounds)
    for number, name in enumerate(names):
        given, values = style(number), rounds_csv.values(record, name)
        ended = [not _is_lower_bound(one, record.metric) for one in record.rounds[name]]
        for whole, face in ((True, given.colour), (False, "none")):
            shown = [value for value, end in zip(values, ended, strict=True) if end is whole]
            places = [len(names) - 1 - number] * len(shown)
            marks = {"markersize": 5.2, "markerfacecolor": face, "markeredgecolor": given.colour, "alpha": 0.8}
            axes.plot(shown, places, given.marker, linestyle="none", clip_on=False, **marks)
    if len(names) == 1 and record.verdict.claim.margin:
        axes.axvspan(0, record.verdict.claim.bounds[1], color=MARGIN, alpha=0.22, linewidth=0, zorder=0)
        ends = [end for end in (record.verdict.low, record.verdict.high) if math.isfinite(end)]
        axes.plot(ends, [-0.35] * len(ends), color=INK, linewidth=2.2)
    axes.set_yticks(range(len(names)), labels=[elide(name, NAME) if len(names) > 1 else "" for name in reversed(names)])
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlim(left=0)
    axes.set_xlabel(metrics.label(record.metric), labelpad=1)
    drawing.few_ticks(axes.xaxis, 9)


def _is_lower_bound(done: Round, metric: str) -> bool:
    return done.outage.is_lower_bound(metric) if done.outage else done.outcome.ended_early
