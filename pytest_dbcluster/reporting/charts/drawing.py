"""Drawing: figures of matplotlib as SVG text. No other module uses matplotlib.

Figures have fixed margins instead of a computed layout, because a page draws about a hundred of them. The same input
gives the same SVG: identifiers are fixed, there is no date, and text stays text.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import math
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from pytest_dbcluster.formatting import elide
from pytest_dbcluster.reporting.charts.colours import GRID, INK, SOFT, Style
from pytest_dbcluster.reporting.charts.scales import Scale

MISSING = "no charts and no page: matplotlib is not installed; pip install 'pytest-dbcluster[plots]'"
STYLE: Any = {
    "svg.fonttype": "none",
    "font.size": 9.0,
    "font.family": "sans-serif",
    "text.color": INK,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.facecolor": "none",
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.major.size": 3.0,
    "ytick.major.size": 3.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "hatch.color": SOFT,
    "hatch.linewidth": 0.6,
}
PROLOG = '<?xml version="1.0" encoding="utf-8" standalone="no"?>\n'
METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
LETTER, SAMPLE = 0.075, 6  # inches of a letter of a legend; letters that take as much room as a sample of a line
LEAST = 10  # letters of a label
UPRIGHT = 0.07  # inches of a letter of an upright label
APART = 2  # letters between two labels of an axis
NUMBERED = re.compile(r' id="[A-Za-z_.0-9]+_\d+"')  # of matplotlib's groups: nothing refers to them


def available() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


_DRAWING = threading.local()


class Drawing:
    """One figure. size: width and height in inches. axes: its panels from top to bottom."""

    def __init__(self, name: str, size: tuple[float, float], panels: Sequence[Any], figure: Any) -> None:
        self.name = name
        self.size = size
        self.axes = panels
        self._figure = figure

    def title(self, text: str) -> None:
        """Write a title above the first panel."""
        self._figure.text(0.1 / self.size[0], 1 - 0.08 / self.size[1], text, fontsize=10, va="top", ha="left")

    def file(self) -> str:
        """The figure as the text of an SVG file."""
        return PROLOG + self.svg()

    def svg(self) -> str:
        """The figure as an SVG element, for a page."""
        text = io.StringIO()
        self._figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
        drawn = text.getvalue()
        return NUMBERED.sub("", METADATA.sub("", drawn[drawn.index("<svg") :]))


@contextlib.contextmanager
def chart_style() -> Iterator[None]:
    """Give all figures of the block our style instead of the user's; within such a block it does nothing.

    To draw many figures, enter it once: matplotlib checks its three hundred settings each time.
    """
    import matplotlib as mpl

    if getattr(_DRAWING, "styled", False):
        yield
        return
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        _DRAWING.styled = True
        try:
            yield
        finally:
            _DRAWING.styled = False


@contextlib.contextmanager
def figure(
    name: str,
    size: tuple[float, float],
    heights: Sequence[float] = (1,),
    *,
    left: float = 0.75,
    right: float = 0.15,
    top: float = 0.1,
    bottom: float = 0.5,
    gap: float = 0.45,
) -> Iterator[Drawing]:
    """A figure with a panel for each of the relative ``heights``; it is drawn in the block.

    ``size`` and the margins are in inches. ``name``: different for each figure of a page, because identifiers in the
    SVG are made from it.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with chart_style():
        mpl.rcParams["svg.hashsalt"] = name
        drawn = Figure(figsize=size)
        width, height = size
        inner = height - top - bottom - gap * (len(heights) - 1)
        panels, upper = [], height - top
        for share in heights:
            tall = inner * share / sum(heights)
            place = (left / width, (upper - tall) / height, (width - left - right) / width, tall / height)
            panels.append(drawn.add_axes(place))
            upper -= tall + gap
        yield Drawing(name, size, panels, drawn)


def ratio_axis(axis: Any, scale: Scale) -> None:
    """Make an axis (``axes.xaxis`` or ``axes.yaxis``) a logarithmic one with the ticks of the scale."""
    from matplotlib.ticker import NullLocator

    name = axis.axis_name
    getattr(axis.axes, f"set_{name}scale")("log")
    getattr(axis.axes, f"set_{name}lim")(scale.low, scale.high)
    axis.set_ticks([value for value, _ in scale.ticks], labels=[label for _, label in scale.ticks])
    axis.set_minor_locator(NullLocator())


def line(axes: Any, x: Sequence[float], y: Sequence[float], given: Style, label: str) -> None:
    """Draw the line of a variant, in its colour, line style and marker."""
    axes.plot(
        x,
        y,
        color=given.colour,
        linestyle=given.line,
        marker=given.marker,
        markersize=5.2,
        markeredgecolor=INK,
        markeredgewidth=0.5,
        linewidth=1.6,
        label=label,
    )


def shade(axes: Any, spans: Sequence[tuple[float, float]], colour: str, label: str) -> None:
    """Shade spans of the x axis over the whole height: (start, length) each. They are one shape."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners = [
        corner
        for start, length in spans
        for corner in ((start, 0.0), (start, 1.0), (start + length, 1.0), (start + length, 0.0), (start, 0.0))
    ]
    if not corners:
        return
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(spans)
    drawn = PathPatch(Path(corners, codes), transform=axes.get_xaxis_transform())
    drawn.set(facecolor=colour, alpha=0.16, linewidth=0, label=label)
    axes.add_patch(drawn)


def legend(axes: Any, columns: int = 3) -> None:
    """The legend above a panel, on the left, where a phone shows it; none without labels."""
    handles, labels = axes.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    if once:
        letters = axes.get_position().width * axes.figure.get_figwidth() / LETTER
        axes.legend(
            once.values(),
            _narrow(list(once), columns, letters),
            loc="lower left",
            bbox_to_anchor=(0.0, 0.99),
            ncols=columns,
            frameon=False,
            fontsize=8.5,
            borderaxespad=0.1,
            handlelength=2.2,
            columnspacing=1.2,
        )


def _narrow(labels: Sequence[str], columns: int, letters: float) -> list[str]:
    """The labels of a legend, with long ones cut in the middle until the widest row has at most ``letters``."""
    most = max(map(len, labels))
    while most > LEAST and sum(sorted(min(len(label), most) + SAMPLE for label in labels)[-columns:]) > letters:
        most -= 1
    return [elide(label, most) for label in labels]


def fitting_labels(axes: Any, labels: Sequence[str]) -> None:
    """Label the places 0, 1, 2 of the x axis with these texts, or every n-th if they would overlap."""
    room = axes.get_position().width * axes.figure.get_figwidth() / max(1, len(labels))
    every = max(1, math.ceil((max(map(len, labels), default=0) + APART) * LETTER / room))
    axes.set_xticks(range(0, len(labels), every), labels[::every])


def few_ticks(axis: Any, most: int = 6, *, integers: bool = False) -> None:
    """Give a linear axis a few round ticks, each with its whole number."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10], integer=integers))
    axis.set_major_formatter(lambda value, _: f"{value / 1e6:g} M" if abs(value) >= 1e6 else f"{value:g}")


def upright_label(axes: Any, text: str) -> None:
    """Label the upright axis of a panel. A text longer than the panel is broken at a space or within a name."""
    letters = round(axes.get_position().height * axes.figure.get_figheight() / UPRIGHT)
    breaks = [at for at in range(1, len(text)) if text[at] in " _"]
    if len(text) > letters and breaks:
        at = min(breaks, key=lambda at: (text[at] != " ", abs(at - len(text) / 2)))
        text = f"{text[:at]}\n{text[at:].lstrip()}"
    axes.set_ylabel(text, linespacing=1.35)


def decades(axis: Any, values: Sequence[float]) -> None:
    """Give the logarithmic axis of these values the ticks 1, 2, 5, 10 and so on, also at both ends."""
    from matplotlib.ticker import LogLocator, NullLocator

    powers = range(math.floor(math.log10(min(values))), math.floor(math.log10(max(values))) + 2)
    steps = [step * 10.0**power for power in powers for step in (1, 2, 5)]
    low, high = (step for step in steps if step <= min(values) * 1.001), (step for step in steps if step >= max(values))
    getattr(axis.axes, f"set_{axis.axis_name}lim")(max(low), min(high))
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:g}")
