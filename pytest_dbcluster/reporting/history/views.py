"""Views of a history: its series as a table, as CSV for other programs, and as charts."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import time
from collections.abc import Iterator, Sequence

from pytest_dbcluster.errors import Unsupported
from pytest_dbcluster.formatting import file_name
from pytest_dbcluster.reporting.charts import drawing
from pytest_dbcluster.reporting.charts import history as chart
from pytest_dbcluster.reporting.history.change_points import Change, change_points
from pytest_dbcluster.reporting.history.entry import Entry
from pytest_dbcluster.reporting.history.guard import RATIO, judge
from pytest_dbcluster.reporting.history.history_file import History
from pytest_dbcluster.reporting.tables import layout
from pytest_dbcluster.rounds import metrics

COLUMNS = (
    "time", "run", "commit", "dirty", "claim_id", "text", "load", "release", "version", "machine", "provisioner",
    "profile", "outcome", "ratio", "low", "high", "error", "pairs", "candidate", "candidate_median", "baseline",
    "baseline_median", "metric", "anchor", "busy",
)  # fmt: skip
SHORT = 7  # characters of a commit
# Of the time of a run: the first of them that differs for all runs of a chart.
TIMES = ("%Y-%m-%d", "%m-%d %H:%M", "%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S")


@dataclasses.dataclass(frozen=True)
class ClaimHistory:
    """All runs of one claim on one release, oldest first, also those of other machines."""

    claim_id: str
    """The id of the claim."""

    release: str
    """The release without its exact version."""

    entries: tuple[Entry, ...]
    """The runs."""

    changes: tuple[Change, ...]
    """The changes of the level within the runs of the newest machine.

    ``Change.first`` counts from the first of ``entries``.
    """

    machines: tuple[int, ...]
    """The numbers of the runs on another machine than the run before, 0-based."""

    @property
    def last(self) -> Entry:
        """The newest run."""
        return self.entries[-1]

    def svg(self, name: str) -> str | None:
        """The chart; None if there is nothing to draw. name: different for each chart of a page."""
        runs = [
            chart.ChartedRun(when, entry.outcome, entry.ratio, entry.low, entry.high)
            for when, entry in zip(self.times(), self.entries, strict=True)
        ]
        metric = self.last.metric
        ratios = self.last.shown_by.is_ratio
        of = "speed" if metrics.unit(metric) else metric
        label = f"ratio of {of}" if ratios else metrics.label(metric)
        changes = [change.first for change in self.changes]
        return chart.svg(runs, changes, self.machines, name, label, ratios=ratios)

    def times(self) -> list[str]:
        """When each run began, in local time: its date, or if two runs have the same date, with the time of day."""
        tried = [[time.strftime(form, time.localtime(one.time)) for one in self.entries] for form in TIMES]
        return next((texts for texts in tried if len(set(texts)) == len(texts)), tried[-1])

    def sentences(self) -> Iterator[str]:
        """What changed, one sentence each."""
        times = self.times()
        for change in self.changes:
            first = self.entries[change.first]
            size, chance = f"{100 * math.expm1(change.size):+.0f} %", f"chance {change.chance:.2g} without a change"
            yield f"new level since {times[change.first]}{_commit(first)}: {size} ({chance})"
        for number in self.machines:
            yield f"another machine since {times[number]}: {self.entries[number].machine}"
        for when, entry in zip(times, self.entries, strict=True):
            if entry.busy:
                yield f"busy machine on {when}: {entry.busy}; it is not compared with quiet runs"


def day(entry: Entry) -> str:
    """The date of a run, in local time."""
    return time.strftime("%Y-%m-%d", time.localtime(entry.time))


def _commit(entry: Entry) -> str:
    return f" (commit {entry.commit[:SHORT]}{'+' if entry.dirty else ''})" if entry.commit else ""


def claims(history: History, wanted: str = "") -> list[ClaimHistory]:
    """The history of each claim and release whose id contains ``wanted``, in the order of the file."""
    found: dict[tuple[str, str, str, str], list[Entry]] = {}
    for key, entries in history.series().items():
        if wanted in key.claim_id:
            found.setdefault((key.claim_id, key.release, key.provisioner, key.profile), []).extend(entries)
    return [_claim(history, sorted(entries, key=lambda entry: entry.time)) for entries in found.values()]


def _claim(history: History, entries: Sequence[Entry]) -> ClaimHistory:
    last = entries[-1]
    alike = [entry.key == last.key and bool(last.busy or not entry.busy) for entry in entries]
    at = [number for number, entry in enumerate(entries) if alike[number] and math.isfinite(entry.point.value)]
    found = change_points([entries[number].point.value for number in at])
    changes = tuple(dataclasses.replace(change, first=at[change.first]) for change in found)
    machines = tuple(
        number for number in range(1, len(entries)) if entries[number].machine != entries[number - 1].machine
    )
    return ClaimHistory(last.claim_id, last.release, tuple(entries), changes, machines)


def table(history: History, wanted: str = "") -> str:
    """The newest run of each claim, compared with the runs before it."""
    rows, shown = [], claims(history, wanted)
    judged = judge(history, {item.last.run for item in shown})
    newest = {(one.entry.run, one.entry.key): one for one in judged if one.subject == RATIO}
    for item in shown:
        last = item.last
        compared = newest[last.run, last.key]
        before, change = "-", "too few runs"
        if compared.drift.has_enough_runs:
            before, change = (
                last.shown_by.figure_text(compared.before, ()),
                f"{100 * math.expm1(compared.drift.change):+.0f} %",
            )
        drifted = f"{change} DRIFT" if compared.drift.warns else change
        kind, limits = last.shown_by, [1.0] if last.shown_by.is_ratio else []
        ratio = kind.figure_text(last.ratio, limits)
        if not math.isnan(last.ratio):
            ratio += f" ({kind.interval_text(last.low, last.high, limits)})"
        rows.append((item.claim_id, item.release, str(len(item.entries)), day(last), ratio, before, drifted))
    return layout.plain(("claim", "release", "runs", "last", "ratio", "before", "change"), rows)


def as_csv(history: History, wanted: str = "") -> str:
    """Every entry as a line of CSV; times are seconds since 1970 (UTC)."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for item in claims(history, wanted):
        for entry in item.entries:
            medians = {f"{side}_median": entry.medians.get(getattr(entry, side)) for side in ("candidate", "baseline")}
            fields = {**dataclasses.asdict(entry), **medians}
            writer.writerow([fields[name] for name in COLUMNS])
    return text.getvalue()


def charts(history: History, wanted: str = "") -> Iterator[tuple[str, str]]:
    """The name and the text of an SVG file for each claim with two runs. Raises Unsupported without matplotlib."""
    if not drawing.available():
        raise Unsupported(drawing.MISSING)
    for number, item in enumerate(claims(history, wanted), 1):
        if svg := item.svg(f"history{number}"):
            yield f"{number:02}-{file_name(item.release)}-{file_name(item.claim_id)}.svg", drawing.PROLOG + svg
