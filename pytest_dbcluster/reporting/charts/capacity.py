"""The chart of capacities: a latency percentile over the arrival rate, with its objective as a line."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from pytest_dbcluster.formatting import amount
from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.charts.colours import INK, style
from pytest_dbcluster.rounds.capacity import summary
from pytest_dbcluster.rounds.capacity.capacity_curve import CapacityCurve
from pytest_dbcluster.rounds.round import Round

SIZE = (8.0, 2.9)
FAINT = 0.22  # of a single round; the median is drawn in full


def curves(rounds: Mapping[str, Sequence[Round]]) -> dict[str, list[CapacityCurve]]:
    """By variant, the curves of its rounds; empty for rounds that measure no capacity."""
    found = {name: [done.capacity for done in many if done.capacity] for name, many in rounds.items()}
    return {name: several for name, several in found.items() if several}


def svg(found: Mapping[str, Sequence[CapacityCurve]], name: str = "capacity") -> str | None:
    """The curves of each variant as lines; None without matplotlib, and without curves.

    A faint line is a round, the full line has the medians. A dotted line is the median capacity of the variant.
    """
    if not found or not drawing.available():
        return None
    first = next(iter(found.values()))[0]
    with drawing.figure(name, SIZE, top=0.32, bottom=0.5) as drawn:
        axes, values = drawn.axes[0], [1e3 * first.seconds]
        for number, (variant, several) in enumerate(found.items()):
            given, medians = style(number), summary.median_latencies(several)
            for one in several:
                rates, latencies = zip(*((point.rate, 1e3 * point.latency) for point in one.points), strict=True)
                axes.plot(rates, latencies, color=given.colour, alpha=FAINT, linewidth=0.7)
                values += latencies
            drawing.line(axes, list(medians), [1e3 * value for value in medians.values()], given, variant)
            capacity = statistics.median(one.value for one in several)
            axes.axvline(capacity, color=given.colour, linewidth=1.0, linestyle=":")
        objective = f"objective: {amount(1e3 * first.seconds)} ms"
        axes.axhline(1e3 * first.seconds, color=INK, linewidth=0.9, linestyle=(0, (4, 2)), label=objective)
        axes.set_yscale("log")
        drawing.decades(axes.yaxis, values)
        drawing.few_ticks(axes.xaxis, 8)
        axes.set_xlabel("arrival rate, operations / s", labelpad=1)
        drawing.upright_label(axes, f"{first.percentile}, ms")
        drawing.legend(axes, 5)
        return drawn.svg()
