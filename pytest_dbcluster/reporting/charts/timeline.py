"""The timeline of a claim: the load of the machine and its servers in every second, with the rounds behind it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.charts.colours import style
from pytest_dbcluster.rounds.round import Round

WIDTH, HEIGHT, MARGINS = 8.0, 0.95, 0.85  # inches: of the chart, of a band, and above and below all bands
FILLED = 0.74  # of a band: the height of its top value
MOST_LINES = 5  # of a band: as many as there are styles
# For each host: a band for its CPU, then a band for each of these with a line for each host.
CPU = ("cpu_user", "cpu_system", "cpu_iowait", "cpu_idle")
FLOWS = (
    ("disk writes, MB / s", "disk_write_bytes"),
    ("disk reads, MB / s", "disk_read_bytes"),
    ("network sent, MB / s", "network_sent_bytes"),
    ("network received, MB / s", "network_received_bytes"),
)
# The names of lines that are in each chart, whatever the number of nodes.
STYLES = {"cpu_client": 4, "steal": 3, "pressure_io": 4, **{f"{metric}_client": 4 for _, metric in FLOWS}}
DOT = 3.0  # points: the size of a value between two unknown ones, which no line shows


@dataclasses.dataclass(frozen=True)
class Samples:
    """The samples of a claim.

    A value is nan if it is unknown. Names and units are those of ``testbed``'s timeline, such as ``cpu_node1``.
    """

    seconds: tuple[float, ...]
    """The time of each sample, in seconds since the first round began."""

    metrics: Mapping[str, tuple[float, ...]]
    """By name, the values of a metric."""


@dataclasses.dataclass(frozen=True)
class Band:
    """A band of the chart."""

    label: str
    """The name of the band with its unit."""

    starts: tuple[str, ...]
    """The beginnings of the names of its metrics; whole names if ``exact``."""

    factor: float = 1.0
    """The factor from the unit of the metrics to that of the label."""

    least: float = 0.0
    """The band is left out if no value is above this."""

    most: float = math.inf
    """The highest value that is shown; a higher one is an error of the clock."""

    exact: bool = False
    """Whether ``starts`` has whole names."""


BANDS = (
    Band("CPU, cores", ("cpu_node", "cpu_client", "steal")),
    Band("MB / s", ("disk_write_bytes", "disk_read_bytes", "network_bytes"), 1e-6, 0.1, exact=True),
    Band("share of time", ("flow_control_paused", "pressure_io"), 1.0, 0.02, 1.0),
    Band("sessions held by flow control", ("flow_control_held",)),
    Band("receive queue", ("receive_queue",)),
    Band("certification queue", ("certification_queue",)),
    Band("replica lag, s", ("replica_lag",)),
)
SAID = {"disk_write_bytes": "written", "disk_read_bytes": "read", "network_bytes": "network", "steal": "stolen"}
SHORT = (
    *((name, "") for name in ("cpu_", "flow_control_held_", "receive_queue_", "certification_queue_", "replica_lag_")),
    ("flow_control_paused", "paused"),
    ("_", " "),
)


def svg(samples: Samples, rounds: Mapping[str, Sequence[Round]], name: str = "timeline") -> str | None:
    """The timeline, with a band for each kind of metric.

    The time of each round is shaded in its variant's colour. None without matplotlib, and if there is nothing to show.
    All bands share one pair of axes: matplotlib draws that much faster than a pair for each.
    """
    return _svg(BANDS, samples, rounds, name)


def hosts_svg(samples: Samples, rounds: Mapping[str, Sequence[Round]], name: str = "hosts") -> str | None:
    """CPU, disk and network of each host, as ``svg`` draws them; None also for a timeline without any node."""
    owners = [metric.removeprefix(CPU[0]) for metric in samples.metrics if metric.startswith(f"{CPU[0]}_")]
    if not owners:
        return None
    # The metrics of this machine have no host in their names.
    cpus: dict[str, tuple[str, ...]] = {"this machine": ("cpu_user", "cpu_system", "iowait", "cpu_idle")}
    cpus |= {owner[1:]: tuple(f"{kind}{owner}" for kind in CPU) for owner in owners}
    bands = [Band(f"CPU of {owner}, cores", kinds, exact=True) for owner, kinds in cpus.items()]
    bands += [
        Band(label, tuple(f"{metric}{owner}" for owner in owners), 1e-6, 0.001, exact=True) for label, metric in FLOWS
    ]
    return _svg(bands, samples, rounds, name)


def _svg(given: Sequence[Band], samples: Samples, rounds: Mapping[str, Sequence[Round]], name: str) -> str | None:
    bands = [(band, lines) for band in given if (lines := _lines(band, samples))]
    if not bands or len(samples.seconds) < 2 or not drawing.available():
        return None
    size = (WIDTH, HEIGHT * len(bands) + MARGINS)
    with drawing.figure(name, size, top=0.34, right=1.2) as drawn:
        axes = drawn.axes[0]
        _draw_rounds(axes, rounds)
        ticks: list[tuple[float, str]] = []
        for number, (band, lines) in enumerate(bands):
            bottom = len(bands) - 1 - number
            highest = _draw(axes, band, samples, lines, (bottom, len(bands)))
            ticks += [(bottom, "0"), (bottom + FILLED, f"{highest:g}")]
        axes.set_yticks([at for at, _ in ticks], labels=[label for _, label in ticks])
        axes.set_ylim(0, len(bands))
        axes.set_xlim(min(0.0, samples.seconds[0]), samples.seconds[-1])
        drawing.few_ticks(axes.xaxis, 7)
        axes.set_xlabel("seconds since the first round began", labelpad=1)
        drawing.legend(axes, 5)
        return drawn.svg()


def _lines(band: Band, samples: Samples) -> list[str]:
    """The names of the metrics of a band that have a line. Empty if every metric stays at its least value.

    If there are too many, the last nodes are left out.
    """
    names = _metric_names(band, samples)
    always = [name for name in names if name in STYLES]
    nodes = [name for name in names if name not in STYLES][: MOST_LINES - len(always)]
    shown = [*nodes, *always]
    return shown if _highest(band, samples, shown) > band.least else []


def _metric_names(band: Band, samples: Samples) -> list[str]:
    """The names of all metrics of a band."""
    if band.exact:
        return [name for name in band.starts if name in samples.metrics]
    return [name for name in samples.metrics if name.startswith(band.starts)]


def _count_without_line(band: Band, samples: Samples, lines: Sequence[str]) -> int:
    """The number of metrics of a band without a line."""
    return len(_metric_names(band, samples)) - len(lines)


def _highest(band: Band, samples: Samples, names: Sequence[str]) -> float:
    """The largest known value of these metrics, in the unit of the band; 0 without any."""
    values = (value for name in names for value in _values(band, samples, name) if math.isfinite(value))
    return max(values, default=0.0)


def _values(band: Band, samples: Samples, name: str) -> list[float]:
    """The values of a metric in the unit of the band; nan if it is unknown."""
    return [
        min(value * band.factor, band.most) if math.isfinite(value) else math.nan for value in samples.metrics[name]
    ]


def _alone(values: Sequence[float]) -> list[int]:
    """The places of known values between two unknown ones."""
    known = [False, *map(math.isfinite, values), False]
    return [at for at in range(len(values)) if known[at + 1] and not known[at] and not known[at + 2]]


def _round(value: float) -> float:
    """The value, rounded up to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(float(f"{step * power:.3g}") for step in (1, 2, 5, 10) if step * power >= value * 0.999)


def _draw_rounds(axes: Any, rounds: Mapping[str, Sequence[Round]]) -> None:
    """Shade the time of each round."""
    began = min((drawn.started for many in rounds.values() for drawn in many), default=0.0)
    for number, (variant, many) in enumerate(rounds.items()):
        spans = [(drawn.started - began, drawn.seconds) for drawn in many]
        drawing.shade(axes, spans, style(number).colour, f"a round of {variant}")


def _draw(axes: Any, band: Band, samples: Samples, lines: Sequence[str], place: tuple[int, int]) -> float:
    """Draw the lines of a band; return the value at its top. place: its lower end, and the number of bands."""
    bottom, bands = place
    highest = _round(_highest(band, samples, lines))
    for number, metric in enumerate(lines):
        given = style(STYLES.get(metric, number))
        values = [bottom + FILLED * value / highest for value in _values(band, samples, metric)]
        axes.plot(samples.seconds, values, color=given.colour, linestyle=given.line, linewidth=1.3)
        if alone := _alone(values):
            dots = [samples.seconds[at] for at in alone], [values[at] for at in alone]
            axes.plot(*dots, ".", color=given.colour, markersize=DOT)
        at = (bottom + 0.78 - number * 0.18) / bands
        sample = {"color": given.colour, "linestyle": given.line, "linewidth": 1.3}
        axes.plot([1.01, 1.045], [at, at], clip_on=False, transform=axes.transAxes, **sample)
        axes.text(1.055, at, _line_name(metric), transform=axes.transAxes, fontsize=7.5, va="center")
    more = _count_without_line(band, samples, lines)
    label = f"{band.label} ({more} more in its CSV file)" if more else band.label
    axes.text(0.004, (bottom + 0.86) / bands, label, transform=axes.transAxes, fontsize=8, va="center")
    return highest


def _line_name(metric: str) -> str:
    """The name of a line: ``node1``, ``written``, ``paused node2``; of a host's CPU ``idle``."""
    said = SAID.get(metric, metric)
    kind, _, owner = metric.rpartition("_")
    if metric in CPU or kind in CPU:
        return metric.split("_")[1]
    if kind in {flow for _, flow in FLOWS}:
        return owner
    for long, short in SHORT:
        said = said.replace(long, short)
    return said
