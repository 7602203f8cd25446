"""The history of one claim: its ratio, or its seconds of an event, in each run, and where the level changed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from pytest_dbcluster.claims.claim import STATES
from pytest_dbcluster.reporting.charts import drawing, scales
from pytest_dbcluster.reporting.charts.claim import has_bounds
from pytest_dbcluster.reporting.charts.colours import HOLDS, INK, OPEN, PAPER, REFUTED, SOFT

WIDTH, HEIGHT = 8.0, 2.4
COLOURS = {"holds": HOLDS, "fails": REFUTED, "inconclusive": OPEN}
MARKERS = {"holds": "o", "fails": "X", "inconclusive": "D"}
SAID = {outcome.value: word for outcome, word in STATES.items()}


@dataclasses.dataclass(frozen=True)
class ChartedRun:
    """A run of a claim."""

    label: str
    """The text below the axis."""

    outcome: str
    """The outcome, as in a history's Entry."""

    ratio: float
    """The measured ratio; of an event seconds, or a share of its repetitions."""

    low: float
    """The lower end of its interval."""

    high: float
    """The upper end of its interval."""


def svg(
    runs: Sequence[ChartedRun],
    changes: Sequence[int],
    machines: Sequence[int],
    name: str = "history",
    label: str = "ratio of speed",
    *,
    ratios: bool = True,
) -> str | None:
    """The chart of a claim's runs, oldest first; None without matplotlib and for fewer than two runs with a ratio.

    changes, machines: the 0-based numbers of the runs that begin a new level, and that ran on another machine. Runs are
    at equal distances, so two runs of one day are apart. label: the label of the axis. ratios: whether the axis is
    logarithmic, with a line at 1.
    """
    measured = [run for run in runs if not math.isnan(run.ratio)]
    if len(measured) < 2 or not drawing.available():
        return None
    ends = [end for run in measured for end in (run.ratio, *((run.low, run.high) if _has_bounds(run) else ()))]
    limits = (scales.zero(ends), scales.infinity(ends)) if ratios else _finite_ends(ends)
    known = [(at, _within(run, limits)) for at, run in enumerate(runs) if not math.isnan(run.ratio)]
    with drawing.figure(name, (WIDTH, HEIGHT), top=0.34, left=1.0) as drawn:
        axes = drawn.axes[0]
        if ratios:
            scale = scales.ratios([min(max(limits[0], end), limits[1]) for end in ends], ends=limits)
            drawing.ratio_axis(axes.yaxis, scale)
        axes.axhline(float(ratios), color=SOFT, linewidth=0.8)
        axes.plot([at for at, _ in known], [run.ratio for _, run in known], color=SOFT, linewidth=0.8)
        for at, run in known:
            if _has_bounds(run):
                axes.plot([at, at], [run.low, run.high], color=COLOURS.get(run.outcome, OPEN), linewidth=1.2)
        _draw_outcomes(axes, known)
        for numbers, line, said in ((changes, "-", "new level"), (machines, ":", "another machine")):
            for number in numbers:
                axes.axvline(number - 0.5, color=INK, linestyle=line, linewidth=1.1, label=said)
        drawing.fitting_labels(axes, [run.label for run in runs])
        axes.set_xlim(-0.5, len(runs) - 0.5)
        drawing.upright_label(axes, label)
        drawing.legend(axes, 5)
        return drawn.svg()


def _finite_ends(ends: Sequence[float]) -> tuple[float, float]:
    """The smallest and the largest of these values that are finite, and 0."""
    finite = [0.0, *(end for end in ends if math.isfinite(end))]
    return min(finite), max(finite)


def _has_bounds(run: ChartedRun) -> bool:
    return has_bounds(run.low, run.high)


def _within(run: ChartedRun, limits: tuple[float, float]) -> ChartedRun:
    """The run with these ends for a ratio of 0 and an infinite one, which the axis does not have."""
    ratio, low, high = (min(max(limits[0], value), limits[1]) for value in (run.ratio, run.low, run.high))
    drawn = dataclasses.replace(run, ratio=ratio)
    return dataclasses.replace(drawn, low=low, high=high) if _has_bounds(run) else drawn


def _draw_outcomes(axes: Any, known: Sequence[tuple[int, ChartedRun]]) -> None:
    """Draw the ratio of each run (its number, the run), in the colour and with the marker of its outcome.

    A run without an interval is hollow.
    """
    for outcome, colour in COLOURS.items():
        for face, interval in ((colour, True), (PAPER, False)):
            some = [(at, run.ratio) for at, run in known if run.outcome == outcome and _has_bounds(run) is interval]
            if some:
                axes.plot(
                    [at for at, _ in some],
                    [ratio for _, ratio in some],
                    MARKERS[outcome],
                    color=colour,
                    markersize=5.2,
                    markerfacecolor=face,
                    markeredgecolor=INK if interval else colour,
                    markeredgewidth=0.5 if interval else 1.1,
                    label=SAID[outcome] if interval else f"{SAID[outcome]}, without interval",
                )
