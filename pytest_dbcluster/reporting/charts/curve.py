"""The chart of a sweep: the metric of each variant over the values, and below it the p95 latency if there is one.

Releases are shown as ratios to the newest, and below as the metric.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.charts.colours import SOFT, style
from pytest_dbcluster.reporting.records import CurvePoint, CurveRecord
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.round import Round

WIDTH, HEIGHT, WITH_LATENCY = 8.0, 3.0, 4.8
WIDE, FEW = 5, 2  # columns of the legend: for short names, and for long ones
SHORT, ROW = 12, 0.19  # letters of a short name; inches of a row of the legend
BELOW = "p95"
APART, ALL_APART = 0.2, 0.6  # on the axis, between the rounds of two variants, and between the first and the last


def svg(record: CurveRecord, name: str = "curve", *, titled: bool = True) -> str | None:
    """The chart of a curve: lines through medians, single rounds as dots; None without matplotlib.

    A band is the 95 % interval of the median; a point with too few rounds has none. A curve with a baseline shows
    shares of the baseline's median at the same value. A curve with a reference shows the ratios to it, with their
    intervals. Below either is the metric itself. ``name`` and ``titled``: as in ``claim.svg``.
    """
    if not drawing.available():
        return None
    relative = bool(record.baseline or record.reference)
    below = record.metric if relative else BELOW if _has(record, BELOW) else ""
    size = (WIDTH, WITH_LATENCY if below else HEIGHT)
    heights = (3, 2) if below else (1,)
    columns = WIDE if max(map(len, record.variants)) <= SHORT else FEW
    rows = math.ceil(len(record.variants) / columns)
    size = (size[0], size[1] + (rows - 1) * ROW)
    top = (0.62 if titled else 0.34) + (rows - 1) * ROW
    with drawing.figure(name, size, heights, top=top, gap=0.3) as drawn:
        if titled:
            drawn.title(record.title)
        if record.reference:
            _draw_ratios(drawn.axes[0], record)
        else:
            _draw(drawn.axes[0], record, record.metric, interval=True, shares=bool(record.baseline))
        if below:
            _draw(drawn.axes[1], record, below, interval=below == record.metric)
            drawn.axes[0].xaxis.set_visible(False)
        drawn.axes[-1].set_xlabel(record.field)
        drawing.legend(drawn.axes[0], columns)
        return drawn.file() if titled else drawn.svg()


def _has(record: CurveRecord, metric: str) -> bool:
    """Whether the rounds have this metric besides the curve's own."""
    return metric != record.metric and any(_values(point, metric, record.load) for point in record.points)


def _draw(axes: Any, record: CurveRecord, metric: str, *, interval: bool, shares: bool = False) -> None:
    for number, name in enumerate(record.variants):
        _draw_variant(axes, record, name, (number, metric), interval=interval, shares=shares)
    _label_values(axes, record)
    drawing.upright_label(axes, f"% of {record.baseline}" if shares else metrics.label(metric))
    axes.set_ylim(bottom=0)
    drawing.few_ticks(axes.yaxis, 5)


def _draw_ratios(axes: Any, record: CurveRecord) -> None:
    """Draw the ratios to the reference, which is the line at 1, with their intervals."""
    axes.axhline(1.0, color=SOFT, linewidth=1.0)
    for number, name in enumerate(record.variants):
        points = [point for point in record.points if point.variant == name and point.ratio is not None]
        given, aside = style(number), (number - (len(record.variants) - 1) / 2) * _gap(record) / 2
        places = [record.values.index(point.value) + aside for point in points]
        for place, point in zip(places, points, strict=True):
            if point.ratio_low is not None and point.ratio_high is not None:
                axes.plot([place, place], [point.ratio_low, point.ratio_high], color=given.colour, linewidth=1.1)
        drawing.line(axes, places, [point.ratio or 0.0 for point in points], given, name)
    _label_values(axes, record)
    drawing.upright_label(axes, f"speed / {record.reference}")
    drawing.few_ticks(axes.yaxis, 5)


def _label_values(axes: Any, record: CurveRecord) -> None:
    """Name the values on the axis, at equal distances."""
    axes.set_xticks(range(len(record.values)), [str(value) for value in record.values])
    axes.set_xlim(-0.35, len(record.values) - 0.65)


def _draw_variant(
    axes: Any, record: CurveRecord, name: str, drawn: tuple[int, str], *, interval: bool, shares: bool
) -> None:
    """Draw one variant; values have equal distances on the axis, so 1, 2, 4 and 64 are apart.

    shares: in percent of the baseline's median, instead of the metric.
    """
    number, metric = drawn
    given, aside = style(number), (number - (len(record.variants) - 1) / 2) * _gap(record)
    points = [point for point in record.points if point.variant == name]
    lines: list[tuple[float, float]] = []
    for point in points:
        at, scale = record.values.index(point.value), _scale(record, point) if shares else 1.0
        values = [scale * value for value in _values(point, metric, record.load)]
        if values and math.isfinite(scale):
            dots = {"color": given.colour, "alpha": 0.55, "markersize": 3.6, "markeredgewidth": 0}
            axes.plot([at + aside] * len(values), values, given.marker, **dots)
            lines.append((at, scale * point.median if interval else statistics.median(values)))
    drawing.line(axes, [at for at, _ in lines], [middle for _, middle in lines], given, name)
    if interval and not shares:
        _draw_band(axes, record, points, given.colour)


def _gap(record: CurveRecord) -> float:
    """The distance between the rounds of two variants on the axis; smaller for many variants."""
    return min(APART, ALL_APART / max(1, len(record.variants) - 1))


def _scale(record: CurveRecord, point: CurvePoint) -> float:
    """The factor from values of a point to per cent of the baseline; nan if the baseline has no rounds."""
    share = record.share(point)
    return math.nan if share is None or not point.median else 100 * share / point.median


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
    shown: Callable[[Round], float] = lambda done: metrics.display_value(done, metric, load)  # noqa: E731
    try:
        return [value for done in point.rounds if math.isfinite(value := shown(done))]
    except (ConfigError, ZeroDivisionError):
        return []
