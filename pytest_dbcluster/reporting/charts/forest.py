"""The forest plot: the ratio of each claim with its interval, one line for each.

Speeds share one axis, with slower on the left and faster on the right. Counters have another one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from pytest_dbcluster.claims.claim import Outcome
from pytest_dbcluster.reporting.charts import drawing, scales
from pytest_dbcluster.reporting.charts.claim import bounds, has_bounds
from pytest_dbcluster.reporting.charts.colours import GRID, HOLDS, INK, MARGIN, OPEN, PAPER, PUBLISHED, REFUTED, SOFT
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables import closing
from pytest_dbcluster.rounds import metrics

LETTER = 0.072  # inches of a letter of a name
MANY = 15  # claims: if there are more, the ticks are above the plot too
MARKS = {Outcome.HOLDS: ("o", HOLDS), Outcome.FAILS: ("X", REFUTED), Outcome.INCONCLUSIVE: ("D", OPEN)}
BESIDE = ("s", SOFT)  # a comparison without a claim


@dataclasses.dataclass(frozen=True)
class Line:
    """A claim of the plot."""

    record: ClaimRecord
    """The claim."""

    name: str
    """The text to the left of the claim."""

    link: str = ""
    """The address of its details; empty without details."""


@dataclasses.dataclass(frozen=True)
class PlotShape:
    """How a plot is laid out."""

    width: float
    """The width in inches."""

    line: float
    """The height of a claim in inches."""

    bar: float
    """The height of the range that a claim allows, as a share of the line."""

    letters: int
    """The most letters of a name that fit."""

    ends: int
    """The number of letters after the gap in a name that is cut."""

    above: bool = False
    """Whether names are above their lines, as on a phone; otherwise they are to the left of them."""


WIDE = PlotShape(10.0, 0.28, 0.62, 70, 30)
NARROW = PlotShape(4.8, 0.46, 0.36, 62, 26, above=True)


def svg(lines: Sequence[Line], name: str = "forest", shape: PlotShape = WIDE) -> str | None:
    """The plot of these claims, from top to bottom; None without matplotlib, and if no claim has a ratio."""
    shown = [line for line in lines if not math.isnan(line.record.verdict.ratio)]
    if not shown or not drawing.available():
        return None
    counted = all(counter(line.record) for line in shown)
    top = 0.42 + (0.2 if len(shown) > MANY else 0)
    size = (shape.width, shape.line * len(shown) + top + 0.58)
    left = 0.15 if shape.above else 0.15 + LETTER * max(len(_short(line.name, shape)) for line in shown)
    with drawing.figure(name, size, left=left, right=0.2 if shape.above else 0.5, top=top, bottom=0.58) as drawn:
        axes = drawn.axes[0]
        ends = [end for line in shown for end in _ends(line.record)]
        limits = scales.zero(ends), scales.infinity(ends)
        scale = scales.ratios([_inside(end, limits) for end in ends], least=1.5, ends=limits)
        for place, line in enumerate(reversed(shown)):
            _draw(axes, line, place, limits, shape)
        _draw_axis(axes, scale, counted=counted, many=len(shown) > MANY)
        _draw_names(axes, shown, shape)
        return drawn.svg()


def counter(record: ClaimRecord) -> bool:
    """Whether the claim is about a counter, for which neither side is faster."""
    return not metrics.unit(record.metric)


def _draw(axes: Any, line: Line, place: int, limits: tuple[float, float], shape: PlotShape) -> None:
    """Draw one claim: the range that it allows, its interval, its ratio, and the published ratio.

    limits: where 0 and infinity are drawn.
    """
    verdict = line.record.verdict
    marker, colour = MARKS[verdict.outcome] if line.record.asserted else BESIDE
    if bounds(line.record):
        low, high = (min(max(bound, -40.0), 40.0) for bound in verdict.claim.bounds)
        shaded = {"color": MARGIN, "alpha": 0.25, "linewidth": 0, "zorder": 0}
        axes.barh(place, math.exp(high) - math.exp(low), shape.bar, math.exp(low), **shaded)
    intervals = _intervals(line.record)
    known = bool(intervals)
    for low, high, own in intervals:
        ends = [_inside(low, limits), _inside(high, limits)]
        axes.plot(ends, [place] * 2, color=own or colour, linewidth=1.4 if own else 2.4, solid_capstyle="butt")
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
    """The intervals of a claim: low, high and colour; the one by which a guard holds has a different colour."""
    verdict = record.verdict
    found = [(verdict.low, verdict.high, "")] if has_bounds(verdict.low, verdict.high) else []
    return [*found, *([(verdict.decided_low, verdict.decided_high, INK)] if closing.holds_as_guard(record) else [])]


def _inside(value: float, limits: tuple[float, float]) -> float:
    return min(max(limits[0], value), limits[1])


def _draw_axis(axes: Any, scale: scales.Scale, *, counted: bool, many: bool) -> None:
    drawing.ratio_axis(axes.xaxis, scale)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x", color=GRID, linewidth=0.8)
    axes.axvline(1.0, color=INK, linewidth=1.0, zorder=1)
    axes.tick_params(axis="x", labeltop=many)
    low, high = ("lower", "higher") if counted else ("slower", "faster")
    up = 16 if many else 2
    above = {"textcoords": "offset points", "xycoords": axes.get_xaxis_transform(), "fontsize": 9, "va": "bottom"}
    axes.annotate(f"← {low}", (1.0, 1.0), (-8, up), ha="right", **above)
    axes.annotate(f"{high} →", (1.0, 1.0), (8, up), ha="left", **above)
    axes.set_xlabel("ratio of the counter" if counted else "ratio of speed", labelpad=2)


def _draw_names(axes: Any, shown: Sequence[Line], shape: PlotShape) -> None:
    """Write the names of the claims, each a link to its details."""
    axes.set_ylim(-0.6, len(shown) - 0.4 + (0.2 if shape.above else 0))
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0, labelsize=9)
    labels = [_short(line.name, shape) for line in reversed(shown)]
    if shape.above:
        axes.set_yticks([])
        paper = {"facecolor": PAPER, "linewidth": 0, "pad": 0.5}  # over the lines of the grid
        beside = {"transform": axes.get_yaxis_transform(), "fontsize": 9, "va": "center", "bbox": paper}
        texts = [axes.text(0, place + 0.42, label, **beside) for place, label in enumerate(labels)]
    else:
        axes.set_yticks(range(len(shown)), labels=labels)
        texts = axes.get_yticklabels()
    for line, text in zip(reversed(shown), texts, strict=True):
        text.set_url(line.link or None)


def _ends(record: ClaimRecord) -> list[float]:
    """The ratios that the axis must show for a claim."""
    verdict = record.verdict
    allowed = bounds(record)
    intervals = [end for low, high, _ in _intervals(record) for end in (low, high)]
    return [verdict.ratio, *intervals, record.published or 1.0, *allowed]


def _short(name: str, shape: PlotShape) -> str:
    """The name, cut in its middle, because its end has the release and the run."""
    if len(name) <= shape.letters:
        return name
    return f"{name[: shape.letters - shape.ends - 1]}…{name[-shape.ends :]}"
