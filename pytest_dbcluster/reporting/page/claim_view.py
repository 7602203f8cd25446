"""What the page says about one claim."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import wording
from pytest_dbcluster.claims.claim import EQUAL
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import NOTHING
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.charts import colours, timeline
from pytest_dbcluster.reporting.charts import latency as latency_chart
from pytest_dbcluster.reporting.charts.timeline import Samples
from pytest_dbcluster.reporting.page import causes, words
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables import closing
from pytest_dbcluster.rounds import metrics


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of texts. The first column is a heading of its row; the others are aligned to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True)
class ClaimView:
    """One claim as texts, tables and charts for the template; an empty one is left out.

    key: its address in the page. state: a word of ``words.SYMBOLS``. interval: with its level. why: what moved;
    why_note: why there is no such table. source: its results directory, where the page has several. folded: noise
    figures.
    """

    key: str
    state: str
    symbol: str
    sentence: str
    text: str
    load: str
    release: str
    source: str
    test: str
    measured: str
    interval: str
    published: str
    difference: str
    needs: str
    medians: Table
    chart: str
    latency: str
    timeline: str
    hosts: str
    percentiles: Table | None
    why: Table | None
    why_note: str
    nodes: Table | None
    variables: Table | None
    durability: Table | None
    remarks: tuple[str, ...]
    void: tuple[str, ...]
    repeat: str
    folded: str


def view(record: ClaimRecord, key: str, source: str = "", samples: Samples | None = None) -> ClaimView:
    """The view of a claim. ``key``: its address in the page. ``samples``: of every second; None for none."""
    state = words.state(record)
    moved = causes.causes(record)
    latencies = latency_chart.percentiles(record.rounds)
    return ClaimView(
        key=key,
        state=state,
        symbol=words.SYMBOLS[state],
        sentence=words.sentence(record),
        text=record.text,
        load=record.load,
        release=", ".join(filter(None, (record.release, record.provisioner, record.storage))),
        source=source,
        test=record.test,
        measured=words.ratio(record),
        interval=interval(record),
        published="" if record.published is None else formatting.ratio(record.published),
        difference=difference(record),
        needs=needs(record),
        medians=medians(record),
        chart=colours.themed(claim_chart.svg(record, key, titled=False) or ""),
        latency=colours.themed(latency_chart.svg(latencies, f"{key}-latency") or ""),
        percentiles=_percentiles(latencies),
        timeline=colours.themed((timeline.svg(samples, record.rounds, f"{key}-timeline") if samples else "") or ""),
        hosts=colours.themed((timeline.hosts_svg(samples, record.rounds, f"{key}-hosts") if samples else "") or ""),
        why=_why(record, moved),
        why_note="" if moved else _why_not(record),
        nodes=_nodes(record),
        variables=_variables(record),
        durability=_durability(record),
        remarks=tuple(_remarks(record)),
        void=_void(record),
        repeat=record.repeat,
        folded=record.message,
    )


def interval(record: ClaimRecord) -> str:
    """The interval that decided, with its level."""
    low, high, level = closing.deciding(record)
    return f"{level}: {formatting.interval(low, high, record.verdict.claim.limits)}"


def difference(record: ClaimRecord) -> str:
    """How the measured ratio relates to the published one, in words; empty where none is published."""
    verdict, published = record.verdict, record.published
    if published is None or not math.isfinite(verdict.ratio):
        return ""
    times = f"measured is {formatting.ratio(verdict.ratio / published, EQUAL)} the published ratio"
    if verdict.low == 0 and math.isinf(verdict.high):
        return times
    inside = verdict.low <= published <= verdict.high
    return f"{times}, which lies {'inside' if inside else 'outside'} the interval"


def needs(record: ClaimRecord) -> str:
    """Why a claim is inconclusive, and what would decide it; empty for others."""
    if words.state(record) != "inconclusive":
        return ""
    return f"{record.verdict.reason}; needs {closing.needs(record)}"


def medians(record: ClaimRecord) -> Table:
    """By variant, the median of the metric with the smallest and the largest round."""
    rows = []
    void = [drawn.variant for block in record.void_rounds for drawn in block]
    for name, many in record.rounds.items():
        try:
            values = [value for value in rounds_csv.values(record, name) if math.isfinite(value)]
        except ConfigError:
            values = []
        spread = f"{words.figure(min(values))} .. {words.figure(max(values))}" if values else NOTHING
        median = words.figure(statistics.median(values)) if values else NOTHING
        rows.append((name, median, spread, str(len(many)), str(void.count(name))))
    return Table(
        ("variant", f"median, {metrics.label(record.metric)}", "rounds, least .. most", "rounds", "void"), tuple(rows)
    )


def _percentiles(found: Mapping[str, Mapping[str, float]]) -> Table | None:
    if not found:
        return None
    rows = tuple((name, *map(words.figure, values.values())) for name, values in found.items())
    return Table(("latency, ms", *latency_chart.SHARES), rows)


def _why(record: ClaimRecord, moved: Sequence[causes.Cause]) -> Table | None:
    """What moved, each with its medians, its ratio and its interval."""
    rows = []
    for cause in moved:
        name = f"{cause.name} per {cause.per}" if cause.per else cause.name
        ends = formatting.interval(cause.low, cause.high, EQUAL)
        bounded = claim_chart.bounded(cause.low, cause.high)
        values = words.figure(cause.baseline), words.figure(cause.candidate)
        said = formatting.ratio(cause.ratio, EQUAL) + ("" if cause.moved else ", not shown to differ")
        if not cause.baseline or not cause.candidate:  # there is no ratio to or from nothing
            said, ends = ("to 0", "below 1") if cause.baseline else ("from 0", "above 1")
        rows.append((name, *values, said, ends if bounded else formatting.NO_INTERVAL))
    return (
        Table(("counter or resource", record.baseline, record.candidate, "ratio", "interval"), tuple(rows))
        if rows
        else None
    )


def _why_not(record: ClaimRecord) -> str:
    if not any(drawn.counters or drawn.samples for many in record.rounds.values() for drawn in many):
        return "The rounds have no counters."
    return "No counter and no resource is shown to differ between the two variants."


def _nodes(record: ClaimRecord) -> Table | None:
    """By node, the median of the cores that it used, for each variant."""
    every = [drawn for many in record.rounds.values() for drawn in many]
    names = dict.fromkeys(name for drawn in every for name in drawn.samples if name.startswith("cpu_node"))
    variants = dict.fromkeys((record.baseline, record.candidate, *record.rounds))
    rows = []
    for name in names:
        cells = []
        for many in (record.rounds[variant] for variant in variants):
            used = [drawn.samples[name] for drawn in many if name in drawn.samples]
            cells.append(words.figure(statistics.median(used)) if used else NOTHING)
        rows.append((name.removeprefix("cpu_"), *cells))
    return Table(("node, cores used", *variants), tuple(rows)) if rows else None


def _variables(record: ClaimRecord) -> Table | None:
    rows = tuple((name, *values) for name, values in record.differences.items())
    return Table(("server variable", record.baseline, record.candidate), rows) if rows else None


def _durability(record: ClaimRecord) -> Table | None:
    rows = tuple(record.durability.items())
    return Table(("variant", "a commit survives with"), rows) if rows else None


def _remarks(record: ClaimRecord) -> list[str]:
    """What a reader must know besides: a narrower interval, and what there is to say about the rounds."""
    found = []
    if closing.holds_as_guard(record):
        level = wording.level(record.verdict)
        found.append(f"the guard holds by its 90 % interval; that of {level}: {words.interval(record)}")
    return [*found, *closing.of_rounds(record)]


def _void(record: ClaimRecord) -> tuple[str, ...]:
    return tuple(dict.fromkeys(remarks.reason(block) for block in record.void_rounds))
