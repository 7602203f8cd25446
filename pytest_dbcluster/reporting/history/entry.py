"""Entry: one line of the history, about one claim of one run, and how it is made."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping

from pytest_dbcluster import formatting
from pytest_dbcluster.claims import kinds
from pytest_dbcluster.claims.claim import Kind
from pytest_dbcluster.reporting import rounds_csv
from pytest_dbcluster.reporting.documents import json_text
from pytest_dbcluster.reporting.documents.json_text import FileLine
from pytest_dbcluster.reporting.documents.run_document import MachineDocument, RunDocument
from pytest_dbcluster.reporting.history.drift import DriftPoint
from pytest_dbcluster.reporting.records import ClaimRecord, ClaimSubject, fields_of
from pytest_dbcluster.rounds import metrics

FORMAT = 1
KNOWN = json_text.Format(FORMAT, {}, "it stays in the file, and we ignore it", "the run can be added again")
CLAIM, ACCEPTED = "claim", "accepted"


@dataclasses.dataclass(frozen=True)
class SeriesKey:
    """What the runs of one series have in common: their ratios can be compared."""

    claim_id: str
    """As in ClaimRecord."""

    release: str
    """The release without its exact version, such as ``mariadb:10.11``."""

    machine: str
    """The hardware of the machine, as text (``machine_key``)."""

    provisioner: str
    """As in ClaimRecord."""

    profile: str
    """As in ClaimRecord."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry(ClaimSubject, SeriesKey, FileLine):
    """One claim of one run."""

    kind: str
    """``claim``."""

    run: str
    """The run's id."""

    time: float
    """When the run began, in seconds since 1970 (UTC)."""

    commit: str | None
    """As in RunDocument."""

    dirty: bool | None
    """As in RunDocument."""

    version: str
    """The release with its exact version."""

    outcome: str
    """``holds``, ``fails`` or ``inconclusive``."""

    ratio: float
    """The ratio of speed, candidate / baseline; of an event the estimate in seconds, or a share of its repetitions.

    Of ``meets`` it is milliseconds.
    """

    low: float
    """The lower end of the ratio's sequential interval."""

    high: float
    """The upper end of the ratio's sequential interval."""

    error: float
    """The standard error of the log ratio, from the noise of the rounds."""

    medians: Mapping[str, float]
    """By variant, the median of the metric."""

    pairs: int
    """The number of pairs of rounds."""

    anchor: float | None = None
    """Operations/s of the run's anchor; None if it was not measured."""

    seconds: float | None = None
    """Seconds of the whole test, with the starts of its clusters. None if it did not end in this run, and in lines of
    older versions.
    """

    busy: str = ""
    """Says that other programs took cores of the machine; empty if they did not, and in lines of older versions."""

    def __hash__(self) -> int:
        return hash((self.run, self.key))

    @property
    def key(self) -> SeriesKey:
        """The series that this entry belongs to."""
        return SeriesKey(**fields_of(SeriesKey, self))

    @property
    def shown_by(self) -> Kind:
        """A kind of claim whose texts have the unit of ``ratio``, ``low`` and ``high``: a ratio, seconds or a share."""
        if not self.baseline and metrics.unit(self.metric) == metrics.LATENCY:
            return kinds.meets
        if self.metric.partition(":")[0] not in metrics.OF_EVENTS:
            return kinds.beats
        return kinds.below if metrics.unit(self.metric) else kinds.loses_nothing

    @property
    def point(self) -> DriftPoint:
        """The log ratio with its error."""
        return DriftPoint(_log(self.ratio), self.error)

    def speed(self, variant: str) -> DriftPoint:
        """The log of a variant's median speed, relative to the run's anchor, which is a speed too.

        A latency counts as 1 / latency. nan if either is missing, for an event, and for a counter.
        """
        median, anchor = self.medians.get(variant, math.nan), self.anchor or math.nan
        speed = median if self.shown_by.is_ratio and not metrics.is_counter(self.metric) else math.nan
        if metrics.unit(self.metric) == metrics.LATENCY and speed > 0:
            speed = 1 / speed
        return DriftPoint(_log(speed / anchor), self.error / math.sqrt(2))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Acceptance(FileLine):
    """From this run on a series has a new level: earlier runs are not compared with later ones."""

    kind: str
    """``accepted``."""

    claim_id: str
    """As in ClaimRecord."""

    run: str
    """The id of the first run of the new level."""

    reason: str
    """The reason that the person who accepted it gave."""

    time: float
    """When it was accepted, in seconds since 1970 (UTC)."""


def _log(value: float) -> float:
    """The natural log; minus infinity for 0, and nan for negative values and nan."""
    if value > 0:
        return math.log(value)
    return -math.inf if value == 0 else math.nan


def machine_key(machine: MachineDocument) -> str:
    """The hardware that results depend on.

    It has no machine id, because hosted runners have another one in each run.
    """
    disk = f", {machine.file_system}" if machine.file_system else ""
    memory = formatting.gibibytes(machine.memory)
    return f"{machine.cpus} x {machine.cpu}, {machine.cores:g} usable, {memory}{disk}"


def entry_of(record: ClaimRecord, run: RunDocument, anchor: float | None = None, seconds: float | None = None) -> Entry:
    """The entry of a claim of a run. anchor, seconds: as in Entry."""
    verdict = record.verdict
    releases = [release.partition(" ")[0] for release in record.release.split(", ")]
    return Entry(
        **fields_of(ClaimSubject, record),
        format=FORMAT,
        kind=CLAIM,
        claim_id=record.claim_id,
        run=run.run_id,
        time=run.began,
        commit=run.commit,
        dirty=run.dirty,
        release=", ".join(releases),
        version=record.release,
        machine=machine_key(run.machine),
        provisioner=record.provisioner,
        outcome=verdict.outcome.value,
        ratio=verdict.ratio,
        low=verdict.low,
        high=verdict.high,
        error=verdict.pair_sd / math.sqrt(verdict.pairs) if verdict.pairs else math.inf,
        medians={name: statistics.median(rounds_csv.values(record, name)) for name in record.rounds if verdict.pairs},
        pairs=verdict.pairs,
        anchor=anchor,
        seconds=seconds,
        busy=record.others.busy if record.others else "",
    )
