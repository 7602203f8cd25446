"""Charts as SVG: the rounds and the running ratio of a claim, or the points of a curve."""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Sequence
from typing import Any

from pytest_dbcluster.claims import critical_values, estimators
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.records import ClaimRecord, CurveRecord
from pytest_dbcluster.reporting.tables import closing
from pytest_dbcluster.rounds import metrics

MISSING = "no charts: matplotlib is not installed; pip install 'pytest-dbcluster[plots]'"
INCHES = (8.0, 4.0)
# Fixed identifiers and text as text, so that the same rounds give the same file.
STYLE: Any = {"svg.hashsalt": "pytest-dbcluster", "svg.fonttype": "none", "font.size": 9.0, "font.family": "sans-serif"}
COLOURS = ("#d1495b", "#2e6f95", "#6a994e", "#9a6fb0", "#a67c52")
CLAIM, PUBLISHED = "#222222", "#e08e0b"


def available() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def drawable(record: ClaimRecord) -> bool:
    """Whether a claim gets a chart: it has a pair, and matplotlib is installed."""
    return bool(record.verdict.pairs) and available()


def chart(record: ClaimRecord) -> str | None:
    """The chart of a claim as SVG text; None without matplotlib, or without a pair."""
    if not drawable(record):
        return None
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        figure = Figure(figsize=INCHES, layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 4))
        figure.suptitle(_title(record), fontsize=10)
        _draw_rounds(above, record)
        _draw_ratio(below, record)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def curve(record: CurveRecord) -> str | None:
    """The chart of a curve as SVG text: medians with intervals, one line for each variant; None without matplotlib."""
    if not available():
        return None
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        figure = Figure(figsize=INCHES, layout="constrained")
        axes = figure.subplots()
        figure.suptitle(f"{record.load} over {record.field}", fontsize=10)
        for number, name in enumerate(record.variants):
            _draw_curve(axes, record, name, COLOURS[number % len(COLOURS)])
        axes.set_xticks(range(len(record.values)), [str(value) for value in record.values])
        axes.set_xlabel(record.field)
        axes.set_ylabel(metrics.label(record.metric))
        axes.set_ylim(bottom=0)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        _plain(axes)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def _draw_curve(axes: Any, record: CurveRecord, name: str, colour: str) -> None:
    """Draw one variant; the values have equal distances on the axis, so that 1, 2, 4 and 64 can be told apart."""
    points = [point for point in record.points if point.variant == name]
    positions = [record.values.index(point.value) for point in points]
    medians = [point.median for point in points]
    below = [0.0 if point.low is None else point.median - point.low for point in points]
    above = [0.0 if point.high is None else point.high - point.median for point in points]
    axes.errorbar(positions, medians, yerr=[below, above], fmt="o-", markersize=4, capsize=3, color=colour, label=name)


def _title(record: ClaimRecord) -> str:
    word = closing.WORDS[record.verdict.outcome] if record.asserted else "beside"
    return f"{record.text}, {record.load}: {word}, {closing.estimate(record)}"


def _draw_rounds(axes: Any, record: ClaimRecord) -> None:
    """Draw the metric of each round; a thin vertical line joins the rounds of a pair."""
    shown = {name: rounds_csv.values(record, name) for name in record.rounds}
    numbers = range(1, record.verdict.pairs + 1)
    for pair, block in zip(numbers, zip(*shown.values(), strict=True), strict=True):
        axes.plot([pair] * len(block), block, color="#bbbbbb", linewidth=0.8, zorder=1)
    for (name, values), colour in zip(shown.items(), COLOURS, strict=False):
        axes.plot(numbers, values, "o", markersize=3.5, color=colour, label=name, zorder=2)
    axes.set_ylabel(metrics.label(record.metric))
    axes.set_ylim(0, 1.08 * max(map(max, shown.values())) or None)
    axes.legend(loc="lower right", ncols=len(shown), frameon=False)
    _plain(axes)


def _draw_ratio(axes: Any, record: ClaimRecord) -> None:
    """Draw the ratio of each pair, the running estimate and interval, the bounds of the claim, the published ratio."""
    ordered = len(rounds_csv.steps(record)) > 1  # a claim about an order, with a ratio for each two neighbours
    for (fast, slow), colour in zip(rounds_csv.steps(record), COLOURS[1:], strict=False):
        ratios = _log_ratios(record, fast, slow)
        drawn = range(1, len(ratios) + 1)
        axes.plot(drawn, [estimators.factor(ratio) for ratio in ratios], ".", markersize=4, color="#999999")
        label = f"{fast} / {slow}" if ordered else "ratio so far"
        axes.plot(drawn, _running(ratios), color=colour, linewidth=1.6, label=label)
        _draw_interval(axes, ratios, record.verdict.alpha, colour, 0.16, "" if ordered else "interval")
        if record.verdict.claim.guard:
            _draw_interval(axes, ratios, critical_values.GUARD_LEVEL, colour, 0.3, "interval")
    word = "claim" if record.asserted else "equal"
    for bound in _bounds(record):
        axes.axhline(bound, color=CLAIM, linewidth=1.0, label=f"{word}: {closing.number(bound)}")
    if record.published is not None:
        label = f"published: {closing.number(record.published)}"
        axes.axhline(record.published, color=PUBLISHED, linewidth=1.2, linestyle="--", label=label)
    axes.set_yscale("log")
    axes.set_ylim(*_limits(record))
    axes.yaxis.set_major_locator(_locator())
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
    axes.yaxis.set_minor_formatter(lambda *_: "")
    axes.set_ylabel("ratio")
    axes.set_xlabel("pair")
    axes.set_xlim(0.5, record.verdict.pairs + 0.5)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    _plain(axes)


def _locator() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10])


def _plain(axes: Any) -> None:
    """Remove the upper and right frame; draw a light horizontal grid below the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#eeeeee", linewidth=0.8)
    axes.set_axisbelow(True)


def _draw_interval(axes: Any, ratios: Sequence[float], alpha: float, colour: str, opacity: float, label: str) -> None:
    """Draw the interval of all looks together, which changes at looks only; ``alpha`` is the error of one side."""
    looks = [look for look in critical_values.LOOKS if look <= len(ratios)]
    pairs, lows, highs = [], [], []
    for look, end in zip(looks, [*looks, len(ratios)][1:], strict=True):
        low, high = map(estimators.factor, estimators.interval(ratios[:look], alpha))
        if not math.isinf(high):
            pairs += [look, end]
            lows += [low, low]
            highs += [high, high]
    if pairs:
        named = {"label": f"{100 * (1 - 2 * alpha):.4g} % {label}"} if label else {}
        axes.fill_between(pairs, lows, highs, color=colour, alpha=opacity, linewidth=0, **named)
        axes.plot(pairs[-1:] * 2, [lows[-1], highs[-1]], color=colour, linewidth=1.2)


def _log_ratios(record: ClaimRecord, fast: str, slow: str) -> list[float]:
    """The natural logarithm of fast / slow for each pair, as speeds."""
    pairs = zip(rounds_csv.values(record, fast), rounds_csv.values(record, slow), strict=True)
    sign = -1 if metrics.unit(record.metric) == "ms" else 1  # the lower latency is the higher speed
    return [sign * estimators.log_ratio(upper, lower) for upper, lower in pairs]


def _running(ratios: Sequence[float]) -> list[float]:
    """The Hodges-Lehmann estimate of the ratio after each pair."""
    return [estimators.factor(estimators.hodges_lehmann(ratios[:end])) for end in range(1, len(ratios) + 1)]


def _bounds(record: ClaimRecord) -> list[float]:
    """The finite bounds of the claim as ratios; empty for a claim about stalls, which counts."""
    if record.verdict.claim.kind == "no_more_stalls_than":
        return []
    return sorted({math.exp(bound) for bound in record.verdict.claim.bounds if not math.isinf(bound)})


def _limits(record: ClaimRecord) -> tuple[float, float]:
    """The range of the axis: all ratios and lines, but no ratio of a counter that is zero in one variant."""
    ratios = [ratio for fast, slow in rounds_csv.steps(record) for ratio in _log_ratios(record, fast, slow)]
    lines = [math.log(line) for line in (*_bounds(record), record.published) if line]
    shown = [ratio for ratio in (*ratios, *lines, 0.0) if abs(ratio) < 20]
    low, high = min(shown), max(shown)
    room = 0.08 * max(high - low, 0.1)
    return math.exp(low - room), math.exp(high + room)
