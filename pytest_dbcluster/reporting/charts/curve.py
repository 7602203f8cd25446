"""The chart of a sweep: the metric of each variant over the values, and below it the p95 latency where there is one."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.charts.colours import style
from pytest_dbcluster.reporting.records import CurvePoint, CurveRecord
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.round import Round

WIDTH, HEIGHT, WITH_LATENCY = 8.0, 3.0, 4.8
WIDE, FEW = 5, 2  # columns of the legend: for short names, and for long ones
SHORT, ROW = 12, 0.19  # letters of a short name; inches of a row of the legend
BELOW = "p95"
APART = 0.2  # on the axis, between the rounds of two variants


def svg(record: CurveRecord, name: str = "curve", *, titled: bool = True) -> str | None:
    """The chart of a curve: lines through medians, single rounds as dots; None without matplotlib.

    A band is the 95 % interval of the median; there is none where a point has too few rounds for one. ``name`` and
    ``titled`` are those of ``claim.svg``.
    """
    if not drawing.available():
        return None
    tail = _has(record, BELOW)
    size = (WIDTH, WITH_LATENCY if tail else HEIGHT)
    heights = (3, 2) if tail else (1,)
    columns = WIDE if max(map(len, record.variants)) <= SHORT else FEW
    rows = math.ceil(len(record.variants) / columns)
    size = (size[0], size[1] + (rows - 1) * ROW)
    top = (0.62 if titled else 0.34) + (rows - 1) * ROW
    with drawing.figure(name, size, heights, top=top, gap=0.3) as drawn:
        if titled:
            drawn.title(f"{record.load} over {record.field}")
        _draw(drawn.axes[0], record, record.metric, interval=True)
        if tail:
            _draw(drawn.axes[1], record, BELOW, interval=False)
            drawn.axes[0].xaxis.set_visible(False)
        drawn.axes[-1].set_xlabel(record.field)
        drawing.legend(drawn.axes[0], columns)
        return drawn.file() if titled else drawn.svg()


def _has(record: CurveRecord, metric: str) -> bool:
    """Whether the rounds have this metric besides the curve's own."""
    return metric != record.metric and any(_values(point, metric, record.load) for point in record.points)


def _draw(axes: Any, record: CurveRecord, metric: str, *, interval: bool) -> None:
    for number, name in enumerate(record.variants):
        _draw_variant(axes, record, name, (number, metric), interval=interval)
    axes.set_xticks(range(len(record.values)), [str(value) for value in record.values])
    axes.set_xlim(-0.35, len(record.values) - 0.65)
    drawing.upright_label(axes, metrics.label(metric))
    axes.set_ylim(bottom=0)
    drawing.few_ticks(axes.yaxis, 5)


def _draw_variant(axes: Any, record: CurveRecord, name: str, drawn: tuple[int, str], *, interval: bool) -> None:
    """Draw one variant; the values have equal distances on the axis, so that 1, 2, 4 and 64 can be told apart."""
    number, metric = drawn
    given, aside = style(number), (number - (len(record.variants) - 1) / 2) * APART
    points = [point for point in record.points if point.variant == name]
    lines: list[tuple[float, float]] = []
    for point in points:
        at, values = record.values.index(point.value), _values(point, metric, record.load)
        if values:
            dots = {"color": given.colour, "alpha": 0.55, "markersize": 3.6, "markeredgewidth": 0}
            axes.plot([at + aside] * len(values), values, given.marker, **dots)
            lines.append((at, point.median if interval else statistics.median(values)))
    drawing.line(axes, [at for at, _ in lines], [middle for _, middle in lines], given, name)
    if interval:
        _draw_band(axes, record, points, given.colour)


def _draw_band(axes: Any, record: CurveRecord, points: list[CurvePoint], colour: str) -> None:
    """Draw the intervals of the medians; a point without one interrupts the band."""
    ends: list[tuple[float, float]] = [
        (math.nan, math.nan) if point.low is None or point.high is None else (point.low, point.high) for point in points
    ]
    if any(math.isfinite(low) for low, _ in ends):
        at = [record.values.index(point.value) for point in points]
        axes.fill_between(at, [low for low, _ in ends], [high for _, high in ends], color=colour, alpha=0.16, lw=0)
        for place, (low, high) in zip(at, ends, strict=True):
            axes.plot([place, place], [low, high], color=colour, linewidth=1.1)


def _values(point: CurvePoint, metric: str, load: str) -> list[float]:
    """The metric of each round of a point that has it."""
    shown: Callable[[Round], float] = lambda done: metrics.shown(done, metric, load)  # noqa: E731
    try:
        return [value for done in point.rounds if math.isfinite(value := shown(done))]
    except (ConfigError, ZeroDivisionError):
        return []
