"""The part of the page about one claim."""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics
from collections.abc import Sequence

from pytest_dbcluster import formatting, reasons
from pytest_dbcluster.claims import wording
from pytest_dbcluster.claims.claim import EQUAL
from pytest_dbcluster.claims.race import standing
from pytest_dbcluster.errors import ConfigError
from pytest_dbcluster.formatting import NOTHING, amount
from pytest_dbcluster.measuring import remarks
from pytest_dbcluster.measuring.why import wording as servers
from pytest_dbcluster.measuring.why.compared import ComparedFigure, ServerComparison
from pytest_dbcluster.measuring.why.stacks import FunctionTime, function_times
from pytest_dbcluster.reasons import Advice
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.charts import capacity as capacity_chart
from pytest_dbcluster.reporting.charts import claim as claim_chart
from pytest_dbcluster.reporting.charts import colours, flame, timeline
from pytest_dbcluster.reporting.charts import latency as latency_chart
from pytest_dbcluster.reporting.charts.timeline import Samples
from pytest_dbcluster.reporting.page import causes, words
from pytest_dbcluster.reporting.records import ClaimRecord
from pytest_dbcluster.reporting.tables import closing, parts
from pytest_dbcluster.rounds import metrics
from pytest_dbcluster.rounds.capacity import summary
from pytest_dbcluster.rounds.outages.outage import Outage
from pytest_dbcluster.rounds.round import Round

# What a repetition of an event cost; seconds count from the event.
OUTAGE = (
    "node",
    "stall, s",
    "begins, s",
    "without commit, s",
    "read stall, s",
    "below half, s",
    "missing, s",
    "commits/s before",
    "lost and invented",
    "failed and unknown",
    "connections lost",
    "node back in, s",
    "without redundancy, s",
    "events before",
    "conditions violated",
)

# What a statement took on the servers.
SERVER_COLUMNS = (
    "statement",
    "calls",
    "latency, ms",
    "ratio",
    "rows examined",
    "rows sent",
    "temporary tables",
    "on disk",
    "lock, ms",
)
MOST_FUNCTIONS = 15


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of texts."""

    columns: tuple[str, ...]
    """The heading of each column."""

    rows: tuple[tuple[str, ...], ...]
    """The rows. The first cell is a heading of its row; the others are aligned to the right."""


@dataclasses.dataclass(frozen=True)
class ClaimView:
    """One claim as texts and tables of its record, and its charts; the template leaves out what is empty."""

    record: ClaimRecord
    """The claim; the template shows some of its fields as they are."""

    key: str = ""
    """The address of the claim in the page."""

    source: str = ""
    """Its results directory; empty on a page of one directory."""

    chart: str = ""
    """The rounds of the claim, as SVG text like the other charts."""

    latency: str = ""
    """The latencies of each variant."""

    capacity: str = ""
    """The latency of each variant over the arrival rate."""

    timeline: str = ""
    """The speed in every second."""

    hosts: str = ""
    """CPU, disk and network of each host in every second."""

    flame: str = ""
    """The CPU time of the servers by function, in extra rounds."""

    closer: ClaimRecord | None = None
    """Of a guard of ``dbcluster compare``, the comparison after all rounds, whose figures are shown; otherwise None."""

    @property
    def shown(self) -> ClaimRecord:
        """The record whose rounds are shown."""
        return self.closer or self.record

    @functools.cached_property
    def state(self) -> str:
        """A word of ``words.SYMBOLS``."""
        return words.state(self.record)

    @functools.cached_property
    def symbol(self) -> str:
        """The symbol of the state."""
        return words.SYMBOLS[self.state]

    @functools.cached_property
    def sentence(self) -> str:
        """The answer in words."""
        return words.sentence(self.record)

    @functools.cached_property
    def data(self) -> str:
        """The size of the workload's tables; by variant if that differs, and empty if no variant has it."""
        data = self.record.data
        if len(set(data.values())) > 1 or data.keys() != self.record.rounds.keys():
            return "; ".join(f"{name} {size}" for name, size in data.items())
        return next(iter(data.values()), "")

    @functools.cached_property
    def release(self) -> str:
        """The releases, the provisioner and the storage."""
        return ", ".join(filter(None, (self.record.release, self.record.provisioner, self.record.storage)))

    @property
    def title(self) -> str:
        """What is measured."""
        return "measured ratio" if self.record.verdict.claim.of_kind.is_ratio else "measured"

    @functools.cached_property
    def measured(self) -> str:
        """The measured ratio, or seconds of an event."""
        return words.ratio(self.shown)

    @functools.cached_property
    def interval(self) -> str:
        """The interval that decided, with its level; with ``closer`` its interval."""
        record = self.shown
        low, high, level = closing.deciding_interval(record)
        return f"{level}: {wording.interval(record.verdict, (low, high))}"

    @functools.cached_property
    def published(self) -> str:
        """The published ratio; empty if no ratio is published."""
        return "" if self.record.published is None else formatting.ratio(self.record.published)

    @functools.cached_property
    def difference(self) -> str:
        """How the measured ratio relates to the published one, in words; empty if no ratio is published."""
        verdict, published = self.record.verdict, self.record.published
        if published is None or not math.isfinite(verdict.ratio):
            return ""
        times = f"the measured ratio is {formatting.ratio(verdict.ratio / published, EQUAL)} the published one"
        if verdict.low == 0 and math.isinf(verdict.high):
            return times
        inside = verdict.low <= published <= verdict.high
        return f"{times}, which lies {'inside' if inside else 'outside'} the interval"

    @functools.cached_property
    def needs(self) -> str:
        """Why a claim is inconclusive, and what would decide it; empty for others."""
        if self.state != "inconclusive":
            return ""
        return f"{self.record.verdict.reason}; needs {closing.needs(self.record)}"

    @functools.cached_property
    def advice(self) -> Advice | None:
        """What to do about the reasons of an inconclusive claim, as the documentation says; None for others."""
        return reasons.advice(self.record.verdict.reason) if self.needs else None

    @functools.cached_property
    def medians(self) -> Table:
        """By variant, the median of the metric with the smallest and the largest round."""
        rows = []
        void = [drawn.variant for block in self.shown.void_rounds for drawn in block]
        for name, many in self._rounds.items():
            try:
                values = [value for value in rounds_csv.values(self.shown, name) if math.isfinite(value)]
            except ConfigError:
                values = []
            spread = f"{words.figure(min(values))} .. {words.figure(max(values))}" if values else NOTHING
            median = words.figure(statistics.median(values)) if values else NOTHING
            rows.append((name, median, spread, str(len(many)), str(void.count(name))))
        columns = (
            "variant",
            f"median, {metrics.label(self.shown.metric)}",
            "rounds, least .. most",
            "rounds",
            "void",
        )
        return Table(columns, tuple(rows))

    @functools.cached_property
    def race(self) -> Table | None:
        """By variant its place in the race; None for other claims."""
        found = self.record.standings
        return Table(standing.columns(found), tuple(standing.rows(found))) if found else None

    @functools.cached_property
    def rates(self) -> Table | None:
        """By variant, the median latency at each arrival rate; None for rounds that measure no capacity."""
        curves = capacity_chart.curves(self._rounds)
        found = {name: summary.median_latencies(many) for name, many in curves.items()}
        early = {name: summary.rates_that_ended_early(many) for name, many in curves.items()}
        rates = sorted({rate for latencies in found.values() for rate in latencies})

        def cell(name: str, rate: float) -> str:
            missed = " (missed early)" if rate in early[name] else ""
            return f"{words.figure(1e3 * found[name][rate])}{missed}" if rate in found[name] else NOTHING

        rows = tuple((name, *(cell(name, rate) for rate in rates)) for name in found)
        return Table(("latency in ms at", *(f"{amount(rate)}/s" for rate in rates)), rows) if rows else None

    @functools.cached_property
    def percentiles(self) -> Table | None:
        """By variant, the percentiles of its latencies; None without ledgers, and for rounds with several rates."""
        found = {} if self.rates else latency_chart.percentiles(self._rounds)
        rows = tuple((name, *map(words.figure, values.values())) for name, values in found.items())
        return Table(("latency, ms", *latency_chart.SHARES), rows) if rows else None

    @functools.cached_property
    def _rounds(self) -> dict[str, Sequence[Round]]:
        """The rounds of each variant in the order of every table: the baseline, the candidate, the others."""
        rounds = self.shown.rounds
        return {name: rounds[name] for name in (self.shown.baseline, self.shown.candidate, *rounds) if name in rounds}

    @functools.cached_property
    def parts(self) -> Table | None:
        """By transaction and statement, the latencies of each variant.

        None if the workload has a single part, and for rounds with several rates.
        """
        rows = tuple(
            (one.part, one.variant, str(one.count), *map(words.figure, one.milliseconds))
            for one in ([] if self.rates else parts.latencies(self._rounds))
        )
        return Table(("latency, ms", "variant", "count", *parts.SHOWN), rows) if rows else None

    @functools.cached_property
    def why(self) -> Table | None:
        """What moved, each with its medians, its ratio and its interval; None if nothing did."""
        rows = tuple(map(_cause_row, causes.causes(self.shown)))
        columns = (
            "counter or resource",
            self.shown.baseline,
            self.shown.candidate,
            "ratio",
            "interval",
        )
        return Table(columns, rows) if rows else None

    @property
    def why_not(self) -> str:
        """Why ``why`` has no table."""
        if not any(drawn.counters or drawn.samples for many in self.shown.rounds.values() for drawn in many):
            return "The rounds have no counters."
        return "No counter and no resource is shown to differ between the two variants."

    @functools.cached_property
    def servers(self) -> tuple[tuple[str, Table], ...]:
        """What the servers did in extra rounds, as tables with titles; empty without these rounds."""
        found = self.record.servers
        return tuple((title, made) for title, made in _server_tables(found) if made.rows) if found else ()

    @functools.cached_property
    def nodes(self) -> Table | None:
        """By node, the median of the cores that it used, for each variant."""
        every = [drawn for many in self._rounds.values() for drawn in many]
        names = dict.fromkeys(name for drawn in every for name in drawn.samples if name.startswith("cpu_node"))
        rows = []
        for name in names:
            cells = []
            for many in self._rounds.values():
                used = [drawn.samples[name] for drawn in many if name in drawn.samples]
                cells.append(words.figure(statistics.median(used)) if used else NOTHING)
            rows.append((name.removeprefix("cpu_"), *cells))
        return Table(("node, cores used", *self._rounds), tuple(rows)) if rows else None

    @functools.cached_property
    def repetitions(self) -> Table | None:
        """By repetition of an event, what it cost the load; None for claims about rounds."""
        rows = tuple(
            (f"{name} {number}", *_outage_cells(drawn.outage))
            for name, many in self.shown.rounds.items()
            for number, drawn in enumerate(many, 1)
            if drawn.outage
        )
        return Table(("repetition", *OUTAGE), rows) if rows else None

    @functools.cached_property
    def variables(self) -> Table | None:
        """The server variables and proxy options that differ."""
        rows = tuple((name, *values) for name, values in self.record.differences.items())
        return Table(("variable or proxy option", self.record.baseline, self.record.candidate), rows) if rows else None

    @functools.cached_property
    def durability(self) -> Table | None:
        """By variant, the failures that a commit survives."""
        rows = tuple(self.record.durability.items())
        return Table(("variant", "a commit survives with"), rows) if rows else None

    @functools.cached_property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know besides: a narrower interval, and what there is to say about the rounds."""
        found = []
        if closing.holds_as_guard(self.record):
            level = wording.level(self.record.verdict)
            own = f"the guard holds by its 90 % interval; at {level}: {words.interval(self.record)}"
            after = f"the guard holds by its 90 % interval, {closing.guard_interval(self.record)}"
            found.append(own if self.closer is None else f"{after}, after {self.record.verdict.pairs} pairs")
        return (*found, *closing.of_rounds(self.shown))

    @functools.cached_property
    def void(self) -> tuple[str, ...]:
        """The reasons why rounds were void."""
        return tuple(dict.fromkeys(remarks.reason(block) for block in self.shown.void_rounds))


def view(
    record: ClaimRecord,
    key: str,
    source: str = "",
    samples: Samples | None = None,
    closer: ClaimRecord | None = None,
) -> ClaimView:
    """The view of a claim. samples: the samples of every second; None without them. closer: as in ``ClaimView``.

    All its texts are made here, so an error leaves out this claim and not the page.
    """
    shown = closer or record
    curves = capacity_chart.curves(shown.rounds)
    latencies = {} if curves else latency_chart.percentiles(shown.rounds)
    charts = {
        "chart": claim_chart.svg(shown, key, titled=False),
        "latency": latency_chart.svg(latencies, f"{key}-latency"),
        "capacity": capacity_chart.svg(curves, f"{key}-capacity"),
        "timeline": samples and timeline.svg(samples, shown.rounds, f"{key}-timeline"),
        "flame": record.servers and flame.svg(record.servers.stacks),
        "hosts": samples and timeline.hosts_svg(samples, shown.rounds, f"{key}-hosts"),
    }
    drawn = {name: colours.apply_theme(svg or "") for name, svg in charts.items()}
    made = ClaimView(record, key, source, **drawn, closer=closer)
    for name, part in vars(ClaimView).items():
        if isinstance(part, functools.cached_property):
            getattr(made, name)
    return made


def _outage_cells(found: Outage) -> tuple[str, ...]:
    """The cells of OUTAGE."""
    books, returned = found.books, found.returned
    return (
        found.node or NOTHING,
        _seconds(found.stall, censored=found.censored),
        _seconds(found.stall_at),
        _seconds(found.without_commit, censored=found.censored),
        _seconds(found.read_stall, censored=found.read_censored),
        *(NOTHING if value is None else f"{value:.1f}" for value in (found.below_half, found.missing)),
        words.figure(found.usual.rate),
        f"{books.lost} and {books.invented} of {books.acknowledged}" if books else NOTHING,
        f"{found.failed} and {found.unknown}",
        str(found.connections_lost),
        f"{returned.seconds:.1f} {returned.how}".strip() if returned else NOTHING,
        NOTHING if found.without_redundancy is None else f"{found.without_redundancy:.1f}",
        NOTHING if found.events_before is None else str(found.events_before),
        str(len(found.violations)),
    )


def _seconds(value: float, *, censored: bool = False) -> str:
    """Seconds, with a sign for a lower bound; a dash for nan."""
    return NOTHING if math.isnan(value) else f"{'> ' if censored else ''}{value:.2f}"


def _server_tables(found: ServerComparison) -> list[tuple[str, Table]]:
    """The tables of a comparison of servers, each with its title."""
    names, every = (found.baseline, found.candidate), found.statements
    statements = [
        (
            one.statement,
            _two(one.baseline.calls, one.candidate.calls),
            _two(1e3 * one.baseline.seconds, 1e3 * one.candidate.seconds),
            servers.ratio_text(one.baseline.seconds, one.candidate.seconds),
            _two(one.baseline.rows_examined, one.candidate.rows_examined),
            _two(one.baseline.rows_sent, one.candidate.rows_sent),
            _two(one.baseline.temporary_tables, one.candidate.temporary_tables),
            _two(one.baseline.disk_tables, one.candidate.disk_tables),
            _two(1e3 * one.baseline.lock_seconds, 1e3 * one.candidate.lock_seconds),
        )
        for one in every
    ]
    plans = [
        (one.statement, servers.plan_text(one.baseline_plan), servers.plan_text(one.candidate_plan))
        for one in every
        if one.has_other_plan
    ]
    functions = tuple(_figure_row(one, 1e3) for one in function_times(found.stacks)[:MOST_FUNCTIONS])
    waits = tuple(_figure_row(one, 1e3) for one in found.waits)
    status = tuple(_figure_row(one, 1.0) for one in found.status)
    return [
        ("Statements whose plan differs", Table(("statement", *names), tuple(plans))),
        (f"Statements, {' v '.join(names)}, per operation", Table(SERVER_COLUMNS, tuple(statements))),
        ("Waits by event, milliseconds per operation", Table(("event", *names, "ratio"), waits)),
        ("Status that moved, per operation", Table(("variable", *names, "ratio"), status)),
        ("CPU by function itself, milliseconds per operation", Table(("function", *names, "ratio"), functions)),
    ]


def _two(baseline: float, candidate: float) -> str:
    """A figure of both variants; a dash if it is 0 for both."""
    return f"{words.figure(baseline)} v {words.figure(candidate)}" if baseline or candidate else NOTHING


def _figure_row(one: ComparedFigure | FunctionTime, unit: float) -> tuple[str, ...]:
    """The row of a wait, a status variable or a function."""
    values = (words.figure(unit * one.baseline), words.figure(unit * one.candidate))
    return (one.name, *values, servers.ratio_text(one.baseline, one.candidate))


def _cause_row(cause: causes.Cause) -> tuple[str, ...]:
    """The row of something that moved."""
    name = f"{cause.name} per {cause.per}" if cause.per else cause.name
    ends = formatting.interval(cause.low, cause.high, EQUAL)
    ratio = formatting.ratio(cause.ratio, EQUAL) + ("" if cause.moved else ", not shown to differ")
    if not cause.baseline or not cause.candidate:  # there is no ratio to or from nothing
        ratio, ends = ("to 0", "below 1") if cause.baseline else ("from 0", "above 1")
    bounded = claim_chart.has_bounds(cause.low, cause.high)
    values = words.figure(cause.baseline), words.figure(cause.candidate)
    return (name, *values, ratio, ends if bounded else formatting.NO_INTERVAL)
