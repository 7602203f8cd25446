"""The forest plot: the ratio of each claim with its interval, one line for each, so that many are seen at a glance.

Speeds share one axis, with slower on the left and faster on the right. Counters have another one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from pytest_dbcluster.claims.claim import STALLS, Outcome
from pytest_dbcluster.reporting.charts import drawing, scales
from pytest_dbcluster.reporting.charts.claim import bounded, bounds
from pytest_dbcluster.reporting.charts.colours import GRID, HOLDS, INK, MARGIN, OPEN, PAPER, PUBLISHED, REFUTED, SOFT
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables import closing
from pytest_dbcluster.rounds import metrics

WIDTH, LINE = 10.0, 0.28  # inches: of the plot, and the height of a claim
LETTERS, LETTER = 70, 0.072  # of a name: the most that fit, and the inches of one
ENDS = 30  # letters of a cut name after the gap
MARKS = {Outcome.HOLDS: ("o", HOLDS), Outcome.FAILS: ("X", REFUTED), Outcome.INCONCLUSIVE: ("D", OPEN)}
BESIDE = ("s", SOFT)  # a comparison that claims nothing


@dataclasses.dataclass(frozen=True)
class Line:
    """A claim of the plot. name: as it is written left of it. link: the address of its details; empty for none."""

    record: ClaimRecord
    name: str
    link: str = ""


def svg(lines: Sequence[Line], name: str = "forest") -> str | None:
    """The plot of these claims, from top to bottom; None without matplotlib, and when no claim has a ratio."""
    shown = [line for line in lines if not math.isnan(line.record.verdict.ratio)]
    if not shown or not drawing.available():
        return None
    counted = all(counter(line.record) for line in shown)
    size = (WIDTH, LINE * len(shown) + 1.0)
    left = 0.15 + LETTER * max(len(_short(line.name)) for line in shown)
    with drawing.figure(name, size, left=left, right=0.5, top=0.42, bottom=0.58) as drawn:
        axes = drawn.axes[0]
        ends = [end for line in shown for end in _ends(line.record)]
        limits = scales.zero(ends), scales.infinity(ends)
        for place, line in enumerate(reversed(shown)):
            _draw(axes, line, place, limits)
        _draw_axis(axes, shown, limits, counted=counted)
        return drawn.svg()


def counter(record: ClaimRecord) -> bool:
    """Whether the claim is about a counter, for which neither side is faster."""
    return not metrics.unit(record.metric)


def _draw(axes: Any, line: Line, place: int, limits: tuple[float, float]) -> None:
    """Draw one claim: what it allows for, its interval, its ratio, and the published ratio.

    limits: where 0 and infinity are drawn.
    """
    verdict = line.record.verdict
    marker, colour = MARKS[verdict.outcome] if line.record.asserted else BESIDE
    if bounds(line.record):
        low, high = (min(max(bound, -40.0), 40.0) for bound in verdict.claim.bounds)
        axes.barh(
            place, math.exp(high) - math.exp(low), 0.62, math.exp(low), color=MARGIN, alpha=0.25, linewidth=0, zorder=0
        )
    intervals = _intervals(line.record)
    known = bool(intervals)
    for low, high, given in intervals:
        ends = [_inside(low, limits), _inside(high, limits)]
        axes.plot(ends, [place] * 2, color=given or colour, linewidth=1.4 if given else 2.4, solid_capstyle="butt")
    ratio = _inside(verdict.ratio, limits)
    if line.record.published:
        axes.plot([line.record.published], [place], "|", color=PUBLISHED, markersize=11, markeredgewidth=2.0, zorder=5)
    axes.plot(
        [ratio],
        [place],
        marker,
        markersize=9 if marker == "X" else 7,  # a cross of the size of a circle looks smaller
        markerfacecolor=colour if known else PAPER,
        markeredgecolor=INK if known else colour,
        markeredgewidth=0.6 if known else 1.4,
        zorder=6,
    )


def _intervals(record: ClaimRecord) -> list[tuple[float, float, str]]:
    """The intervals of a claim: low, high, and a colour of its own for the one by which a guard holds."""
    verdict = record.verdict
    found = [(verdict.low, verdict.high, "")] if bounded(verdict.low, verdict.high) else []
    return [*found, *([(verdict.decided_low, verdict.decided_high, INK)] if closing.holds_as_guard(record) else [])]


def _inside(value: float, limits: tuple[float, float]) -> float:
    return min(max(limits[0], value), limits[1])


def _draw_axis(axes: Any, shown: Sequence[Line], limits: tuple[float, float], *, counted: bool) -> None:
    ends = [_inside(end, limits) for line in shown for end in _ends(line.record)]
    scale = scales.ratios(ends, least=1.5, ends=limits)
    drawing.ratio_axis(axes.xaxis, scale)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x", color=GRID, linewidth=0.8)
    axes.axvline(1.0, color=INK, linewidth=1.0, zorder=1)
    axes.set_ylim(-0.6, len(shown) - 0.4)
    labels = [_short(line.name) for line in reversed(shown)]
    axes.set_yticks(range(len(shown)), labels=labels)
    for line, label in zip(reversed(shown), axes.get_yticklabels(), strict=True):
        label.set_url(line.link or None)
    axes.tick_params(axis="y", length=0, labelsize=9)
    axes.spines["left"].set_visible(False)
    low, high = ("lower", "higher") if counted else ("slower", "faster")
    above = {"textcoords": "offset points", "xycoords": axes.get_xaxis_transform(), "fontsize": 9, "va": "bottom"}
    axes.annotate(f"← {low}", (1.0, 1.0), (-8, 2), ha="right", **above)
    axes.annotate(f"{high} →", (1.0, 1.0), (8, 2), ha="left", **above)
    axes.set_xlabel("ratio of the counter" if counted else "ratio of speed", labelpad=2)


def _ends(record: ClaimRecord) -> list[float]:
    """The ratios that the axis must show for a claim."""
    verdict = record.verdict
    allowed = [] if verdict.claim.kind == STALLS else bounds(record)
    intervals = [end for low, high, _ in _intervals(record) for end in (low, high)]
    return [verdict.ratio, *intervals, record.published or 1.0, *allowed]


def _short(name: str) -> str:
    """The name, cut in its middle: its end tells a claim's releases and runs apart."""
    return name if len(name) <= LETTERS else f"{name[: LETTERS - ENDS - 1]}…{name[-ENDS:]}"
