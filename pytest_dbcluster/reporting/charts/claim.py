"""The chart of a claim: its rounds over time, and below them the interval of the ratio at each look."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import critical_values, estimators, intervals, wording
from pytest_dbcluster.claims.claim import Verdict
from pytest_dbcluster.claims.pairs import Pairs, log_difference
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.charts import drawing, event, scales
from pytest_dbcluster.reporting.charts.colours import GRID, INK, MARGIN, PAPER, PUBLISHED, SOFT, Style, style
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables import states
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.round import Round

SIZE = (8.0, 4.6)
UNIT, GAP = 0.42, 0.62  # inches: of the heights of both panels, 3 and 4 units, and between them
LEFT = 1.0  # inches: for two lines of text beside a tick such as 1/10000
NAME = 20  # letters of a variant that fit beside the axis
LOSSES = "second ratio\n/ first ratio"  # of ``fades``, whose names fit nowhere
NEAR = 2.5  # times the range of the ratios: a published ratio farther away is only named beside the chart
FINE = 1e-5  # of a log ratio: far less than the width of a line
FAR = 0.09  # of an axis: the distance between steps of an order at a look


@dataclasses.dataclass(frozen=True)
class Look:
    """One look at the ratio of two variants."""

    pairs: int
    """The number of pairs that were drawn by then."""

    ratio: float
    """The estimate of the ratio."""

    low: float
    """The lower end of its interval."""

    high: float
    """The upper end of its interval."""

    @property
    def has_bounds(self) -> bool:
        """Whether there is an interval; the first looks may have none."""
        return has_bounds(self.low, self.high)

    def within(self, least: float, most: float) -> Look:
        """The same look, with values beyond these ends replaced by them, since the axis has neither 0 nor infinity."""
        ratio, low, high = (min(max(least, value), most) for value in (self.ratio, self.low, self.high))
        return Look(self.pairs, ratio, low, high) if self.has_bounds else Look(self.pairs, ratio, self.low, self.high)


def has_bounds(low: float, high: float) -> bool:
    """Whether this is an interval: at least one end is known. That of a counter may begin at 0 or end at infinity."""
    return low > 0 or (low == 0 and math.isfinite(high))


def drawable(record: ClaimRecord) -> bool:
    """Whether a claim gets a chart: it has a pair or a repetition, and matplotlib is installed."""
    return bool(record.verdict.pairs) and drawing.available()


def svg(record: ClaimRecord, name: str = "claim", *, titled: bool = True) -> str | None:
    """The chart of a claim; None without matplotlib, or without a pair.

    ``name``: different for each figure of a page. ``titled``: with a title, for a file.
    """
    if not drawable(record):
        return None
    top = 0.55 if titled else 0.3
    strips = 0.0 if record.verdict.claim.of_kind.is_ratio else event.strips_height(record)
    size, heights = (SIZE[0], SIZE[1] + (strips and strips + GAP)), [3 * UNIT, *([strips] if strips else []), 4 * UNIT]
    with drawing.figure(name, size, heights, left=LEFT, top=top, gap=GAP, right=0.2) as drawn:
        above, below = drawn.axes[0], drawn.axes[-1]
        if titled:
            drawn.title(_title(record))
        if record.verdict.claim.of_kind.is_ratio:
            _draw_rounds(above, record)
            _draw_looks(below, record)
        elif any(one.outage for many in record.rounds.values() for one in many):
            event.draw(drawn, record)
        else:
            _draw_rounds(above, record)
            event.draw_values(below, record)
        return drawn.file() if titled else drawn.svg()


def _title(record: ClaimRecord) -> str:
    return f"{record.text}, {record.load}: {states.state(record)}, {wording.estimate(record.verdict)}"


def _draw_rounds(axes: Any, record: ClaimRecord) -> None:
    """Draw the metric of each round over the seconds since the first round began; void rounds are hollow."""
    void = [drawn for block in record.void_rounds for drawn in block]
    began = min(drawn.started for drawn in [*void, *(one for many in record.rounds.values() for one in many)])
    highest, last = 0.0, 0.0
    for number, (name, used) in enumerate(record.rounds.items()):
        given = style(number)
        for rounds, face in ((used, given.colour), ([drawn for drawn in void if drawn.variant == name], PAPER)):
            points = [(drawn, value) for drawn in rounds if (value := _value(drawn, record)) is not None]
            if not points:
                continue
            middles = [drawn.started - began + drawn.seconds / 2 for drawn, _ in points]
            values = [value for _, value in points]
            label = name if face is not PAPER else f"{name}, void"
            axes.plot(
                middles,
                values,
                given.marker,
                markersize=4.2,
                color=given.colour,
                markerfacecolor=face,
                markeredgecolor=INK if face is not PAPER else given.colour,
                markeredgewidth=0.4 if face is not PAPER else 1.1,
                label=label,
                clip_on=False,
            )
            highest, last = max([highest, *values]), max([last, *middles])
    drawing.upright_label(axes, metrics.label(record.metric))
    axes.set_xlabel("seconds since the first round began", labelpad=1)
    axes.set_xlim(0, max(last * 1.02, 1.0))
    axes.set_ylim(0, 1.08 * highest or 1.0)
    drawing.few_ticks(axes.yaxis, 4)
    drawing.few_ticks(axes.xaxis, 7)
    drawing.legend(axes, 4)


def _value(drawn: Round, record: ClaimRecord) -> float | None:
    """The claim's metric of a round; None for a void round that has none."""
    try:
        value = metrics.display_value(drawn, record.metric, record.load)
    except (ConfigError, ZeroDivisionError):
        return None
    return value if math.isfinite(value) else None


def looks(pairs: Pairs, verdict: Verdict) -> list[Look]:
    """The ratio and its interval at each look that these pairs have reached, and last the verdict's own."""
    paired = verdict.claim.of_kind.paired  # the ratio of an effect is not that of its pairs
    reached = [look for look in critical_values.looks(pairs.instances) if look < len(pairs) and paired]
    found = []
    for look in reached:
        seen = pairs.first(look)
        low, high = intervals.interval(seen, verdict.alpha, FINE)
        found.append(Look(look, *map(estimators.factor, (intervals.estimate(seen, FINE), low, high))))
    return [*found, Look(verdict.pairs, verdict.ratio, verdict.low, verdict.high)]


def _steps(record: ClaimRecord) -> list[tuple[str, Pairs, Verdict]]:
    """The comparisons of a claim, each with its name, its pairs and its verdict; an order has several."""
    steps = rounds_csv.steps(record)
    parts = record.verdict.neighbours[::-1]
    if len(steps) <= 1 or len(parts) != len(steps):
        return [(f"{record.candidate} / {record.baseline}", rounds_csv.compared_pairs(record), record.verdict)]
    return [
        (f"{fast} / {slow}", rounds_csv.pairs(record, fast, slow), part)
        for (fast, slow), part in zip(steps, parts, strict=True)
    ]


def _draw_looks(axes: Any, record: ClaimRecord) -> None:
    """Draw the ratio of each pair, the interval at each look, the claim, and the published ratio."""
    steps = _steps(record)
    shown = bounds(record)
    drawn_pairs = [_ratios(pairs) if verdict.claim.of_kind.paired else {} for _, pairs, verdict in steps]
    known = [value for ratios in drawn_pairs for value in ratios.values()]
    known += [value for _, _, verdict in steps for value in (verdict.low, verdict.high)]
    least, most = scales.zero(known), scales.infinity(known)
    for number, ((name, pairs, verdict), ratios) in enumerate(zip(steps, drawn_pairs, strict=True)):
        given, beside = style(number if len(steps) > 1 else 0), FAR * number * max(4, verdict.pairs / 8)
        values = [min(max(least, ratio), most) for ratio in ratios.values()]
        if ratios:
            axes.plot(list(ratios), values, ".", markersize=3.5, color=SOFT, alpha=0.75, label="a pair")
        drawn = [look.within(least, most) for look in looks(pairs, verdict)]
        shown += [*values, *(end for look in drawn for end in (look.ratio, look.low, look.high))]
        guarded = verdict.claim.guard and has_bounds(verdict.decided_low, verdict.decided_high)
        _draw_intervals(axes, drawn, given, beside, known=drawn[-1].has_bounds or guarded)
        level = f"{100 * (1 - 2 * verdict.alpha):.4g} % interval"
        if not drawn[-1].has_bounds:
            level = f"ratio, no {level} yet" if guarded else "ratio, no interval yet"
        label = name if len(steps) > 1 else level
        axes.plot([], [], given.marker, markersize=5, color=given.colour, label=label)
        if guarded:
            _draw_guard(axes, verdict, beside)
            shown += [verdict.decided_low, verdict.decided_high]
    if record.published and _fits_axis(record.published, shown):
        shown.append(record.published)
    scale = scales.ratios(shown, ends=(least, most))
    _draw_lines(axes, record, scale)
    drawing.ratio_axis(axes.yaxis, scale)
    one, other = (formatting.elide(name, NAME) for name in (record.candidate, record.baseline))
    label = f"ratio {one}\n/ {other}" if len(steps) == 1 else "ratio"
    axes.set_ylabel(LOSSES if record.verdict.claim.of_kind.composed else label, linespacing=1.35)
    axes.set_xlabel("pairs of rounds", labelpad=1)
    axes.set_xlim(0, record.verdict.pairs * 1.04 + 1)
    drawing.few_ticks(axes.xaxis, 7, integers=True)
    drawing.legend(axes, 5)


def _ratios(pairs: Pairs) -> dict[int, float]:
    """The ratio of each pair by its number, 1-based. Nothing is added to a counter's 0."""
    values = enumerate(map(log_difference, pairs.candidate, pairs.baseline), 1)
    infinite = -math.log(scales.TINY)
    return {number: math.inf if value > infinite else estimators.factor(value) for number, value in values}


def _fits_axis(published: float, shown: Sequence[float]) -> bool:
    """Whether the published ratio can share an axis with these; a distant one would compress the intervals."""
    logs = [math.log(value) for value in (1.0, *shown) if 0 < value < math.inf]
    middle, half = (max(logs) + min(logs)) / 2, (max(logs) - min(logs)) / 2
    return abs(math.log(published) - middle) < NEAR * max(half, 0.1)


def _draw_intervals(axes: Any, drawn: Sequence[Look], given: Style, beside: float, *, known: bool) -> None:
    """Draw the interval at each look as a bar, thick at the last one; a look without one is hollow.

    known: whether the last look has any interval; a guard may have only its narrower one.
    """
    bounded = [look for look in drawn if look.has_bounds]
    for bars, width in ((bounded[:-1], 1.1), (bounded[-1:], 3.2)) if drawn[-1].has_bounds else ((bounded, 1.1),):
        places = [look.pairs + beside for look in bars]
        ends = [look.low for look in bars], [look.high for look in bars]
        axes.vlines(places, *ends, color=given.colour, linewidth=width, zorder=3)
    for face, some in ((given.colour, bounded), (PAPER, [look for look in drawn if not look.has_bounds])):
        places, ratios = [look.pairs + beside for look in some], [look.ratio for look in some]
        marks = {"markersize": 3.5, "markerfacecolor": face, "markeredgecolor": given.colour, "linestyle": "none"}
        axes.plot(places, ratios, marker=given.marker, zorder=4, **marks)
    last, face = drawn[-1], given.colour if known else PAPER
    marks = {"markersize": 5.5, "markerfacecolor": face, "markeredgecolor": INK}
    axes.plot([last.pairs + beside], [last.ratio], given.marker, zorder=5, **marks)


def _draw_guard(axes: Any, verdict: Verdict, beside: float) -> None:
    """Draw the narrower interval that lets a guard hold, over the other one."""
    ends = [verdict.decided_low, verdict.decided_high]
    axes.plot([verdict.pairs + beside] * 2, ends, color=INK, linewidth=1.4, zorder=6, label="90 % interval")


def _draw_lines(axes: Any, record: ClaimRecord, scale: scales.Scale) -> None:
    """Draw where the claim holds, equal speed, and the published ratio."""
    allowed = bounds(record)
    if record.asserted and allowed:
        low, high = (math.exp(bound) for bound in record.verdict.claim.bounds)
        axes.axhspan(max(low, scale.low), min(high, scale.high), color=MARGIN, alpha=0.22, linewidth=0, zorder=0)
        for bound in allowed:
            axes.axhline(
                bound, color=INK, linewidth=0.9, linestyle=(0, (4, 2)), label=f"claim: {formatting.bound(bound)}"
            )
    elif record.asserted:
        axes.axhline(1.0, color=GRID, linewidth=0.9)
    else:
        axes.axhline(1.0, color=INK, linewidth=0.9, linestyle=(0, (4, 2)), label="equal: 1.00")
    if record.published is not None:
        label = f"published: {formatting.ratio(record.published)}"
        if not scale.low < record.published < scale.high:
            label += ", above" if record.published > scale.high else ", below"
        axes.axhline(record.published, color=PUBLISHED, linewidth=1.4, linestyle=":", label=label)


def bounds(record: ClaimRecord) -> list[float]:
    """The finite bounds of the claim as ratios; empty without a claim."""
    if not record.asserted:
        return []
    return list(record.verdict.claim.ratios)
