"""The chart of a claim about an event: commits, stalls, marks and errors; states of the nodes; and all values."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pytest_dbcluster.formatting import elide
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.charts.colours import HOLDS, INK, MARGIN, OPEN, PAPER, SKY, SOFT, style
from pytest_dbcluster.reporting.charts.drawing import Drawing
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.outages import states
from pytest_dbcluster.rounds.outages.outage import PER_SECOND, Outage
from pytest_dbcluster.rounds.outages.states import StateChange
from pytest_dbcluster.rounds.round import Round

BEFORE = 4.0  # seconds before the event that are shown
NAME = 14  # letters of a variant that fit beside the axis
FAINT, STALLED = 0.18, 0.05  # of a single repetition, and of its stall; the median is drawn in full
STRIP = 0.15  # inches of the strip of a node
STATE_COLOURS = {states.WRITES: HOLDS, states.READS: SKY, states.UNREADY: MARGIN, states.SILENT: OPEN, states.DOWN: INK}
ROUTE, ROOM = 0.25, 0.05  # opacity of a route; share of the axis that the name of its node needs
ERRORS, FIRST, STEP = 3, 0.96, 0.075  # the most frequent ones; height of their first line, and of the next ones below


def draw(drawn: Drawing, record: ClaimRecord) -> None:
    """Draw the panels of a figure: commits of each variant, states of its nodes, and values with the claim's bound."""
    above, below = drawn.axes[0], drawn.axes[-1]
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
    if len(drawn.axes) > 2:
        _draw_strips(drawn.axes[1], record, ends)
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


def strips_height(record: ClaimRecord) -> float:
    """The inches of the panel with the states of nodes; 0 for repetitions without them."""
    typical = [_typical(rounds) for rounds in record.rounds.values()]
    return STRIP * sum(len(_strips(one)) + 1 for one in typical if one)


def _typical(rounds: Sequence[Round]) -> Outage | None:
    """Of those with states, the repetition with the median stall, of reads for a load that never writes; or None."""
    found = sorted((one.outage for one in rounds if one.outage and one.outage.states), key=_stall)
    return found[(len(found) - 1) // 2] if found else None


def _stall(one: Outage) -> float:
    return one.read_stall if math.isnan(one.stall) else one.stall


def _strips(one: Outage) -> dict[str, Sequence[StateChange]]:
    """What is drawn of a repetition by name of the strip: each node, and the node that the proxy leads writes to."""
    return {**one.states, **({"proxy to": one.routes} if one.routes else {})}


def _draw_strips(axes: Any, record: ClaimRecord, ends: float) -> None:
    """Draw a strip for each node of the repetition with the median stall, in the colours of its states.

    ends: of the axis.
    """
    names, row = list[str](), 0
    for number, (name, rounds) in enumerate(record.rounds.items()):
        one = _typical(rounds)
        if not one:
            continue
        title = f"{name}, the repetition with the median stall"
        axes.text(-BEFORE, -row, title, fontsize=7, color=style(number).colour, ha="left", va="center", clip_on=True)
        names.append("")
        for strip, changes in _strips(one).items():
            row += 1
            names.append(elide(strip, NAME))
            _draw_strip(axes, changes, -row, ends)
        row += 1
    axes.axvline(0, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.set_yticks([-place for place in range(len(names))], labels=names, fontsize=7)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)
    axes.set_ylim(-len(names) + 0.4, 0.6)
    axes.set_xlim(-BEFORE, ends)
    drawing.few_ticks(axes.xaxis, 9)
    drawing.legend(axes, 5)


def _draw_strip(axes: Any, changes: Sequence[StateChange], place: int, ends: float) -> None:
    """Draw each state from its change until the next one. A name of a node is written into its part."""
    for one, begin in enumerate(changes):
        until = changes[one + 1].seconds if one + 1 < len(changes) else ends
        left, right = max(begin.seconds, -BEFORE), min(until, ends)
        if right <= left:
            continue
        colour = STATE_COLOURS.get(begin.to)
        look = (
            {"facecolor": colour, "label": begin.to}
            if colour
            else {"facecolor": SOFT, "alpha": ROUTE if begin.to else 0.0}
        )
        axes.barh(place, right - left, 0.7, left, edgecolor=PAPER, linewidth=0.6, **look)
        if not colour and right - left > ROOM * (ends + BEFORE):
            axes.text(left, place, f" {begin.to}", fontsize=6, color=INK, ha="left", va="center", clip_on=True)


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
    """Draw the value of each repetition as a dot, with the bound and the interval of the claim.

    The dot of a lower bound is hollow. Of two variants it is the interval of the difference, subtracted from the median
    of the baseline. So it shows where the median of the candidate may lie.
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
    verdict = record.verdict
    if len(names) == 1 and verdict.claim.margin:
        axes.axvspan(0, verdict.claim.bounds[1], color=MARGIN, alpha=0.22, linewidth=0, zorder=0)
        _draw_interval(axes, verdict.low, verdict.high, 0)
    if len(names) == 2 and record.baseline in names:
        usual = statistics.median(rounds_csv.values(record, record.baseline))
        _draw_interval(axes, usual - verdict.high, usual - verdict.low, len(names) - 1 - names.index(record.candidate))
    axes.set_yticks(range(len(names)), labels=[elide(name, NAME) if len(names) > 1 else "" for name in reversed(names)])
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlim(left=0)
    axes.set_xlabel(metrics.label(record.metric), labelpad=1)
    drawing.few_ticks(axes.xaxis, 9)


def _draw_interval(axes: Any, low: float, high: float, line: int) -> None:
    """Draw an interval below a line of dots; nothing for one without an end."""
    ends = [end for end in (low, high) if math.isfinite(end)]
    axes.plot(ends, [line - 0.35] * len(ends), color=INK, linewidth=2.2, gid="interval")


def _is_lower_bound(done: Round, metric: str) -> bool:
    return done.outage.is_lower_bound(metric) if done.outage else done.outcome.ended_early
