"""The latency percentiles of each variant, from p50 to p99.9."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.charts.colours import style
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.round import Round

SIZE = (8.0, 2.3)
SHARES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}


def percentiles(rounds: Mapping[str, Sequence[Round]]) -> dict[str, dict[str, float]]:
    """By variant, the milliseconds of each of SHARES over all its rounds; empty for a load without a ledger."""
    found = {}
    for name, many in rounds.items():
        histogram = metrics.latencies(many)
        if histogram.total:
            found[name] = {label: 1e3 * histogram.percentile(share) for label, share in SHARES.items()}
    return found


def svg(found: Mapping[str, Mapping[str, float]], name: str = "latency") -> str | None:
    """The percentiles as lines; None without matplotlib, and for a load without a ledger."""
    if not found or not drawing.available():
        return None
    with drawing.figure(name, SIZE, top=0.32, bottom=0.3) as drawn:
        axes = drawn.axes[0]
        for number, (variant, values) in enumerate(found.items()):
            drawing.line(axes, range(len(values)), list(values.values()), style(number), variant)
        axes.set_yscale("log")
        drawing.decades(axes.yaxis, [value for values in found.values() for value in values.values()])
        axes.set_xticks(range(len(SHARES)), labels=SHARES)
        axes.set_ylabel("milliseconds")
        drawing.legend(axes, 5)
        return drawn.svg()
