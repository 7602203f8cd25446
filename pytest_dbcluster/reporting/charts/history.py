"""The history of one claim: its ratio in each run with its interval, and where its level changed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from pytest_dbcluster.claims.wording import STATES
from pytest_dbcluster.reporting.charts import drawing, scales
from pytest_dbcluster.reporting.charts.claim import bounded
from pytest_dbcluster.reporting.charts.colours import HOLDS, INK, OPEN, PAPER, REFUTED, SOFT

WIDTH, HEIGHT = 8.0, 2.4
COLOURS = {"holds": HOLDS, "fails": REFUTED, "inconclusive": OPEN}
MARKERS = {"holds": "o", "fails": "X", "inconclusive": "D"}
SAID = {outcome.value: word for outcome, word in STATES.items()}


@dataclasses.dataclass(frozen=True)
class Run:
    """A run of a claim. label: below the axis. outcome: as in claims. ratio, low, high: with the interval."""

    label: str
    outcome: str
    ratio: float
    low: float
    high: float


def svg(runs: Sequence[Run], changes: Sequence[int], machines: Sequence[int], name: str = "history") -> str | None:
    """The chart of a claim's runs, oldest first; None without matplotlib and for fewer than two runs with a ratio.

    changes, machines: the 0-based numbers of the runs that begin a new level, and that ran on another machine. Runs are
    at equal distances: two of one day can be told apart.
    """
    known = [(at, run) for at, run in enumerate(runs) if 0 < run.ratio < math.inf]
    if len(known) < 2 or not drawing.available():
        return None
    ends = [end for _, run in known for end in (run.ratio, run.low, run.high)]
    with drawing.figure(name, (WIDTH, HEIGHT), top=0.34) as drawn:
        axes = drawn.axes[0]
        scale = scales.ratios(ends)
        drawing.ratio_axis(axes.yaxis, scale)
        axes.axhline(1, color=SOFT, linewidth=0.8)
        axes.plot([at for at, _ in known], [run.ratio for _, run in known], color=SOFT, linewidth=0.8)
        for at, run in known:
            low, high = max(run.low, scale.low), min(run.high, scale.high)
            if bounded(run.low, run.high) and low < high:
                axes.plot([at, at], [low, high], color=COLOURS.get(run.outcome, OPEN), linewidth=1.2)
        _draw_outcomes(axes, known)
        for numbers, line, label in ((changes, "-", "new level"), (machines, ":", "another machine")):
            for number in numbers:
                axes.axvline(number - 0.5, color=INK, linestyle=line, linewidth=1.1, label=label)
        drawing.fitting_labels(axes, [run.label for run in runs])
        axes.set_xlim(-0.5, len(runs) - 0.5)
        axes.set_ylabel("ratio of speed")
        drawing.legend(axes, 5)
        return drawn.svg()


def _draw_outcomes(axes: Any, known: Sequence[tuple[int, Run]]) -> None:
    """Draw the ratio of each run (its number, the run), in the colour and with the marker of its outcome.

    A run without an interval is hollow.
    """
    for outcome, colour in COLOURS.items():
        for face, interval in ((colour, True), (PAPER, False)):
            some = [
                (at, run.ratio)
                for at, run in known
                if run.outcome == outcome and bounded(run.low, run.high) is interval
            ]
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
